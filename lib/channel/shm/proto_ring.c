/* SPDX-License-Identifier: BSD-3-Clause */
/* proto_ring.c: copy twice, overlapping, through the fifo's byte ring. */
#include "lib/channel/shm/shm_rndv.h"

const struct rk_shm_proto rk_shm_proto_ring = {
    .name = "ring",
    .id = RK_PROTO_RING,
    .needs = RK_NEEDS_RING,
    .run = rk_shm_stream_request,
};

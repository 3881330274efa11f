/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proto_ring_nt.c: as ring; the sender's copy uses nontemporal stores.
 *
 * The sender selects these by the size of a part (nt_from in fifo.h), so that the receiver requests the same.
 */
#include "lib/channel/shm/shm_rndv.h"

const struct rk_shm_proto rk_shm_proto_ring_nt = {
    .name = "ring_nt",
    .id = RK_PROTO_RING_NT,
    .needs = RK_NEEDS_RING,
    .run = rk_shm_stream_request,
};

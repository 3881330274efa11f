/* SPDX-License-Identifier: BSD-3-Clause */
/* proto_xpmem2.c: as xpmem; the sender copies a share to attached memory. */
#include "lib/channel/shm/shm_rndv.h"

static bool xpmem2_run(struct rk_shm_recv *r)
{
    rk_shm_copy_together(r, NULL, true);
    return true;
}

const struct rk_shm_proto rk_shm_proto_xpmem2 = {
    .name = "xpmem2",
    .id = RK_PROTO_XPMEM2,
    .needs = RK_NEEDS_XPMEM | RK_NEEDS_ASSIST,
    .alone = &rk_shm_proto_xpmem,
    .instead = &rk_shm_proto_cma2,
    .run = xpmem2_run,
};

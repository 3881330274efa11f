/* SPDX-License-Identifier: BSD-3-Clause */
/* proto_cma2.c: as cma; the sender writes a share (process_vm_writev). */
#include "lib/channel/shm/shm_rndv.h"

static bool cma2_run(struct rk_shm_recv *r)
{
    rk_shm_copy_together(r, NULL);
    return true;
}

const struct rk_shm_proto rk_shm_proto_cma2 = {
    .name = "cma2",
    .id = RK_PROTO_CMA2,
    .needs = RK_NEEDS_CMA | RK_NEEDS_ASSIST,
    .alone = &rk_shm_proto_cma,
    .run = cma2_run,
};

/* SPDX-License-Identifier: BSD-3-Clause */
/* proto_mapped2.c: as mapped; the sender copies a share, mapped or by CMA. */
#include "lib/channel/shm/shm_rndv.h"

static bool mapped2_run(struct rk_shm_recv *r)
{
    rk_shm_copy_together(r, r->here);
    return true;
}

const struct rk_shm_proto rk_shm_proto_mapped2 = {
    .name = "mapped2",
    .id = RK_PROTO_MAPPED2,
    .needs = RK_NEEDS_MAPPING | RK_NEEDS_ASSIST,
    .alone = &rk_shm_proto_mapped,
    .run = mapped2_run,
};

/* SPDX-License-Identifier: BSD-3-Clause */
/* proto_mapped.c: copy once from the mapping of rank_alloc or registered memory. */
#include "lib/channel/shm/shm_rndv.h"

static bool mapped_run(struct rk_shm_recv *r)
{
    rk_shm_recv_finish(r, rk_view_copy(&r->req->view, &(struct rk_view){(char *)r->here, r->want, NULL}, r->want));
    return true;
}

const struct rk_shm_proto rk_shm_proto_mapped = {
    .name = "mapped",
    .id = RK_PROTO_MAPPED,
    .needs = RK_NEEDS_MAPPING,
    .run = mapped_run,
};

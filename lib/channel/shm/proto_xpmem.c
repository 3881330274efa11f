/* SPDX-License-Identifier: BSD-3-Clause */
/* proto_xpmem.c: copy once from attached memory of the sender. */
#include "lib/channel/shm/shm_rndv.h"

static bool xpmem_run(struct rk_shm_recv *r)
{
    struct rk_xpmem *far = rk_shm_attached(r->ep);
    char *here = rk_xpmem_begin(far, r->at, r->want);
    rank_status_t st = RANK_OK;

    if (here)
        st = rk_view_copy(&r->req->view, &(struct rk_view){here, r->want, NULL}, r->want);
    if (!here || !rk_xpmem_end(far)) {
        r->has &= ~(unsigned)RK_NEEDS_XPMEM;
        return false;
    }
    rk_shm_recv_finish(r, st);
    return true;
}

const struct rk_shm_proto rk_shm_proto_xpmem = {
    .name = "xpmem",
    .id = RK_PROTO_XPMEM,
    .needs = RK_NEEDS_XPMEM,
    .instead = &rk_shm_proto_cma,
    .run = xpmem_run,
};

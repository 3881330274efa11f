/* SPDX-License-Identifier: BSD-3-Clause */
/* proto_cma.c: copy once through the kernel (process_vm_readv), lists too. */
#include "lib/channel/shm/cma_iov.h"
#include "lib/channel/shm/shm_rndv.h"
#include "lib/node/cma.h"

static bool cma_run(struct rk_shm_recv *r)
{
    const struct rk_view *view = &r->req->view;
    bool lists = r->in_pieces || view->ops;
    rank_status_t st = lists ? rk_shm_gather(r->ep, r->at, r->in_pieces, view, r->want)
                             : rk_cma_read(r->ep->pid, view->base, r->at, r->want);

    if (st == RANK_ERR_CHANNEL) {
        if (!lists)
            rk_shm_cma_failed(r->ep);
        r->has &= ~(unsigned)RK_NEEDS_ACCESS; /* what the kernel cannot copy goes through the ring */
        return false;
    }
    rk_shm_recv_finish(r, st);
    return true;
}

const struct rk_shm_proto rk_shm_proto_cma = {
    .name = "cma",
    .id = RK_PROTO_CMA,
    .needs = RK_NEEDS_CMA,
    .run = cma_run,
};

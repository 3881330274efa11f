/* SPDX-License-Identifier: BSD-3-Clause */
/* trivial.c: run calls that need no other rank: teams of one, empty calls. */
#include "collectives/trivial.h"

#include <string.h>

/* One rank: copy its input to the result. */
static void do_alone(const struct rk_coll_call *c)
{
    char *to = c->rbuf;

    if (c->kind == RK_COLL_ALLGATHERV)
        to += (size_t)c->displs[0] * c->elem;
    if (c->bytes && c->kind != RK_COLL_BARRIER && c->kind != RK_COLL_BCAST && to != c->sbuf)
        memcpy(to, c->sbuf, c->bytes);
}

rank_status_t rk_local_do(const struct rk_coll_call *c, rank_request_t *out)
{
    struct rank_request *req;
    rank_status_t st = c->team->size > 1 ? rk_coll_may_begin(c->team) : RANK_OK;

    if (st)
        return st;
    if (c->team->size == 1)
        do_alone(c);
    if (!out)
        return RANK_OK;
    req = rk_req_alloc(c->team->ctx);
    if (!req)
        return RANK_ERR_NO_MEMORY;
    rk_sched_request(req, c->team->ctx);
    rk_req_complete(req, RANK_OK);
    *out = req;
    return RANK_OK;
}

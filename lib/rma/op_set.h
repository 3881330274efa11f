/* SPDX-License-Identifier: BSD-3-Clause */
/* op_set.h: wait for several requests of one call. */
#ifndef RK_RMA_OP_SET_H
#define RK_RMA_OP_SET_H

#include "lib/core/engine.h"

struct rk_counter {
    int64_t left;        /* not complete */
    rank_status_t first; /* first error */
};

RK_INLINE void rk_counter_done(struct rank_request *req, void *arg)
{
    struct rk_counter *group = arg;

    if (req->status && !group->first)
        group->first = req->status;
    group->left--;
    rk_req_free(req);
}

/* Add one. NULL: out of memory. */
RK_INLINE struct rank_request *rk_counter_add(struct rk_counter *group, struct rk_peer *peer)
{
    struct rank_request *req = rk_req_alloc(peer->ctx);

    if (!req)
        return NULL;
    req->type = RK_REQ_RMA;
    req->peer = peer;
    req->on_done = rk_counter_done;
    req->arg = group;
    group->left++;
    return req;
}

/* Remove one that was not started. */
RK_INLINE void rk_counter_undo(struct rk_counter *group, struct rank_request *req)
{
    group->left--;
    rk_req_free(req);
}

struct rk_counter_wait {
    struct rk_wait wait;
    const struct rk_counter *group;
};

RK_INLINE bool rk_counter_is_done(struct rk_wait *w)
{
    return ((struct rk_counter_wait *)w)->group->left == 0;
}

RK_INLINE rank_status_t rk_counter_wait(struct rk_ctx *ctx, struct rk_counter *group)
{
    struct rk_counter_wait w;

    if (group->left == 0)
        return group->first;
    w = (struct rk_counter_wait){.wait = {.kind = RK_FOR_RMA}, .group = group};
    rk_wait_on(ctx, &w.wait, rk_counter_is_done);
    return group->first;
}

#endif

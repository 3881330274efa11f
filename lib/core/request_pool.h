/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request_pool.h: allocate and free requests inline, for each message.
 */
#ifndef RK_CORE_REQUEST_POOL_H
#define RK_CORE_REQUEST_POOL_H

#include "lib/base/slab.h"
#include "lib/core/engine.h"

struct rk_requests {
    struct rk_slab pool; /* chained through link: the magic word of a free request stays */
    uint8_t hold;        /* value for all of them */
    struct rk_handles ids;
    struct rank_request sent;
    struct rk_link retired; /* of a closed context: handles outlive it */
};

enum { RK_POOL_LINK = offsetof(struct rank_request, link) };

/* NULL: out of memory, which is reported. */
RK_COLD struct rank_request *rk_pool_grow(struct rk_requests *r);

/* Is at least one at hand? */
RK_INLINE bool rk_pool_has(struct rk_ctx *ctx)
{
    return ctx->engine->requests->pool.free != NULL;
}

RK_INLINE struct rank_request *rk_pool_take(struct rk_ctx *ctx)
{
    struct rk_requests *r = ctx->engine->requests;
    struct rank_request *req = rk_slab_reuse(&r->pool, RK_POOL_LINK);

    if (rk_unlikely(!req) && !(req = rk_pool_grow(r)))
        return NULL;
    req->magic = RK_REQ_MAGIC;
    req->ctx = ctx;
    req->done = false;
    req->on_done = NULL;
    req->flags = RK_REQ_POOLED;
    req->hold = r->hold;
    return req;
}

RK_INLINE void rk_pool_give(struct rk_requests *r, struct rank_request *req)
{
    req->magic = 0; /* a second test or wait with a copy of the handle is rejected */
    rk_slab_free(&r->pool, req, RK_POOL_LINK);
}

/* The completed send that all immediately completed sends share. */
RK_INLINE struct rank_request *rk_req_sent(struct rk_ctx *ctx)
{
    return &ctx->engine->requests->sent;
}

#endif

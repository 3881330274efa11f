/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request_pool.h: taking requests from the pool and giving them back, for the calls that do so for each message.
 */
#ifndef RK_CORE_REQUEST_POOL_H
#define RK_CORE_REQUEST_POOL_H

#include "lib/core/engine.h"

struct rk_requests {
    struct rank_request *free; /* chained through link.next: the last one given back is still in the cache */
    uint8_t hold;              /* what all have */
    struct rk_pool_slab *slabs;
    struct rk_req_name *names;
    uint32_t nnames, first_free;
    struct rank_request sent;
    struct rk_requests *next; /* of contexts that are closed: handles outlive them */
};

/* As take; NULL: no memory, which is said. */
RK_COLD struct rank_request *rk_pool_grow(struct rk_requests *r);

/* One at least? */
RK_INLINE bool rk_pool_has(struct rk_ctx *ctx)
{
    return ctx->engine->requests->free != NULL;
}

RK_INLINE struct rank_request *rk_pool_take(struct rk_ctx *ctx)
{
    struct rk_requests *r = ctx->engine->requests;
    struct rank_request *req = r->free;

    if (rk_unlikely(!req) && !(req = rk_pool_grow(r)))
        return NULL;
    r->free = (struct rank_request *)(void *)req->link.next;
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
    req->magic = 0; /* a second test or wait with a copy of the handle is refused */
    req->link.next = (struct rk_link *)(void *)r->free;
    r->free = req;
}

/* A send that is done, for all those that were at once. */
RK_INLINE struct rank_request *rk_req_sent(struct rk_ctx *ctx)
{
    return &ctx->engine->requests->sent;
}

#endif

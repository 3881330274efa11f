/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request_pool.h: allocate and free requests inline, for each message.
 */
#ifndef RK_CORE_REQUEST_POOL_H
#define RK_CORE_REQUEST_POOL_H

#include "lib/core/engine.h"

struct rk_requests {
    struct rank_request *free; /* chained through link.next, last freed first: it is still in the cache */
    uint8_t hold;              /* value for all of them */
    struct rk_pool_slab *slabs;
    struct rk_req_name *names;
    uint32_t nnames, first_free;
    struct rank_request sent;
    struct rk_link retired; /* of a closed context: handles outlive it */
};

/* NULL: out of memory, which is reported. */
RK_COLD struct rank_request *rk_pool_grow(struct rk_requests *r);

/* Is at least one free? */
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
    req->magic = 0; /* a second test or wait with a copy of the handle is rejected */
    req->link.next = (struct rk_link *)(void *)r->free;
    r->free = req;
}

/* The completed send that all immediately completed sends share. */
RK_INLINE struct rank_request *rk_req_sent(struct rk_ctx *ctx)
{
    return &ctx->engine->requests->sent;
}

#endif

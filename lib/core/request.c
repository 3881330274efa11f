/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request.c: pool requests, give them ids for the wire, complete them.
 */
#include "lib/core/request.h"
#include "lib/base/log.h"
#include "lib/base/retired.h"
#include "lib/core/request_pool.h"

#include <stdlib.h>
#include <string.h>

enum { SLAB = 64 };

/* Starts on a cache line: the hot part of a request then takes two lines, not three. */
struct rk_pool_slab {
    struct rk_pool_slab *next;
    struct {
        struct rank_request req RK_ALIGNED_LINE;
    } of[SLAB];
};

/* An id is an index into this table plus the generation of its current holder. */
struct rk_req_name {
    struct rank_request *req; /* NULL: free */
    uint32_t gen;
    uint32_t next_free;
};

/* Pools of closed contexts: users may still hold requests, which wait and test reject. */
static struct rk_retired retired = RK_RETIRED_INIT(8);

static struct rk_requests *requests_take_memory(void)
{
    struct rk_link *link = rk_retired_take(&retired);
    struct rk_requests *r = link ? rk_list_entry(link, struct rk_requests, retired) : NULL;
    struct rk_pool_slab *slabs = r ? r->slabs : NULL;

    if (!r)
        return calloc(1, sizeof(*r));
    *r = (struct rk_requests){.slabs = slabs};
    for (struct rk_pool_slab *s = slabs; s; s = s->next) {
        for (int i = 0; i < SLAB; i++)
            rk_pool_give(r, &s->of[i].req);
    }
    return r;
}

rank_status_t rk_requests_open(struct rk_ctx *ctx)
{
    ctx->engine->requests = requests_take_memory();
    if (!ctx->engine->requests)
        return RANK_ERR_NO_MEMORY;
    ctx->engine->requests->first_free = UINT32_MAX;
    ctx->engine->requests->sent = (struct rank_request){
        .magic = RK_REQ_MAGIC,
        .type = RK_REQ_SEND,
        .flags = RK_REQ_POOLED | RK_REQ_SHARED,
        .done = true,
        .status = RANK_OK,
        .elem = 1,
        .ctx = ctx,
    };
    return RANK_OK;
}

void rk_requests_share(struct rk_ctx *ctx)
{
    ctx->engine->requests->hold = ctx->engine->requests->sent.hold = RK_HOLD_SHARED;
}

void rk_requests_spoil(struct rk_ctx *ctx)
{
    struct rk_requests *r = ctx->engine ? ctx->engine->requests : NULL;

    for (struct rk_pool_slab *s = r ? r->slabs : NULL; s; s = s->next) {
        for (int i = 0; i < SLAB; i++) {
            if (s->of[i].req.magic) /* untouched memory is not copied in a forked child */
                s->of[i].req.magic = 0;
        }
    }
    if (r)
        r->sent.magic = 0;
}

void rk_requests_close(struct rk_ctx *ctx)
{
    struct rk_requests *r = ctx->engine->requests;

    if (!r)
        return;
    rk_requests_spoil(ctx);
    free(r->names);
    r->names = NULL;
    r->nnames = 0;
    rk_retired_put(&retired, &r->retired);
    ctx->engine->requests = NULL;
}

/* ------------------------------------------------------------------- the pool */

struct rank_request *rk_pool_grow(struct rk_requests *r)
{
    struct rk_pool_slab *s = aligned_alloc(RK_CACHE_LINE, sizeof(*s));

    if (!s) {
        rk_error("out of memory for requests");
        return NULL;
    }
    memset(s, 0, sizeof(*s));
    s->next = r->slabs;
    r->slabs = s;
    for (int i = 0; i < SLAB; i++)
        rk_pool_give(r, &s->of[i].req);
    return r->free;
}

struct rank_request *rk_req_alloc(struct rk_ctx *ctx)
{
    return rk_pool_take(ctx);
}

void rk_req_free(struct rank_request *req)
{
    if (!(req->flags & RK_REQ_SHARED))
        rk_pool_give(req->ctx->engine->requests, req);
}

/* ------------------------------------------------------------------------ ids */

rank_status_t rk_req_name(struct rank_request *req)
{
    struct rk_requests *r = req->ctx->engine->requests;
    struct rk_req_name *n;

    if (r->first_free == UINT32_MAX) {
        uint32_t count = r->nnames ? r->nnames * 2 : 64;
        n = realloc(r->names, count * sizeof(*n));
        if (!n) {
            rk_error("out of memory for requests");
            return RANK_ERR_NO_MEMORY;
        }
        for (uint32_t i = count; i-- > r->nnames;) {
            n[i] = (struct rk_req_name){NULL, 1, r->first_free};
            r->first_free = i;
        }
        r->names = n;
        r->nnames = count;
    }
    req->id.index = r->first_free;
    n = &r->names[req->id.index];
    r->first_free = n->next_free;
    n->req = req;
    req->id.gen = n->gen;
    req->flags |= RK_REQ_NAMED;
    return RANK_OK;
}

void rk_req_unname(struct rank_request *req)
{
    struct rk_requests *r = req->ctx->engine->requests;
    struct rk_req_name *n;

    if (!(req->flags & RK_REQ_NAMED))
        return;
    req->flags &= (uint8_t)~RK_REQ_NAMED;
    n = &r->names[req->id.index];
    n->req = NULL;
    n->gen = rk_next_gen(n->gen);
    n->next_free = r->first_free;
    r->first_free = req->id.index;
}

struct rank_request *rk_req_find(struct rk_ctx *ctx, struct rk_id id)
{
    struct rk_requests *r = ctx->engine->requests;

    if (id.index >= r->nnames || r->names[id.index].gen != id.gen)
        return NULL;
    return r->names[id.index].req;
}

void rk_req_each_named(struct rk_ctx *ctx, void (*fn)(struct rank_request *, void *), void *arg)
{
    struct rk_requests *r = ctx->engine->requests;

    for (uint32_t i = 0; i < r->nnames; i++) {
        if (r->names[i].req)
            fn(r->names[i].req, arg);
    }
}

/* ----------------------------------------------------------------- completion */

void rk_req_fail_if_of(struct rank_request *req, void *peer)
{
    if (req->peer != peer || req->done)
        return;
    rk_list_remove(&req->link);
    rk_req_complete(req, RANK_ERR_PEER_DEAD);
}

void rk_req_complete(struct rank_request *req, rank_status_t status)
{
    if (rk_unlikely(req->flags & (RK_REQ_NAMED | RK_REQ_LISTED))) {
        rk_req_unname(req);
        if (req->flags & RK_REQ_LISTED)
            rk_list_remove(&req->link);
    }
    if (req->type == RK_REQ_RECV) {
        if (rk_unlikely(status != RANK_OK && status != RANK_ERR_TRUNCATED))
            req->got = 0; /* the result is not the message */
        else if (rk_unlikely(req->sent > req->got))
            status = RANK_ERR_TRUNCATED;
    }
    rk_req_end(req, status);
}

bool rk_req_is_done(void *req)
{
    return ((struct rank_request *)req)->done;
}

rank_status_t rk_req_wait(struct rank_request *req)
{
    rk_wait(req->ctx, rk_req_is_done, req);
    return req->status;
}

void rk_req_envelope(const struct rank_request *req, rank_envelope_t *e)
{
    memset(e, 0, sizeof(*e));
    e->size = sizeof(*e);
    e->status = req->status;
    if (req->type != RK_REQ_RECV) {
        e->source = RANK_UNDEFINED;
        return;
    }
    e->source = (int32_t)req->env_src;
    e->tag = (int64_t)req->env_tag;
    e->bytes = (int64_t)req->got;
    e->sent_bytes = (int64_t)req->sent;
    e->count = (int64_t)(req->got / req->elem);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request.c: pool requests, give them ids for the wire, complete them.
 */
#include "lib/core/request.h"
#include "lib/base/arg_error.h"
#include "lib/base/retired.h"
#include "lib/core/request_pool.h"

#include <stdlib.h>
#include <string.h>

enum { POOL_CHUNK = 64 };

/* Pools of closed contexts: users may still hold requests, which wait and test reject. */
static struct rk_retired retired = RK_RETIRED_INIT(8);

/* A pool with objects that users may still hold rejects them until they are taken again. */
static struct rk_requests *requests_take_memory(void)
{
    struct rk_link *link = rk_retired_take(&retired);
    struct rk_requests *r = link ? rk_list_entry(link, struct rk_requests, retired) : calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    if (link)
        rk_slab_reset(&r->pool, RK_POOL_LINK);
    else /* An object starts on a cache line: the hot part of a request then takes two lines, not three. */
        r->pool = (struct rk_slab)RK_SLAB_INIT(rk_round_up(sizeof(struct rank_request), RK_CACHE_LINE), POOL_CHUNK);
    r->hold = 0;
    return r;
}

rank_status_t rk_requests_open(struct rk_ctx *ctx)
{
    struct rk_requests *r = ctx->engine->requests = requests_take_memory();

    if (!r)
        return RANK_ERR_NO_MEMORY;
    rk_handles_open(&r->ids);
    r->sent = (struct rank_request){
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

static bool request_spoil(void *object)
{
    struct rank_request *req = object;

    if (req->magic) /* untouched memory is not copied in a forked child */
        req->magic = 0;
    return false;
}

void rk_requests_spoil(struct rk_ctx *ctx)
{
    struct rk_requests *r = ctx->engine ? ctx->engine->requests : NULL;

    if (!r)
        return;
    rk_slab_find(&r->pool, request_spoil);
    r->sent.magic = 0;
}

void rk_requests_close(struct rk_ctx *ctx)
{
    struct rk_requests *r = ctx->engine->requests;

    if (!r)
        return;
    rk_requests_spoil(ctx);
    rk_handles_close(&r->ids);
    rk_retired_put(&retired, &r->retired);
    ctx->engine->requests = NULL;
}

/* ------------------------------------------------------------------- the pool */

struct rank_request *rk_pool_grow(struct rk_requests *r)
{
    struct rank_request *req = rk_slab_extend(&r->pool);

    if (req)
        memset(req, 0, sizeof(*req));
    else
        rk_fail(RANK_ERR_NO_MEMORY, "out of memory for requests");
    return req;
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

static bool request_is_called_back(void *object)
{
    const struct rank_request *req = object;

    return req->magic == RK_REQ_MAGIC && req->hold & RK_HOLD_CALLS && !req->done;
}

const struct rank_request *rk_req_with_callback(const struct rk_ctx *ctx)
{
    return rk_slab_find(&ctx->engine->requests->pool, request_is_called_back);
}

/* ------------------------------------------------------------------------ ids */

rank_status_t rk_req_name(struct rank_request *req)
{
    if (!rk_handle_put(&req->ctx->engine->requests->ids, req, &req->id))
        return RANK_ERR_NO_MEMORY;
    req->flags |= RK_REQ_NAMED;
    return RANK_OK;
}

void rk_req_unname(struct rank_request *req)
{
    if (!(req->flags & RK_REQ_NAMED))
        return;
    req->flags &= (uint8_t)~RK_REQ_NAMED;
    rk_handle_drop(&req->ctx->engine->requests->ids, req->id);
}

struct rank_request *rk_req_find(struct rk_ctx *ctx, struct rk_id id)
{
    return rk_handle_get(&ctx->engine->requests->ids, id);
}

void rk_req_each_named(struct rk_ctx *ctx, void (*fn)(struct rank_request *, void *), void *arg)
{
    struct rank_request *req;
    uint32_t i;

    rk_handles_for_each(i, req, &ctx->engine->requests->ids)
        fn(req, arg);
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
    if (rk_unlikely(status == RANK_ERR_PEER_DEAD) && req->type != RK_REQ_COLL && req->peer)
        status = rk_peer_lost(req->peer);
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

static bool request_is_done(struct rk_wait *w)
{
    return ((struct rk_req_wait *)w)->req->done;
}

static void describe_request(const struct rk_wait *w, struct rk_wait_for *out)
{
    const struct rank_request *req = ((const struct rk_req_wait *)w)->req;

    if (req->ctx->engine->describe[req->type])
        req->ctx->engine->describe[req->type](req, out);
}

rank_status_t rk_req_failed(const struct rank_request *req)
{
    const struct rk_engine *e = req->ctx->engine;

    if (e->explain[req->type])
        e->explain[req->type](req);
    return rk_call_returns(NULL, req->status);
}

rank_status_t rk_req_wait(struct rank_request *req)
{
    return rk_req_await(req) == RANK_OK ? RANK_OK : rk_req_failed(req);
}

rank_status_t rk_req_await(struct rank_request *req)
{
    struct rk_req_wait w;

    if (req->done)
        return req->status;
    w.req = req;
    w.wait.peer = req->peer;
    w.wait.describe = describe_request;
    w.wait.kind = (uint8_t)(req->type + RK_FOR_SEND);
    w.wait.no_doorbell = w.wait.background = false;
    w.wait.deadline = 0;
    rk_wait_on(req->ctx, &w.wait, request_is_done);
    return req->status;
}

_Static_assert(sizeof(rank_envelope_t) == 64, "an envelope has 64 bytes in every version");

void rk_req_envelope(const struct rank_request *req, rank_envelope_t *e)
{
    memset(e, 0, sizeof(*e));
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

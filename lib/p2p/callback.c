/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * callback.c: run callbacks (rank_on_done), free and cancel requests.
 *
 * Completion happens deep inside a channel, where no operation may start, so it only queues the request. A
 * progress hook, registered on first use, empties the queue. Callbacks do not nest: a chain of operations that
 * complete at once needs no more stack than one. With threads a callback runs without the lock, on the thread that
 * made progress.
 */
#include "lib/p2p/api_request.h"

/* Callbacks of one progress call; then other work gets its turn. */
enum { CALLS_PER_PASS = 256 };

static void call_one(struct rk_threads *t, struct rank_request *req)
{
    rank_done_fn fn = req->call;
    void *arg = req->call_arg;
    rank_envelope_t envelope;

    rk_req_envelope(req, &envelope);
    rk_req_result(req);
    req->ctx->engine->callbacks--;
    req->ctx->engine->called++;
    req->hold &= (uint8_t)~(RK_HOLD_CALLS | RK_HOLD_ACTIVE);
    if (!(req->hold & RK_HOLD_PERSISTENT))
        rk_req_free(req);
    if (rk_unlikely(t != NULL)) {
        uint32_t depth = rk_threads_call_begin(t);
        fn(&envelope, arg);
        rk_threads_call_end(t, depth);
    } else {
        fn(&envelope, arg);
    }
}

int rk_callbacks_progress(struct rk_ctx *ctx)
{
    struct rk_engine *e = ctx->engine;
    int n = 0;

    if ((rk_list_empty(&e->calls) && !ctx->p2p->deaths_due) || e->calling)
        return 0;
    e->calling = true;
    for (; n < CALLS_PER_PASS && !rk_list_empty(&e->calls); n++) {
        struct rk_link *l = e->calls.next;
        rk_list_remove(l);
        call_one(e->threads, rk_list_entry(l, struct rank_request, link));
    }
    n += rk_deaths_progress(ctx);
    e->calling = false;
    return n;
}

/* Queue a complete request for its callback. */
static void call_later(struct rank_request *req, void *arg)
{
    (void)arg;
    rk_list_append(&req->ctx->engine->calls, &req->link);
}

/* Sends that complete at once share a request: give this one its own. */
static rank_status_t own_sent(struct rank_request **req)
{
    struct rank_request *own = rk_req_alloc((*req)->ctx);

    if (!own)
        return RANK_ERR_NO_MEMORY;
    own->type = RK_REQ_SEND;
    own->status = RANK_OK;
    own->elem = 1;
    own->done = true;
    *req = own;
    return RANK_OK;
}

/* *call: it is complete, so the callback is due. */
static rank_status_t set_callback(rank_request_t *handle, rank_done_fn fn, void *arg, bool *call)
{
    struct rank_request *req = *handle;
    rank_status_t st;

    st = rk_check_request("rank_on_done", req);
    if (st)
        return st;
    if (req->hold & RK_HOLD_CALLS)
        return rk_req_has_callback("rank_on_done");
    if (rk_req_is_idle(req))
        return rk_arg_error(RANK_ERR_STATE, "rank_on_done", "the persistent request is not started");
    rk_room_start_progress(req->ctx, &rk_room_p2p);
    if (req->flags & RK_REQ_SHARED)
        st = own_sent(&req);
    if (st)
        return st;
    req->call = fn;
    req->call_arg = arg;
    req->hold |= RK_HOLD_CALLS;
    req->ctx->engine->callbacks++;
    if (!(req->hold & RK_HOLD_PERSISTENT)) {
        req->flags &= (uint8_t)~RK_REQ_POOLED; /* copies of the handle are rejected from now on */
        *handle = RANK_REQUEST_NULL;
    }
    if (!req->done) {
        req->on_done = call_later;
        return RANK_OK;
    }
    call_later(req, NULL);
    *call = true;
    return RANK_OK;
}

rank_status_t rank_on_done(rank_request_t *handle, rank_done_fn fn, void *arg)
{
    bool call = false;
    struct rk_ctx *ctx;
    rank_status_t st;

    if (!handle || !fn)
        return rk_arg_null(__func__, !handle ? "req" : "fn");
    if (!*handle || (*handle)->magic != RK_REQ_MAGIC)
        return rk_arg_handle(__func__, "request", *handle);
    ctx = (*handle)->ctx;
    RK_ENTER(ctx);
    st = set_callback(handle, fn, arg, &call);
    if (call)
        rk_callbacks_progress(ctx);
    return st;
}

static void free_done(struct rank_request *req, void *arg)
{
    (void)arg;
    rk_req_free(req);
}

rank_status_t rank_request_free(rank_request_t *handle)
{
    struct rank_request *req = handle ? *handle : NULL;
    rank_status_t st;

    if (!req)
        return handle ? RANK_OK : rk_arg_null(__func__, "req");
    RK_ENTER_REQUEST(req);
    st = rk_check_request(__func__, req);
    if (st)
        return st;
    if (req->hold & RK_HOLD_CALLS)
        return rk_req_has_callback(__func__);
    if (req->done) {
        if ((req->hold & RK_HOLD_PERSISTENT) && req->persistent->release)
            req->persistent->release(req);
        rk_req_free(req);
    } else if (req->type == RK_REQ_COLL) {
        return RANK_ERR_NOT_SUPPORTED;
    } else {
        req->flags &= (uint8_t)~RK_REQ_POOLED;
        req->on_done = free_done;
    }
    *handle = RANK_REQUEST_NULL;
    return RANK_OK;
}

/* Local: sends nothing and makes no progress, so that a message that lies unread in a fifo is not matched. */
rank_status_t rank_cancel(rank_request_t *handle)
{
    struct rank_request *req = handle ? *handle : NULL;
    rank_status_t st;

    if (!req)
        return handle ? rk_arg_handle(__func__, "request", req) : rk_arg_null(__func__, "req");
    RK_ENTER_REQUEST(req);
    st = rk_check_request(__func__, req);
    if (st)
        return st;
    if (req->type == RK_REQ_COLL)
        return RANK_ERR_NOT_SUPPORTED;
    if (req->type == RK_REQ_RMA)
        return RANK_OK; /* begun or complete */
    if (req->type == RK_REQ_CONN) {
        if (!req->done)
            req->status = RANK_ERR_CANCELED; /* conns_idle completes it, within 0.2 s of progress */
        return RANK_OK;
    }
    /* Neither affects a request that is complete or in progress. */
    if (!rk_p2p_cancel_recv(req, RANK_ERR_CANCELED))
        rk_p2p_cancel_send(req, RANK_ERR_CANCELED);
    return RANK_OK;
}

RK_PUBLIC(rank_on_done); RK_PUBLIC(rank_request_free); RK_PUBLIC(rank_cancel);

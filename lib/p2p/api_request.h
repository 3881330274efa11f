/* SPDX-License-Identifier: BSD-3-Clause */
/* api_request.h: what the calls that take a user's rank_request_t have in common. */
#ifndef RK_P2P_API_REQUEST_H
#define RK_P2P_API_REQUEST_H

#include "lib/base/arg_error.h"
#include "lib/core/request_pool.h"
#include "lib/core/threads.h"
#include "lib/p2p/p2p_internal.h"

RK_INLINE rank_status_t rk_check_request(const char *call, const struct rank_request *req)
{
    return rk_likely(req->magic == RK_REQ_MAGIC && (req->flags & RK_REQ_POOLED))
               ? RANK_OK
               : rk_arg_handle(call, "request", req);
}

/* It has a callback, which ends it. */
RK_INLINE rank_status_t rk_req_has_callback(const char *call)
{
    return rk_arg_error(RANK_ERR_STATE, call, "the request has a callback that has not been called");
}

/* Every non-null handle is valid. */
rank_status_t rk_check_requests(const char *call, int n, const rank_request_t *reqs);

/* A null request, or a persistent one that is not under way, is complete and is looked past. */
RK_INLINE bool rk_req_is_idle(const struct rank_request *req)
{
    return !req || (req->hold & (RK_HOLD_PERSISTENT | RK_HOLD_ACTIVE)) == RK_HOLD_PERSISTENT;
}

/* The context of those that are not idle; NULL if all are. */
struct rk_ctx *rk_any_ctx(int n, const rank_request_t *reqs);

/* For calls with several requests, to be entered before these are looked at: the lane that all are of, or the context. */
struct rk_threads *rk_enter_requests(int n, const rank_request_t *reqs);
#define RK_ENTER_REQUESTS(n, reqs) RK_ENTERED = rk_enter_requests(n, reqs)

/* A callback must not wait: what it waits for may need another callback. */
RK_INLINE bool rk_may_wait(const struct rk_ctx *ctx)
{
    if (rk_unlikely(ctx->engine->threads != NULL))
        return !rk_threads_in_call(ctx->engine->threads);
    return rk_likely(!ctx->engine->calling);
}

/* The envelope of an idle one; envelope may be NULL. */
void rk_null_envelope(rank_envelope_t *envelope);

/* For those who look at several: is this one, of whatever lane, done? */
RK_INLINE bool rk_is_done_anywhere(const struct rank_request *req)
{
    RK_ENTER_REQUEST(req);

    return req->done;
}

/* Of a complete one with nothing else to it (rk_req_looks_plain). */
RK_INLINE rank_status_t rk_finish_plain(rank_request_t *handle, rank_envelope_t *envelope)
{
    struct rank_request *req = *handle;
    rank_status_t st = req->status;

    if (rk_unlikely(envelope != NULL))
        rk_req_envelope(req, envelope);
    if (!(req->flags & RK_REQ_SHARED))
        rk_pool_give(req->ctx->engine->requests, req);
    *handle = RANK_REQUEST_NULL;
    return st;
}

/* Of a complete one: its status. It goes back to the pool, unless it is persistent. */
rank_status_t rk_finish(rank_request_t *handle, rank_envelope_t *envelope);
/* The same of one among several, which may be of a lane that has not been entered. */
rank_status_t rk_finish_anywhere(rank_request_t *handle, rank_envelope_t *envelope);
/* Until one of several is done. */
void rk_wait_any(struct rk_ctx *ctx, struct rk_any *a);

#endif

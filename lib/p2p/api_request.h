/* SPDX-License-Identifier: BSD-3-Clause */
/* api_request.h: share code between the calls that take a rank_request_t. */
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

/* The request has a callback, which ends it. */
RK_INLINE rank_status_t rk_req_has_callback(const char *call)
{
    return rk_arg_error(RANK_ERR_STATE, call, "the request has a callback that has not been called");
}

/* Checks that every non-null handle is valid. */
rank_status_t rk_check_requests(const char *call, int64_t n, const rank_request_t *reqs);

/* A null request, or an inactive persistent one, counts as complete and is skipped. */
RK_INLINE bool rk_req_is_idle(const struct rank_request *req)
{
    return !req || (req->hold & (RK_HOLD_PERSISTENT | RK_HOLD_ACTIVE)) == RK_HOLD_PERSISTENT;
}

/* For calls with several requests of one context, before any is read. */
struct rk_threads *rk_enter_requests(int64_t n, const rank_request_t *reqs);
#define RK_ENTER_REQUESTS(n, reqs) RK_ENTERED = rk_enter_requests(n, reqs)

/* A callback must not wait: the awaited event may need another callback. */
RK_INLINE bool rk_may_wait(const struct rk_ctx *ctx)
{
    return !rk_in_callback(ctx);
}

/* Envelope without a message: source is RANK_UNDEFINED for an idle request, or RANK_PROC_NULL. envelope may be NULL. */
void rk_null_envelope(rank_envelope_t *envelope, int source);

RK_INLINE rank_status_t rk_finish_plain(rank_request_t *handle, rank_envelope_t *envelope)
{
    struct rank_request *req = *handle;
    rank_status_t st = rk_req_result(req);

    if (rk_unlikely(envelope != NULL))
        rk_req_envelope(req, envelope);
    if (!(req->flags & RK_REQ_SHARED))
        rk_pool_give(req->ctx->engine->requests, req);
    *handle = RANK_REQUEST_NULL;
    return st;
}

/* persistent.c: may the call start the request? queued: also one that rank_start_on has started. */
rank_status_t rk_check_start(const char *call, const struct rank_request *req, bool queued);

/* Finish a complete request: return its status and free it, unless it is persistent. */
rank_status_t rk_finish(rank_request_t *handle, rank_envelope_t *envelope);

#endif

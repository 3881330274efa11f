/* api_request.h: what the calls that take a user's rank_request_t have in common. */
#ifndef RK_P2P_API_REQUEST_H
#define RK_P2P_API_REQUEST_H

#include "lib/p2p/p2p_state.h"

RK_INLINE rank_status_t rk_check_request(const struct rank_request *req)
{
    return rk_likely(req->magic == RK_REQ_MAGIC && (req->flags & RK_REQ_POOLED))
               ? RANK_OK
               : RANK_ERR_HANDLE;
}

/* Every non-null handle is valid. */
rank_status_t rk_check_requests(int n, const rank_request_t *reqs);

/* A null request, or a persistent one that is not under way, is complete and is looked past. */
RK_INLINE bool rk_req_is_idle(const struct rank_request *req)
{
    return !req || (req->hold & (RK_HOLD_PERSISTENT | RK_HOLD_ACTIVE)) == RK_HOLD_PERSISTENT;
}

/* The context of the first that is not idle; NULL if all are. */
struct rk_ctx *rk_any_ctx(int n, const rank_request_t *reqs);

/* A callback must not wait: what it waits for may need another callback. */
RK_INLINE bool rk_may_wait(const struct rk_ctx *ctx)
{
    return rk_likely(!ctx->engine->calling);
}

/* The envelope of an idle one; envelope may be NULL. */
void rk_null_envelope(rank_envelope_t *envelope);

/* Of a complete one: its status. It goes back to the pool, unless it is persistent. */
rank_status_t rk_finish(rank_request_t *handle, rank_envelope_t *envelope);

#endif

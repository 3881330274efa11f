/* SPDX-License-Identifier: BSD-3-Clause */
/* api_test.c: test and wait for requests. */
#include "lib/p2p/api_request.h"

void rk_null_envelope(rank_envelope_t *envelope, int source)
{
    if (envelope)
        *envelope = (rank_envelope_t){.source = source, .tag = RANK_ANY_TAG};
}

rank_status_t rk_finish(rank_request_t *handle, rank_envelope_t *envelope)
{
    struct rank_request *req = *handle;

    if (rk_likely(!(req->hold & RK_HOLD_PERSISTENT)))
        return rk_finish_plain(handle, envelope);
    if (envelope)
        rk_req_envelope(req, envelope);
    req->hold &= (uint8_t)~RK_HOLD_ACTIVE;
    return rk_req_result(req);
}

/* Of a context with several threads? Then only this field may be read without the lock. */
RK_INLINE bool is_shared(const struct rank_request *req)
{
    return req && req->magic == RK_REQ_MAGIC && (req->hold & RK_HOLD_SHARED);
}

/* done NULL: wait. */
RK_INLINE rank_status_t test(const char *call, rank_request_t *req, int *done, rank_envelope_t *envelope)
{
    rank_status_t st;

    if (*req && (st = rk_check_request(call, *req)) != RANK_OK)
        return st;
    if (rk_unlikely(!*req || (*req)->hold)) {
        if (rk_req_is_idle(*req)) {
            if (done)
                *done = 1;
            rk_null_envelope(envelope, RANK_UNDEFINED);
            return RANK_OK;
        }
        if ((*req)->hold & RK_HOLD_CALLS)
            return rk_req_has_callback(call);
    }
    if (done) {
        if (!(*req)->done)
            rk_progress_once((*req)->ctx);
        *done = (*req)->done;
        return *done ? rk_finish(req, envelope) : RANK_OK;
    }
    if (!(*req)->done) {
        if (!rk_may_wait((*req)->ctx))
            return rk_arg_in_callback(call);
        rk_req_await(*req);
    }
    return rk_finish(req, envelope);
}

static RK_COLD rank_status_t test_shared(const char *call, rank_request_t *req, int *done, rank_envelope_t *envelope)
{
    RK_ENTER((*req)->ctx);

    return test(call, req, done, envelope);
}

rank_status_t rank_test(rank_request_t *req, int *done, rank_envelope_t *envelope)
{
    if (!req || !done)
        return rk_arg_null(__func__, !req ? "req" : "done");
    return rk_unlikely(is_shared(*req)) ? test_shared(__func__, req, done, envelope) : test(__func__, req, done, envelope);
}

rank_status_t rank_wait(rank_request_t *req, rank_envelope_t *envelope)
{
    if (!req)
        return rk_arg_null(__func__, "req");
    if (rk_unlikely(is_shared(*req)))
        return test_shared(__func__, req, NULL, envelope);
    return rk_likely(*req && rk_req_is_plain(*req, true)) ? rk_finish_plain(req, envelope) : test(__func__, req, NULL, envelope);
}

struct rk_threads *rk_enter_requests(int64_t n, const rank_request_t *reqs)
{
    int i = 0;

    while (reqs && i < n && !reqs[i]) /* the first decides for all */
        i++;
    return reqs && i < n ? rk_enter_request(reqs[i]) : NULL;
}

static rank_status_t check_else(const char *call, const struct rank_request *req)
{
    rank_status_t st;

    if (!req)
        return RANK_OK;
    if ((st = rk_check_request(call, req)) != RANK_OK)
        return st;
    return req->hold & RK_HOLD_CALLS ? rk_req_has_callback(call) : RANK_OK;
}

rank_status_t rk_check_requests(const char *call, int64_t n, const rank_request_t *reqs)
{
    rank_status_t st;

    if (n < 0)
        return rk_arg_error(RANK_ERR_COUNT, call, "n %lld is negative", (long long)n);
    if (n > 0 && !reqs)
        return rk_arg_null(call, "reqs");
    for (int64_t i = 0; i < n; i++) {
        if (rk_unlikely(!reqs[i] || !rk_req_is_plain(reqs[i], false)) && (st = check_else(call, reqs[i])) != RANK_OK)
            return st;
    }
    return RANK_OK;
}

rank_status_t rank_waitall(int64_t n, rank_request_t *reqs, rank_envelope_t *envelopes)
{
    RK_ENTER_REQUESTS(n, reqs);
    rank_status_t first = rk_check_requests(__func__, n, reqs);

    if (first)
        return first;
    for (int64_t i = 0; i < n; i++) {
        rank_envelope_t *envelope = envelopes ? &envelopes[i] : NULL;
        rank_status_t st;

        if (rk_likely(reqs[i] && rk_req_is_plain(reqs[i], true)))
            st = rk_finish_plain(&reqs[i], envelope);
        else
            st = rank_wait(&reqs[i], envelope);
        if (st && !first)
            first = st;
    }
    return first;
}

RK_PUBLIC(rank_test); RK_PUBLIC(rank_wait); RK_PUBLIC(rank_waitall);

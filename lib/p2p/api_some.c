/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_some.c: implement testall, testany, waitsome and testsome.
 *
 * Uses only the caller's arrays; allocates nothing.
 */
#include "lib/p2p/api_request.h"

/* Finish all complete requests in array order; returns the status of the first that failed. */
static rank_status_t finish_done(int64_t n, rank_request_t *reqs, int64_t *ndone, int64_t *indices,
                                 rank_envelope_t *envelopes)
{
    rank_status_t first = RANK_OK;
    int64_t k = 0;

    for (int64_t i = 0; i < n; i++) {
        rank_status_t st;

        if (rk_req_is_idle(reqs[i]) || !reqs[i]->done)
            continue;
        if (rk_check_request(NULL, reqs[i])) { /* listed twice, and freed already */
            first = first ? first : RANK_ERR_HANDLE;
            continue;
        }
        st = rk_finish(&reqs[i], envelopes ? &envelopes[k] : NULL);
        indices[k++] = i;
        if (st && !first)
            first = st;
    }
    *ndone = k;
    return first;
}

rank_status_t rank_waitsome(int64_t n, rank_request_t *reqs, int64_t *ndone, int64_t *indices,
                            rank_envelope_t *envelopes)
{
    RK_ENTER_REQUESTS(n, reqs);
    rank_status_t st = rk_check_requests(__func__, n, reqs);
    struct rk_ctx *ctx;

    if (st)
        return st;
    if (!ndone || (n > 0 && !indices))
        return rk_arg_null(__func__, !ndone ? "ndone" : "indices");
    ctx = rk_any_ctx(n, reqs);
    if (!ctx) {
        *ndone = RANK_UNDEFINED;
        return RANK_OK;
    }
    if (rk_any_done(n, reqs) == RANK_UNDEFINED) {
        if (!rk_may_wait(ctx))
            return rk_arg_in_callback(__func__);
        rk_any_wait(ctx, n, reqs);
    }
    return finish_done(n, reqs, ndone, indices, envelopes);
}

rank_status_t rank_testsome(int64_t n, rank_request_t *reqs, int64_t *ndone, int64_t *indices,
                            rank_envelope_t *envelopes)
{
    RK_ENTER_REQUESTS(n, reqs);
    rank_status_t st = rk_check_requests(__func__, n, reqs);
    struct rk_ctx *ctx;

    if (st)
        return st;
    if (!ndone || (n > 0 && !indices))
        return rk_arg_null(__func__, !ndone ? "ndone" : "indices");
    ctx = rk_any_ctx(n, reqs);
    if (!ctx) {
        *ndone = RANK_UNDEFINED;
        return RANK_OK;
    }
    rk_progress_once(ctx);
    return finish_done(n, reqs, ndone, indices, envelopes);
}

rank_status_t rank_testany(int64_t n, rank_request_t *reqs, int64_t *index, int *done,
                           rank_envelope_t *envelope)
{
    RK_ENTER_REQUESTS(n, reqs);
    rank_status_t st = rk_check_requests(__func__, n, reqs);
    struct rk_ctx *ctx;

    if (st)
        return st;
    if (!index || !done)
        return rk_arg_null(__func__, !index ? "index" : "done");
    ctx = rk_any_ctx(n, reqs);
    if (!ctx) {
        *index = RANK_UNDEFINED;
        *done = 1;
        rk_null_envelope(envelope, RANK_UNDEFINED);
        return RANK_OK;
    }
    *index = rk_any_done(n, reqs);
    if (*index == RANK_UNDEFINED) {
        rk_progress_once(ctx);
        *index = rk_any_done(n, reqs);
    }
    *done = *index != RANK_UNDEFINED;
    return *done ? rk_finish(&reqs[*index], envelope) : RANK_OK;
}

static bool all_done(int64_t n, const rank_request_t *reqs)
{
    for (int64_t i = 0; i < n; i++) {
        if (reqs[i] && !reqs[i]->done)
            return false;
    }
    return true;
}

rank_status_t rank_testall(int64_t n, rank_request_t *reqs, int *done, rank_envelope_t *envelopes)
{
    RK_ENTER_REQUESTS(n, reqs);
    rank_status_t st = rk_check_requests(__func__, n, reqs), first = RANK_OK;
    struct rk_ctx *ctx;

    if (st)
        return st;
    if (!done)
        return rk_arg_null(__func__, "done");
    ctx = rk_any_ctx(n, reqs);
    if (ctx && !all_done(n, reqs))
        rk_progress_once(ctx);
    *done = all_done(n, reqs);
    for (int64_t i = 0; i < n && *done; i++) {
        rank_envelope_t *envelope = envelopes ? &envelopes[i] : NULL;

        if (rk_req_is_idle(reqs[i])) {
            rk_null_envelope(envelope, RANK_UNDEFINED);
            continue;
        }
        st = rk_check_request(__func__, reqs[i]);
        if (!st)
            st = rk_finish(&reqs[i], envelope);
        if (st && !first)
            first = st;
    }
    return first;
}

RK_PUBLIC(rank_waitsome); RK_PUBLIC(rank_testsome); RK_PUBLIC(rank_testany); RK_PUBLIC(rank_testall);

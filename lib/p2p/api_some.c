/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_some.c: test and wait for some of several requests.
 *
 * Uses only the caller's arrays; allocates nothing.
 */
#include "lib/p2p/api_request.h"

/* Index of one that is complete, or RANK_UNDEFINED. */
static int64_t any_done(int64_t n, const rank_request_t *reqs)
{
    for (int64_t i = 0; i < n; i++) {
        if (!rk_req_is_idle(reqs[i]) && reqs[i]->done)
            return i;
    }
    return RANK_UNDEFINED;
}

static bool any_is_done(struct rk_wait *w)
{
    struct rk_any_wait *a = (struct rk_any_wait *)w;

    a->found = any_done(a->n, a->reqs);
    return a->found != RANK_UNDEFINED;
}

/* The same after one round of progress, or after a wait for it. */
static rank_status_t any_find(const char *call, bool wait, struct rk_ctx *ctx, int64_t n, const rank_request_t *reqs, int64_t *found)
{
    struct rk_any_wait a = {.wait = {.describe = rk_any_describe}, .n = n, .reqs = reqs};

    *found = any_done(n, reqs);
    if (*found != RANK_UNDEFINED)
        return RANK_OK;
    if (!wait) {
        rk_progress_once(ctx);
        *found = any_done(n, reqs);
        return RANK_OK;
    }
    if (!rk_may_wait(ctx))
        return rk_arg_in_callback(call);

    for (int64_t i = 0; i < n; i++) {
        if (!rk_req_is_idle(reqs[i]) && reqs[i]->type == RK_REQ_SEND)
            a.wait.kind = RK_FOR_SEND; /* it may be part of a cycle of sends */
    }
    rk_wait_on(ctx, &a.wait, any_is_done);
    *found = a.found;
    return RANK_OK;
}

/* Context of the requests that are not idle; NULL if all are. */
static struct rk_ctx *any_ctx(int64_t n, const rank_request_t *reqs)
{
    for (int64_t i = 0; i < n; i++) {
        if (!rk_req_is_idle(reqs[i]))
            return reqs[i]->ctx;
    }
    return NULL;
}

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

static rank_status_t find_some(const char *call, bool wait, int64_t n, rank_request_t *reqs, int64_t *ndone, int64_t *indices,
                               rank_envelope_t *envelopes)
{
    RK_ENTER_REQUESTS(n, reqs);
    rank_status_t st = rk_check_requests(call, n, reqs);
    struct rk_ctx *ctx;
    int64_t found;

    if (st)
        return st;
    if (!ndone || (n > 0 && !indices))
        return rk_arg_null(call, !ndone ? "ndone" : "indices");
    ctx = any_ctx(n, reqs);
    if (!ctx) {
        *ndone = RANK_UNDEFINED;
        return RANK_OK;
    }
    if (!wait)
        rk_progress_once(ctx);
    else if ((st = any_find(call, true, ctx, n, reqs, &found)) != RANK_OK)
        return st;
    return finish_done(n, reqs, ndone, indices, envelopes);
}

rank_status_t rank_waitsome(int64_t n, rank_request_t *reqs, int64_t *ndone, int64_t *indices,
                            rank_envelope_t *envelopes)
{
    return find_some(__func__, true, n, reqs, ndone, indices, envelopes);
}

rank_status_t rank_testsome(int64_t n, rank_request_t *reqs, int64_t *ndone, int64_t *indices,
                            rank_envelope_t *envelopes)
{
    return find_some(__func__, false, n, reqs, ndone, indices, envelopes);
}

static rank_status_t find_any(const char *call, bool wait, int64_t n, rank_request_t *reqs, int64_t *index, int *done,
                              rank_envelope_t *envelope)
{
    RK_ENTER_REQUESTS(n, reqs);
    rank_status_t st = rk_check_requests(call, n, reqs);
    struct rk_ctx *ctx;
    int64_t found;

    if (st)
        return st;
    if (!index || !done)
        return rk_arg_null(call, !index ? "index" : "done");
    ctx = any_ctx(n, reqs);
    if (!ctx) {
        *index = RANK_UNDEFINED;
        *done = 1;
        rk_null_envelope(envelope, RANK_UNDEFINED);
        return RANK_OK;
    }
    st = any_find(call, wait, ctx, n, reqs, &found);
    if (st)
        return st;
    *index = found;
    *done = found != RANK_UNDEFINED;
    return *done ? rk_finish(&reqs[found], envelope) : RANK_OK;
}

rank_status_t rank_waitany(int64_t n, rank_request_t *reqs, int64_t *index, rank_envelope_t *envelope)
{
    int done;

    return find_any(__func__, true, n, reqs, index, &done, envelope);
}

rank_status_t rank_testany(int64_t n, rank_request_t *reqs, int64_t *index, int *done, rank_envelope_t *envelope)
{
    return find_any(__func__, false, n, reqs, index, done, envelope);
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
    ctx = any_ctx(n, reqs);
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

RK_PUBLIC(rank_waitsome); RK_PUBLIC(rank_testsome); RK_PUBLIC(rank_waitany); RK_PUBLIC(rank_testany); RK_PUBLIC(rank_testall);

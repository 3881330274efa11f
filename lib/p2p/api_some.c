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
    return a->found != RANK_UNDEFINED || w->late;
}

/* A wait for sends may be part of a cycle of them. */
static uint8_t kind_of_wait(int64_t n, const rank_request_t *reqs)
{
    for (int64_t i = 0; i < n; i++) {
        if (!rk_req_is_idle(reqs[i]) && reqs[i]->type == RK_REQ_SEND)
            return RK_FOR_SEND;
    }
    return RK_FOR_OTHER;
}

/* The same after one round of progress, or after a wait for it of timeout_ns at most. */
static rank_status_t any_find(const char *call, int64_t timeout_ns, struct rk_ctx *ctx, int64_t n, const rank_request_t *reqs,
                              int64_t *found)
{
    struct rk_any_wait a = {.wait = {.describe = rk_any_describe}, .n = n, .reqs = reqs};

    *found = any_done(n, reqs);
    if (*found != RANK_UNDEFINED)
        return RANK_OK;
    if (timeout_ns == 0) {
        rk_progress_once(ctx);
        *found = any_done(n, reqs);
        return RANK_OK;
    }
    if (!rk_may_wait(ctx))
        return rk_arg_in_callback(call);

    a.wait.kind = kind_of_wait(n, reqs);
    a.wait.deadline = rk_wait_deadline(timeout_ns);
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

/* timed: a call that nothing ends is an error. */
static rank_status_t find_some(const char *call, int64_t timeout_ns, bool timed, int64_t n, rank_request_t *reqs, int64_t *ndone,
                               int64_t *indices, rank_envelope_t *envelopes)
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
    if (timeout_ns == 0)
        rk_progress_once(ctx);
    else if ((st = any_find(call, timeout_ns, ctx, n, reqs, &found)) != RANK_OK)
        return st;
    st = finish_done(n, reqs, ndone, indices, envelopes);
    return timed && *ndone == 0 ? RANK_ERR_TIMED_OUT : st;
}

rank_status_t rank_waitsome(int64_t n, rank_request_t *reqs, int64_t *ndone, int64_t *indices,
                            rank_envelope_t *envelopes)
{
    return find_some(__func__, -1, false, n, reqs, ndone, indices, envelopes);
}

rank_status_t rank_waitsome_timed(int64_t n, rank_request_t *reqs, int64_t timeout_ns, int64_t *ndone, int64_t *indices,
                                  rank_envelope_t *envelopes)
{
    return find_some(__func__, timeout_ns, true, n, reqs, ndone, indices, envelopes);
}

rank_status_t rank_testsome(int64_t n, rank_request_t *reqs, int64_t *ndone, int64_t *indices,
                            rank_envelope_t *envelopes)
{
    return find_some(__func__, 0, false, n, reqs, ndone, indices, envelopes);
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
    st = any_find(call, wait ? -1 : 0, ctx, n, reqs, &found);
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

/* Count from *found on those that are complete. */
static bool all_done(int64_t n, const rank_request_t *reqs, int64_t *found)
{
    while (*found < n && (rk_req_is_idle(reqs[*found]) || reqs[*found]->done))
        ++*found;
    return *found == n;
}

static bool all_are_done(struct rk_wait *w)
{
    struct rk_any_wait *a = (struct rk_any_wait *)w;

    return all_done(a->n, a->reqs, &a->found) || w->late;
}

/* Wait for all, for timeout_ns at most. */
static rank_status_t all_await(const char *call, struct rk_ctx *ctx, struct rk_any_wait *a, int64_t timeout_ns)
{
    if (timeout_ns == 0) {
        rk_progress_once(ctx);
        return RANK_OK;
    }
    if (!rk_may_wait(ctx))
        return rk_arg_in_callback(call);
    a->wait.kind = kind_of_wait(a->n, a->reqs);
    a->wait.deadline = rk_wait_deadline(timeout_ns);
    rk_wait_on(ctx, &a->wait, all_are_done);
    return RANK_OK;
}

static rank_status_t find_all(const char *call, int64_t timeout_ns, int64_t n, rank_request_t *reqs, int *done,
                              rank_envelope_t *envelopes)
{
    RK_ENTER_REQUESTS(n, reqs);
    struct rk_any_wait a = {.wait = {.describe = rk_any_describe}, .n = n, .reqs = reqs};
    rank_status_t st = rk_check_requests(call, n, reqs), first = RANK_OK;

    if (st)
        return st;
    if (!all_done(n, reqs, &a.found) && (st = all_await(call, any_ctx(n, reqs), &a, timeout_ns)) != RANK_OK)
        return st;
    *done = all_done(n, reqs, &a.found);
    for (int64_t i = 0; i < n && *done; i++) {
        rank_envelope_t *envelope = envelopes ? &envelopes[i] : NULL;

        if (rk_req_is_idle(reqs[i])) {
            rk_null_envelope(envelope, RANK_UNDEFINED);
            continue;
        }
        st = rk_check_request(call, reqs[i]);
        if (!st)
            st = rk_finish(&reqs[i], envelope);
        if (st && !first)
            first = st;
    }
    return first;
}

rank_status_t rank_testall(int64_t n, rank_request_t *reqs, int *done, rank_envelope_t *envelopes)
{
    return done ? find_all(__func__, 0, n, reqs, done, envelopes) : rk_arg_null(__func__, "done");
}

rank_status_t rank_waitall_timed(int64_t n, rank_request_t *reqs, int64_t timeout_ns, rank_envelope_t *envelopes)
{
    int done = 1;
    rank_status_t st = find_all(__func__, timeout_ns, n, reqs, &done, envelopes);

    return done ? st : RANK_ERR_TIMED_OUT;
}

rank_status_t rank_wait_timed(rank_request_t *req, int64_t timeout_ns, rank_envelope_t *envelope)
{
    int done = 1;
    rank_status_t st = req ? find_all(__func__, timeout_ns, 1, req, &done, envelope) : rk_arg_null(__func__, "req");

    return done ? st : RANK_ERR_TIMED_OUT;
}

RK_PUBLIC(rank_waitsome); RK_PUBLIC(rank_testsome); RK_PUBLIC(rank_waitany); RK_PUBLIC(rank_testany); RK_PUBLIC(rank_testall);
RK_PUBLIC(rank_waitsome_timed); RK_PUBLIC(rank_waitall_timed); RK_PUBLIC(rank_wait_timed);

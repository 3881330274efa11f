/* api_wait.c: test and wait of rank.h. */
#include "lib/p2p/api_request.h"

void rk_null_envelope(rank_envelope_t *envelope)
{
    if (envelope)
        *envelope = (rank_envelope_t){.size = sizeof(*envelope), .source = RANK_UNDEFINED,
                                      .tag = RANK_ANY_TAG};
}

rank_status_t rk_finish(rank_request_t *handle, rank_envelope_t *envelope)
{
    struct rank_request *req = *handle;
    rank_status_t st = req->status;

    if (envelope)
        rk_req_envelope(req, envelope);
    if (rk_unlikely(req->hold & RK_HOLD_PERSISTENT)) {
        req->hold &= (uint8_t)~RK_HOLD_ACTIVE;
        return st;
    }
    rk_req_free(req);
    *handle = RANK_REQUEST_NULL;
    return st;
}

rank_status_t rank_test(rank_request_t *req, int *done, rank_envelope_t *envelope)
{
    rank_status_t st;

    if (!req || !done)
        return RANK_ERR_ARG;
    if (*req && (st = rk_check_request(*req)) != RANK_OK)
        return st;
    if (rk_unlikely(!*req || (*req)->hold)) {
        if (rk_req_is_idle(*req)) {
            *done = 1;
            rk_null_envelope(envelope);
            return RANK_OK;
        }
        if ((*req)->hold & RK_HOLD_CALLS)
            return RANK_ERR_STATE;
    }
    if (!(*req)->done)
        rk_progress((*req)->ctx);
    *done = (*req)->done;
    return *done ? rk_finish(req, envelope) : RANK_OK;
}

rank_status_t rank_wait(rank_request_t *req, rank_envelope_t *envelope)
{
    rank_status_t st;

    if (!req)
        return RANK_ERR_ARG;
    if (*req && (st = rk_check_request(*req)) != RANK_OK)
        return st;
    if (rk_unlikely(!*req || (*req)->hold)) {
        if (rk_req_is_idle(*req)) {
            rk_null_envelope(envelope);
            return RANK_OK;
        }
        if ((*req)->hold & RK_HOLD_CALLS)
            return RANK_ERR_STATE;
    }
    if (!(*req)->done) {
        if (!rk_may_wait((*req)->ctx))
            return RANK_ERR_STATE;
        rk_req_wait(*req);
    }
    return rk_finish(req, envelope);
}

rank_status_t rk_check_requests(int n, const rank_request_t *reqs)
{
    if (n < 0)
        return RANK_ERR_COUNT;
    if (n > 0 && !reqs)
        return RANK_ERR_ARG;
    for (int i = 0; i < n; i++) {
        if (!reqs[i])
            continue;
        if (rk_check_request(reqs[i]))
            return RANK_ERR_HANDLE;
        if (rk_unlikely(reqs[i]->hold & RK_HOLD_CALLS))
            return RANK_ERR_STATE;
    }
    return RANK_OK;
}

rank_status_t rank_waitall(int n, rank_request_t *reqs, rank_envelope_t *envelopes)
{
    rank_status_t first = rk_check_requests(n, reqs);

    if (first)
        return first;
    for (int i = 0; i < n; i++) {
        rank_status_t st = rank_wait(&reqs[i], envelopes ? &envelopes[i] : NULL);
        if (st && !first)
            first = st;
    }
    return first;
}

bool rk_any_done(void *arg)
{
    struct rk_any *a = arg;

    for (int i = 0; i < a->n; i++) {
        if (a->reqs[i] && a->reqs[i]->done && !rk_req_is_idle(a->reqs[i])) {
            a->found = i;
            return true;
        }
    }
    return false;
}

struct rk_ctx *rk_any_ctx(int n, const rank_request_t *reqs)
{
    for (int i = 0; i < n; i++) {
        if (!rk_req_is_idle(reqs[i]))
            return reqs[i]->ctx;
    }
    return NULL;
}

rank_status_t rank_waitany(int n, rank_request_t *reqs, int *index, rank_envelope_t *envelope)
{
    struct rk_any a = {n, RANK_UNDEFINED, reqs};
    rank_status_t st = rk_check_requests(n, reqs);
    struct rk_ctx *ctx;

    if (st)
        return st;
    if (!index)
        return RANK_ERR_ARG;
    ctx = rk_any_ctx(n, reqs);
    if (!ctx) {
        *index = RANK_UNDEFINED;
        rk_null_envelope(envelope);
        return RANK_OK;
    }
    if (!rk_any_done(&a)) {
        if (!rk_may_wait(ctx))
            return RANK_ERR_STATE;
        rk_wait(ctx, rk_any_done, &a);
    }
    *index = a.found;
    return rk_finish(&reqs[a.found], envelope);
}

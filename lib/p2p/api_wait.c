/* api_wait.c: test and wait of rank.h. */
#include "lib/p2p/p2p_state.h"

RK_INLINE rank_status_t check_request(const struct rank_request *req)
{
    return rk_likely(req->magic == RK_REQ_MAGIC && (req->flags & RK_REQ_POOLED))
               ? RANK_OK
               : RANK_ERR_HANDLE;
}

/* A null request is complete and learned nothing. */
static void null_envelope(rank_envelope_t *envelope)
{
    if (envelope)
        *envelope = (rank_envelope_t){.size = sizeof(*envelope), .source = RANK_UNDEFINED,
                                      .tag = RANK_ANY_TAG};
}

/* Its status; the request goes back to the pool. */
RK_INLINE rank_status_t finish(rank_request_t *handle, rank_envelope_t *envelope)
{
    struct rank_request *req = *handle;
    rank_status_t st = req->status;

    if (envelope)
        rk_req_envelope(req, envelope);
    rk_req_free(req);
    *handle = RANK_REQUEST_NULL;
    return st;
}

rank_status_t rank_test(rank_request_t *req, int *done, rank_envelope_t *envelope)
{
    rank_status_t st;

    if (!req || !done)
        return RANK_ERR_ARG;
    if (!*req) {
        *done = 1;
        null_envelope(envelope);
        return RANK_OK;
    }
    st = check_request(*req);
    if (st)
        return st;
    if (!(*req)->done)
        rk_progress((*req)->ctx);
    *done = (*req)->done;
    return *done ? finish(req, envelope) : RANK_OK;
}

rank_status_t rank_wait(rank_request_t *req, rank_envelope_t *envelope)
{
    rank_status_t st;

    if (!req)
        return RANK_ERR_ARG;
    if (!*req) {
        null_envelope(envelope);
        return RANK_OK;
    }
    st = check_request(*req);
    if (st)
        return st;
    rk_req_wait(*req);
    return finish(req, envelope);
}

static rank_status_t check_requests(int n, const rank_request_t *reqs)
{
    if (n < 0)
        return RANK_ERR_COUNT;
    if (n > 0 && !reqs)
        return RANK_ERR_ARG;
    for (int i = 0; i < n; i++) {
        if (reqs[i] && check_request(reqs[i]))
            return RANK_ERR_HANDLE;
    }
    return RANK_OK;
}

rank_status_t rank_waitall(int n, rank_request_t *reqs, rank_envelope_t *envelopes)
{
    rank_status_t first = check_requests(n, reqs);

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
        if (a->reqs[i] && a->reqs[i]->done) {
            a->found = i;
            return true;
        }
    }
    return false;
}

rank_status_t rank_waitany(int n, rank_request_t *reqs, int *index, rank_envelope_t *envelope)
{
    struct rk_any a = {n, RANK_UNDEFINED, reqs};
    rank_status_t st = check_requests(n, reqs);
    struct rk_ctx *ctx = NULL;

    if (st)
        return st;
    if (!index)
        return RANK_ERR_ARG;
    for (int i = 0; i < n && !ctx; i++) {
        if (reqs[i])
            ctx = reqs[i]->ctx;
    }
    if (!ctx) {
        *index = RANK_UNDEFINED;
        null_envelope(envelope);
        return RANK_OK;
    }
    rk_wait(ctx, rk_any_done, &a);
    *index = a.found;
    return finish(&reqs[a.found], envelope);
}

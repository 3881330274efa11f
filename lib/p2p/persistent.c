/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * persistent.c: create persistent requests and start them.
 *
 * A persistent request keeps its description in fields that the operation itself uses and leaves alone (view, tag,
 * elem; env_src is a send's peer), and the function that starts it, which depends on the kind of operation. Those of
 * collectives are created in collectives/coll_persistent.c.
 */
#include "lib/data/dtype.h"
#include "lib/p2p/api_check.h"
#include "lib/p2p/api_request.h"

static rank_status_t persistent_start_send(struct rank_request *req)
{
    int dest = (int)req->env_src;

    if (rk_unlikely(rk_p2p_lacks_credit(req->on, dest, req->view.bytes)))
        rk_progress(req->ctx);
    rk_p2p_isend_view(req->on, &req->view, dest, req->tag, req);
    return RANK_OK;
}

static rank_status_t persistent_start_recv(struct rank_request *req)
{
    int source = (int)req->src;

    if (RK_CHECK_OVERLAP && rk_p2p_awaits_view(req->on, &req->view))
        return rk_check_overlaps("rank_start");
    rk_p2p_irecv_view(req->on, &req->view, source, req->tag, req);
    return RANK_OK;
}

static rank_status_t persistent_start_null(struct rank_request *req)
{
    rk_null_end(req);
    return RANK_OK;
}

static const struct rk_persistent_ops persistent_send = {.start = persistent_start_send};
static const struct rk_persistent_ops persistent_recv = {.start = persistent_start_recv};
static const struct rk_persistent_ops persistent_null = {.start = persistent_start_null};

static rank_status_t persistent_create(const char *call, enum rk_req_type type, uint8_t flags, const void *buf, int64_t count,
                                       rank_dtype_t dtype, int peer, int64_t tag, rank_team_t team, rank_request_t *out)
{
    RK_ENTER_TEAM(team);
    bool send = type == RK_REQ_SEND;
    struct rank_request *req;
    size_t bytes;
    rank_status_t st = rk_check_message(call, buf, count, dtype, team, &bytes);

    if (st || rk_peer_null_ok(st = send ? rk_check_dest(call, team, peer, tag) : rk_check_source(call, team, peer, tag)))
        return st;
    if (!out)
        return rk_arg_null(call, "req");
    req = rk_req_alloc(team->ctx);
    if (!req)
        return RANK_ERR_NO_MEMORY;
    req->hold |= RK_HOLD_PERSISTENT;
    req->done = true;
    req->status = RANK_OK;
    req->elem = rk_dtype_bytes(dtype);
    req->view = rk_team_view(team, buf, bytes);
    req->tag = rk_match_tag(tag);
    req->on = team;
    req->team = team->id;
    req->peer = NULL;
    req->type = type;
    req->flags |= flags;
    if (send)
        req->env_src = (uint32_t)peer;
    else
        req->src = (uint32_t)peer;
    req->persistent = st ? &persistent_null : send ? &persistent_send : &persistent_recv;
    *out = req;
    return RANK_OK;
}

rank_status_t rank_send_init(const void *buf, int64_t count, rank_dtype_t dtype, int peer,
                             int64_t tag, rank_team_t team, rank_request_t *req)
{
    return persistent_create(__func__, RK_REQ_SEND, 0, buf, count, dtype, peer, tag, team, req);
}

rank_status_t rank_ssend_init(const void *buf, int64_t count, rank_dtype_t dtype, int peer,
                              int64_t tag, rank_team_t team, rank_request_t *req)
{
    return persistent_create(__func__, RK_REQ_SEND, RK_REQ_SYNC, buf, count, dtype, peer, tag, team, req);
}

rank_status_t rank_recv_init(void *buf, int64_t count, rank_dtype_t dtype, int peer, int64_t tag,
                             rank_team_t team, rank_request_t *req)
{
    return persistent_create(__func__, RK_REQ_RECV, 0, buf, count, dtype, peer, tag, team, req);
}

rank_status_t rk_check_start(const char *call, const struct rank_request *req, bool queued)
{
    RK_ENTER_REQUEST(req);
    rank_status_t st = req ? rk_check_request(call, req) : rk_arg_handle(call, "request", req);

    if (st)
        return st;
    if (!(req->hold & RK_HOLD_PERSISTENT))
        return rk_arg_error(RANK_ERR_HANDLE, call, "the request is not persistent");
    if (!rk_req_is_idle(req) && !(queued && (req->hold & (RK_HOLD_QUEUED | RK_HOLD_CALLS)) == RK_HOLD_QUEUED))
        return rk_arg_error(RANK_ERR_STATE, call, "the request is started already");
    /* The memory of a freed team may be another's. */
    if (rk_team_check(NULL, req->on) || req->on->id != (req->team & ~RK_TEAM_COLL))
        return rk_arg_error(RANK_ERR_HANDLE, call, "the team of the request is freed");
    return RANK_OK;
}

static rank_status_t persistent_start(struct rank_request *req)
{
    RK_ENTER_REQUEST(req);
    rank_status_t st;

    req->on_done = NULL;
    st = req->persistent->start(req);
    if (!st)
        req->hold = (uint8_t)((req->hold & ~RK_HOLD_QUEUED) | RK_HOLD_ACTIVE);
    return st;
}

rank_status_t rank_start(rank_request_t *req)
{
    rank_status_t st;

    if (!req)
        return rk_arg_null(__func__, "req");
    st = rk_check_start(__func__, *req, false);
    return st ? st : persistent_start(*req);
}

/* Mark each as active while checking, so that a duplicate in the array is found. */
static rank_status_t check_startall(int64_t n, rank_request_t *reqs)
{
    rank_status_t st = RANK_OK;
    int64_t i = 0;

    for (; i < n && !(st = rk_check_start("rank_startall", reqs[i], false)); i++)
        reqs[i]->hold |= RK_HOLD_ACTIVE;
    while (i-- > 0)
        reqs[i]->hold &= (uint8_t)~RK_HOLD_ACTIVE;
    return st;
}

rank_status_t rank_startall(int64_t n, rank_request_t *reqs)
{
    rank_status_t st;

    if (n < 0)
        return rk_arg_error(RANK_ERR_COUNT, __func__, "n %lld is negative", (long long)n);
    if (n > 0 && !reqs)
        return rk_arg_null(__func__, "reqs");
    st = check_startall(n, reqs);
    for (int64_t i = 0; i < n && !st; i++)
        st = persistent_start(reqs[i]);
    return st;
}

RK_PUBLIC(rank_send_init); RK_PUBLIC(rank_ssend_init); RK_PUBLIC(rank_recv_init); RK_PUBLIC(rank_start); RK_PUBLIC(rank_startall);

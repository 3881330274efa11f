/* SPDX-License-Identifier: BSD-3-Clause */
/* api_iov.c: send and receive noncontiguous data: rank_sendv and its relatives. */
#include "lib/data/iov.h"
#include "lib/p2p/api_check.h"
#include "lib/p2p/p2p_internal.h"

static rank_status_t check_message(const char *call, bool send, const rank_iov_t *iov, int64_t n, int peer, int64_t tag,
                                   rank_team_t team, size_t *bytes)
{
    rank_status_t st = rk_team_check(call, team);

    if (st || (st = rk_pieces_check_for(call, iov, n, !send, bytes)))
        return st;
    return send ? rk_check_dest(call, team, peer, tag) : rk_check_source(call, team, peer, tag);
}

rank_status_t rank_sendv(const rank_iov_t *iov, int64_t n, int peer, int64_t tag, rank_team_t team)
{
    RK_ENTER_TEAM(team);
    struct rank_request req;
    struct rk_view view;
    size_t bytes;
    rank_status_t st = check_message(__func__, true, iov, n, peer, tag, team, &bytes);

    if (st)
        return rk_peer_null_ok(st);
    rk_req_init(&req, NULL, NULL);
    req.flags = RK_REQ_WAITED;
    view = rk_pieces_view(&req.pieces, iov, n, bytes);
    rk_p2p_isend_view(team, &view, peer, (uint64_t)tag, &req);
    return rk_req_wait(&req);
}

rank_status_t rank_recvv(const rank_iov_t *iov, int64_t n, int peer, int64_t tag, rank_team_t team,
                         rank_envelope_t *envelope)
{
    RK_ENTER_TEAM(team);
    struct rk_pieces pieces;
    struct rk_view view;
    size_t bytes;
    rank_status_t st = check_message(__func__, false, iov, n, peer, tag, team, &bytes);

    if (st)
        return rk_null_receive(st, envelope);
    view = rk_pieces_view(&pieces, iov, n, bytes);
    if (RK_CHECK_OVERLAP && rk_p2p_awaits_view(team, &view))
        return rk_check_overlaps(__func__);
    return rk_p2p_recv_view(team, &view, peer, rk_match_tag(tag), 1, envelope);
}

static rank_status_t start_pieces(const char *call, bool send, const rank_iov_t *iov, int64_t n, int peer, int64_t tag,
                                  rank_team_t team, rank_request_t *out)
{
    RK_ENTER_TEAM(team);
    struct rank_request *req;
    struct rk_view view;
    size_t bytes;
    rank_status_t st = check_message(call, send, iov, n, peer, tag, team, &bytes);

    if (st)
        return rk_peer_null_ok(st) ? st : rk_null_start(call, team->ctx, send ? RK_REQ_SEND : RK_REQ_RECV, out);
    if (!out)
        return rk_arg_null(call, "req");
    req = rk_req_alloc(team->ctx);
    if (!req)
        return RANK_ERR_NO_MEMORY;
    req->elem = 1;
    view = rk_pieces_view(&req->pieces, iov, n, bytes);
    if (RK_CHECK_OVERLAP && !send && rk_p2p_awaits_view(team, &view)) {
        rk_req_free(req);
        return rk_check_overlaps(call);
    }
    if (send && rk_unlikely(rk_p2p_lacks_credit(team, peer, bytes)))
        rk_progress(team->ctx);
    if (send)
        rk_p2p_isend_view(team, &view, peer, (uint64_t)tag, req);
    else
        rk_p2p_irecv_view(team, &view, peer, rk_match_tag(tag), req);
    *out = req;
    return RANK_OK;
}

rank_status_t rank_isendv(const rank_iov_t *iov, int64_t n, int peer, int64_t tag, rank_team_t team, rank_request_t *req)
{
    return start_pieces(__func__, true, iov, n, peer, tag, team, req);
}

rank_status_t rank_irecvv(const rank_iov_t *iov, int64_t n, int peer, int64_t tag, rank_team_t team, rank_request_t *req)
{
    return start_pieces(__func__, false, iov, n, peer, tag, team, req);
}

RK_PUBLIC(rank_sendv); RK_PUBLIC(rank_recvv); RK_PUBLIC(rank_isendv); RK_PUBLIC(rank_irecvv);

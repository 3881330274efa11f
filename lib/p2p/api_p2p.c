/* SPDX-License-Identifier: BSD-3-Clause */
/* api_p2p.c: implement the point-to-point calls of rank.h. */
#include "lib/data/dtype.h"
#include "lib/core/request_pool.h"
#include "lib/p2p/api_check.h"
#include "lib/p2p/api_request.h"
#include "lib/p2p/p2p_internal.h"
#include "lib/p2p/recv_start.h"
#include "lib/p2p/send_fast.h"

RK_INLINE rank_status_t api_p2p_send(const void *buf, int64_t count, rank_dtype_t dtype, int peer, int64_t tag,
                             rank_team_t team)
{
    size_t bytes;
    rank_status_t st = rk_check_message("rank_send", buf, count, dtype, team, &bytes);

    if (rk_unlikely(st) || rk_unlikely((st = rk_check_dest("rank_send", team, peer, tag))))
        return rk_peer_null_ok(st);
    return rk_p2p_send(team, buf, bytes, peer, (uint64_t)tag);
}

/* As rank_send with flags of the request. */
static rank_status_t send_by_request(const char *call, const void *buf, int64_t count, rank_dtype_t dtype, int peer,
                                     int64_t tag, rank_team_t team, uint8_t flags)
{
    struct rank_request req;
    struct rk_view view;
    size_t bytes;
    rank_status_t st = rk_check_message(call, buf, count, dtype, team, &bytes);

    if (st || (st = rk_check_dest(call, team, peer, tag)))
        return rk_peer_null_ok(st);
    view = rk_team_view(team, buf, bytes);
    if (!flags && !view.ops)
        return rk_p2p_send(team, buf, bytes, peer, (uint64_t)tag);
    rk_req_init(&req, NULL, NULL);
    req.flags = flags | RK_REQ_WAITED;
    rk_p2p_isend_view(team, &view, peer, (uint64_t)tag, &req);
    return rk_req_wait(&req);
}

/* The hot calls exist twice: with the lock and all kinds of memory, and without any check for these. */
static RK_COLD rank_status_t send_shared(const void *buf, int64_t count, rank_dtype_t dtype, int peer, int64_t tag,
                                         rank_team_t team)
{
    RK_ENTER_TEAM(team);

    return send_by_request("rank_send", buf, count, dtype, peer, tag, team, 0);
}

rank_status_t rank_send(const void *buf, int64_t count, rank_dtype_t dtype, int peer, int64_t tag,
                        rank_team_t team)
{
    if (rk_likely(rk_team_is_plain(team)))
        return api_p2p_send(buf, count, dtype, peer, tag, team);
    return send_shared(buf, count, dtype, peer, tag, team);
}

rank_status_t rank_ssend(const void *buf, int64_t count, rank_dtype_t dtype, int peer, int64_t tag,
                         rank_team_t team)
{
    RK_ENTER_TEAM(team);

    return send_by_request(__func__, buf, count, dtype, peer, tag, team, RK_REQ_SYNC);
}

RK_INLINE rank_status_t api_p2p_recv(void *buf, int64_t count, rank_dtype_t dtype, int peer, int64_t tag, rank_team_t team,
                             rank_envelope_t *envelope, bool shared)
{
    struct rk_view view;
    size_t bytes;
    rank_status_t st = rk_check_message("rank_recv", buf, count, dtype, team, &bytes);

    if (rk_unlikely(st) || rk_unlikely((st = rk_check_source("rank_recv", team, peer, tag))))
        return rk_null_receive(st, envelope);
    if (RK_CHECK_OVERLAP && rk_p2p_awaits(team, buf, bytes))
        return rk_check_overlaps("rank_recv");
    if (shared) {
        view = rk_view_of(buf, bytes);
        if (team->ctx->engine->threads || view.ops)
            return rk_p2p_recv_view(team, &view, peer, rk_match_tag(tag), rk_dtype_bytes(dtype), envelope);
    }
    return rk_p2p_recv(team, buf, bytes, peer, rk_match_tag(tag), rk_dtype_bytes(dtype), envelope);
}

/* With several threads, without the fast receive, which would poll with the lock held. */
static RK_COLD rank_status_t recv_shared(void *buf, int64_t count, rank_dtype_t dtype, int peer, int64_t tag,
                                         rank_team_t team, rank_envelope_t *envelope)
{
    RK_ENTER_TEAM(team);

    return api_p2p_recv(buf, count, dtype, peer, tag, team, envelope, true);
}

rank_status_t rank_recv(void *buf, int64_t count, rank_dtype_t dtype, int peer, int64_t tag,
                        rank_team_t team, rank_envelope_t *envelope)
{
    if (rk_likely(rk_team_is_plain(team)))
        return api_p2p_recv(buf, count, dtype, peer, tag, team, envelope, false);
    return recv_shared(buf, count, dtype, peer, tag, team, envelope);
}

RK_INLINE rank_status_t check_start_send(const char *call, const void *buf, int64_t count, rank_dtype_t dtype, int peer, int64_t tag,
                                         rank_team_t team, const rank_request_t *out, size_t *bytes)
{
    rank_status_t st = rk_check_message(call, buf, count, dtype, team, bytes);

    if (rk_unlikely(st) || rk_unlikely((st = rk_check_dest(call, team, peer, tag))))
        return st;
    return rk_likely(out != NULL) ? RANK_OK : rk_arg_null(call, "req");
}

/* For messages that cannot leave at once. */
static __attribute__((noinline)) rank_status_t api_p2p_start_send(const void *buf, int64_t count, rank_dtype_t dtype, int peer,
                                                          int64_t tag, rank_team_t team, uint8_t flags, rank_request_t *out)
{
    RK_ENTER_TEAM(team);
    struct rank_request *req;
    struct rk_view view;
    size_t bytes;
    const char *call = flags ? "rank_issend" : "rank_isend";
    rank_status_t st = check_start_send(call, buf, count, dtype, peer, tag, team, out, &bytes);

    if (st)
        return rk_peer_null_ok(st) ? st : rk_null_start(call, team->ctx, RK_REQ_SEND, out);
    view = rk_team_view(team, buf, bytes);
    if (!flags && !view.ops && rk_send_now(team, buf, bytes, peer, (uint64_t)tag) == RANK_OK) {
        *out = rk_req_sent(team->ctx);
        return RANK_OK;
    }
    req = rk_pool_take(team->ctx);
    if (!req)
        return RANK_ERR_NO_MEMORY;
    req->flags |= flags;
    req->elem = rk_dtype_bytes(dtype);
    /* A burst of sends receives no credit without progress. */
    if (rk_unlikely(rk_p2p_lacks_credit(team, peer, bytes)))
        rk_progress(team->ctx);
    rk_p2p_isend_view(team, &view, peer, (uint64_t)tag, req);
    *out = req;
    return RANK_OK;
}

rank_status_t rank_isend(const void *buf, int64_t count, rank_dtype_t dtype, int peer, int64_t tag,
                         rank_team_t team, rank_request_t *req)
{
    size_t bytes;

    if (rk_likely(rk_team_is_plain(team)) &&
        rk_likely(check_start_send(NULL, buf, count, dtype, peer, tag, team, req, &bytes) == RANK_OK) &&
        rk_likely(rk_send_now(team, buf, bytes, peer, (uint64_t)tag) == RANK_OK)) {
        *req = rk_req_sent(team->ctx);
        return RANK_OK;
    }
    return api_p2p_start_send(buf, count, dtype, peer, tag, team, 0, req);
}

rank_status_t rank_issend(const void *buf, int64_t count, rank_dtype_t dtype, int peer,
                          int64_t tag, rank_team_t team, rank_request_t *req)
{
    return api_p2p_start_send(buf, count, dtype, peer, tag, team, RK_REQ_SYNC, req);
}

RK_INLINE rank_status_t check_start_recv(const char *call, void *buf, int64_t count, rank_dtype_t dtype, int peer, int64_t tag,
                                         rank_team_t team, const rank_request_t *out, size_t *bytes)
{
    rank_status_t st = rk_check_message(call, buf, count, dtype, team, bytes);

    if (rk_unlikely(st) || rk_unlikely((st = rk_check_source(call, team, peer, tag))))
        return st;
    if (rk_unlikely(!out))
        return rk_arg_null(call, "req");
    return RK_CHECK_OVERLAP && rk_p2p_awaits(team, buf, *bytes) ? rk_check_overlaps(call) : RANK_OK;
}

static __attribute__((noinline)) rank_status_t api_p2p_start_recv(void *buf, int64_t count, rank_dtype_t dtype, int peer, int64_t tag,
                                                          rank_team_t team, rank_request_t *out)
{
    RK_ENTER_TEAM(team);
    struct rank_request *req;
    struct rk_view view;
    size_t bytes;
    rank_status_t st = check_start_recv("rank_irecv", buf, count, dtype, peer, tag, team, out, &bytes);

    if (st)
        return rk_peer_null_ok(st) ? st : rk_null_start("rank_irecv", team->ctx, RK_REQ_RECV, out);
    req = rk_pool_take(team->ctx);
    if (!req)
        return RANK_ERR_NO_MEMORY;
    req->elem = rk_dtype_bytes(dtype);
    view = rk_team_view(team, buf, bytes);
    rk_p2p_irecv_view(team, &view, peer, rk_match_tag(tag), req);
    *out = req;
    return RANK_OK;
}

/* Without the lock, where peer and request are at hand: tail calls only. */
rank_status_t rank_irecv(void *buf, int64_t count, rank_dtype_t dtype, int peer, int64_t tag,
                         rank_team_t team, rank_request_t *out)
{
    struct rank_request *req;
    struct rk_peer *from;
    size_t bytes;

    if (rk_likely(rk_team_is_plain(team)) &&
        rk_likely(check_start_recv(NULL, buf, count, dtype, peer, tag, team, out, &bytes) == RANK_OK) &&
        rk_likely(peer >= 0 && (from = team->peers[peer]) != NULL && rk_pool_has(team->ctx))) {
        req = rk_pool_take(team->ctx);
        req->elem = rk_dtype_bytes(dtype);
        *out = req;
        rk_receive_start(team, (struct rk_view){buf, bytes, NULL}, from, peer, rk_match_tag(tag), 0, req);
        return RANK_OK;
    }
    return api_p2p_start_recv(buf, count, dtype, peer, tag, team, out);
}

RK_INLINE rank_status_t api_p2p_sendrecv(const void *sbuf, int64_t scount, rank_dtype_t sdtype, int dest, int64_t stag,
                                         void *rbuf, int64_t rcount, rank_dtype_t rdtype, int source, int64_t rtag,
                                         rank_team_t team, rank_envelope_t *envelope, bool shared)
{
    const char *call = "rank_sendrecv";
    struct rank_request send, recv;
    struct rk_view view;
    size_t sbytes, rbytes;
    rank_status_t st = rk_check_message(call, sbuf, scount, sdtype, team, &sbytes), to, from;

    if (st || (st = rk_check_message(call, rbuf, rcount, rdtype, team, &rbytes)) ||
        (st = rk_peer_null_ok(to = rk_check_dest(call, team, dest, stag))) ||
        (st = rk_peer_null_ok(from = rk_check_source(call, team, source, rtag))))
        return st;
    if (RK_CHECK_OVERLAP && (rk_overlap(sbuf, sbytes, rbuf, rbytes) || rk_p2p_awaits(team, rbuf, rbytes)))
        return rk_check_overlaps(call);
    rk_req_init(&recv, NULL, NULL);
    recv.elem = rk_dtype_bytes(rdtype);
    if (!from && shared) {
        view = rk_view_of(rbuf, rbytes);
        rk_p2p_irecv_view(team, &view, source, rk_match_tag(rtag), &recv);
    } else if (!from) {
        rk_p2p_irecv(team, rbuf, rbytes, source, rk_match_tag(rtag), 0, &recv);
    }
    if (!to) {
        rk_req_init(&send, NULL, NULL);
        if (shared) {
            view = rk_view_of(sbuf, sbytes);
            rk_p2p_isend_view(team, &view, dest, (uint64_t)stag, &send);
        } else {
            rk_p2p_isend(team, sbuf, sbytes, dest, (uint64_t)stag, 0, &send);
        }
        to = rk_req_wait(&send);
    }
    if (from)
        return rk_null_receive(to < 0 ? to : from, envelope);
    from = rk_req_wait(&recv);
    if (envelope)
        rk_req_envelope(&recv, envelope);
    return from ? from : rk_peer_null_ok(to);
}

static RK_COLD rank_status_t sendrecv_shared(const void *sbuf, int64_t scount, rank_dtype_t sdtype, int dest, int64_t stag,
                                             void *rbuf, int64_t rcount, rank_dtype_t rdtype, int source, int64_t rtag,
                                             rank_team_t team, rank_envelope_t *envelope)
{
    RK_ENTER_TEAM(team);

    return api_p2p_sendrecv(sbuf, scount, sdtype, dest, stag, rbuf, rcount, rdtype, source, rtag, team, envelope, true);
}

rank_status_t rank_sendrecv(const void *sbuf, int64_t scount, rank_dtype_t sdtype, int dest,
                            int64_t stag, void *rbuf, int64_t rcount, rank_dtype_t rdtype,
                            int source, int64_t rtag, rank_team_t team, rank_envelope_t *envelope)
{
    if (rk_likely(rk_team_is_plain(team)))
        return api_p2p_sendrecv(sbuf, scount, sdtype, dest, stag, rbuf, rcount, rdtype, source, rtag, team, envelope, false);
    return sendrecv_shared(sbuf, scount, sdtype, dest, stag, rbuf, rcount, rdtype, source, rtag, team, envelope);
}

const char *rank_channel_name(rank_team_t team, int peer)
{
    RK_ENTER_TEAM(team);
    struct rk_peer *p;

    if (rk_team_check(__func__, team) || (unsigned)peer >= (unsigned)team->size ||
        !(p = rk_team_peer(team, peer)) || rk_peer_connect(p))
        return NULL;
    return p->channel->name;
}

RK_PUBLIC(rank_send); RK_PUBLIC(rank_ssend); RK_PUBLIC(rank_recv); RK_PUBLIC(rank_isend); RK_PUBLIC(rank_issend);
RK_PUBLIC(rank_irecv); RK_PUBLIC(rank_sendrecv); RK_PUBLIC(rank_channel_name);

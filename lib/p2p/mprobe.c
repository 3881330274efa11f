/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mprobe.c: probe and take a message (rank_mprobe).
 *
 * The message leaves the queues with the probe, so that no other thread can receive it in between.
 */
#include "lib/p2p/api_check.h"
#include "lib/p2p/api_request.h"

/* The handle is the message itself. Its memory is never freed: its magic reveals an old handle. */
static struct rk_unexpected *mprobe_message_of(rank_message_t message)
{
    struct rk_unexpected *u = (struct rk_unexpected *)(void *)message;

    return u && u->magic == RK_MESSAGE_MAGIC ? u : NULL;
}

static void hand_out(struct rk_unexpected *u, rank_message_t *message, rank_envelope_t *envelope)
{
    *message = (rank_message_t)(void *)u;
    if (envelope)
        rk_message_envelope(u, envelope);
}

rank_status_t rank_mprobe(int peer, int64_t tag, rank_team_t team, rank_message_t *message,
                          rank_envelope_t *envelope)
{
    RK_ENTER_TEAM(team);
    struct rk_probe p = {.team = team, .source = peer, .tag = rk_match_tag(tag), .take = true};
    rank_status_t st = rk_team_check(__func__, team);

    if (st || rk_peer_null_ok(st = rk_check_source(__func__, team, peer, tag)))
        return st;
    if (!message)
        return rk_arg_null(__func__, "message");
    if (st)
        return rk_null_probe(st, team, message, envelope);
    p.ndead = team->ndead;
    if (!rk_probe_over(&p)) {
        if (!rk_may_wait(team->ctx))
            return rk_arg_in_callback(__func__);
        rk_probe_wait(&p);
    }
    if (p.dead)
        return RANK_ERR_PEER_DEAD;
    hand_out(p.taken, message, envelope);
    return RANK_OK;
}

rank_status_t rank_improbe(int peer, int64_t tag, rank_team_t team, int *found,
                           rank_message_t *message, rank_envelope_t *envelope)
{
    RK_ENTER_TEAM(team);
    struct rk_unexpected *u;
    rank_status_t st = rk_team_check(__func__, team);

    if (st || rk_peer_null_ok(st = rk_check_source(__func__, team, peer, tag)))
        return st;
    if (!found || !message)
        return rk_arg_null(__func__, !found ? "found" : "message");
    if (st) {
        *found = 1;
        return rk_null_probe(st, team, message, envelope);
    }
    *found = 0;
    u = rk_p2p_take(team, peer, rk_match_tag(tag));
    if (!u) {
        rk_progress_once(team->ctx);
        u = rk_p2p_take(team, peer, rk_match_tag(tag));
    }
    if (!u)
        return rk_p2p_cannot_come(team, peer) ? RANK_ERR_PEER_DEAD : RANK_OK;
    *found = 1;
    hand_out(u, message, envelope);
    return RANK_OK;
}

static struct rk_threads *enter_message(const rank_message_t *message)
{
    const struct rk_unexpected *u = message ? mprobe_message_of(*message) : NULL;

    return u ? rk_enter(u->peer->ctx) : NULL;
}

static rank_status_t check_mrecv(const char *call, const void *buf, int64_t count, rank_dtype_t dtype,
                                 const rank_message_t *message, struct rk_unexpected **u,
                                 size_t *bytes)
{
    rank_status_t st = rk_dtype_span(call, dtype, count, bytes);

    if (st)
        return st;
    if (!message || (!buf && *bytes))
        return rk_arg_null(call, !message ? "message" : "the buffer");
    *u = mprobe_message_of(*message);
    if (!*u)
        return rk_arg_handle(call, "message", *message);
    return *u == &(*u)->peer->ctx->p2p->null_message ? RK_PEER_NULL : RANK_OK;
}

rank_status_t rank_mrecv(void *buf, int64_t count, rank_dtype_t dtype, rank_message_t *message,
                         rank_envelope_t *envelope)
{
    RK_ENTERED = enter_message(message);
    struct rank_request req;
    struct rk_unexpected *u;
    size_t bytes;
    rank_status_t st = check_mrecv(__func__, buf, count, dtype, message, &u, &bytes);

    if (st) {
        if (st == RK_PEER_NULL)
            *message = RANK_MESSAGE_NULL;
        return rk_null_receive(st, envelope);
    }
    rk_req_init(&req, NULL, NULL);
    req.elem = rk_dtype_bytes(dtype);
    *message = RANK_MESSAGE_NULL;
    rk_p2p_mrecv(u, rk_view_of(buf, bytes), &req);
    st = rk_req_wait(&req);
    if (envelope)
        rk_req_envelope(&req, envelope);
    return st;
}

rank_status_t rank_imrecv(void *buf, int64_t count, rank_dtype_t dtype, rank_message_t *message,
                          rank_request_t *out)
{
    RK_ENTERED = enter_message(message);
    struct rank_request *req;
    struct rk_unexpected *u;
    size_t bytes;
    rank_status_t st = check_mrecv(__func__, buf, count, dtype, message, &u, &bytes);

    if (rk_peer_null_ok(st))
        return st;
    if (!out)
        return rk_arg_null(__func__, "req");
    if (st) {
        *message = RANK_MESSAGE_NULL;
        return rk_null_start(__func__, u->peer->ctx, RK_REQ_RECV, out);
    }
    req = rk_req_alloc(u->peer->ctx);
    if (!req)
        return RANK_ERR_NO_MEMORY;
    req->elem = rk_dtype_bytes(dtype);
    *message = RANK_MESSAGE_NULL;
    rk_p2p_mrecv(u, rk_view_of(buf, bytes), req);
    *out = req;
    return RANK_OK;
}

RK_PUBLIC(rank_mprobe); RK_PUBLIC(rank_improbe); RK_PUBLIC(rank_mrecv); RK_PUBLIC(rank_imrecv);

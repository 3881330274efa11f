/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mprobe.c: probe for a message, and take it (rank_mprobe).
 *
 * A taken message leaves the queues with the probe, so that no other thread can receive it in between.
 */
#include "lib/p2p/api_check.h"
#include "lib/p2p/api_request.h"

/* The handle is the message itself. Its memory is never freed: its magic reveals an old handle. */
static struct rk_unexpected *mprobe_message_of(rank_message_t message)
{
    struct rk_unexpected *u = (struct rk_unexpected *)(void *)message;

    return u && u->magic == RK_MESSAGE_MAGIC ? u : NULL;
}

static bool probe_find(struct rk_probe *p)
{
    if (!p->message)
        return rk_p2p_probe(p->team, p->source, p->tag, p->envelope);
    p->taken = rk_p2p_take(p->team, p->source, p->tag);
    return p->taken != NULL;
}

static bool probe_is_over(struct rk_wait *w)
{
    struct rk_probe *p = (struct rk_probe *)w;

    /* A taken message, or an error that is reported once. */
    if (p->over || (p->over = probe_find(p)))
        return true;
    p->dead = rk_p2p_cannot_come(p->team, p->source) ||
              (p->source == RANK_ANY_SOURCE && rk_unlikely(p->team->ndead != p->ndead));
    p->late = !p->dead && w->late;
    return p->over = p->dead || p->late;
}

static rank_status_t probe_wait(const char *call, struct rk_probe *p, int64_t timeout_ns)
{
    p->ndead = p->team->ndead;
    p->wait.deadline = rk_wait_deadline(timeout_ns);
    if (!probe_is_over(&p->wait)) {
        if (!rk_may_wait(p->team->ctx))
            return rk_arg_in_callback(call);
        rk_wait_on(p->team->ctx, &p->wait, probe_is_over);
    }
    return p->dead ? rk_team_lost(p->team) : p->late ? RANK_ERR_TIMED_OUT : RANK_OK;
}

static rank_status_t probe_once(struct rk_probe *p, int *found)
{
    *found = probe_find(p);
    if (!*found) {
        rk_progress_once(p->team->ctx);
        *found = probe_find(p);
    }
    return !*found && rk_p2p_cannot_come(p->team, p->source) ? rk_team_lost(p->team) : RANK_OK;
}

/* timeout_ns 0: look once; negative: wait until there is one. found NULL: none is an error. take: it leaves the queues. */
static rank_status_t probe_message(const char *call, int peer, int64_t tag, rank_team_t team, int *found, int64_t timeout_ns,
                                   rank_message_t *message, bool take, rank_envelope_t *envelope)
{
    RK_ENTER_TEAM(team);
    int any = 1;
    struct rk_probe p = {.wait = {.describe = rk_probe_describe}, .team = team, .source = peer, .tag = rk_match_tag(tag),
                         .envelope = envelope, .message = message};
    rank_status_t st = rk_team_check(call, team);

    if (st || rk_peer_null_ok(st = rk_check_source(call, team, peer, tag)))
        return st;
    if (take && !message)
        return rk_arg_null(call, "message");
    if (st) {
        if (found)
            *found = 1;
        return rk_null_probe(st, team, message, envelope);
    }
    st = timeout_ns ? probe_wait(call, &p, timeout_ns) : probe_once(&p, found ? found : &any);
    if (!st && !any)
        return RANK_ERR_TIMED_OUT;
    if (!p.taken)
        return st;
    *message = (rank_message_t)(void *)p.taken; /* the handle is the message */
    if (envelope)
        rk_message_envelope(p.taken, envelope);
    return st;
}

rank_status_t rank_probe(int peer, int64_t tag, rank_team_t team, rank_envelope_t *envelope)
{
    return probe_message(__func__, peer, tag, team, NULL, -1, NULL, false, envelope);
}

rank_status_t rank_iprobe(int peer, int64_t tag, rank_team_t team, int *found, rank_envelope_t *envelope)
{
    return found ? probe_message(__func__, peer, tag, team, found, 0, NULL, false, envelope) : rk_arg_null(__func__, "found");
}

rank_status_t rank_mprobe(int peer, int64_t tag, rank_team_t team, rank_message_t *message, rank_envelope_t *envelope)
{
    return probe_message(__func__, peer, tag, team, NULL, -1, message, true, envelope);
}

rank_status_t rank_mprobe_timed(int peer, int64_t tag, rank_team_t team, int64_t timeout_ns, rank_message_t *message,
                                rank_envelope_t *envelope)
{
    return probe_message(__func__, peer, tag, team, NULL, timeout_ns, message, true, envelope);
}

rank_status_t rank_improbe(int peer, int64_t tag, rank_team_t team, int *found, rank_message_t *message,
                           rank_envelope_t *envelope)
{
    return found ? probe_message(__func__, peer, tag, team, found, 0, message, true, envelope) : rk_arg_null(__func__, "found");
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

RK_PUBLIC(rank_probe); RK_PUBLIC(rank_iprobe); RK_PUBLIC(rank_mprobe); RK_PUBLIC(rank_improbe); RK_PUBLIC(rank_mrecv);
RK_PUBLIC(rank_imrecv); RK_PUBLIC(rank_mprobe_timed);

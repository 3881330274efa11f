/* SPDX-License-Identifier: BSD-3-Clause */
/* connection.c: make connections of handshakes, and end them. */
#include "lib/base/clock.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/boot/boot.h"
#include "lib/conn/conns.h"
#include "lib/core/procs.h"
#include "lib/core/room.h"

#include <stdlib.h>
#include <string.h>

static rank_status_t read_secret(const char *call, const rank_conn_opts_t *given, struct rk_conn_opts *out)
{
    char why[256];
    rank_status_t st;

    if (!given->secret && given->secret_bytes)
        return rk_arg_null(call, "opts->secret");
    st = rk_secret_load(given->secret, given->secret_bytes, &out->secret, why, sizeof(why));
    if (st == RANK_ERR_ARG)
        return rk_arg_error(RANK_ERR_ARG, call, "%s", why);
    return st ? rk_call_error(st, call, "%s", why) : RANK_OK;
}

rank_status_t rk_conn_opts_read(const char *call, const rank_conn_opts_t *given, struct rk_conn_opts *out)
{
    rank_conn_opts_t all = RANK_CONN_OPTS_INIT;
    rank_status_t st;

    if (given && (given->size < sizeof(given->size) || given->size > sizeof(all) || given->size % sizeof(given->size)))
        return rk_arg_error(RANK_ERR_ARG, call, "opts->size is %zu: use RANK_CONN_OPTS_INIT", given->size);
    if (given) /* fields beyond its size keep their defaults */
        memcpy(&all, given, given->size);
    given = &all;
    if (given->hello_bytes > RK_SHAKE_HELLO_MAX || (given->hello_bytes && !given->hello))
        return rk_arg_error(RANK_ERR_ARG, call, "opts->hello has %zu bytes: at most %d are possible", given->hello_bytes,
                            RK_SHAKE_HELLO_MAX);
    if (given->timeout_ns < 0 || given->silence_ns < 0 || given->max_conns < 0 || given->backlog < 0 ||
        given->reserved || given->flags & ~(RANK_CONN_OPEN | RANK_CONN_NO_SHM | RANK_CONN_NO_RDMA))
        return rk_arg_error(RANK_ERR_ARG, call, "opts has a negative number, an unknown flag, or reserved is not 0");
    st = read_secret(call, given, out);
    if (st)
        return st;
    out->flags = given->flags;
    out->backlog = given->backlog ? given->backlog : 1024;
    out->max_conns = given->max_conns ? given->max_conns : 1024;
    out->timeout_ns = given->timeout_ns ? (uint64_t)given->timeout_ns : 5000000000u;
    out->silence_ns = given->silence_ns ? (uint64_t)given->silence_ns : 10000000000u;
    out->hello_bytes = (uint16_t)given->hello_bytes;
    if (given->hello_bytes)
        memcpy(out->hello, given->hello, given->hello_bytes);
    return RANK_OK;
}

void rk_conn_opts_free(struct rk_conn_opts *opts)
{
    if (opts)
        rk_secret_clear(&opts->secret);
    free(opts);
}

/* ---------------------------------------------------------------------- a connection */

static void describe_sides(const struct rk_shaking *s, rank_conn_info_t *info)
{
    struct sockaddr_storage a;
    socklen_t len = sizeof(a);

    if (getsockname(s->source.fd, (struct sockaddr *)&a, &len) == 0)
        rk_address_text((struct sockaddr *)&a, info->local, sizeof(info->local));
    len = sizeof(a);
    if (getpeername(s->source.fd, (struct sockaddr *)&a, &len) == 0)
        rk_address_text((struct sockaddr *)&a, info->remote, sizeof(info->remote));
    memcpy(info->name, s->peer.name, sizeof(info->name));
    info->pid = s->peer.host && s->peer.host == s->of->host ? (int32_t)s->peer.pid : 0;
    info->proved = s->proved;
    info->hello_bytes = s->peer.hello_bytes;
    memcpy(info->hello, s->peer.hello, sizeof(info->hello));
}

/* Id of a side's job at the other side, and in the packets of UCX: of the team's ranks 0 and 1. */
static uint64_t job_of_side(uint64_t team, int side)
{
    return rk_procid_hash((struct rk_procid){team, (uint32_t)side});
}

/* Both sides obey the smaller of their windows. */
static void agree_window(struct rk_peer *peer, uint32_t theirs)
{
    peer->by_conn = 1;
    peer->window = theirs < rk_conf.eager_window ? theirs : rk_conf.eager_window;
}

/* Create the team of the connection; its peer gets a number. */
static rank_status_t make_team(struct rk_conn *conn, struct rk_shaking *s)
{
    struct rk_ctx *ctx = s->of->ctx;
    int *numbers, other, me = s->listener != NULL;
    rank_status_t st = rk_procs_add_job(ctx, conn->job, 1, rk_team_epoch(s->team), &other);

    if (st)
        return st;
    rk_procs_set_owner(ctx, other, s->peer.context);
    conn->peer = rk_engine_peer(ctx, other);
    if (conn->peer)
        agree_window(conn->peer, s->peer.window);
    numbers = malloc(2 * sizeof(*numbers));
    if (!conn->peer || !numbers) {
        free(numbers);
        return RANK_ERR_NO_MEMORY;
    }
    numbers[me] = ctx->boot->rank;
    numbers[1 - me] = other;
    st = rk_team_create(ctx, s->team, me, 2, numbers, &conn->team);
    if (st)
        free(numbers);
    return st;
}

/* Connect the peer by the socket, or by what the handshake has found. Takes the socket, unless it fails. */
static rank_status_t connect_peer(struct rk_conn *conn, struct rk_shaking *s)
{
    struct rk_tcp *tcp = s->of->tcp;
    bool lifeline = s->node || s->ucx_link;
    rank_status_t st = rk_tcp_attach(tcp, s->source.fd, conn->peer, &conn->counts, s->opts->silence_ns, lifeline);

    if (st || !lifeline)
        return st;
    s->source.fd = -1; /* rk_procs_remove_job closes the link */
    if (s->node)
        return rk_pair_connect(s->node, conn->peer, &conn->shared);
    st = rk_conn_ucx_adopt(s, conn->peer, job_of_side(s->team, s->listener != NULL));
    if (!st)
        rk_tcp_send_ready(rk_tcp_link_of(tcp, conn->peer));
    return st;
}

rank_status_t rk_conn_make(struct rk_shaking *s, struct rk_conn **out)
{
    struct rk_conn *conn = calloc(1, sizeof(*conn));
    struct rk_conns *c = s->of;
    rank_status_t st = conn ? RANK_OK : RANK_ERR_NO_MEMORY;

    if (rk_team_find(c->ctx, s->team)) /* the other side chose it */
        st = RANK_ERR_REFUSED;
    if (!st) {
        conn->job = job_of_side(s->team, s->listener == NULL);
        describe_sides(s, &conn->info);
        st = make_team(conn, s);
    }
    if (!st) {
        rk_team_settle(conn->team);
        st = rk_rooms_team_open(c->ctx, conn->team); /* waits for no peer: the team is not local */
    }
    if (!st && (st = connect_peer(conn, s)) != RANK_OK)
        rk_rooms_team_close(c->ctx, conn->team);
    if (!st) {
        s->source.fd = -1;
        s->node = NULL;
        snprintf(conn->info.channel, sizeof(conn->info.channel), "%s", conn->peer->channel->name);
        conn->by_ucx = conn->peer->channel->links != NULL;
        if (s->listener) {
            conn->count = s->listener->count;
            conn->count->holders++;
        }
        rk_list_append(&c->conns, &conn->link);
        *out = conn;
    } else {
        if (s->listener)
            s->listener->count->n--;
        if (conn && conn->team)
            rk_team_destroy(conn->team);
        if (conn)
            rk_procs_remove_job(c->ctx, conn->job);
        free(conn);
    }
    rk_shake_end(s);
    return st;
}

struct rk_conn *rk_conn_of(const struct rank_team *team)
{
    struct rk_conns *c = team->ctx->conns;
    struct rk_link *at;

    if (!c || !team->mixed)
        return NULL;
    rk_list_for_each(at, &c->conns)
    {
        struct rk_conn *conn = rk_list_entry(at, struct rk_conn, link);
        if (conn->team == team)
            return conn;
    }
    return NULL;
}

void rk_conn_forget(struct rk_conn *conn)
{
    if (conn->count)
        conn->count->n--;
    rk_conn_count_drop(conn->count);
    rk_list_remove(&conn->link);
    free(conn);
}

/* ----------------------------------------------------------------------- disconnecting */

struct bye_wait {
    struct rk_wait wait;
    const struct rk_conn *conn;
    struct rk_peer *peer;
    bool confirmed;
};

/* Does the channel of a lifeline move nothing of this side any more? */
static bool channel_is_settled(struct rk_peer *peer)
{
    return peer->state != RK_PEER_UP || !peer->channel->links || peer->channel->links->settled(peer) == RANK_OK;
}

static bool bye_is_over(struct rk_wait *w)
{
    struct bye_wait *b = (struct bye_wait *)w;
    struct rk_tcp *tcp = b->peer->ctx->conns->tcp;
    struct rk_tcp_link *l = rk_tcp_link_of(tcp, b->peer);

    if (b->conn->abandoned)
        return true;
    tcp->due = true;
    if (b->confirmed || b->peer->state == RK_PEER_DEAD || !l)
        return b->confirmed = true;
    if (!rk_list_empty(&b->peer->sendq.on_busy) || !channel_is_settled(b->peer))
        return w->late;
    rk_tcp_send_bye(l);
    b->confirmed = rk_tcp_is_over(l);
    return b->confirmed || w->late;
}

rank_status_t rk_conn_send_bye(struct rk_conn *conn, int64_t timeout_ns)
{
    struct bye_wait w = {.wait = {.peer = conn->peer}, .conn = conn, .peer = conn->peer};
    struct rk_ctx *ctx = conn->team->ctx;
    struct rk_tcp_link *l;

    rk_death_watch_end(conn->team);
    w.wait.deadline = rk_wait_deadline(timeout_ns);
    if (timeout_ns)
        rk_wait(ctx, &w.wait, bye_is_over);
    else if (!bye_is_over(&w.wait)) {
        rk_progress(ctx);
        bye_is_over(&w.wait);
    }
    conn->peer->closed = 1;
    rk_peer_died(conn->peer);
    l = rk_tcp_link_of(ctx->conns->tcp, conn->peer);
    if (l) { /* a lifeline: also an end that is not confirmed is no death */
        rk_tcp_send_bye(l);
        rk_tcp_link_close(l);
    }
    return w.confirmed ? RANK_OK : RANK_ERR_TIMED_OUT;
}

/* ns since a time of the coarse clock; -1: there was none. */
static int64_t time_since(uint64_t then)
{
    uint64_t now = rk_clock_coarse_ns();

    return !then ? -1 : now > then ? (int64_t)(now - then) : 0;
}

void rk_conn_count(struct rk_conn *conn)
{
    const struct rk_tcp_counts *c = &conn->counts;

    conn->info.sent = (int64_t)c->sent;
    conn->info.received = (int64_t)c->received;
    rk_pair_count(conn->peer);
    conn->info.messages_sent = conn->by_ucx ? -1 : (int64_t)(c->messages_sent + conn->shared.sent);
    conn->info.messages_received = conn->by_ucx ? -1 : (int64_t)(c->messages_received + conn->shared.received);
    conn->info.refused = (int64_t)c->refused;
    conn->info.sent_ago_ns = time_since(c->sent_ns);
    conn->info.received_ago_ns = time_since(c->received_ns);
}

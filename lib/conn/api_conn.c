/* SPDX-License-Identifier: BSD-3-Clause */
/* api_conn.c: listen, connect, accept, disconnect. */
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/timing.h"
#include "lib/conn/conns.h"
#include "lib/core/procs.h"
#include "lib/core/root.h"
#include "lib/core/threads.h"
#include "lib/rma/rma.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* --------------------------------------------------------------------------- listening */

/* Parse and resolve. Waits for name servers. */
static rank_status_t find_address(const char *call, const char *text, bool listens, struct addrinfo **found)
{
    struct rk_address address;
    char why[256];
    rank_status_t st;

    if (!text)
        return rk_arg_null(call, "address");
    st = rk_address_parse(text, listens, &address, why, sizeof(why));
    if (st)
        return rk_arg_error(st, call, "%s", why);
    st = rk_address_resolve(&address, listens, found, why, sizeof(why));
    return st ? rk_call_error(st, call, "%s", why) : RANK_OK;
}

/* What rank_listen and rank_connect need before they lock the context. */
struct opening {
    struct rk_ctx *ctx;
    struct rk_conn_opts *opts;
    struct addrinfo *found;
};

/* End it in any case. */
static rank_status_t opening_begin(const char *call, rank_ctx_t handle, const char *address, const rank_conn_opts_t *given,
                                   bool listens, struct opening *o)
{
    rank_status_t st = rk_root_find(call, handle, &o->ctx);

    if (st) {
        o->ctx = NULL;
        return st;
    }
    atomic_fetch_add(&o->ctx->unlocked, 1);
    o->opts = calloc(1, sizeof(*o->opts));
    st = o->opts ? rk_conn_opts_read(call, given, o->opts) : RANK_ERR_NO_MEMORY;
    return st ? st : find_address(call, address, listens, &o->found);
}

static void opening_end(struct opening *o)
{
    if (o->found)
        freeaddrinfo(o->found);
    rk_conn_opts_free(o->opts);
    if (o->ctx)
        atomic_fetch_sub(&o->ctx->unlocked, 1); /* the context may be gone from here on */
}

static rank_status_t conn_listen_in(const struct opening *o, const char *address, rank_listener_t *out)
{
    RK_ENTER(o->ctx);
    struct rk_conns *c;
    rank_status_t st = o->ctx->closing ? RANK_ERR_CLOSED : rk_conns_of(o->ctx, &c);

    return st ? st : rk_listener_open("rank_listen", c, address, o->found, o->opts, out);
}

rank_status_t rank_listen(rank_ctx_t handle, const char *address, const rank_conn_opts_t *given, rank_listener_t *out)
{
    struct opening o = {.ctx = NULL};
    rank_status_t st = out ? opening_begin(__func__, handle, address, given, true, &o) : rk_arg_null(__func__, "listener");

    if (!st)
        st = conn_listen_in(&o, address, out);
    opening_end(&o);
    return rk_call_end(__func__, st);
}

static rank_status_t check_listener(const char *call, rank_listener_t t)
{
    if (!t)
        return rk_arg_null(call, "listener");
    if (t->magic == RK_LISTENER_MAGIC && t->of->ctx->forked)
        return rk_arg_error(RANK_ERR_STATE, call, "the listener is the parent's");
    return t->magic == RK_LISTENER_MAGIC ? RANK_OK : rk_arg_handle(call, "listener", t);
}

rank_status_t rank_listener_address(rank_listener_t t, char *text, size_t *len)
{
    rank_status_t st = check_listener(__func__, t);
    char is[RK_ADDRESS_TEXT] = "?";
    struct sockaddr_storage a;
    socklen_t size = sizeof(a);
    size_t need;

    if (st)
        return st;
    if (!text || !len)
        return rk_arg_null(__func__, !text ? "text" : "len");
    if (getsockname(t->source.fd, (struct sockaddr *)&a, &size) == 0)
        rk_address_text((struct sockaddr *)&a, is, sizeof(is));
    need = strlen(is) + 1;
    st = *len < need ? RANK_ERR_TRUNCATED : RANK_OK;
    *len = need;
    if (!st)
        memcpy(text, is, need);
    return st;
}

rank_status_t rank_listener_close(rank_listener_t *t)
{
    rank_status_t st = check_listener(__func__, t ? *t : NULL);

    if (st)
        return st;
    RK_ENTER((*t)->of->ctx);
    st = check_listener(__func__, *t); /* rank_ctx_close closes it, too */
    if (st)
        return st;
    rk_listener_end(*t);
    *t = RANK_LISTENER_NULL;
    return RANK_OK;
}

/* ------------------------------------------------------------------------- connecting */

struct accept_wait {
    struct rk_wait wait;
    rank_listener_t listener;
    uint64_t serial; /* another one: the listener is closed */
};

static bool has_client(struct rk_wait *w)
{
    const struct accept_wait *a = (const struct accept_wait *)w;

    return a->listener->serial != a->serial || !rk_list_empty(&a->listener->ready) || a->listener->failed || w->late;
}

rank_status_t rank_accept(rank_listener_t t, int64_t timeout_ns, rank_team_t *out)
{
    struct accept_wait w = {.listener = t};
    rank_status_t st = check_listener(__func__, t);
    struct rk_conn *conn;
    struct rk_ctx *ctx;

    if (st)
        return st;
    if (!out)
        return rk_arg_null(__func__, "conn");
    ctx = t->of->ctx;
    RK_ENTER(ctx);
    if (timeout_ns && rk_in_callback(ctx))
        return rk_arg_in_callback(__func__);
    if (t->magic != RK_LISTENER_MAGIC) /* closed while this thread waited for the lock */
        return RANK_ERR_CLOSED;
    w.serial = t->serial;
    w.wait.deadline = rk_wait_deadline(timeout_ns);
    if (timeout_ns)
        rk_wait(ctx, &w.wait, has_client);
    else if (!has_client(&w.wait))
        rk_progress_once(ctx);
    if (t->serial != w.serial)
        return RANK_ERR_CLOSED;
    if (rk_list_empty(&t->ready)) {
        st = t->failed ? t->failed : RANK_ERR_TIMED_OUT;
        t->failed = RANK_OK;
        return rk_call_returns(__func__, st);
    }
    st = rk_conn_make(rk_list_entry(t->ready.next, struct rk_shaking, link), &conn);
    if (!st)
        *out = conn->team;
    return rk_call_end(__func__, st);
}

struct connect_wait {
    struct rk_wait wait;
    const struct rank_request *req;
};

static bool has_connected(struct rk_wait *w)
{
    return ((struct connect_wait *)w)->req->done || w->late;
}

/* Begin to connect, for a request of the pool or, of rank_connect, of the caller. Takes what is open. */
static rank_status_t connect_begin(const char *call, struct opening *o, const char *address, struct rank_request **req,
                                   rank_team_t *out)
{
    struct rk_conns *c;
    rank_status_t st = o->ctx->closing ? RANK_ERR_CLOSED : rk_conns_of(o->ctx, &c);
    struct rank_request *own = *req;

    if (st)
        return st;
    if (!own && !(*req = rk_req_alloc(o->ctx)))
        return RANK_ERR_NO_MEMORY;
    st = rk_connect_begin(call, c, address, o->found, o->opts, *req, out);
    if (!st) {
        o->found = NULL;
        o->opts = NULL;
    } else if (!own) {
        rk_req_free(*req);
    }
    return st;
}

static rank_status_t connect_in(struct opening *o, const char *address, rank_team_t *out)
{
    RK_ENTER(o->ctx);
    struct rank_request own = {.ctx = o->ctx}, *req = &own;
    struct connect_wait w = {.req = req};
    uint64_t timeout_ns = o->opts->timeout_ns;
    rank_status_t st;

    if (rk_in_callback(o->ctx))
        return rk_arg_in_callback("rank_connect");
    st = connect_begin("rank_connect", o, address, &req, out);
    if (st)
        return st;
    w.wait.deadline = rk_wait_deadline_in(timeout_ns); /* not before that of the attempt */
    rk_wait(o->ctx, &w.wait, has_connected);
    if (!own.done)
        rk_connects_settle(o->ctx->conns, rk_clock_ns());
    return own.status ? rk_req_failed(&own) : RANK_OK;
}

rank_status_t rank_connect(rank_ctx_t handle, const char *address, const rank_conn_opts_t *given, rank_team_t *out)
{
    struct opening o = {.ctx = NULL};
    rank_status_t st = out ? opening_begin(__func__, handle, address, given, false, &o) : rk_arg_null(__func__, "conn");

    if (!st)
        st = connect_in(&o, address, out);
    opening_end(&o);
    return rk_call_end(__func__, st);
}

static rank_status_t iconnect_in(struct opening *o, const char *address, rank_team_t *out, rank_request_t *handle)
{
    RK_ENTER(o->ctx);
    struct rank_request *req = NULL;
    rank_status_t st = connect_begin("rank_iconnect", o, address, &req, out);

    if (!st)
        *handle = req;
    return st;
}

rank_status_t rank_iconnect(rank_ctx_t handle, const char *address, const rank_conn_opts_t *given, rank_team_t *out,
                            rank_request_t *req)
{
    struct opening o = {.ctx = NULL};
    rank_status_t st = out && req ? opening_begin(__func__, handle, address, given, false, &o)
                                  : rk_arg_null(__func__, !out ? "conn" : "req");

    if (!st)
        st = iconnect_in(&o, address, out, req);
    opening_end(&o);
    return rk_call_end(__func__, st);
}

/* ---------------------------------------------------------------------- disconnecting */

static void free_conn(struct rk_conn *conn)
{
    struct rank_team *team = conn->team;
    struct rk_ctx *ctx = team->ctx;

    rk_mem_close_opened(team);
    rk_conn_forget(conn);
    rk_team_close(team);
    rk_procs_sweep(ctx);
}

static rank_status_t disconnect_conn(struct rk_conn *conn, int64_t timeout_ns)
{
    struct rank_team *team = conn->team;
    struct rk_ctx *ctx = team->ctx;
    rank_status_t st;

    conn->ending = true;
    rk_mem_end_lists(team); /* the rest of a long one would hold up what is sent before the end */
    st = rk_conn_send_bye(conn, timeout_ns);
    if (!rk_threads_dismiss(ctx->engine->threads, ctx->close_by)) /* from the team and the memories that end now */
        return RANK_ERR_TIMED_OUT; /* rank_ctx_close frees them later, or never */
    free_conn(conn);
    return st;
}

void rk_conns_free(struct rk_ctx *ctx)
{
    while (ctx->conns && !rk_list_empty(&ctx->conns->conns))
        free_conn(rk_list_entry(ctx->conns->conns.next, struct rk_conn, link));
}

/* A connection that no thread disconnects. NULL: there is none. */
static struct rk_conn *next_to_end(struct rk_conns *c)
{
    struct rk_link *at;

    rk_list_for_each(at, &c->conns)
    {
        struct rk_conn *conn = rk_list_entry(at, struct rk_conn, link);
        if (!conn->ending)
            return conn;
    }
    return NULL;
}

struct disconnects_wait {
    struct rk_wait wait;
    const struct rk_conns *of;
};

static bool have_disconnected(struct rk_wait *w)
{
    return rk_list_empty(&((const struct disconnects_wait *)w)->of->conns) || w->late;
}

/* Wait for other threads in rank_disconnect. Late ones return at once. */
static rank_status_t await_disconnects(struct rk_conns *c, uint64_t deadline)
{
    struct disconnects_wait w = {.wait = {.deadline = deadline}, .of = c};
    struct rk_link *at;

    rk_wait(c->ctx, &w.wait, have_disconnected);
    rk_list_for_each(at, &c->conns)
        rk_list_entry(at, struct rk_conn, link)->abandoned = true;
    return rk_list_empty(&c->conns) ? RANK_OK : RANK_ERR_TIMED_OUT;
}

rank_status_t rk_conns_close(struct rk_ctx *ctx, int64_t timeout_ns)
{
    RK_ENTER(ctx);
    uint64_t deadline = rk_wait_deadline(timeout_ns), now;
    struct rk_conns *c = ctx->conns;
    rank_status_t st = RANK_OK, one;
    struct rk_conn *conn;
    struct rk_link *at, *next;

    if (!c)
        return RANK_OK;
    rk_list_for_each_safe(at, next, &c->listeners)
    {
        rank_listener_t t = rk_list_entry(at, struct rank_listener, link);
        if (!t->refusal)
            rk_listener_end(t);
    }
    rk_connects_close(c);
    while ((conn = next_to_end(c)) != NULL) {
        int64_t left = -1;
        if (timeout_ns >= 0)
            left = (now = rk_clock_ns()) < deadline ? (int64_t)(deadline - now) : 0;
        one = disconnect_conn(conn, left);
        st = st ? st : one;
    }
    one = await_disconnects(c, timeout_ns ? deadline : 1);
    return st ? st : one;
}

static rank_status_t check_conn(const char *call, rank_team_t team, struct rk_conn **out)
{
    rank_status_t st = rk_team_check(call, team);

    *out = st ? NULL : rk_conn_of(team);
    if (*out && (*out)->ending)
        return rk_arg_error(RANK_ERR_HANDLE, call, "another thread disconnects the connection");
    return st || *out ? st : rk_arg_error(RANK_ERR_HANDLE, call, "the team is not a connection");
}

rank_status_t rank_disconnect(rank_team_t *team, int64_t timeout_ns)
{
    struct rk_conn *conn;
    rank_status_t st;

    if (!team)
        return rk_arg_null(__func__, "conn");
    RK_ENTER_TEAM(*team);
    st = check_conn(__func__, *team, &conn);
    if (st)
        return st;
    if (timeout_ns && rk_in_callback((*team)->ctx))
        return rk_arg_in_callback(__func__);
    *team = RANK_TEAM_NULL;
    return rk_call_end(__func__, disconnect_conn(conn, timeout_ns));
}

bool rk_conn_free_team(struct rank_team *team)
{
    struct rk_conn *conn = rk_conn_of(team);

    if (conn && !conn->ending) /* by another thread */
        disconnect_conn(conn, RK_CLOSE_NS);
    return conn != NULL;
}

rank_status_t rank_conn_info(rank_team_t team, rank_conn_info_t *info)
{
    struct rk_rma_counts counts;
    struct rk_conn *conn;
    rank_status_t st;
    size_t size;

    RK_ENTER_TEAM(team);
    st = check_conn(__func__, team, &conn);
    if (st)
        return st;
    if (!info)
        return rk_arg_null(__func__, "info");
    size = info->size;
    if (size < sizeof(size) || size > sizeof(*info) || size % sizeof(size))
        return rk_arg_error(RANK_ERR_ARG, __func__, "info->size is %zu: use sizeof(rank_conn_info_t)", size);
    rk_conn_count(conn);
    rk_rma_count(team->ctx, conn->peer, &counts);
    conn->info.transfers = (int64_t)counts.transfers;
    conn->info.blocks = (int64_t)counts.blocks;
    conn->info.refused += (int64_t)counts.refused;
    conn->info.size = size;
    memcpy(info, &conn->info, size);
    return RANK_OK;
}

RK_PUBLIC(rank_listen); RK_PUBLIC(rank_listener_address); RK_PUBLIC(rank_listener_close); RK_PUBLIC(rank_accept);
RK_PUBLIC(rank_connect); RK_PUBLIC(rank_iconnect); RK_PUBLIC(rank_disconnect); RK_PUBLIC(rank_conn_info);

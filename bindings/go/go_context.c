/* SPDX-License-Identifier: BSD-3-Clause */
/* go_context.c: open contexts, connect, and queue completions. */
#include "go_private.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { DRAIN_PAUSE_NS = 50 * 1000 };

rank_status_t go_ctx_open(const char *name, go_ctx **out)
{
    rank_ctx_opts_t opts = RANK_CTX_OPTS_INIT;
    go_ctx *c = calloc(1, sizeof(*c));
    rank_status_t st;

    if (!c)
        return RANK_ERR_NO_MEMORY;
    opts.name = name;
    opts.progress_thread = 1;
    c->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    st = c->fd < 0 ? RANK_ERR_SYSTEM : rank_ctx_open(&opts, &c->ctx);
    if (st) {
        if (c->fd >= 0)
            close(c->fd);
        free(c);
        return st;
    }
    *out = c;
    return RANK_OK;
}

void go_ctx_shut(go_ctx *c)
{
    go_gate_shut(&c->gate);
}

int64_t go_ctx_users(go_ctx *c)
{
    return go_gate_users(&c->gate);
}

int64_t go_ctx_parked(go_ctx *c)
{
    return atomic_load(&c->parked);
}

rank_status_t go_ctx_close(go_ctx *c, int64_t timeout_ns)
{
    return rank_ctx_close(&c->ctx, timeout_ns);
}

/* The descriptor belongs to the dispatcher. */
void go_ctx_free(go_ctx *c)
{
    for (go_op *op = c->ops, *older; op; op = older) {
        older = op->older;
        go_op_free(op);
    }
    free(c);
}

int go_ctx_event_fd(go_ctx *c)
{
    return c->fd;
}

/* Runs in the library, on any thread. */
static void queue_completion(go_ctx *c, go_op *op)
{
    const uint64_t one = 1;

    op->next = atomic_load(&c->queue);
    while (!atomic_compare_exchange_weak(&c->queue, &op->next, op))
        ;
    if (atomic_exchange(&c->asleep, 0) && write(c->fd, &one, sizeof(one)) < 0)
        return; /* it is full, hence readable */
}

/* Complete an operation that nothing polls for. */
void go_op_completed(const rank_envelope_t *envelope, void *arg)
{
    go_op *op = arg;
    go_ctx *c = op->ctx;

    op->envelope = *envelope;
    op->status = envelope->status;
    if (op->how == GO_HOLD)
        sem_post(&op->done);
    else
        queue_completion(c, op);
}

static void take_queue(go_ctx *c)
{
    go_op *op = atomic_exchange(&c->queue, NULL), *next;

    for (; op; op = next) { /* the oldest comes first then */
        next = op->next;
        op->next = c->ordered;
        c->ordered = op;
    }
}

int go_ctx_reap(go_ctx *c, uint64_t *ids, int max)
{
    int n = 0;

    if (!c->ordered)
        take_queue(c);
    if (!c->ordered) {
        atomic_store(&c->asleep, 1);
        take_queue(c); /* what came before it was set rings no bell */
        if (c->ordered)
            atomic_store(&c->asleep, 0);
    }
    for (; n < max && c->ordered; n++) {
        go_op *op = c->ordered;
        c->ordered = op->next;
        ids[n] = op->id;
    }
    atomic_fetch_sub(&c->parked, n);
    return n;
}

/* ------------------------------------------------------------------------------------------------ connections */

/* Begin a call that opens a team. conn_opened ends it. */
static rank_status_t conn_begin(go_ctx *c, go_conn **out)
{
    go_conn *conn = calloc(1, sizeof(*conn));

    if (!conn)
        return RANK_ERR_NO_MEMORY;
    conn->owner = c;
    *out = conn;
    if (go_gate_enter(&c->gate))
        return RANK_OK;
    free(conn);
    return RANK_ERR_CLOSED;
}

/* Returns the status of a call that opened the team, and *out if it did. */
static rank_status_t conn_opened(go_conn *conn, rank_status_t st, go_conn **out)
{
    go_ctx *owner = conn->owner;

    if (st) {
        free(conn);
    } else {
        conn->peer = 1 - rank_team_rank(conn->team);
        *out = conn;
    }
    go_gate_leave(&owner->gate);
    return st;
}

rank_status_t go_listen(go_ctx *c, const char *address, rank_conn_opts_t opts, const void *secret, const void *hello,
                        rank_listener_t *out)
{
    rank_status_t st;

    if (!go_gate_enter(&c->gate))
        return RANK_ERR_CLOSED;
    opts.secret = secret;
    opts.hello = hello;
    st = rank_listen(c->ctx, address, &opts, out);
    go_gate_leave(&c->gate);
    return st;
}

rank_status_t go_accept(go_ctx *c, rank_listener_t listener, go_conn **out)
{
    go_conn *conn;
    rank_status_t st = conn_begin(c, &conn);

    return st ? st : conn_opened(conn, rank_accept(listener, -1, &conn->team), out);
}

rank_status_t go_connect(go_ctx *c, const char *address, rank_conn_opts_t opts, const void *secret, const void *hello,
                         go_conn **out)
{
    go_conn *conn;
    rank_status_t st = conn_begin(c, &conn);

    opts.secret = secret;
    opts.hello = hello;
    return st ? st : conn_opened(conn, rank_connect(c->ctx, address, &opts, &conn->team), out);
}

rank_status_t go_conn_info(go_conn *c, rank_conn_info_t *info)
{
    rank_status_t st;

    if (!go_conn_enter(c))
        return RANK_ERR_CLOSED;
    info->size = sizeof(*info);
    st = rank_conn_info(c->team, info);
    go_conn_leave(c);
    return st;
}

int go_conn_rank(go_conn *c)
{
    return 1 - c->peer;
}

void go_conn_shut(go_conn *c)
{
    const struct timespec pause = {0, DRAIN_PAUSE_NS};

    go_gate_shut(&c->starts);
    while (go_gate_users(&c->starts))
        nanosleep(&pause, NULL);
}

rank_status_t go_conn_disconnect(go_conn *c, int64_t timeout_ns)
{
    rank_status_t st;

    if (!go_gate_enter(&c->owner->gate))
        return RANK_ERR_CLOSED; /* the context disconnects it */
    st = rank_disconnect(&c->team, timeout_ns);
    go_gate_leave(&c->owner->gate);
    return st;
}

int64_t go_conn_blocked(go_conn *c)
{
    return atomic_load(&c->blocked);
}

void go_conn_free(go_conn *c)
{
    free(c);
}

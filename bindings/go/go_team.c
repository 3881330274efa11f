/* SPDX-License-Identifier: BSD-3-Clause */
/* go_team.c: open, describe and end teams, and carry out collectives. */
#include "go_private.h"

#include <stdlib.h>
#include <time.h>

enum { DRAIN_PAUSE_NS = 50 * 1000 };

/* Begin a call that opens a team. team_opened ends it. */
static rank_status_t team_begin(go_ctx *c, go_team **out)
{
    go_team *t = calloc(1, sizeof(*t));

    if (!t)
        return RANK_ERR_NO_MEMORY;
    t->owner = c;
    *out = t;
    if (go_gate_enter(&c->gate))
        return RANK_OK;
    free(t);
    return RANK_ERR_CLOSED;
}

/* Returns the status of a call that opened the team, and *out if it did. */
static rank_status_t team_opened(go_team *t, rank_status_t st, go_team **out)
{
    go_ctx *owner = t->owner;

    if (st) {
        free(t);
    } else {
        *out = t;
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

rank_status_t go_accept(go_ctx *c, rank_listener_t listener, go_team **out)
{
    go_team *t;
    rank_status_t st = team_begin(c, &t);

    return st ? st : team_opened(t, rank_accept(listener, -1, &t->team), out);
}

rank_status_t go_connect(go_ctx *c, const char *address, rank_conn_opts_t opts, const void *secret, const void *hello,
                         go_team **out)
{
    go_team *t;
    rank_status_t st = team_begin(c, &t);

    opts.secret = secret;
    opts.hello = hello;
    return st ? st : team_opened(t, rank_connect(c->ctx, address, &opts, &t->team), out);
}

rank_status_t go_conn_info(go_team *t, rank_conn_info_t *info)
{
    rank_status_t st;

    if (!go_team_enter(t))
        return RANK_ERR_CLOSED;
    info->size = sizeof(*info);
    st = rank_conn_info(t->team, info);
    go_team_leave(t);
    return st;
}

rank_status_t go_team_world(go_ctx *c, go_team **out)
{
    go_team *t;
    rank_status_t st = team_begin(c, &t);

    if (st)
        return st;
    t->team = rank_world();
    return team_opened(t, RANK_OK, out);
}

/* Make a team of one whose gate the caller has entered. */
static rank_status_t team_make(go_team *from, int how, int color, int key, go_team **out)
{
    go_team *t;
    rank_status_t st = team_begin(from->owner, &t);

    if (st)
        return st;
    if (how == GO_SPLIT)
        st = rank_team_split(from->team, color, key, &t->team);
    else if (how == GO_SPLIT_SHARED)
        st = rank_team_split_shared(from->team, key, &t->team);
    else
        st = rank_team_dup(from->team, &t->team);
    st = team_opened(t, st, out);
    if (!st && !t->team) {
        free(t);
        *out = NULL;
    }
    return st;
}

rank_status_t go_team_make(go_team *from, int how, int color, int key, go_team **out)
{
    return GO_TEAM_CALL(from, team_make(from, how, color, key, out));
}

int go_team_rank(go_team *t)
{
    return rank_team_rank(t->team);
}

int go_team_size(go_team *t)
{
    return rank_team_size(t->team);
}

void go_team_shut(go_team *t)
{
    const struct timespec pause = {0, DRAIN_PAUSE_NS};

    go_gate_shut(&t->starts);
    while (go_gate_users(&t->starts))
        nanosleep(&pause, NULL);
}

rank_status_t go_conn_disconnect(go_team *t, int64_t timeout_ns)
{
    rank_status_t st;

    if (!go_gate_enter(&t->owner->gate))
        return RANK_ERR_CLOSED; /* the context disconnects it */
    st = rank_disconnect(&t->team, timeout_ns);
    go_gate_leave(&t->owner->gate);
    return st;
}

int64_t go_team_blocked(go_team *t)
{
    return atomic_load(&t->blocked);
}

void go_team_drop(go_team *t)
{
    free(t);
}

rank_status_t go_team_close(go_team *t)
{
    rank_status_t st;

    if (!go_gate_enter(&t->owner->gate))
        return RANK_OK; /* rank_finalize frees it */
    st = rank_team_free(&t->team);
    go_gate_leave(&t->owner->gate);
    return st;
}

/* Carry out a collective on the team, whose gate the caller has entered. */
static rank_status_t collective_run(rank_team_t team, int kind, const void *in, void *out, int64_t n, rank_dtype_t dtype,
                                    rank_op_t op, int root)
{
    switch (kind) {
    case GO_BARRIER:
        return rank_barrier(team);
    case GO_BCAST:
        return rank_bcast(out, n, dtype, root, team);
    case GO_REDUCE:
        return rank_reduce(in, out, n, dtype, op, root, team);
    case GO_ALLREDUCE:
        return rank_allreduce(in, out, n, dtype, op, team);
    case GO_GATHER:
        return rank_gather(in, out, n, dtype, root, team);
    case GO_ALLGATHER:
        return rank_allgather(in, out, n, dtype, team);
    case GO_SCATTER:
        return rank_scatter(in, out ? out : RANK_IN_PLACE, n, dtype, root, team);
    case GO_ALLTOALL:
        return rank_alltoall(in, out, n, dtype, team);
    case GO_REDUCE_SCATTER:
        return rank_reduce_scatter(in, out, n, dtype, op, team);
    case GO_SCAN:
        return rank_scan(in, out, n, dtype, op, team);
    case GO_EXSCAN:
        return rank_exscan(in, out, n, dtype, op, team);
    default:
        return RANK_ERR_INTERNAL;
    }
}

rank_status_t go_collective(go_handle team, int kind, const void *in, void *out, int64_t n, rank_dtype_t dtype, rank_op_t op, int root)
{
    go_team *t = (go_team *)team;
    return GO_TEAM_CALL(t, collective_run(t->team, kind, in || kind == GO_SCATTER ? in : RANK_IN_PLACE, out, n,
                                          dtype, op, root));
}

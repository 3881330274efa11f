/* SPDX-License-Identifier: BSD-3-Clause */
/* team_hosts.c: exchange the hosts of a team's ranks, and build calls later. */
#include "collectives/team_hosts.h"
#include "collectives/coll_args.h"
#include "collectives/state.h"
#include "lib/base/fnv.h"
#include "lib/core/describe.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t rk_coll_host_id(const struct rk_ctx *ctx)
{
    char name[256] = "";

    if (rk_engine_shares_memory(ctx))
        return ctx->node->head->nonce;
    gethostname(name, sizeof(name) - 1);
    return rk_fnv64(RK_FNV64_START, name, strlen(name));
}

static bool set_hosts(struct rk_coll_team *t, const struct rank_team *team, const uint64_t *id)
{
    t->hosts = rk_hosts_new(id, team->size, team->rank);
    if (t->hosts)
        t->hosts->in_cells = t->in_cells;
    return t->hosts != NULL;
}

void rk_coll_set_hosts(struct rank_team *team, const uint64_t *id)
{
    struct rk_coll_team *t = team->coll;

    /* The other ranks will know the hosts: this one must not choose without. */
    if (!t->one_node && (!id || !set_hosts(t, team, id)))
        t->hosts_no_memory = true;
}

/* ------------------------------------------------------------------------ exchange */

struct exchange_of_hosts {
    struct rank_team *team;
    struct rk_coll_team *coll; /* of the team, which may be freed while calls are under way */
    uint64_t mine, *all;
};

static rank_status_t learn_hosts(void *arg)
{
    struct exchange_of_hosts *x = arg;

    x->coll->exchange = NULL;
    return set_hosts(x->coll, x->team, x->all) ? RANK_OK : RANK_ERR_NO_MEMORY;
}

bool rk_team_hosts_begin(struct rank_team *team, enum rk_coll_kind kind)
{
    struct rk_coll_team *t = team->coll;
    struct rk_coll_call c = {.team = team, .kind = RK_COLL_ALLGATHER, .count = 1, .bytes = sizeof(uint64_t), .elem = sizeof(uint64_t)};
    struct exchange_of_hosts *x;
    struct rk_sched *s;

    if (t->hosts || t->hosts_begun)
        return !t->hosts_no_memory;
    if (t->hosts_no_memory || !(s = rk_sched_new(&team->ctx->coll->scheds, team, RK_HOSTS_SEQ)))
        return false;
    s->number = t->agreement_for = rk_coll_number(team) + 1;
    s->kind = (uint8_t)kind;
    x = rk_sched_scratch(s, sizeof(*x));
    if (!s->status) {
        *x = (struct exchange_of_hosts){team, t, rk_coll_host_id(team->ctx), rk_sched_scratch(s, (size_t)team->size * sizeof(uint64_t))};
        c.sbuf = (const char *)&x->mine;
        c.rbuf = (char *)x->all;
        rk_build_allgather_bruck(s, &c);
        rk_sched_leave(s);
        rk_sched_call(s, NULL, learn_hosts, x);
    }
    if (s->status) {
        rk_sched_free(s);
        return false;
    }
    t->hosts_begun = true;
    t->exchange = s;
    rk_sched_start(s, NULL);
    return true;
}

bool rk_team_hosts_known(const struct rk_coll_team *t)
{
    return t->hosts != NULL;
}

/* ----------------------------------------------------------------------------- waits */

struct team_wait {
    struct rk_wait wait;
    struct rank_team *team;
    rk_team_ready_fn *ready;
};

static bool team_wait_is_over(struct rk_wait *wait)
{
    const struct team_wait *w = (const struct team_wait *)wait;
    const struct rank_team *team = w->team;

    return w->ready(team->coll) || team->ndead > 0 ||
           (team->coll_failed && team->coll_failed_at <= team->coll->agreement_for);
}

static void describe_team_wait(const struct rk_wait *wait, struct rk_wait_for *out)
{
    const struct rank_team *team = ((const struct team_wait *)wait)->team;

    rk_describe_call(out, "first collective of a team");
    for (int r = 0; r < team->size && out->npeers < RK_BOARD_PEERS; r++) {
        if (r != team->rank)
            rk_describe_peer(out, rk_team_world_rank(team, r));
    }
}

rank_status_t rk_team_wait(struct rank_team *team, rk_team_ready_fn *ready)
{
    struct team_wait w = {.wait = {.kind = RK_FOR_COLL, .describe = describe_team_wait}, .team = team, .ready = ready};

    rk_wait(team->ctx, &w.wait, team_wait_is_over);
    return ready(team->coll) ? RANK_OK : rk_coll_why_over(team);
}

/* ----------------------------------------------------------------------- later builds */

struct rk_deferred {
    struct rk_coll_call call;
    struct rk_coll_team *coll;
    rk_team_ready_fn *ready;
    rk_build_fn *build;
};

/* A call that turns out not to use cells stays to its turn: only then it may leave. */
static bool has_turns(void *sched)
{
    return rk_sched_has_turn(sched, 0) && rk_sched_has_turn(sched, 1);
}

static bool build_deferred(struct rk_sched *s, bool again)
{
    const struct rk_deferred *d = s->deferred;

    (void)again;
    s->more = NULL;
    rk_sched_reset(s);
    d->build(s, d->coll, &d->call);
    if (s->more != build_deferred)
        rk_sched_event(s, NULL, has_turns, s);
    return true;
}

static bool may_build(void *sched)
{
    const struct rk_sched *s = sched;

    return s->deferred->ready(s->deferred->coll);
}

void rk_build_later(struct rk_sched *s, struct rk_coll_team *t, const struct rk_coll_call *c, rk_team_ready_fn *ready,
                    rk_build_fn *build)
{
    struct rk_deferred *d = rk_sched_scratch(s, sizeof(*d));
    int64_t *counts = rk_sched_scratch(s, rk_coll_counts(c) * sizeof(*counts));

    if (s->status)
        return;
    *d = (struct rk_deferred){*c, t, ready, build};
    rk_coll_copy_counts(&d->call, counts);
    s->deferred = d;
    s->more = build_deferred;
    rk_sched_keep(s);
    for (int i = 0; i < RK_SCHED_LINES; i++) /* in the order of starts, before it is known if it uses cells */
        rk_sched_line_up(s, i, &t->in_cells[i]);
    rk_sched_event(s, NULL, may_build, s);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * on_death.c: call functions of the program when ranks end (rank_on_death).
 *
 * A death is found deep inside progress, where no operation may start. So it only makes the calls due, and the hook that runs
 * the callbacks of requests makes them.
 */
#include "lib/core/procs.h"
#include "lib/p2p/api_request.h"

#include <stdlib.h>

struct rk_death_watch {
    rank_death_fn fn;
    void *arg;
    uint64_t reported[]; /* bits, by rank */
};

static rank_status_t death_watch_begin(struct rank_team *team, rank_death_fn fn, void *arg)
{
    struct rk_death_watch *w = calloc(1, sizeof(*w) + ((size_t)team->size + 63) / 64 * sizeof(uint64_t));

    if (!w)
        return RANK_ERR_NO_MEMORY;
    w->fn = fn;
    w->arg = arg;
    team->watch = w;
    team->ctx->p2p->nwatches++;
    team->ctx->p2p->deaths_due = true;
    rk_room_start_progress(team->ctx, &rk_room_p2p);
    return RANK_OK;
}

/* The next rank of the team that is dead and not reported; -1: there is none. */
static int next_death(const struct rank_team *team)
{
    for (int r = 0; team->watch && r < team->size; r++) {
        if (!(team->watch->reported[r / 64] >> (r % 64) & 1) && rk_procs_is_dead(team->ctx, rk_team_world_rank(team, r)))
            return r;
    }
    return -1;
}

static void report_death(struct rank_team *team, int r)
{
    struct rk_threads *t = team->ctx->engine->threads;
    const struct rk_death_watch *w = team->watch;
    rank_status_t cause = rk_peer_lost(team->ctx->engine->peers[rk_team_world_rank(team, r)]);
    rank_death_fn fn = w->fn; /* which may end the watch */
    void *arg = w->arg;
    uint32_t depth = t ? rk_threads_call_begin(t) : 0;

    fn(team, r, cause, arg);
    if (t)
        rk_threads_call_end(t, depth);
}

int rk_deaths_progress(struct rk_ctx *ctx)
{
    struct rk_link *l;
    int n = 0, r;

    if (!ctx->p2p->deaths_due || ctx->engine->finalizing)
        return 0;
    ctx->p2p->deaths_due = false;
    for (l = ctx->p2p->teams.next; l != &ctx->p2p->teams; l = r < 0 ? l->next : ctx->p2p->teams.next) {
        struct rank_team *team = rk_list_entry(l, struct rank_team, link);
        r = next_death(team);
        if (r < 0)
            continue;
        team->watch->reported[r / 64] |= 1ull << (r % 64);
        report_death(team, r); /* teams may come and go: begin anew */
        n++;
    }
    return n;
}

void rk_death_watches_end(struct rk_ctx *ctx)
{
    RK_ENTER(ctx);
    struct rk_link *l;

    rk_list_for_each(l, &ctx->p2p->teams)
        rk_death_watch_end(rk_list_entry(l, struct rank_team, link));
}

rank_status_t rank_on_death(rank_team_t team, rank_death_fn fn, void *arg)
{
    RK_ENTER_TEAM(team);
    rank_status_t st = rk_team_check(__func__, team);
    struct rk_threads *t;

    if (st)
        return st;
    t = team->ctx->engine->threads;
    rk_death_watch_end(team);
    while (t && atomic_load_explicit(&t->caller, memory_order_relaxed) && !rk_in_callback(team->ctx)) /* it may be that of fn */
        rk_threads_make_way(t);
    return fn ? rk_call_end(__func__, death_watch_begin(team, fn, arg)) : RANK_OK;
}

RK_PUBLIC(rank_on_death);

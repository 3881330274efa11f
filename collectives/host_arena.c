/* SPDX-License-Identifier: BSD-3-Clause */
/* host_arena.c: agree on an arena for a team's ranks on a host (host_arena.h). */
#include "collectives/host_arena.h"
#include "collectives/state.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"

#include <stdlib.h>

enum { NO_ARENA = -1, OFFER = 3, ANSWERS = 4 }; /* tags of phases, beside those of two_level.c */

/* Memory of an agreement's schedule. */
struct agreement {
    struct rank_team *team;
    struct rk_coll_team *coll; /* of the team, which may be freed while calls are under way */
    struct {
        uint64_t segment; /* of the first rank */
        int64_t index[RK_SCHED_LINES]; /* of arenas; the first one is NO_ARENA if there are not enough */
    } offer;
    int32_t opened, opened_by_all;
};

static int ranks_here(const struct rk_hosts *h)
{
    return h->at[h->host + 1] - h->at[h->host];
}

/* ------------------------------------------------------------------------ its steps */

/* Give back the first n arenas, which no rank has used. */
static void return_arenas(const struct agreement *g, int n)
{
    for (int i = 0; i < n; i++)
        rk_arena_return(g->team->ctx->node, (int)g->offer.index[i], ranks_here(g->coll->hosts));
}

static rank_status_t offer_arenas(void *arg)
{
    struct agreement *g = arg;
    struct rk_ctx *ctx = g->team->ctx;

    g->offer.segment = ctx->node->head->nonce;
    g->offer.index[0] = NO_ARENA;
    if (!rk_conf.coll_shm || !rk_engine_shares_memory(ctx))
        return RANK_OK;
    for (int i = 0; i < RK_SCHED_LINES; i++) {
        g->offer.index[i] = rk_arena_take_cells(ctx->node, ranks_here(g->coll->hosts));
        if (g->offer.index[i] < 0) {
            return_arenas(g, i);
            g->offer.index[0] = NO_ARENA;
            break;
        }
    }
    return RANK_OK;
}

/* Ranks of one host that share no memory have the same number, too. */
static rank_status_t open_offer(void *arg)
{
    struct agreement *g = arg;
    struct rk_ctx *ctx = g->team->ctx;
    const struct rk_hosts *h = g->coll->hosts;
    struct rk_arena **a = g->coll->host_arena;

    g->opened = g->offer.index[0] != NO_ARENA && rk_engine_shares_memory(ctx) && ctx->node->head->nonce == g->offer.segment;
    for (int i = 0; i < RK_SCHED_LINES && g->opened; i++) {
        a[i] = rk_arena_open_group(g->team, (int)g->offer.index[i], h->ranks + h->at[h->host], ranks_here(h), h->local);
        g->opened = a[i] && rk_arena_open_cells(a[i]);
        if (a[i])
            a[i]->line = i;
    }
    return RANK_OK;
}

/* No rank has used arenas that are refused, so the first rank alone gives them back. */
static rank_status_t decide(void *arg)
{
    struct agreement *g = arg;
    struct rk_coll_team *t = g->coll;
    struct rk_hosts *h = t->hosts;

    if (g->opened_by_all) {
        h->arena = t->host_arena;
    } else {
        for (int i = 0; i < RK_SCHED_LINES; i++) {
            free(t->host_arena[i]);
            t->host_arena[i] = NULL;
        }
        if (h->local == 0 && g->offer.index[0] != NO_ARENA)
            return_arenas(g, RK_SCHED_LINES);
    }
    if (h->local == 0)
        rk_debug("a team of %d ranks on %d hosts: its %d ranks on this one use %s", g->team->size, h->n, ranks_here(h),
                 h->arena ? "shared memory" : "messages");
    h->agreed = true;
    return RANK_OK;
}

/* ------------------------------------------------------------------------- schedule */

/* A phase among the ranks of the host; buf is the input and the result. */
static void build_among(struct rk_sched *s, const struct rk_hosts *h, uint32_t tag, void *in, void *out, size_t bytes,
                        void (*build)(struct rk_sched *, const struct rk_coll_call *))
{
    struct rk_phase phase = {.ranks = h->ranks + h->at[h->host], .n = ranks_here(h), .me = h->local, .tag = tag};
    struct rank_team seen = {.rank = phase.me, .size = phase.n};
    struct rk_coll_call c = {.team = &seen, .sbuf = in, .rbuf = out, .count = 1, .bytes = bytes, .elem = bytes,
                             .dtype = RANK_INT32, .op = RANK_MIN};

    rk_sched_enter(s, &phase);
    build(s, &c);
    rk_sched_leave(s);
}

static void build_local(struct rk_sched *s, rank_status_t (*fn)(void *), struct agreement *g)
{
    rk_sched_call(s, NULL, fn, g);
    rk_sched_leave(s);
}

bool rk_host_arena_begin(struct rank_team *team, struct rk_coll_team *t, enum rk_coll_kind kind)
{
    struct agreement *g;
    struct rk_sched *s;

    if (t->agreeing || t->hosts->agreed)
        return true;
    if (ranks_here(t->hosts) == 1) {
        t->hosts->agreed = true;
        return true;
    }
    s = rk_sched_new(&team->ctx->coll->scheds, team, RK_HOST_ARENA_SEQ);
    if (!s)
        return false;
    t->agreeing = true;
    t->agreement_for = s->number = rk_coll_number(team) + 1;
    s->kind = (uint8_t)kind;
    s->hosts = t->hosts;
    s->reducer = (struct rk_reducer){.fn = rk_op_kernel(RANK_MIN, RANK_INT32), .dtype = RANK_INT32};
    g = rk_sched_scratch(s, sizeof(*g));
    if (!s->status) {
        *g = (struct agreement){.team = team, .coll = t};
        if (t->hosts->local == 0)
            build_local(s, offer_arenas, g);
        build_among(s, t->hosts, OFFER, &g->offer, &g->offer, sizeof(g->offer), rk_build_bcast_binomial);
        build_local(s, open_offer, g);
        build_among(s, t->hosts, ANSWERS, &g->opened, &g->opened_by_all, sizeof(g->opened), rk_build_allreduce_doubling);
        build_local(s, decide, g);
    }
    if (s->status) {
        rk_sched_free(s);
        return false;
    }
    rk_sched_start(s, NULL);
    return true;
}

bool rk_host_arena_agreed(const struct rk_coll_team *t)
{
    return t->hosts->agreed;
}

void rk_host_arena_close(struct rk_coll_team *t)
{
    uint64_t chunks = 0;

    for (int i = 0; i < RK_SCHED_LINES; i++) {
        chunks += t->host_arena[i] ? t->host_arena[i]->chunks_begun : 0;
        rk_arena_close(t->host_arena[i]);
    }
    if (t->hosts && t->hosts->arena)
        rk_debug("%llu chunks went through the cells of %d ranks on one of several hosts", (unsigned long long)chunks,
                 ranks_here(t->hosts));
}

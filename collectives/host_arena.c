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
        int64_t index;    /* or NO_ARENA */
    } offer;
    int32_t opened, opened_by_all;
};

static int ranks_here(const struct rk_hosts *h)
{
    return h->at[h->host + 1] - h->at[h->host];
}

/* ------------------------------------------------------------------------ its steps */

static rank_status_t offer_arena(void *arg)
{
    struct agreement *g = arg;
    struct rk_ctx *ctx = g->team->ctx;

    g->offer.segment = ctx->node->head->nonce;
    g->offer.index = NO_ARENA;
    if (rk_conf.coll_shm && rk_engine_shares_memory(ctx))
        g->offer.index = rk_arena_take_cells(ctx->node, ranks_here(g->coll->hosts));
    return RANK_OK;
}

/* Ranks of one host that share no memory have the same number, too. */
static rank_status_t open_offer(void *arg)
{
    struct agreement *g = arg;
    struct rk_ctx *ctx = g->team->ctx;
    struct rk_coll_team *t = g->coll;
    const struct rk_hosts *h = t->hosts;

    if (g->offer.index != NO_ARENA && rk_engine_shares_memory(ctx) && ctx->node->head->nonce == g->offer.segment)
        t->host_arena = rk_arena_open_group(g->team, (int)g->offer.index, h->ranks + h->at[h->host], ranks_here(h), h->local);
    g->opened = t->host_arena && rk_arena_open_cells(t->host_arena);
    return RANK_OK;
}

/* No rank has used an arena that is refused, so its first rank alone gives it back. */
static rank_status_t decide(void *arg)
{
    struct agreement *g = arg;
    struct rk_coll_team *t = g->coll;
    struct rk_hosts *h = t->hosts;

    if (g->opened_by_all) {
        h->arena = t->host_arena;
    } else {
        free(t->host_arena);
        t->host_arena = NULL;
        if (h->local == 0 && g->offer.index != NO_ARENA)
            rk_arena_return(g->team->ctx->node, (int)g->offer.index, ranks_here(h));
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
            build_local(s, offer_arena, g);
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

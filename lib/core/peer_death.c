/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_death.c: learn of dead peers, and handle their deaths.
 *
 * Life locks show the deaths of ranks of this node, the launcher reports others, and a channel reports the end of a link. So
 * a rank that waits long connects to the ranks of other hosts for which it waits: their ends show then.
 */
#include "lib/base/arg_error.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/timing.h"
#include "lib/boot/boot.h"
#include "lib/core/describe.h"
#include "lib/core/engine.h"
#include "lib/core/threads.h"
#include "lib/node/node.h"

#include <stdarg.h>
#include <stdio.h>

enum { OTHERS = 32 }; /* ranks that no wait names, and that are watched: their deaths matter to the job */

void rk_engine_report_death(struct rk_ctx *ctx, int number)
{
    struct rk_engine *e = ctx->engine;

    if (number < 0 || number == ctx->boot->rank)
        return;
    pthread_mutex_lock(&e->deaths_lock);
    if (number < e->npeers)
        atomic_fetch_or(&e->boot_dead[number / 64], 1ull << (number % 64));
    pthread_mutex_unlock(&e->deaths_lock);
    atomic_fetch_add(&e->boot_deaths, 1);
    if (ctx->node && ctx->node->mine)
        rk_node_wake(ctx->node, ctx->node->index);
}

RK_COLD void rk_peer_condemn(struct rk_peer *peer, const char *why, ...)
{
    char text[256];
    va_list args;

    if (peer->condemned)
        return;
    va_start(args, why);
    vsnprintf(text, sizeof(text), why, args);
    va_end(args);
    peer->condemned = 1;
    rk_error("rank %u%s is disconnected: %s", peer->id.rank, peer->by_conn ? " of a connection" : rk_peer_job_suffix(peer), text);
    rk_engine_report_death(peer->ctx, peer->number);
}

static bool is_reported_dead(struct rk_engine *e, int number)
{
    bool reported;

    pthread_mutex_lock(&e->deaths_lock);
    reported = number < e->npeers && (atomic_load(&e->boot_dead[number / 64]) >> (number % 64) & 1);
    pthread_mutex_unlock(&e->deaths_lock);
    return reported;
}

rank_status_t rk_engine_why_unreached(struct rk_peer *peer)
{
    struct rk_engine *e = peer->ctx->engine;
    uint64_t now;

    if (is_reported_dead(e, peer->number))
        return RANK_ERR_PEER_DEAD;
    if (peer->local >= 0)
        return rk_node_is_going(peer->ctx->node, peer->local) ? RANK_ERR_PEER_DEAD : RANK_ERR_UNREACHABLE;
    if (peer->ctx->boot->alone || (peer->suspect && !peer->suspect_until))
        return RANK_ERR_UNREACHABLE;
    now = rk_clock_ns();
    if (!peer->suspect) {
        peer->suspect = 1;
        if (e->suspected_ns && now - e->suspected_ns < RK_REPORT_NS)
            return RANK_ERR_UNREACHABLE;
        peer->suspect_until = now + RK_REPORT_NS;
    }
    if (now < peer->suspect_until)
        return RK_AGAIN;
    peer->suspect_until = 0;
    e->suspected_ns = now; /* an earlier death would have been reported by now */
    return RANK_ERR_UNREACHABLE;
}

/* Runs on the PMIx thread. */
static void death_reported(int number, void *ctx)
{
    rk_engine_report_death(ctx, number);
}

rank_status_t rk_engine_watch_deaths(struct rk_ctx *ctx)
{
    const struct rk_boot *boot = ctx->boot;

    ctx->engine->watches = ctx->engine->card && !boot->alone && boot->nlocal < boot->size;
    return boot->ops->watch_deaths(ctx->boot, death_reported, ctx);
}

/* ------------------------------------------------------------------- awaited ranks */

/*
 * Connect to a rank of another host. One that cannot be reached counts as dead: the reason has been printed. Returns true
 * at its first contact, which may wait for the launcher's store.
 */
static bool watch_rank(struct rk_ctx *ctx, int number)
{
    struct rk_peer *p;
    rank_status_t st;
    bool first;

    if (number < 0 || number >= ctx->boot->size || rk_engine_local_slot(ctx, number) >= 0)
        return false;
    p = rk_engine_peer(ctx, number);
    if (!p || p->state != RK_PEER_NEW)
        return false;
    first = !p->watched;
    p->watched = 1;
    st = rk_peer_try_connect(p);
    if (st && st != RK_AGAIN)
        rk_engine_report_death(ctx, number);
    return first;
}

void rk_engine_watch_awaited(struct rk_ctx *ctx, const struct rk_wait *w, uint64_t now)
{
    struct rk_wait_for what = {.flags = 0};
    const struct rk_boot *boot = ctx->boot;

    if (now - w->begun < RK_WATCH_NS || (!ctx->engine->threads && now - ctx->engine->watched_ns < RK_SLEEP_NS))
        return;
    ctx->engine->watched_ns = now;
    rk_describe(w, &what);
    for (uint32_t i = 0; i < what.npeers && i < RK_BOARD_PEERS; i++)
        watch_rank(ctx, what.peers[i]);
    if (ctx->board || ctx->engine->finalizing) /* xrun reports the deaths of the others */
        return;
    for (int i = 1; i <= OTHERS && i < boot->size && !watch_rank(ctx, (boot->rank + i) % boot->size); i++)
        ;
}

/* ---------------------------------------------------------------------- handling */

RK_COLD void rk_engine_handle_deaths(struct rk_ctx *ctx)
{
    struct rk_engine *e = ctx->engine;
    struct rk_node *node = ctx->node;

    e->deaths_seen = atomic_load(&node->head->deaths);
    e->boot_deaths_seen = atomic_load(&e->boot_deaths);
    for (int i = 0; i < node->nlocal; i++) {
        bool left = atomic_load(&node->slots[i].state) == RK_SLOT_DONE &&
                    (!e->finalizing || atomic_load(&node->slots[i].alone));
        if (i != node->index && (left || rk_node_is_dead(node, i))) {
            struct rk_peer *p = rk_engine_peer(ctx, node->slots[i].world_rank);
            if (p) {
                p->left = left;
                rk_peer_died(p);
            }
        }
    }
    for (int r = 0; r < e->npeers; r++) {
        struct rk_peer *p;
        if (!(atomic_load(&e->boot_dead[r / 64]) >> (r % 64) & 1) || !(p = rk_engine_peer(ctx, r)))
            continue;
        /* A rank that has finalized and then exits is not a failure. */
        if (p->local >= 0 && atomic_load(&node->slots[p->local].state) == RK_SLOT_DONE)
            continue;
        if (p->local >= 0 && !p->left)
            rk_node_mark_dead(node, p->local);
        rk_peer_died(p);
    }
}

void rk_engine_check_deaths(struct rk_ctx *ctx, uint64_t now)
{
    ctx->engine->next_check_ns = now + RK_CHECK_NS;
    rk_node_check_deaths(ctx->node);
    if (rk_unlikely(ctx->engine->watches) && ctx->engine->threads)
        rk_threads_each_wait(ctx->engine->threads, rk_engine_watch_awaited, now);
    for (int i = 0; i < ctx->engine->nopen; i++) {
        if (ctx->engine->open[i].ops->idle)
            ctx->engine->open[i].ops->idle(ctx->engine->open[i].state, now);
    }
    for (int i = 0; i < ctx->engine->nrooms; i++) {
        if (ctx->engine->rooms[i]->tick)
            ctx->engine->rooms[i]->tick(ctx);
    }
}

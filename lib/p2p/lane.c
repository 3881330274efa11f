/* SPDX-License-Identifier: BSD-3-Clause */
/* lane.c: create and keep self contexts. */
#include "lib/p2p/lane.h"
#include "lib/base/log.h"
#include "lib/p2p/p2p_internal.h"

#include <stdlib.h>

/* Requests of a self context also drive the context, unless another thread does. */
static int progress_main(struct rk_ctx *lane)
{
    struct rk_threads *own = lane->engine->threads, *t = own->main->engine->threads;
    uint32_t depth = rk_lock_give_all(&own->lock);
    int n = 0;

    if (rk_lock_try(&t->lock)) {
        n = rk_progress(t->ctx);
        rk_threads_leave(t);
    }
    rk_lock_take_again(&own->lock, depth);
    return n;
}

static void lane_destroy(struct rk_ctx *lane)
{
    if (!lane)
        return;
    rk_p2p_close(lane); /* a team that the user has not freed returns it here */
    if (lane->engine && lane->engine->threads)
        rk_list_remove(&lane->engine->threads->lane);
    rk_engine_close(lane);
    free(lane);
}

static struct rk_ctx *create(struct rk_ctx *ctx)
{
    struct rk_ctx *lane = malloc(sizeof(*lane));
    size_t none = 0;

    if (!lane)
        return NULL;
    *lane = *ctx;
    lane->engine = NULL;
    lane->p2p = NULL;
    if (rk_engine_open(lane) || rk_threads_open(lane, ctx) ||
        rk_engine_open_channel(lane, &rk_channel_self, NULL, &none) || rk_p2p_open(lane)) {
        lane_destroy(lane);
        return NULL;
    }
    lane->engine->spin_ns = ctx->engine->spin_ns;
    lane->engine->hooks[lane->engine->nhooks++] = progress_main;
    return lane;
}

struct rk_ctx *rk_lane_take(struct rk_ctx *ctx)
{
    struct rk_threads *t = ctx->engine->threads, *own;
    struct rk_ctx *lane;

    if (rk_list_empty(&t->free_lanes)) {
        lane = create(ctx);
        if (!lane)
            return NULL;
        own = lane->engine->threads;
    } else {
        own = rk_list_entry(t->free_lanes.next, struct rk_threads, lane);
        rk_list_remove(&own->lane);
    }
    rk_list_append(&t->lanes, &own->lane);
    atomic_store(&own->watched, atomic_load(&t->watched));
    return own->ctx;
}

/* Call with the context's lock held. */
void rk_lane_give(struct rk_ctx *lane)
{
    struct rk_threads *own = lane->engine->threads;

    rk_list_remove(&own->lane);
    rk_list_append(&own->main->engine->threads->free_lanes, &own->lane);
}

static void close_list(struct rk_link *list)
{
    while (!rk_list_empty(list)) {
        lane_destroy(rk_list_entry(list->next, struct rk_threads, lane)->ctx);
    }
}

void rk_lanes_close(struct rk_ctx *ctx)
{
    if (!ctx->engine || !ctx->engine->threads)
        return;
    close_list(&ctx->engine->threads->lanes);
    close_list(&ctx->engine->threads->free_lanes);
}

static void spoil(struct rk_ctx *ctx)
{
    struct rk_link *l;

    rk_requests_spoil(ctx);
    if (!ctx->p2p)
        return;
    rk_list_for_each(l, &ctx->p2p->teams)
        rk_list_entry(l, struct rank_team, link)->magic = 0;
}

static void spoil_list(const struct rk_link *list)
{
    struct rk_link *l;

    rk_list_for_each(l, list)
        spoil(rk_list_entry(l, struct rk_threads, lane)->ctx);
}

void rk_lanes_spoil(struct rk_ctx *ctx)
{
    struct rk_threads *t = ctx->engine ? ctx->engine->threads : NULL;

    spoil(ctx);
    if (!t)
        return;
    spoil_list(&t->lanes);
    spoil_list(&t->free_lanes);
}

/* Call with the context's lock held. */
void rk_lanes_collect_calls(struct rk_ctx *ctx)
{
    struct rk_link *l;

    rk_list_for_each(l, &ctx->engine->threads->lanes)
    {
        struct rk_threads *own = rk_list_entry(l, struct rk_threads, lane);
        struct rk_link *from = &own->ctx->engine->calls;
        if (!atomic_load_explicit(&own->calls, memory_order_acquire))
            continue;
        rk_lock_take(&own->lock);
        while (!rk_list_empty(from)) {
            struct rk_link *call = from->next;
            rk_list_remove(call);
            rk_list_append(&ctx->engine->calls, call);
        }
        atomic_store(&own->calls, false);
        rk_lock_give(&own->lock);
    }
}

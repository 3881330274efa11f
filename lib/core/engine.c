/* SPDX-License-Identifier: BSD-3-Clause */
/* engine.c: run progress: peers and open channels. */
#include "lib/core/engine.h"
#include "lib/base/clock.h"
#include "lib/base/conf.h"
#include "lib/base/fnv.h"
#include "lib/base/arg_error.h"
#include "lib/base/log.h"
#include "lib/base/timing.h"
#include "lib/boot/parent.h"
#include "lib/core/card.h"
#include "lib/core/conn_memory.h"
#include "lib/core/threads.h"
#include "lib/core/event_fd.h"
#include "lib/core/procs.h"
#include "lib/node/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * How often a busy rank checks the life locks: once in TICKS_MASK + 1 passes, and once in RK_CALLS_PER_CHECK passes
 * that brought something if these take RK_RARE_NS each or longer (as rma/owner_death.c).
 */
enum { TICKS_MASK = 4095 };

static uint64_t hash_text(const char *s)
{
    return rk_fnv64(RK_FNV64_START_KEYS, s, strlen(s));
}

rank_status_t rk_engine_open(struct rk_ctx *ctx)
{
    struct rk_engine *e = calloc(1, sizeof(*e));
    rank_status_t st;

    if (!e)
        return RANK_ERR_NO_MEMORY;
    ctx->engine = e;
    pthread_mutex_init(&e->deaths_lock, NULL);
    e->sleep_epoll.fd = e->watch.epoll.fd = e->watch.timer = -1;
    e->job = ctx->boot->parent ? ctx->boot->parent->job : hash_text(ctx->boot->job);
    rk_sendq_open(e);
    rk_list_init(&e->calls);
    rk_list_init(&e->leavings);
    e->npeers = ctx->boot->size;
    e->peers = calloc((size_t)e->npeers, sizeof(struct rk_peer *));
    e->boot_dead = calloc((size_t)(e->npeers + 63) / 64, sizeof(uint64_t));
    if (!e->peers || !e->boot_dead)
        return RANK_ERR_NO_MEMORY;
    st = rk_requests_open(ctx);
    return st;
}

rank_status_t rk_engine_open_channel(struct rk_ctx *ctx, const struct rk_channel *ops, void *card,
                                     size_t *len)
{
    struct rk_engine *e = ctx->engine;
    void *state = NULL;
    rank_status_t st = ops->open(ctx, &state, card, len);

    if (st)
        return st;
    if (*len && card && !rk_card_add(&e->card, &e->card_len, ops->name, card, *len)) {
        ops->close(ctx, state);
        return RANK_ERR_NO_MEMORY;
    }
    e->open[e->nopen].ops = ops;
    e->open[e->nopen].state = state;
    e->nopen++;
    if (ops->progress) {
        e->polled[e->npolled].progress = ops->progress;
        e->polled[e->npolled].state = state;
        e->npolled++;
    }
    return RANK_OK;
}

void *rk_engine_state(struct rk_ctx *ctx, const struct rk_channel *channel)
{
    struct rk_engine *e = ctx->engine;

    for (int i = 0; i < e->nopen; i++) {
        if (e->open[i].ops == channel)
            return e->open[i].state;
    }
    return NULL;
}

const struct rk_peer_device_ops *rk_engine_device(const struct rk_ctx *ctx, void **state)
{
    const struct rk_engine *e = ctx->engine;

    for (int i = 0; e && i < e->nopen; i++) {
        *state = e->open[i].state;
        if (e->open[i].ops->device)
            return e->open[i].ops->device;
    }
    return NULL;
}

bool rk_engine_shares_memory(const struct rk_ctx *ctx)
{
    for (int i = 0; i < ctx->engine->nopen; i++) {
        if (ctx->engine->open[i].ops->within_node)
            return true;
    }
    return false;
}

void rk_engine_memory_freed(struct rk_ctx *ctx, const void *ptr, size_t bytes)
{
    for (int i = 0; i < ctx->engine->nopen; i++) {
        if (ctx->engine->open[i].ops->freed)
            ctx->engine->open[i].ops->freed(ctx->engine->open[i].state, ptr, bytes);
    }
}

void rk_engine_close(struct rk_ctx *ctx)
{
    struct rk_engine *e = ctx->engine;

    if (!e)
        return;
    for (int i = 0; e->peers && i < e->npeers; i++) {
        struct rk_peer *p = e->peers[i];
        if (p && p->channel && p->state == RK_PEER_UP && p->channel->disconnect)
            p->channel->disconnect(rk_engine_state(ctx, p->channel), p);
    }
    while (e->nopen > 0) {
        e->nopen--;
        if (e->open[e->nopen].ops->close)
            e->open[e->nopen].ops->close(ctx, e->open[e->nopen].state);
    }
    for (int i = 0; e->peers && i < e->npeers; i++)
        free(e->peers[i]);
    rk_event_fd_close(ctx);
    if (e->sleep_epoll.fd >= 0)
        close(e->sleep_epoll.fd);
    while (!rk_list_empty(&e->leavings)) {
        struct rk_link *l = e->leavings.next;
        rk_list_remove(l);
        free(l);
    }
    rk_slab_close(&e->controls);
    rk_requests_close(ctx);
    rk_procs_close(ctx);
    pthread_mutex_destroy(&e->deaths_lock);
    free(e->card);
    free(e->peers);
    free(e->boot_dead);
    if (!ctx->closing)
        rk_engine_free(ctx);
}

void rk_engine_free(struct rk_ctx *ctx)
{
    if (!ctx->engine)
        return;
    rk_threads_close(ctx);
    free(ctx->engine);
    ctx->engine = NULL;
}

/* --------------------------------------------------------------------- peers */

static int engine_by_value(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

int rk_engine_local_slot(struct rk_ctx *ctx, int number)
{
    const struct rk_boot *b = ctx->boot;
    const int *at;

    if (ctx->node->nlocal != b->nlocal) /* own segment, shared with no other process */
        return number == b->rank ? 0 : -1;
    at = bsearch(&number, b->local, (size_t)b->nlocal, sizeof(int), engine_by_value);
    if (!at || atomic_load(&ctx->node->slots[at - b->local].state) == RK_SLOT_EMPTY)
        return -1;
    return (int)(at - b->local);
}

static void engine_init_peer(struct rk_peer *p, struct rk_ctx *ctx, int number)
{
    *p = (struct rk_peer){.ctx = ctx,
                          .id = rk_procs_id(ctx, number),
                          .number = number,
                          .local = rk_engine_local_slot(ctx, number),
                          .epoch = rk_procs_epoch(ctx, number),
                          .window = rk_conf.eager_window};
    p->node = p->local >= 0 ? ctx->node : NULL;
    p->slot = p->local;
    rk_sendq_init(&p->sendq);
}

void rk_peer_reset(struct rk_peer *peer)
{
    rk_peer_keeps(peer, -peer->keeps);
    engine_init_peer(peer, peer->ctx, peer->number);
}

struct rk_peer *rk_engine_peer(struct rk_ctx *ctx, int number)
{
    struct rk_engine *e = ctx->engine;
    struct rk_peer *p = e->peers[number];

    if (p)
        return p;
    p = malloc(sizeof(*p));
    if (!p) {
        rk_fail(RANK_ERR_NO_MEMORY, "out of memory for peers");
        return NULL;
    }
    engine_init_peer(p, ctx, number);
    e->peers[number] = p;
    return p;
}

struct rk_peer *rk_engine_find_peer(struct rk_ctx *ctx, struct rk_procid id)
{
    int number = rk_procs_number(ctx, id);

    return number < 0 ? NULL : rk_engine_peer(ctx, number);
}

rank_status_t rk_peer_try_connect(struct rk_peer *peer)
{
    struct rk_engine *e = peer->ctx->engine;
    rank_status_t st = RANK_ERR_UNREACHABLE;

    if (peer->state == RK_PEER_DEAD)
        return rk_peer_lost(peer);
    if (peer->state == RK_PEER_UP)
        return RANK_OK;
    if (rk_unlikely(peer->suspect_until) && (st = rk_engine_why_unreached(peer)) != RANK_ERR_UNREACHABLE)
        return st; /* no further channel is tried before that ends */
    for (int i = 0; i < e->nopen; i++) {
        st = e->open[i].ops->connect(peer->ctx, e->open[i].state, peer);
        if (st == RANK_OK) {
            size_t max = e->open[i].ops->frame_max(peer);
            peer->channel = e->open[i].ops;
            peer->eager_limit = max < (size_t)rk_conf.eager_max ? max : (size_t)rk_conf.eager_max;
            peer->state = RK_PEER_UP;
            rk_debug("rank %u%s is reached by %s", peer->id.rank, rk_peer_job_suffix(peer),
                     peer->channel->name);
            return RANK_OK;
        }
        if (st != RANK_ERR_UNREACHABLE)
            return st;
    }
    if (peer->explained)
        return peer->explained = 0, RANK_ERR_UNREACHABLE;
    st = rk_engine_why_unreached(peer);
    if (st != RANK_ERR_UNREACHABLE)
        return st;
    rk_fail(RANK_ERR_UNREACHABLE, "no open channel reaches rank %u%s; RANK_CHANNELS may leave out too much", peer->id.rank,
            rk_peer_job_suffix(peer));
    return st;
}

struct contact {
    struct rk_wait wait;
    struct rk_peer *peer;
    rank_status_t status;
};

static bool is_settled(struct rk_wait *w)
{
    struct contact *c = (struct contact *)w;

    if (c->status == RK_AGAIN)
        c->status = rk_peer_try_connect(c->peer);
    return c->status != RK_AGAIN;
}

rank_status_t rk_peer_connect(struct rk_peer *peer)
{
    struct contact c = {.wait = {.peer = peer, .no_doorbell = true}, .peer = peer, .status = rk_peer_try_connect(peer)};

    if (rk_unlikely(c.status == RK_AGAIN))
        rk_wait(peer->ctx, &c.wait, is_settled);
    return c.status;
}

/* Frames from before the death count. Others may go on sending. */
static void drain_frames(struct rk_peer *peer)
{
    void *state = rk_engine_state(peer->ctx, peer->channel);

    if (peer->channel->drain) {
        peer->channel->drain(state, peer);
        return;
    }
    for (int i = 0; peer->channel->progress && i < 1000 && peer->channel->progress(peer->ctx, state) > 0; i++)
        ;
}

void rk_peer_died(struct rk_peer *peer)
{
    struct rk_engine *e = peer->ctx->engine;
    bool was_up = peer->state == RK_PEER_UP;

    if (peer->state == RK_PEER_DEAD)
        return;
    rk_info("rank %u%s %s", peer->id.rank, rk_peer_job_suffix(peer), peer->left ? "has left" : "died");
    if (was_up && !peer->condemned)
        drain_frames(peer);
    if (peer->state == RK_PEER_DEAD)
        return;
    peer->state = RK_PEER_DEAD;
    if (was_up && peer->channel->disconnect)
        peer->channel->disconnect(rk_engine_state(peer->ctx, peer->channel), peer);
    rk_sendq_fail(peer, RANK_ERR_PEER_DEAD);
    for (int i = 0; i < e->nrooms; i++) {
        if (e->rooms[i]->peer_died)
            e->rooms[i]->peer_died(peer->ctx, peer);
    }
}

void rk_peer_drop(struct rk_peer *peer, bool disconnected)
{
    struct rk_engine *e = peer->ctx->engine;

    if (peer->state == RK_PEER_NEW)
        peer->state = RK_PEER_DEAD; /* no room connects it now */
    rk_sendq_fail(peer, RANK_ERR_PEER_DEAD);
    for (int i = 0; i < e->nrooms; i++) {
        if (e->rooms[i]->peer_dropped)
            e->rooms[i]->peer_dropped(peer->ctx, peer);
    }
    rk_sendq_fail(peer, RANK_ERR_PEER_DEAD); /* replies to messages that a room has dropped */
    for (int i = 0; i < e->nopen; i++) {
        if (e->open[i].ops->forget)
            e->open[i].ops->forget(e->open[i].state, peer, disconnected);
    }
    if (peer->by_conn)
        rk_sendq_trim(e);
    rk_peer_reset(peer);
}

void rk_engine_lost_channels(struct rk_ctx *ctx)
{
    struct rk_engine *e = ctx->engine;

    for (int i = 0; i < e->npeers; i++) {
        if (e->peers[i] && e->peers[i]->state == RK_PEER_UP && e->peers[i]->channel->fd)
            rk_peer_died(e->peers[i]);
    }
}

static void settle_spin(struct rk_ctx *ctx)
{
    if (rk_conf.spin >= 0)
        ctx->engine->spin_ns = (uint64_t)rk_conf.spin;
    else
        ctx->engine->spin_ns = ctx->node->oversubscribed ? 200 * 1000 : 1000 * 1000;
}

void rk_engine_set_oversubscribed(struct rk_ctx *ctx)
{
    if (ctx->node->oversubscribed)
        return;
    rk_info("this host has fewer cores than ranks of all jobs: waiting ranks yield");
    ctx->node->oversubscribed = true;
    settle_spin(ctx);
}

rank_status_t rk_engine_settle(struct rk_ctx *ctx)
{
    if (ctx->engine->threads)
        rk_threads_settle(ctx);
    settle_spin(ctx);
    if (ctx->boot->oversubscribed)
        rk_engine_set_oversubscribed(ctx);
    return rk_engine_watch_deaths(ctx);
}

/* ------------------------------------------------------------------ progress */

/*
 * For ranks to which something arrives in each pass: their waits never reach the idle check, and calls that
 * compute between polls would reach it after hours.
 */
static RK_COLD void check_deaths_when_busy(struct rk_ctx *ctx)
{
    struct rk_engine *e = ctx->engine;
    uint64_t now;

    e->events_left = RK_CALLS_PER_CHECK - 1;
    now = rk_clock_coarse_ns();
    if (now - e->looked_ns >= RK_RARE_NS)
        e->events_left = 0;
    e->looked_ns = now;
    if (now < e->next_check_ns)
        return;
    rk_engine_check_deaths(ctx, rk_clock_ns());
    if (atomic_load_explicit(&ctx->node->head->deaths, memory_order_relaxed) != e->deaths_seen)
        rk_engine_handle_deaths(ctx); /* the next call may come late */
}

int rk_progress(struct rk_ctx *ctx)
{
    struct rk_engine *e = ctx->engine;
    int n = 0;

    for (int i = 0; i < e->npolled; i++)
        n += e->polled[i].progress(ctx, e->polled[i].state);
    if (rk_unlikely(!rk_list_empty(&e->busy)))
        n += rk_sendq_progress(ctx);
    for (int i = 0; i < e->nhooks; i++)
        n += e->hooks[i](ctx);
    if (rk_unlikely(atomic_load_explicit(&ctx->node->head->deaths, memory_order_relaxed) !=
                        e->deaths_seen ||
                    atomic_load_explicit(&e->boot_deaths, memory_order_relaxed) !=
                        e->boot_deaths_seen)) {
        rk_engine_handle_deaths(ctx);
        n++; /* frames of live peers may have come with it */
    }
    if (rk_unlikely((++e->ticks & TICKS_MASK) == 0)) {
        uint64_t now = rk_clock_ns();
        if (now >= e->next_check_ns)
            rk_engine_check_deaths(ctx, now);
    }
    if (n > 0) {
        rk_threads_notify_user(ctx);
        if (rk_unlikely(e->events_left-- == 0))
            check_deaths_when_busy(ctx);
    }
    return n;
}

int rk_progress_once(struct rk_ctx *ctx)
{
    struct rk_engine *e = ctx->engine;
    int n = rk_progress(ctx);

    if (n == 0 && rk_unlikely(rk_clock_coarse_ns() >= e->next_check_ns)) {
        rk_engine_check_deaths(ctx, rk_clock_ns());
        n = rk_progress(ctx);
    }
    if (rk_likely(!ctx->node->oversubscribed))
        return n;
    if (n > 0) {
        e->polls.fruitless = 0;
        e->polls.yielded = false;
    } else {
        rk_wait_polled(ctx);
    }
    return n;
}

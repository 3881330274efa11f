/* SPDX-License-Identifier: BSD-3-Clause */
/* sched.c: create schedules, their steps and their memory. */
#include "collectives/sched.h"
#include "lib/base/arg_error.h"

#include <stdlib.h>

enum {
    FIRST_BLOCK = 16 << 10,
    BLOCK_MAX = 1 << 20,      /* of growing blocks; larger ones serve one request */
    KEEP_BYTES = 8 << 20,     /* memory kept by an idle schedule: fresh pages cost more than copies */
    POOL_BYTES = 16 << 20,    /* and by all idle ones */
    POOL_MAX = 16
};

/* A block of a schedule's arena. */
struct rk_sched_block {
    struct rk_sched_block *next;
    size_t bytes, used;
    char data[] RK_ALIGNED_LINE;
};

void rk_scheds_init(struct rk_scheds *all, struct rk_ctx *ctx)
{
    all->ctx = ctx;
    rk_list_init(&all->active);
    rk_list_init(&all->failing);
    rk_list_init(&all->orphans);
    rk_list_init(&all->events);
    rk_list_init(&all->pool);
    all->npool = 0;
    all->held = 0;
    all->failed = NULL;
}

static void sched_destroy(struct rk_sched *s)
{
    rk_user_op_drop(s->reducer.user);
    while (s->blocks) {
        struct rk_sched_block *b = s->blocks;
        s->blocks = b->next;
        free(b);
    }
    free(s);
}

static void destroy_list(struct rk_link *list)
{
    while (!rk_list_empty(list)) {
        struct rk_sched *s = rk_list_entry(list->next, struct rk_sched, link);
        rk_list_remove(&s->link);
        sched_destroy(s);
    }
}

void rk_scheds_destroy(struct rk_scheds *all)
{
    destroy_list(&all->active);
    destroy_list(&all->failing);
    destroy_list(&all->orphans);
    destroy_list(&all->pool);
}

/* ------------------------------------------------------------------- the arena */

/* Empty it; free what exceeds limit. */
static void arena_reset(struct rk_sched *s, size_t limit)
{
    struct rk_sched_block **at = &s->blocks;

    s->held = 0;
    while (*at) {
        struct rk_sched_block *b = *at;
        if (s->held + b->bytes > limit) {
            *at = b->next;
            free(b);
            continue;
        }
        s->held += b->bytes;
        b->used = 0;
        at = &b->next;
    }
    s->block = s->blocks;
}

static RK_COLD void *arena_grow(struct rk_sched *s, size_t bytes)
{
    size_t want = s->block ? s->block->bytes * 2 : FIRST_BLOCK;
    struct rk_sched_block *b;

    /* A kept block of an earlier use may fit. */
    while (s->block && s->block->next) {
        s->block = s->block->next;
        if (bytes <= s->block->bytes) {
            s->block->used = bytes;
            return s->block->data;
        }
    }
    if (want > BLOCK_MAX)
        want = BLOCK_MAX;
    if (want < bytes)
        want = bytes;
    b = aligned_alloc(RK_CACHE_LINE, rk_round_up(sizeof(*b) + want, RK_CACHE_LINE));
    if (!b) {
        if (!s->status)
            rk_fail(RANK_ERR_NO_MEMORY, "out of memory for a collective (%zu bytes)", bytes);
        s->status = RANK_ERR_NO_MEMORY;
        return NULL;
    }
    b->next = NULL;
    b->bytes = want;
    b->used = bytes;
    if (s->block)
        s->block->next = b;
    else
        s->blocks = b;
    s->block = b;
    return b->data;
}

static void *arena_alloc(struct rk_sched *s, size_t bytes)
{
    struct rk_sched_block *b = s->block;

    bytes = rk_round_up(bytes, 16);
    if (rk_unlikely(!b || bytes > b->bytes - b->used))
        return arena_grow(s, bytes);
    b->used += bytes;
    return b->data + b->used - bytes;
}

void *rk_sched_scratch(struct rk_sched *s, size_t bytes)
{
    static char nothing[RK_CACHE_LINE];
    char *p = arena_alloc(s, bytes + RK_CACHE_LINE);

    return p ? (char *)rk_round_up((uintptr_t)p, RK_CACHE_LINE) : nothing;
}

void rk_sched_keep(struct rk_sched *s)
{
    s->mark = (struct rk_sched_mark){s->block, s->block ? s->block->used : 0};
}

static void drop_steps(struct rk_sched *s)
{
    s->steps = NULL;
    s->last = &s->steps;
    s->ready = NULL;
    s->ready_last = &s->ready;
    s->phase = NULL;
    s->entry = NULL;
    s->nsteps = s->left = s->inflight = 0;
}

void rk_sched_reset(struct rk_sched *s)
{
    drop_steps(s);
    s->block = s->mark.block;
    s->block->used = s->mark.used;
}

/* ------------------------------------------------------------------------ steps */

struct rk_sched *rk_sched_new(struct rk_scheds *all, struct rank_team *team, uint64_t seq)
{
    struct rk_sched *s;

    if (rk_likely(!rk_list_empty(&all->pool))) {
        s = rk_list_entry(all->pool.next, struct rk_sched, link);
        rk_list_remove(&s->link);
        all->npool--;
        all->held -= s->held;
    } else {
        s = calloc(1, sizeof(*s));
        if (!s) {
            rk_fail(RANK_ERR_NO_MEMORY, "out of memory for a collective");
            return NULL;
        }
        s->all = all;
        rk_list_init(&s->link);
    }
    s->team = team;
    s->seq = seq;
    drop_steps(s);
    s->more = NULL;
    for (int i = 0; i < RK_SCHED_LINES; i++)
        s->place[i] = (struct rk_sched_place){NULL, 0, false};
    s->running = s->torn = s->kept = false;
    s->owner = NULL;
    s->status = RANK_OK;
    s->req = NULL;
    s->trace = NULL;
    s->print = 0;
    s->call.form = RK_FORM_NONE;
    return s;
}

void rk_sched_free(struct rk_sched *s)
{
    if (!s)
        return;
    if (rk_unlikely(s->reducer.user != NULL)) {
        rk_user_op_drop(s->reducer.user);
        s->reducer.user = NULL;
    }
    arena_reset(s, s->all->held < POOL_BYTES - KEEP_BYTES ? KEEP_BYTES : FIRST_BLOCK);
    rk_list_remove(&s->link);
    if (s->all->npool == POOL_MAX) {
        sched_destroy(s);
        return;
    }
    /* At the front: its memory is still cached. */
    rk_list_insert_before(s->all->pool.next, &s->link);
    s->all->npool++;
    s->all->held += s->held;
}

void rk_sched_order(struct rk_step *first, struct rk_step *then)
{
    struct rk_edge *e;

    if (!first || !then)
        return;
    e = arena_alloc(first->sched, sizeof(*e));
    if (!e)
        return;
    e->to = then;
    e->next = first->out;
    first->out = e;
    then->waits_for++;
    then->pending++;
}

static struct rk_step *step_new(struct rk_sched *s, struct rk_step *after, enum rk_step_kind kind)
{
    bool has_req = kind == RK_STEP_SEND || kind == RK_STEP_RECV;
    struct rk_step *step =
        arena_alloc(s, sizeof(*step) + (has_req ? sizeof(struct rank_request) : 0));

    if (rk_unlikely(!step))
        return NULL;
    step->sched = s;
    step->next = NULL;
    step->ready = NULL;
    step->out = NULL;
    step->waits_for = step->pending = 0;
    step->kind = (uint8_t)kind;
    step->active = false;
    step->line = -1;
    *s->last = step;
    s->last = &step->next;
    s->nsteps++;
    rk_sched_order(rk_likely(after != NULL) ? after : s->entry, step);
    return step;
}

static void step_address(struct rk_step *step, int peer, uint32_t tag)
{
    const struct rk_phase *p = step->sched->phase;

    step->peer = rk_likely(!p) ? peer : p->ranks[peer];
    step->tag = rk_likely(!p) ? tag : tag | p->tag << RK_PHASE_TAG_BITS;
}

struct rk_step *rk_sched_send(struct rk_sched *s, struct rk_step *after, int peer, uint32_t tag,
                              const void *buf, size_t bytes)
{
    struct rk_step *step = step_new(s, after, RK_STEP_SEND);

    if (rk_likely(step != NULL)) {
        step_address(step, peer, tag);
        step->a = buf;
        step->n = bytes;
    }
    return step;
}

struct rk_step *rk_sched_recv(struct rk_sched *s, struct rk_step *after, int peer, uint32_t tag,
                              void *buf, size_t bytes)
{
    struct rk_step *step = step_new(s, after, RK_STEP_RECV);

    if (rk_likely(step != NULL)) {
        step_address(step, peer, tag);
        step->to = buf;
        step->n = bytes;
    }
    return step;
}

struct rk_step *rk_sched_reduce(struct rk_sched *s, struct rk_step *after, void *dst, const void *a, const void *b,
                                size_t n)
{
    struct rk_step *step = step_new(s, after, RK_STEP_REDUCE);

    if (rk_likely(step != NULL)) {
        step->to = dst;
        step->a = a;
        step->b = b;
        step->n = n;
    }
    return step;
}

struct rk_step *rk_sched_copy(struct rk_sched *s, struct rk_step *after, void *dst,
                              const void *src, size_t bytes)
{
    struct rk_step *step = step_new(s, after, RK_STEP_COPY);

    if (rk_likely(step != NULL)) {
        step->to = dst;
        step->a = src;
        step->n = bytes;
    }
    return step;
}

struct rk_step *rk_sched_event(struct rk_sched *s, struct rk_step *after, bool (*event)(void *),
                               void *arg)
{
    struct rk_step *step = step_new(s, after, RK_STEP_EVENT);

    if (rk_likely(step != NULL)) {
        step->fn.event = event;
        step->to = arg;
        rk_list_init(&step->link);
    }
    return step;
}

struct rk_step *rk_sched_call(struct rk_sched *s, struct rk_step *after,
                              rank_status_t (*call)(void *), void *arg)
{
    struct rk_step *step = step_new(s, after, RK_STEP_CALL);

    if (rk_likely(step != NULL)) {
        step->fn.call = call;
        step->to = arg;
    }
    return step;
}

struct rk_step *rk_sched_join(struct rk_sched *s, struct rk_step *after, struct rk_step *after_too)
{
    struct rk_step *step = step_new(s, after, RK_STEP_JOIN);

    rk_sched_order(after_too, step);
    return step;
}

void rk_sched_enter(struct rk_sched *s, const struct rk_phase *phase)
{
    s->phase = phase;
}

void rk_sched_leave(struct rk_sched *s)
{
    struct rk_step *exit = step_new(s, NULL, RK_STEP_JOIN);

    for (struct rk_step *step = s->steps; exit && step != exit; step = step->next) {
        if (!step->out)
            rk_sched_order(step, exit);
    }
    s->entry = exit;
    s->phase = NULL;
}

void rk_sched_rearm(struct rk_sched *s, uint64_t seq)
{
    s->seq = seq;
    s->status = RANK_OK;
    s->torn = false;
    if (s->more) {
        s->more(s, true);
        return;
    }
    for (struct rk_step *step = s->steps; step; step = step->next)
        step->pending = step->waits_for;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_mismatch.h: find ranks of a team that make different collective calls.
 *
 * In an arena each call extends a hash of all calls of the team so far. Its upper 16 bits are part of each turn word
 * (arena.h), so the comparison that a rank waits by compares the calls as well. Three cases have no such word:
 *
 * - ranks that wait in different classes, or one in the arena and one in a schedule. A wait of more than
 *   RK_CALL_LATE_NS publishes number and hash of its call in the arena, and compares those of the others.
 * - a rank that has left the call, as the root of a bcast: it publishes its call then.
 * - two schedules: a blocking or large one compares its call with those of the two neighbours.
 *
 * A rank that finds a difference marks the arena as failed. All members publish their calls, name the argument that
 * differs, and return RANK_ERR_COLLECTIVE.
 *
 * With RANK_CHECK each schedule begins with an exchange of the arguments, on any number of hosts.
 */
#ifndef RK_COLLECTIVES_COLL_MISMATCH_H
#define RK_COLLECTIVES_COLL_MISMATCH_H

#include "collectives/coll_args.h"
#include "collectives/shm/slot.h"
#include "collectives/state.h"

enum {
    RK_CALL_LATE_NS = 20 * 1000 * 1000,
    RK_CALL_NEIGHBOUR_BYTES = 16 << 10 /* minimum block of a nonblocking call that compares */
};

/* Upper bits of the hash of a call: what ranks must agree on. Datatypes and operations of the program by size only. */
RK_INLINE uint64_t rk_call_mix(const struct rk_coll_call *c)
{
    const struct rk_coll_shape shape = rk_coll_shape[c->kind];
    uint64_t x = (uint64_t)c->kind << 58;

    if (c->kind == RK_COLL_BARRIER)
        return x;
    x ^= (RK_HANDLE_CLASS(c->dtype) == RK_HANDLE_CLASS(RANK_BYTE) ? c->dtype & 0xffffff : c->elem) << 16;
    if (!rk_coll_has_own_counts(c->kind))
        x ^= (uint64_t)c->count;
    if (shape.reduces && RK_HANDLE_CLASS(c->op) == RK_HANDLE_CLASS(RANK_SUM))
        x ^= (uint64_t)RK_HANDLE_INDEX(c->op) << 50;
    if (shape.root)
        x ^= (uint64_t)(uint32_t)c->root << 40;
    return x;
}

/* The team begins this call: extend the hash. */
RK_INLINE void rk_arena_next_call(struct rk_arena *a, const struct rk_coll_call *c)
{
    a->history = (a->history + rk_call_mix(c)) * 0x9e3779b97f4a7c15ull;
}

RK_INLINE void rk_call_desc_set(struct rk_call_desc *d, const struct rk_coll_call *c)
{
    const struct rk_coll_shape shape = rk_coll_shape[c->kind];

    d->count = rk_coll_has_own_counts(c->kind) ? -1 : c->count;
    d->dtype = RK_HANDLE_CLASS(c->dtype) == RK_HANDLE_CLASS(RANK_BYTE) ? c->dtype : c->elem;
    d->op = shape.reduces && RK_HANDLE_CLASS(c->op) == RK_HANDLE_CLASS(RANK_SUM) ? c->op : 0;
    d->root = shape.root ? c->root : -1;
    d->kind = c->kind;
}

/* Publish the call, which is number of the team. */
RK_INLINE void rk_call_publish(struct rk_arena *a, const struct rk_coll_call *c, uint64_t number)
{
    struct rk_call_line *line = &a->calls[(number % RK_CALL_LINES) * (size_t)a->n + (size_t)a->me];
    uint64_t word = number << 16 | a->history >> 48;

    atomic_store_explicit(&line->described, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    rk_call_desc_set(&line->desc, c);
    atomic_store_explicit(&line->described, word, memory_order_release);
    atomic_store_explicit(&line->call, word, memory_order_release);
}

/* The call ends with an error: if ranks have made different calls, name what differs. Returns st. */
RK_COLD rank_status_t rk_call_failed(struct rk_arena *a, const struct rk_coll_call *c, rank_status_t st);
/* A call cannot begin: if members have found such a difference, in it or before, name it. */
RK_COLD void rk_call_report_past(const struct rk_arena *a);

/* A schedule of a team with an arena is about to be built: publish the call. RANK_ERR_COLLECTIVE if a neighbour differs. */
rank_status_t rk_call_begin_schedule(struct rk_arena *a, const struct rk_coll_call *c, bool blocking);

/* RANK_CHECK: add an exchange of the arguments, which fails the schedule if they differ; returns its last step. */
struct rk_step *rk_call_build_check(struct rk_sched *s, const struct rk_coll_call *c);

#endif

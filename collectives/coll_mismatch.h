/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_mismatch.h: find ranks of a team that make different collective calls.
 *
 * Each call extends a hash of all calls of the team so far. Its upper 16 bits, the print, are part of each turn word
 * (arena.h), of each tag of a schedule's messages (sched.h), and lie beside the first chunk in a cell. So the comparison
 * that a rank waits by compares the calls as well, and no rank takes data of another call. A turn with another print is
 * a difference at once. A message or cell with another print has not come, so its receiver waits.
 *
 * Late waits find the difference, without a message in a call that is not late:
 *
 * - one of straight code publishes number and print of its call in the arena after RK_CALL_LATE_NS, and compares those
 *   of the others. Schedules publish theirs at their start. A rank that leaves the call early, as the root of a bcast,
 *   publishes it then.
 * - one of a schedule sends the call to the ranks that it waits for (call_query.h).
 *
 * The rank that finds a difference ends the team's collectives on all ranks (coll_failure.h). All log what differs and
 * return RANK_ERR_COLLECTIVE.
 */
#ifndef RK_COLLECTIVES_COLL_MISMATCH_H
#define RK_COLLECTIVES_COLL_MISMATCH_H

#include "lib/base/timing.h"
#include "collectives/coll_args.h"
#include "collectives/shm/slot.h"
#include "collectives/state.h"

/* The index of an operation of the program: above those of predefined ones. */
enum { RK_CALL_USER_OP = 31 };

/* Upper bits of the hash of a call: what ranks must agree on. Datatypes of the program by size only. */
RK_INLINE uint64_t rk_call_mix(const struct rk_coll_call *c, enum rk_call_form form)
{
    const struct rk_coll_shape shape = rk_coll_shape[c->kind];
    uint64_t x = (uint64_t)c->kind << 58 ^ (uint64_t)form << 62;

    if (c->kind == RK_COLL_BARRIER)
        return x;
    x ^= (RK_HANDLE_CLASS(c->dtype) == RK_HANDLE_CLASS(RANK_BYTE) ? c->dtype & 0xffffff : c->elem) << 16;
    if (!rk_coll_has_own_counts(c->kind))
        x ^= (uint64_t)c->count;
    if (shape.reduces)
        x ^= (uint64_t)(rk_op_is_predefined(c->op) ? RK_HANDLE_INDEX(c->op) : RK_CALL_USER_OP) << 50;
    if (shape.root)
        x ^= (uint64_t)(uint32_t)c->root << 40;
    return x;
}

/* The team begins this call of straight code: extend the hash. */
RK_INLINE void rk_arena_next_call(struct rk_arena *a, const struct rk_coll_call *c)
{
    a->history = (a->history + rk_call_mix(c, RK_FORM_BLOCKING)) * RK_CALL_FACTOR;
}

RK_INLINE struct rk_call_desc rk_call_desc_of(const struct rk_coll_call *c, enum rk_call_form form, uint64_t counts)
{
    const struct rk_coll_shape shape = rk_coll_shape[c->kind];

    return (struct rk_call_desc){
        .count = rk_coll_has_own_counts(c->kind) ? -1 : c->count,
        .dtype = rk_dtype_alike(c->dtype),
        .op = !shape.reduces ? 0 : rk_op_is_predefined(c->op) ? c->op : RK_CALL_USER_OP,
        .counts = counts,
        .root = shape.root ? c->root : -1,
        .kind = (uint16_t)c->kind,
        .form = (uint16_t)form,
    };
}

/* Line of rank r for its call with this number. */
RK_INLINE struct rk_call_line *rk_call_line(const struct rk_arena *a, uint64_t number, int r)
{
    return &a->calls[(number % RK_CALL_LINES) * (size_t)a->n + (size_t)r];
}

/* Publish the call, which is number of the team. */
RK_INLINE void rk_call_publish(struct rk_arena *a, uint64_t number, struct rk_call_desc desc)
{
    struct rk_call_line *line = rk_call_line(a, number, a->me);
    uint64_t word = number << 16 | a->history >> 48;

    atomic_store_explicit(&line->described, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    line->desc = desc;
    atomic_store_explicit(&line->described, word, memory_order_release);
    atomic_store_explicit(&line->call, word, memory_order_release);
}

/* The call of rank r with this number; false if it has not published it. */
bool rk_call_read(const struct rk_arena *a, uint64_t number, int r, struct rk_call_desc *d);

/* A call of straight code ends with an error: if ranks have made different calls, name what differs. Returns st. */
RK_COLD rank_status_t rk_call_failed(struct rk_arena *a, const struct rk_coll_call *c, rank_status_t st);
/* A call cannot begin: if members have found such a difference, in it or before, name it. */
RK_COLD void rk_call_report_past(const struct rk_arena *a);

/*
 * The team's next call, with this number, is a schedule or moves no data: extend the hash, keep what ranks must agree on,
 * and publish it in the arena, if any.
 */
void rk_call_begin(const struct rk_coll_call *c, enum rk_call_form form, uint64_t number);
/* Mark the schedule as that of the team's latest call. */
void rk_call_mark(struct rk_sched *s);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* slot.h: write to slots and wait for them. */
#ifndef RK_COLLECTIVES_SHM_SLOT_H
#define RK_COLLECTIVES_SHM_SLOT_H

#include "collectives/coll_failure.h"
#include "collectives/shm/arena.h"

#include <string.h>

struct rk_turn_wait {
    struct rk_wait wait;
    struct rk_arena *arena;
    const _Atomic uint64_t *turn;
    uint64_t want;
    uint64_t next_ns; /* next comparison of a late call */
    uint32_t polls;   /* since the wait is late */
};

/* Wait until the turn has come (or, with past, is over), or it cannot come any more. */
void rk_turn_wait(struct rk_arena *a, const _Atomic uint64_t *turn, uint64_t want);
void rk_turn_wait_past(struct rk_arena *a, const _Atomic uint64_t *turn, uint64_t want);

/* coll_mismatch.c: a poll of a wait that is late; returns true if the ranks have made different calls. */
RK_COLD bool rk_turn_is_late(struct rk_turn_wait *w);
/* The wait is over without that turn; returns the status. */
RK_COLD rank_status_t rk_turn_failed(struct rk_arena *a, const _Atomic uint64_t *turn, uint64_t want);

/* describe_coll.c */
void rk_turn_describe(const struct rk_wait *wait, struct rk_wait_for *out);
/* Rank that writes this turn, or -1. */
int rk_turn_owner(const struct rk_arena *a, const _Atomic uint64_t *turn);

/* RANK_ERR_PEER_DEAD or RANK_ERR_COLLECTIVE if it cannot come any more. */
RK_INLINE rank_status_t rk_await_turn(struct rk_arena *a, const struct rk_slot_line *line, uint64_t want)
{
    if (rk_likely(atomic_load_explicit(&line->turn, memory_order_acquire) == want))
        return RANK_OK;
    rk_turn_wait(a, &line->turn, want);
    return rk_likely(atomic_load_explicit(&line->turn, memory_order_acquire) == want)
               ? RANK_OK
               : rk_turn_failed(a, &line->turn, want);
}

/* Upper bits of the turns of the present call. */
RK_INLINE uint64_t rk_turn_hash(const struct rk_arena *a)
{
    return a->history & RK_CALL_MASK;
}

RK_INLINE void rk_copy_payload(void *to, const void *from, size_t n)
{
    if (rk_likely(n == 8))
        memcpy(to, from, 8);
    else if (n)
        memcpy(to, from, n);
}

/* Payload of a slot: in the line, or beside it. */
RK_INLINE void *rk_slot_payload(struct rk_slot_line *lines, char *data, size_t i, size_t bytes)
{
    return rk_likely(bytes <= RK_SLOT_INLINE) ? (void *)lines[i].payload
                                              : data + i * RK_SLOT_DATA;
}

RK_INLINE void rk_raise_turn(struct rk_slot_line *line, uint64_t turn)
{
    atomic_store_explicit(&line->turn, turn, memory_order_release);
}

/* Line beside the cell of rank r for the chunk with that number, from 1. */
RK_INLINE struct rk_slot_line *rk_cell_line(const struct rk_arena *a, int r, uint64_t number)
{
    size_t depth = (size_t)a->cell_depth;

    return &a->lines[(size_t)r * depth + (size_t)((number - 1) & (depth - 1))];
}

/* Its turn for the first chunk of a call: the chunk's number, and the print of the call. */
RK_INLINE uint64_t rk_cell_turn(const struct rk_sched *s, uint64_t number)
{
    return number | s->print << (64 - RK_CALL_BITS);
}

RK_INLINE bool rk_cell_has_turn(const struct rk_arena *a, const struct rk_sched *s, int r, uint64_t number)
{
    return atomic_load_explicit(&rk_cell_line(a, r, number)->turn, memory_order_acquire) == rk_cell_turn(s, number);
}

/* A counter of member r for its cells. */
RK_INLINE uint64_t rk_chunk_counter(const struct rk_arena *a, int r, enum rk_chunk_phase phase)
{
    return atomic_load_explicit(&a->chunks[r].count[phase], memory_order_acquire);
}

RK_INLINE void rk_wake_member(const struct rk_arena *a, int r)
{
    rk_node_wake(a->node, a->slot_of[r]);
}

RK_INLINE void rk_wake_members(const struct rk_arena *a, int first, int end)
{
    for (int r = first; r < end; r++) {
        if (r != a->me)
            rk_node_wake(a->node, a->slot_of[r]);
    }
}

#endif

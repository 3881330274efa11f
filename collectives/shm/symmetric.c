/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * symmetric.c: run the "all" operations in shared memory (arena.h).
 *
 * Up to RK_FLAT_MAX ranks: flat. Each rank writes its contribution and reads all others. All reduce in rank order,
 * so that all get identical bits. This takes n reads a rank and one hand-over, so ranks that share cores run once
 * an operation.
 *
 * More ranks: the first rank of each group of RK_FLAT_MAX reduces its group (up), the leaders do the flat
 * operation, and each leader passes the result to its group (down). The up and down slots have the same two turns:
 * a leader that writes for turn t + 2 has seen all contributions to t + 1, and their writers had read down's turn
 * t and, if leaders, up's turn t before.
 */
#include "collectives/shm/slot.h"

RK_INLINE struct rk_slot_line *all_line(const struct rk_arena *a, uint64_t turn, int r)
{
    return &a->all[(turn % RK_ALL_SLOTS) * (size_t)a->n + (size_t)r];
}

RK_INLINE void *all_payload(const struct rk_arena *a, uint64_t turn, int r, size_t bytes)
{
    return rk_slot_payload(a->all, a->all_data, (turn % RK_ALL_SLOTS) * (size_t)a->n + (size_t)r,
                           bytes);
}

/* Begin a turn with the own contribution; wakes members from first to end. */
RK_INLINE uint64_t contribute(struct rk_arena *a, const void *sbuf, size_t bytes, int first,
                              int end)
{
    uint64_t turn = ++a->all_turn | rk_turn_hash(a);

    rk_copy_payload(all_payload(a, turn, a->me, bytes), sbuf, bytes);
    rk_raise_turn(all_line(a, turn, a->me), turn);
    rk_wake_members(a, first, end);
    return turn;
}

/* to = contributions of ranks first to end - 1, reduced in that order. */
RK_INLINE rank_status_t reduce_members(struct rk_arena *a, uint64_t turn, int first, int end,
                                       void *to, size_t count, size_t bytes, rk_op_fn fn)
{
    const void *sum = all_payload(a, turn, first, bytes);
    rank_status_t st = rk_await_turn(a, all_line(a, turn, first), turn);

    if (rk_unlikely(st))
        return st;
    for (int r = first + 1; r < end; r++) {
        st = rk_await_turn(a, all_line(a, turn, r), turn);
        if (rk_unlikely(st))
            return st;
        fn(to, sum, all_payload(a, turn, r, bytes), count);
        sum = to;
    }
    if (rk_unlikely(sum != to))
        rk_copy_payload(to, sum, bytes);
    return RANK_OK;
}

/* ------------------------------------------------------------------ through leaders */

struct leaders {
    size_t base; /* of this turn's lines in up and down */
    int first, end; /* own group */
};

static struct leaders leaders_of(const struct rk_arena *a, uint64_t turn)
{
    struct leaders l = {(turn % RK_ALL_SLOTS) * (size_t)a->groups, a->group * RK_FLAT_MAX, 0};

    l.end = l.first + RK_FLAT_MAX < a->n ? l.first + RK_FLAT_MAX : a->n;
    return l;
}

static void wake_leaders(const struct rk_arena *a)
{
    for (int g = 0; g < a->groups; g++) {
        if (g != a->group)
            rk_wake_member(a, g * RK_FLAT_MAX);
    }
}

/* As a leader, with the group's sum in up: compute the total, in rbuf and in down. */
static rank_status_t lead(struct rk_arena *a, uint64_t turn, const struct leaders *l, void *rbuf,
                          size_t count, size_t bytes, rk_op_fn fn)
{
    void *down = rk_slot_payload(a->down, a->down_data, l->base + (size_t)a->group, bytes);
    const void *sum = NULL;

    rk_raise_turn(&a->up[l->base + (size_t)a->group], turn);
    wake_leaders(a);
    for (int g = 0; g < a->groups; g++) {
        const void *up = rk_slot_payload(a->up, a->up_data, l->base + (size_t)g, bytes);
        rank_status_t st = rk_await_turn(a, &a->up[l->base + (size_t)g], turn);

        if (st)
            return st;
        if (!bytes)
            continue;
        if (sum)
            fn(down, sum, up, count);
        sum = sum ? down : up;
    }
    rk_copy_payload(rbuf, down, bytes);
    rk_raise_turn(&a->down[l->base + (size_t)a->group], turn);
    rk_wake_members(a, l->first, l->end);
    return RANK_OK;
}

static rank_status_t follow(struct rk_arena *a, uint64_t turn, const struct leaders *l, void *rbuf,
                            size_t bytes)
{
    size_t i = l->base + (size_t)a->group;
    rank_status_t st = rk_await_turn(a, &a->down[i], turn);

    if (!st)
        rk_copy_payload(rbuf, rk_slot_payload(a->down, a->down_data, i, bytes), bytes);
    return st;
}

static rank_status_t allreduce_by_leaders(struct rk_arena *a, const void *sbuf, void *rbuf,
                                          size_t count, size_t bytes, rk_op_fn fn)
{
    struct leaders l = leaders_of(a, a->all_turn + 1);
    uint64_t turn = contribute(a, sbuf, bytes, l.first, l.first + 1);
    void *up = rk_slot_payload(a->up, a->up_data, l.base + (size_t)a->group, bytes);
    rank_status_t st;

    if (a->me != l.first)
        return follow(a, turn, &l, rbuf, bytes);
    st = reduce_members(a, turn, l.first, l.end, up, count, bytes, fn);
    return st ? st : lead(a, turn, &l, rbuf, count, bytes, fn);
}

static rank_status_t await_members(struct rk_arena *a, uint64_t turn, int first, int end)
{
    for (int r = first; r < end; r++) {
        rank_status_t st = rk_await_turn(a, all_line(a, turn, r), turn);
        if (rk_unlikely(st))
            return st;
    }
    return RANK_OK;
}

static rank_status_t barrier_by_leaders(struct rk_arena *a)
{
    struct leaders l = leaders_of(a, a->all_turn + 1);
    uint64_t turn = contribute(a, NULL, 0, l.first, l.first + 1);
    rank_status_t st;

    if (a->me != l.first)
        return follow(a, turn, &l, NULL, 0);
    st = await_members(a, turn, l.first, l.end);
    return st ? st : lead(a, turn, &l, NULL, 0, 0, NULL);
}

/* ------------------------------------------------------------------- the operations */

rank_status_t rk_arena_barrier(struct rk_arena *a)
{
    if (a->n > RK_FLAT_MAX)
        return barrier_by_leaders(a);
    return await_members(a, contribute(a, NULL, 0, 0, a->n), 0, a->n);
}

rank_status_t rk_arena_allreduce(struct rk_arena *a, const void *sbuf, void *rbuf, size_t count,
                                 size_t bytes, rk_op_fn fn)
{
    if (a->n > RK_FLAT_MAX)
        return allreduce_by_leaders(a, sbuf, rbuf, count, bytes, fn);
    return reduce_members(a, contribute(a, sbuf, bytes, 0, a->n), 0, a->n, rbuf, count, bytes, fn);
}

rank_status_t rk_arena_allgather(struct rk_arena *a, const void *sbuf, char *rbuf, size_t bytes)
{
    uint64_t turn = contribute(a, sbuf, bytes, 0, a->n);

    for (int r = 0; r < a->n; r++) {
        rank_status_t st = rk_await_turn(a, all_line(a, turn, r), turn);
        if (rk_unlikely(st))
            return st;
        rk_copy_payload(rbuf + (size_t)r * bytes, all_payload(a, turn, r, bytes), bytes);
    }
    return RANK_OK;
}

rank_status_t rk_arena_alltoall(struct rk_arena *a, const void *sbuf, char *rbuf, size_t bytes)
{
    size_t whole = bytes * (size_t)a->n;
    uint64_t turn = contribute(a, sbuf, whole, 0, a->n);

    for (int r = 0; r < a->n; r++) {
        const char *from = all_payload(a, turn, r, whole);
        rank_status_t st = rk_await_turn(a, all_line(a, turn, r), turn);
        if (rk_unlikely(st))
            return st;
        rk_copy_payload(rbuf + (size_t)r * bytes, from + (size_t)a->me * bytes, bytes);
    }
    return RANK_OK;
}

rank_status_t rk_arena_reduce_scatter(struct rk_arena *a, const void *sbuf, void *rbuf,
                                      size_t count, size_t bytes, rk_op_fn fn)
{
    size_t whole = bytes * (size_t)a->n, mine = bytes * (size_t)a->me;
    uint64_t turn = contribute(a, sbuf, whole, 0, a->n);
    const void *sum = NULL;

    for (int r = 0; r < a->n; r++) {
        const char *block = (const char *)all_payload(a, turn, r, whole) + mine;
        rank_status_t st = rk_await_turn(a, all_line(a, turn, r), turn);
        if (rk_unlikely(st))
            return st;
        if (sum)
            fn(rbuf, sum, block, count);
        sum = sum ? rbuf : block;
    }
    return RANK_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rooted.c: run rooted operations in shared memory, with acknowledgements.
 *
 * A rank that leaves a turn writes it to its line of a->left. The next writer of a slot checks the lines of its
 * readers: all ranks or one. Waiting writers are woken: readers of a root's slot wake the root, a root that has
 * read all wakes all, a rank that has read the lower ones wakes these.
 */
#include "collectives/shm/slot.h"

RK_INLINE size_t rooted_at(const struct rk_arena *a, uint64_t turn, int r)
{
    return (turn % RK_ROOTED_SLOTS) * (size_t)a->n + (size_t)r;
}

RK_INLINE void *rooted_payload(const struct rk_arena *a, uint64_t turn, int r, size_t bytes)
{
    return rk_slot_payload(a->rooted, a->rooted_data, rooted_at(a, turn, r), bytes);
}

RK_INLINE uint64_t next_turn(struct rk_arena *a)
{
    return ++a->rooted_turn | rk_turn_hash(a);
}

RK_INLINE void leave_turn(struct rk_arena *a)
{
    rk_raise_turn(&a->left[a->me], a->rooted_turn);
}

static rank_status_t await_left(struct rk_arena *a, int r, uint64_t turn)
{
    const _Atomic uint64_t *left = &a->left[r].turn;

    rk_turn_wait_past(a, left, turn);
    return (int64_t)(atomic_load_explicit(left, memory_order_acquire) - turn) >= 0
               ? RANK_OK
               : rk_turn_failed(a, left, turn);
}

/* Wait until all others have left turn; records the latest such turn. */
static rank_status_t await_all_left(struct rk_arena *a, uint64_t turn)
{
    uint64_t least = a->rooted_turn;

    if (a->all_left >= turn)
        return RANK_OK;
    for (int r = 0; r < a->n; r++) {
        rank_status_t st;
        uint64_t left;

        if (r == a->me)
            continue;
        st = await_left(a, r, turn);
        if (st)
            return st;
        left = atomic_load_explicit(&a->left[r].turn, memory_order_relaxed);
        least = left < least ? left : least;
    }
    a->all_left = least;
    return RANK_OK;
}

/* Wait until the own slot may be written for this turn; reader will read it. */
RK_INLINE rank_status_t claim_slot(struct rk_arena *a, uint64_t turn, int reader)
{
    int i = (int)(turn % RK_ROOTED_SLOTS);
    rank_status_t st = RANK_OK;

    if (a->wrote[i])
        st = a->reader[i] < 0 ? await_all_left(a, a->wrote[i])
                              : await_left(a, a->reader[i], a->wrote[i]);
    a->wrote[i] = a->rooted_turn;
    a->reader[i] = reader;
    return st;
}

RK_INLINE rank_status_t write_slot(struct rk_arena *a, uint64_t turn, const void *sbuf,
                                   size_t bytes, int reader)
{
    rank_status_t st = claim_slot(a, turn, reader);

    if (rk_unlikely(st))
        return st;
    rk_copy_payload(rooted_payload(a, turn, a->me, bytes), sbuf, bytes);
    rk_raise_turn(&a->rooted[rooted_at(a, turn, a->me)], turn);
    leave_turn(a);
    return RANK_OK;
}

/* ----------------------------------------------------------------- from the root */

RK_INLINE rank_status_t root_to_all(struct rk_arena *a, const void *sbuf, void *rbuf, size_t whole,
                                    size_t at, size_t bytes, int root)
{
    uint64_t turn = next_turn(a);
    rank_status_t st;

    if (a->me == root) {
        st = write_slot(a, turn, sbuf, whole, -1);
        if (!st)
            rk_wake_members(a, 0, a->n);
        return st;
    }
    st = rk_await_turn(a, &a->rooted[rooted_at(a, turn, root)], turn);
    if (rk_unlikely(st))
        return st;
    rk_copy_payload(rbuf, (const char *)rooted_payload(a, turn, root, whole) + at, bytes);
    leave_turn(a);
    rk_wake_member(a, root);
    return RANK_OK;
}

rank_status_t rk_arena_bcast(struct rk_arena *a, void *buf, size_t bytes, int root)
{
    return root_to_all(a, buf, buf, bytes, 0, bytes, root);
}

rank_status_t rk_arena_scatter(struct rk_arena *a, const char *sbuf, void *rbuf, size_t bytes,
                               int root)
{
    size_t mine = bytes * (size_t)a->me;

    if (a->me == root && rbuf != sbuf + mine)
        rk_copy_payload(rbuf, sbuf + mine, bytes);
    return root_to_all(a, sbuf, rbuf, bytes * (size_t)a->n, mine, bytes, root);
}

/* ------------------------------------------------------------------- to the root */

static rank_status_t give_root(struct rk_arena *a, const void *sbuf, size_t bytes, int root)
{
    rank_status_t st = write_slot(a, next_turn(a), sbuf, bytes, root);

    if (!st)
        rk_wake_member(a, root);
    return st;
}

static void root_leaves(struct rk_arena *a)
{
    leave_turn(a);
    rk_wake_members(a, 0, a->n);
}

/* Reduces in rank order, for any root. */
rank_status_t rk_arena_reduce(struct rk_arena *a, const void *sbuf, void *rbuf, size_t count,
                              size_t bytes, rk_op_fn fn, int root)
{
    unsigned char own[RK_SLOT_DATA] RK_ALIGNED_LINE;
    const void *sum = NULL;
    uint64_t turn;

    if (a->me != root)
        return give_root(a, sbuf, bytes, root);
    turn = next_turn(a);
    if (sbuf == rbuf && root > 1) { /* would be overwritten too early */
        memcpy(own, sbuf, bytes);
        sbuf = own;
    }
    for (int r = 0; r < a->n; r++) {
        const void *part = r == root ? sbuf : rooted_payload(a, turn, r, bytes);
        rank_status_t st = RANK_OK;

        if (r != root)
            st = rk_await_turn(a, &a->rooted[rooted_at(a, turn, r)], turn);
        if (rk_unlikely(st))
            return st;
        if (sum)
            fn(rbuf, sum, part, count);
        sum = sum ? rbuf : part;
    }
    root_leaves(a);
    return RANK_OK;
}

rank_status_t rk_arena_gather(struct rk_arena *a, const void *sbuf, char *rbuf, size_t bytes,
                              int root)
{
    char *mine;
    uint64_t turn;

    if (a->me != root)
        return give_root(a, sbuf, bytes, root);
    mine = rbuf + bytes * (size_t)a->me;
    turn = next_turn(a);
    if (mine != sbuf)
        rk_copy_payload(mine, sbuf, bytes);
    for (int r = 0; r < a->n; r++) {
        rank_status_t st;

        if (r == root)
            continue;
        st = rk_await_turn(a, &a->rooted[rooted_at(a, turn, r)], turn);
        if (rk_unlikely(st))
            return st;
        rk_copy_payload(rbuf + (size_t)r * bytes, rooted_payload(a, turn, r, bytes), bytes);
    }
    root_leaves(a);
    return RANK_OK;
}

/* --------------------------------------------------------------- to the higher ranks */

/* Reads the lower ranks' slots. So these ranks may be some calls ahead. */
rank_status_t rk_arena_scan(struct rk_arena *a, const void *sbuf, void *rbuf, size_t count, size_t bytes, rk_op_fn fn,
                            bool exclusive)
{
    uint64_t turn = next_turn(a);
    int end = a->me + !exclusive;
    const void *sum = NULL;
    rank_status_t st = claim_slot(a, turn, -1);

    if (rk_unlikely(st))
        return st;
    rk_copy_payload(rooted_payload(a, turn, a->me, bytes), sbuf, bytes);
    rk_raise_turn(&a->rooted[rooted_at(a, turn, a->me)], turn);
    rk_wake_members(a, a->me + 1, a->n);
    for (int r = 0; r < end; r++) {
        const void *part = rooted_payload(a, turn, r, bytes);

        st = rk_await_turn(a, &a->rooted[rooted_at(a, turn, r)], turn);
        if (rk_unlikely(st))
            return st;
        if (sum)
            fn(rbuf, sum, part, count);
        sum = sum ? rbuf : part;
    }
    if (sum && sum != rbuf)
        rk_copy_payload(rbuf, sum, bytes);
    leave_turn(a);
    rk_wake_members(a, 0, a->me);
    return RANK_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena.c: open, close and wait in arenas.
 *
 * The front of an arena is zero when it is assigned: turn 0 is before every operation. A new segment is zero; the
 * last member to leave a used arena clears the front, then frees it. After a death the arena stays taken, since
 * the dead member may still have been in it.
 */
#include "collectives/coll_failure.h"
#include "collectives/shm/arena.h"
#include "collectives/shm/slot.h"
#include "lib/base/arg_error.h"

#include <stdlib.h>

static struct rk_arena *new_of(struct rank_team *team, const int *ranks, int n, int me)
{
    struct rk_arena *a = calloc(1, sizeof(*a) + (size_t)n * sizeof(a->slot_of[0]));

    if (!a) {
        rk_fail(RANK_ERR_NO_MEMORY, "out of memory for a team of %d ranks", team->size);
        return NULL;
    }
    a->team = team;
    a->ranks = ranks;
    a->node = team->ctx->node;
    a->n = n;
    a->me = me;
    a->groups = rk_arena_groups(a->n);
    a->group = a->me / RK_FLAT_MAX;
    for (int r = 0; r < a->n; r++)
        a->slot_of[r] = rk_engine_local_slot(team->ctx, rk_arena_world_rank(a, r));
    return a;
}

void rk_arena_attach(struct rk_arena *a, int index)
{
    struct rk_arena_place place = rk_arena_place(a->node->nlocal, index);
    char *base = rk_node_at(a->node, RK_REGION_ARENAS, place.at);
    size_t n = (size_t)a->n, groups = (size_t)a->groups;

    a->index = index;
    a->head = (struct rk_arena_head *)(void *)base;
    a->chunks = (struct rk_chunk_line *)(void *)(base + sizeof(*a->head));
    a->calls = (struct rk_call_line *)(void *)(a->chunks + n);
    a->lines = (struct rk_slot_line *)(void *)(a->calls + n * RK_CALL_LINES);
    a->left = a->lines + n * RK_CELL_DEPTH;
    a->all = a->left + n;
    a->rooted = a->all + n * RK_ALL_SLOTS;
    a->up = a->rooted + n * RK_ROOTED_SLOTS;
    a->down = a->up + groups * RK_ALL_SLOTS;
    a->all_data = base + place.data;
    a->rooted_data = a->all_data + n * RK_ALL_SLOTS * RK_SLOT_DATA;
    a->up_data = a->rooted_data + n * RK_ROOTED_SLOTS * RK_SLOT_DATA;
    a->down_data = a->up_data + groups * RK_ALL_SLOTS * RK_SLOT_DATA;
}

void rk_arena_abandon(struct rk_arena *a, uint64_t number)
{
    _Atomic uint64_t *first = &a->chunks[a->me].abandoned;
    uint64_t before = atomic_load_explicit(first, memory_order_relaxed);

    if (!before || number < before)
        atomic_store_explicit(first, number, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

struct rk_arena *rk_arena_new(struct rank_team *team)
{
    return new_of(team, NULL, team->size, team->rank);
}

struct rk_arena *rk_arena_open_group(struct rank_team *team, int index, const int *ranks, int n, int me)
{
    struct rk_arena *a = new_of(team, ranks, n, me);

    for (int r = 0; a && r < n; r++) {
        if (a->slot_of[r] < 0) {
            free(a);
            return NULL;
        }
    }
    if (a)
        rk_arena_attach(a, index);
    return a;
}

void rk_arena_return(struct rk_node *node, int index, int n)
{
    memset(rk_node_at(node, RK_REGION_ARENAS, rk_arena_place(node->nlocal, index).at), 0, rk_arena_front_bytes(n));
    rk_arena_give_back(node, index);
}

void rk_arena_leave(struct rk_node *node, int index, int n)
{
    struct rk_arena_head *head = rk_node_at(node, RK_REGION_ARENAS, rk_arena_place(node->nlocal, index).at);

    if (index != RK_ARENA_OF_WORLD && (int)atomic_fetch_add(&head->gone, 1) == n - 1)
        rk_arena_return(node, index, n);
}

void rk_arena_close(struct rk_arena *a)
{
    if (!a)
        return;
    rk_arena_leave(a->node, a->index, a->n);
    free(a);
}

/* -------------------------------------------------------------------------- cells */

/* Two small cells stay in the caches next to the core: measured, they double the rate of copies. */
size_t rk_arena_cell_min(int n)
{
    return n <= 2 ? 4 << 10 : n <= 4 ? 8 << 10 : 16 << 10;
}

/* Members that take turns on cores move many chunks a turn. */
static void set_geometry(struct rk_arena *a, enum rk_cells cells)
{
    a->cell_bytes = cells == RK_CELLS_DEEP ? RK_CELLS_BYTES / RK_CELL_DEPTH : rk_arena_cell_min(a->n);
    a->cell_depth = cells == RK_CELLS_DEEP ? RK_CELL_DEPTH : 2;
}

bool rk_arena_open_cells(struct rk_arena *a)
{
    size_t at = rk_arena_place(a->node->nlocal, a->index).cells;
    uint32_t cells = atomic_load(&a->head->cells), mine;

    if (a->cell_bytes)
        return true;
    if (at == SIZE_MAX)
        return false;
    if (cells == RK_CELLS_UNKNOWN) {
        mine = a->node->oversubscribed ? RK_CELLS_DEEP : RK_CELLS_SHALLOW;
        set_geometry(a, (enum rk_cells)mine);
        if (!rk_node_try_commit(a->node, RK_REGION_CELLS, at, RK_PAGE_SHIFT + (size_t)a->n * (size_t)a->cell_depth * a->cell_bytes))
            mine = RK_CELLS_NONE;
        /* More than one may try at once: the first result is that of all. */
        if (atomic_compare_exchange_strong(&a->head->cells, &cells, mine))
            cells = mine;
    }
    a->cell_bytes = 0;
    if (cells == RK_CELLS_NONE)
        return false;
    set_geometry(a, (enum rk_cells)cells);
    a->cells = (char *)rk_node_at(a->node, RK_REGION_CELLS, at) + RK_PAGE_SHIFT;
    return true;
}

size_t rk_arena_block_max(enum rk_coll_kind kind, int n)
{
    switch (kind) {
    case RK_COLL_SCATTER: /* all blocks lie in one slot */
    case RK_COLL_REDUCE_SCATTER:
    case RK_COLL_ALLTOALL:
        return RK_SLOT_DATA / (size_t)n;
    case RK_COLL_ALLGATHER: /* above this the ring copies less */
    case RK_COLL_GATHER:
        return n <= RK_FLAT_MAX ? RK_SLOT_DATA : RK_SLOT_DATA / 8;
    default:
        return RK_SLOT_DATA;
    }
}

/* Conditions of both waits that do not depend on the turn. */
RK_INLINE bool turn_is_off(struct rk_turn_wait *w)
{
    return (rk_unlikely(w->arena->team->coll_over != 0) && rk_coll_is_over(w->arena->team)) || atomic_load_explicit(&w->arena->head->failed, memory_order_relaxed) ||
           (rk_unlikely(w->wait.begun != 0) && rk_turn_is_late(w));
}

/* A turn with another hash is the turn, too: the waiting call finds the difference. */
static bool turn_is(struct rk_wait *wait)
{
    struct rk_turn_wait *w = (struct rk_turn_wait *)wait;
    uint64_t word = atomic_load_explicit(w->turn, memory_order_acquire);

    return (word ^ w->want) << RK_CALL_BITS == 0 || turn_is_off(w);
}

static bool turn_is_past(struct rk_wait *wait)
{
    struct rk_turn_wait *w = (struct rk_turn_wait *)wait;

    return (int64_t)(atomic_load_explicit(w->turn, memory_order_acquire) - w->want) >= 0 || turn_is_off(w);
}

RK_INLINE void turn_wait_for(struct rk_arena *a, const _Atomic uint64_t *turn, uint64_t want,
                             bool (*over)(struct rk_wait *))
{
    struct rk_turn_wait w;

    w.arena = a;
    w.turn = turn;
    w.want = want;
    w.polls = 0;
    w.next_ns = 0;
    w.wait.begun = 0;
    w.wait.peer = NULL;
    w.wait.describe = rk_turn_describe;
    w.wait.kind = RK_FOR_COLL;
    w.wait.no_doorbell = w.wait.background = false;
    w.wait.deadline = 0;
    rk_wait(a->team->ctx, &w.wait, over);
}

void rk_turn_wait(struct rk_arena *a, const _Atomic uint64_t *turn, uint64_t want)
{
    turn_wait_for(a, turn, want, turn_is);
}

void rk_turn_wait_past(struct rk_arena *a, const _Atomic uint64_t *turn, uint64_t want)
{
    turn_wait_for(a, turn, want, turn_is_past);
}

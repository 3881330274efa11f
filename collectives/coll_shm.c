/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_shm.c: lay out arenas, and assign them to teams.
 *
 * The front of an arena is zero when it is assigned: turn 0 is before every operation. A new segment is zero; the
 * last member to leave a used arena clears the front, then frees it. After a death the arena stays taken, since
 * the dead member may still have been in it.
 */
#include "collectives/coll_shm.h"
#include "collectives/shm_slot.h"
#include "lib/base/log.h"

#include <stdlib.h>

enum { PAGE = 4096 };

static int groups_of(int n)
{
    return (n + RK_FLAT_MAX - 1) / RK_FLAT_MAX;
}

/* Lines of the front: acknowledgements, chunk counters, slots of both classes, slots of leaders up and down. */
static size_t coll_shm_front_bytes(int n)
{
    size_t lines = (size_t)n * (2 + RK_ALL_SLOTS + RK_ROOTED_SLOTS + RK_CALL_LINES) +
                   (size_t)groups_of(n) * RK_ALL_SLOTS * 2;

    return sizeof(struct rk_arena_head) + lines * sizeof(struct rk_slot_line);
}

/* Start of the data: equal for all teams of a node, so that no front lies where an earlier team had data. */
static size_t data_at(int nlocal)
{
    return rk_round_up(coll_shm_front_bytes(nlocal), PAGE);
}

/* Bytes of an arena that a team of n ranks uses. */
static size_t used_bytes(int n, int nlocal)
{
    size_t slots = (size_t)n * (RK_ALL_SLOTS + RK_ROOTED_SLOTS) +
                   (size_t)groups_of(n) * RK_ALL_SLOTS * 2;

    return data_at(nlocal) + slots * RK_SLOT_DATA;
}

static size_t arena_bytes(int nlocal)
{
    return used_bytes(nlocal, nlocal);
}

size_t rk_arena_region_bytes(int nlocal)
{
    return nlocal > 1 ? RK_ARENAS * arena_bytes(nlocal) : 0;
}

void rk_arena_prepare_world(struct rk_node *node)
{
    if (node->nlocal > 1 &&
        rk_node_commit(node, RK_REGION_ARENAS, 0, arena_bytes(node->nlocal)) == RANK_OK)
        atomic_fetch_or(&node->head->arenas_taken, 1u << RK_ARENA_OF_WORLD);
}

bool rk_arena_of_world_is_there(const struct rk_node *node)
{
    return atomic_load(&node->head->arenas_taken) >> RK_ARENA_OF_WORLD & 1;
}

static void coll_shm_give_back(struct rk_node *node, int index)
{
    atomic_fetch_and(&node->head->arenas_taken, ~(1u << index));
}

int rk_arena_take(struct rk_node *node, int n)
{
    uint32_t taken = atomic_load(&node->head->arenas_taken);
    int index;

    do {
        uint32_t free_ones = ~taken & ~(1u << RK_ARENA_OF_WORLD);
        if (!free_ones) {
            rk_debug("all %d arenas of the node are taken: a team's small collectives go as "
                     "messages",
                     RK_ARENAS);
            return -1;
        }
        index = __builtin_ctz(free_ones);
    } while (!atomic_compare_exchange_weak(&node->head->arenas_taken, &taken, taken | 1u << index));

    if (rk_node_commit(node, RK_REGION_ARENAS, (size_t)index * arena_bytes(node->nlocal),
                       used_bytes(n, node->nlocal)) != RANK_OK) {
        coll_shm_give_back(node, index);
        return -1;
    }
    return index;
}

static struct rk_arena_head *arena_head(const struct rk_node *node, int index)
{
    return rk_node_at(node, RK_REGION_ARENAS, (size_t)index * arena_bytes(node->nlocal));
}

/* A member of a team of n ranks leaves the arena, or cannot enter it. */
static void arena_leave(struct rk_node *node, int index, int n)
{
    struct rk_arena_head *head = arena_head(node, index);

    if (index != RK_ARENA_OF_WORLD && (int)atomic_fetch_add(&head->gone, 1) == n - 1) {
        memset((void *)head, 0, coll_shm_front_bytes(n));
        coll_shm_give_back(node, index);
    }
}

struct rk_arena *rk_arena_open(struct rank_team *team, int index)
{
    struct rk_node *node = team->ctx->node;
    size_t n = (size_t)team->size;
    struct rk_arena *a = calloc(1, sizeof(*a) + n * sizeof(a->slot_of[0]));
    size_t groups;
    char *base;

    if (!a) {
        rk_error("out of memory for a team of %d ranks", team->size);
        arena_leave(node, index, team->size);
        return NULL;
    }
    a->team = team;
    a->node = node;
    a->index = index;
    a->n = team->size;
    a->me = team->rank;
    a->groups = groups_of(a->n);
    a->group = a->me / RK_FLAT_MAX;
    groups = (size_t)a->groups;
    a->head = arena_head(node, index);
    base = (char *)a->head;
    a->left = (struct rk_slot_line *)(void *)(base + sizeof(*a->head));
    a->all = a->left + n;
    a->rooted = a->all + n * RK_ALL_SLOTS;
    a->up = a->rooted + n * RK_ROOTED_SLOTS;
    a->down = a->up + groups * RK_ALL_SLOTS;
    a->chunks = (struct rk_chunk_line *)(void *)(a->down + groups * RK_ALL_SLOTS);
    a->calls = (struct rk_call_line *)(void *)(a->chunks + n);
    a->all_data = base + data_at(node->nlocal);
    a->rooted_data = a->all_data + n * RK_ALL_SLOTS * RK_SLOT_DATA;
    a->up_data = a->rooted_data + n * RK_ROOTED_SLOTS * RK_SLOT_DATA;
    a->down_data = a->up_data + groups * RK_ALL_SLOTS * RK_SLOT_DATA;
    for (int r = 0; r < a->n; r++)
        a->slot_of[r] = rk_engine_local_slot(team->ctx, rk_team_world_rank(team, r));
    return a;
}

void rk_arena_close(struct rk_arena *a)
{
    if (!a)
        return;
    arena_leave(a->node, a->index, a->n);
    free(a);
}

/* -------------------------------------------------------------------------- cells */

size_t rk_arena_cells_bytes(int nlocal)
{
    return nlocal > 1 ? (size_t)RK_ARENAS * (size_t)nlocal * RK_CELLS_BYTES : 0;
}

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
    size_t at = (size_t)a->index * (size_t)a->node->nlocal * RK_CELLS_BYTES;
    uint32_t cells = atomic_load(&a->head->cells), mine;

    if (a->cell_bytes)
        return true;
    if (cells == RK_CELLS_UNKNOWN) {
        mine = a->node->oversubscribed ? RK_CELLS_DEEP : RK_CELLS_SHALLOW;
        set_geometry(a, (enum rk_cells)mine);
        if (!rk_node_try_commit(a->node, RK_REGION_CELLS, at, (size_t)a->n * (size_t)a->cell_depth * a->cell_bytes))
            mine = RK_CELLS_NONE;
        /* More than one may try at once: the first result is that of all. */
        if (atomic_compare_exchange_strong(&a->head->cells, &cells, mine))
            cells = mine;
    }
    a->cell_bytes = 0;
    if (cells == RK_CELLS_NONE)
        return false;
    set_geometry(a, (enum rk_cells)cells);
    a->cells = rk_node_at(a->node, RK_REGION_CELLS, at);
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
    return w->arena->team->coll_over || atomic_load_explicit(&w->arena->head->failed, memory_order_relaxed) ||
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

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
    size_t lines = (size_t)n * (2 + RK_ALL_SLOTS + RK_ROOTED_SLOTS) +
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

struct rk_arena *rk_arena_open(struct rank_team *team, int index)
{
    struct rk_node *node = team->ctx->node;
    size_t n = (size_t)team->size;
    struct rk_arena *a = calloc(1, sizeof(*a) + n * sizeof(a->slot_of[0]));
    size_t groups;
    char *base;

    if (!a) {
        rk_error("out of memory for a team of %d ranks", team->size);
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
    base = rk_node_at(node, RK_REGION_ARENAS, (size_t)index * arena_bytes(node->nlocal));
    a->head = (struct rk_arena_head *)(void *)base;
    a->front = coll_shm_front_bytes(a->n);
    a->chunks = (struct rk_chunk_line *)(void *)(base + sizeof(*a->head));
    a->left = (struct rk_slot_line *)(void *)(a->chunks + n);
    a->all = a->left + n;
    a->rooted = a->all + n * RK_ALL_SLOTS;
    a->up = a->rooted + n * RK_ROOTED_SLOTS;
    a->down = a->up + groups * RK_ALL_SLOTS;
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
    if (a->index != RK_ARENA_OF_WORLD &&
        (int)atomic_fetch_add(&a->head->gone, 1) == a->n - 1) {
        memset((void *)a->head, 0, a->front);
        coll_shm_give_back(a->node, a->index);
    }
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

static bool turn_is(struct rk_wait *wait)
{
    const struct rk_turn_wait *w = (const struct rk_turn_wait *)wait;

    return atomic_load_explicit(w->turn, memory_order_acquire) == w->want || w->team->coll_over;
}

static bool turn_is_past(struct rk_wait *wait)
{
    const struct rk_turn_wait *w = (const struct rk_turn_wait *)wait;

    return (int64_t)(atomic_load_explicit(w->turn, memory_order_acquire) - w->want) >= 0 ||
           w->team->coll_over;
}

RK_INLINE void turn_wait_for(const struct rank_team *team, const _Atomic uint64_t *turn, uint64_t want,
                             bool (*over)(struct rk_wait *))
{
    struct rk_turn_wait w;

    w.team = team;
    w.turn = turn;
    w.want = want;
    w.wait.peer = NULL;
    w.wait.describe = rk_turn_describe;
    w.wait.kind = RK_FOR_COLL;
    w.wait.no_doorbell = w.wait.background = false;
    rk_wait(team->ctx, &w.wait, over);
}

void rk_turn_wait(const struct rank_team *team, const _Atomic uint64_t *turn, uint64_t want)
{
    turn_wait_for(team, turn, want, turn_is);
}

void rk_turn_wait_past(const struct rank_team *team, const _Atomic uint64_t *turn, uint64_t want)
{
    turn_wait_for(team, turn, want, turn_is_past);
}

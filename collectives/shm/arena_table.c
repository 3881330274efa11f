/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena_table.c: lay out the arenas of a node, and assign them to teams.
 *
 * The world has an arena of its own, number 0. The others form classes: class c is for teams of up to 2^c ranks, and
 * small ones have more arenas. A bitmap in the node's head has a bit for each, with classes one after another from
 * word to word. A team takes an arena of its class, or of the next one that has any left.
 *
 * Both regions are sparse: a class takes address space, and memory only for arenas in use.
 */
#include "collectives/shm/arena.h"
#include "collectives/pattern.h"
#include "lib/base/log.h"

enum {
    PAGE = 4096,
    WORD = 64,         /* arenas a word of the bitmap */
    CELL_ARENAS = 32   /* of a class: further ones have no cells */
};

static int words_of(int class)
{
    return class <= 4 ? 32 >> class : 1; /* 1024 for pairs, 64 from class 5 on */
}

static int class_ranks(int class, int nlocal)
{
    return nlocal >> class == 0 ? nlocal : 1 << class;
}

static int last_class(int nlocal)
{
    return rk_log2_ceil(nlocal);
}

/* Lines of leaders, up and down: only groups have them. */
static size_t leader_lines(int n)
{
    return n > RK_FLAT_MAX ? (size_t)rk_arena_groups(n) * RK_ALL_SLOTS * 2 : 0;
}

size_t rk_arena_front_bytes(int n)
{
    size_t lines = (size_t)n * (2 + RK_ALL_SLOTS + RK_ROOTED_SLOTS + RK_CALL_LINES + RK_CELL_DEPTH) + leader_lines(n);

    return sizeof(struct rk_arena_head) + lines * sizeof(struct rk_slot_line);
}

/* Start of the data: equal for all teams of a class, so that no front lies where an earlier team had data. */
static size_t data_at(int most)
{
    return rk_round_up(rk_arena_front_bytes(most), PAGE) + RK_PAGE_SHIFT;
}

/* Bytes that a team of n ranks uses of an arena for up to most. */
static size_t used_bytes(int n, int most)
{
    size_t slots = (size_t)n * (RK_ALL_SLOTS + RK_ROOTED_SLOTS) + leader_lines(n);

    return rk_round_up(data_at(most) + slots * RK_SLOT_DATA, PAGE);
}

static size_t arena_bytes(int most)
{
    return used_bytes(most, most);
}

struct rk_arena_place rk_arena_place(int nlocal, int index)
{
    struct rk_arena_place p = {.data = data_at(nlocal), .cells = 0, .most = nlocal};
    int bit = index - 1, class = 1;
    size_t cells = (size_t)nlocal * RK_CELLS_BYTES;

    if (index == RK_ARENA_OF_WORLD)
        return p;
    p.at = arena_bytes(nlocal);
    for (; class < last_class(nlocal) && bit >= words_of(class) * WORD; class++) {
        bit -= words_of(class) * WORD;
        p.at += (size_t)(words_of(class) * WORD) * arena_bytes(class_ranks(class, nlocal));
        cells += (size_t)(CELL_ARENAS * class_ranks(class, nlocal)) * RK_CELLS_BYTES;
    }
    p.most = class_ranks(class, nlocal);
    p.at += (size_t)bit * arena_bytes(p.most);
    p.data = data_at(p.most);
    p.cells = bit < CELL_ARENAS ? cells + (size_t)(bit * p.most) * RK_CELLS_BYTES : SIZE_MAX;
    return p;
}

static int arenas_of(int nlocal)
{
    int n = 1;

    for (int class = 1; class <= last_class(nlocal); class++)
        n += words_of(class) * WORD;
    return n;
}

/* The end of the last arena. */
size_t rk_arena_region_bytes(int nlocal)
{
    return nlocal > 1 ? rk_arena_place(nlocal, arenas_of(nlocal) - 1).at + arena_bytes(nlocal) : 0;
}

size_t rk_arena_cells_bytes(int nlocal)
{
    int last = arenas_of(nlocal) - words_of(last_class(nlocal)) * WORD + CELL_ARENAS - 1;

    return nlocal > 1 ? rk_arena_place(nlocal, last).cells + (size_t)nlocal * RK_CELLS_BYTES + PAGE : 0;
}

void rk_arena_prepare_world(struct rk_node *node)
{
    if (node->nlocal > 1 && rk_node_commit(node, RK_REGION_ARENAS, 0, arena_bytes(node->nlocal)) == RANK_OK)
        atomic_store(&node->head->arena_of_world, 1);
}

bool rk_arena_of_world_is_there(const struct rk_node *node)
{
    return atomic_load(&node->head->arena_of_world) != 0;
}

void rk_arena_give_back(struct rk_node *node, int index)
{
    int bit = index - 1;

    atomic_fetch_and(&node->head->arenas_taken[bit / WORD], ~(UINT64_C(1) << bit % WORD));
}

/* Take a bit of these words; -1: none is free. */
static int take_bit(struct rk_node *node, int word, int end)
{
    for (; word < end; word++) {
        _Atomic uint64_t *of = &node->head->arenas_taken[word];
        uint64_t taken = atomic_load(of);

        while (~taken) {
            int bit = __builtin_ctzll(~taken);

            if (atomic_compare_exchange_weak(of, &taken, taken | UINT64_C(1) << bit))
                return word * WORD + bit;
        }
    }
    return -1;
}

/* slots: it is to have them; else it must have cells. */
static int take_arena(struct rk_node *node, int n, bool slots)
{
    struct rk_arena_place place;
    int word = 0, bit = -1;

    for (int class = 1; class <= last_class(node->nlocal) && bit < 0; class++) {
        int end = word + words_of(class);

        if (n <= class_ranks(class, node->nlocal))
            bit = take_bit(node, word, end);
        word = end;
    }
    if (bit < 0) {
        rk_debug("all arenas of the node for teams of %d ranks are taken: small collectives go as messages", n);
        return -1;
    }
    place = rk_arena_place(node->nlocal, bit + 1);
    if ((!slots && place.cells == SIZE_MAX) ||
        rk_node_commit(node, RK_REGION_ARENAS, place.at, slots ? used_bytes(n, place.most) : rk_arena_front_bytes(n)) != RANK_OK) {
        rk_arena_give_back(node, bit + 1);
        return -1;
    }
    return bit + 1;
}

int rk_arena_take(struct rk_node *node, int n)
{
    return take_arena(node, n, true);
}

int rk_arena_take_cells(struct rk_node *node, int n)
{
    return take_arena(node, n, false);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pair_assign.c: assign classes of ranks to GPUs at least total cost.
 *
 * Minimum-cost flow by successive shortest paths, contracted to the GPUs: the edge from g to h moves one rank of the
 * class for which that is cheapest. Every GPU takes the equal share of ranks, and as many as there is a remainder take
 * one more. The least total cost implies that no exchange of two ranks brings one nearer and none farther.
 */
#include "lib/topo/pair_internal.h"

#include <stdlib.h>
#include <string.h>

#define INFINITE (INT64_MAX / 4)

/* The cheapest move of a rank from one GPU to another. of RK_TOPO_NONE: the extra of one goes to the other. */
struct pair_move {
    int64_t cost;
    uint32_t of;
};

struct assignment {
    const struct rk_pair_problem *p;
    uint32_t *count;        /* classes x gpus */
    struct pair_move *move; /* gpus x gpus */
    uint32_t *load;         /* ranks of a GPU */
    uint32_t *from, *via;   /* the GPU before it on the path, or RK_TOPO_NONE; the class that moves, or RK_TOPO_NONE */
    int64_t *dist;
    uint32_t share, extras; /* ranks of each GPU; GPUs that may still have one more */
};

static uint32_t *count_of(const struct assignment *a, uint32_t class, uint32_t gpu)
{
    return &a->count[(size_t)class * a->p->gpus + gpu];
}

static struct pair_move *move_of(const struct assignment *a, uint32_t g, uint32_t h)
{
    return &a->move[(size_t)g * a->p->gpus + h];
}

static bool can_move(const struct assignment *a, uint32_t class, uint32_t g, uint32_t h)
{
    return *count_of(a, class, g) > 0 && *count_of(a, class, h) < a->p->size[class];
}

static int64_t move_cost(const struct assignment *a, uint32_t class, uint32_t g, uint32_t h)
{
    const int64_t *cost = &a->p->cost[(size_t)class * a->p->gpus];

    return cost[h] - cost[g];
}

/* Bring the move up to date after the class has changed at g or h. */
static void update_move(struct assignment *a, uint32_t class, uint32_t g, uint32_t h)
{
    struct pair_move *best = move_of(a, g, h);

    if (can_move(a, class, g, h)) {
        int64_t cost = move_cost(a, class, g, h);
        if (cost < best->cost || (cost == best->cost && class < best->of))
            *best = (struct pair_move){cost, class};
        return;
    }
    if (best->of != class)
        return;
    *best = (struct pair_move){INFINITE, RK_TOPO_NONE};
    for (uint32_t c = 0; c < a->p->classes; c++) {
        if (can_move(a, c, g, h) && move_cost(a, c, g, h) < best->cost)
            *best = (struct pair_move){move_cost(a, c, g, h), c};
    }
}

/* Add or remove ranks of a class at a GPU. */
static void change_count(struct assignment *a, uint32_t class, uint32_t gpu, int32_t by)
{
    *count_of(a, class, gpu) += (uint32_t)by;
    for (uint32_t h = 0; h < a->p->gpus; h++) {
        if (h != gpu) {
            update_move(a, class, gpu, h);
            update_move(a, class, h, gpu);
        }
    }
}

/* May the extra of h be given to g? It is then h that has one rank too many. */
static bool extra_moves(const struct assignment *a, uint32_t g, uint32_t h)
{
    return a->load[g] == a->share && a->load[h] > a->share;
}

/* Return the cost of the edge from g to h. */
static int64_t edge_cost(const struct assignment *a, uint32_t g, uint32_t h)
{
    int64_t cost = move_of(a, g, h)->cost;

    return extra_moves(a, g, h) && cost > 0 ? 0 : cost;
}

static bool has_place(const struct assignment *a, uint32_t g)
{
    return a->load[g] < a->share || (a->load[g] == a->share && a->extras > 0);
}

/* Find the cheapest way for one more rank of the class; returns the GPU where it ends. */
static uint32_t find_path(struct assignment *a, uint32_t class)
{
    uint32_t gpus = a->p->gpus, end = RK_TOPO_NONE;
    bool changed = true;

    for (uint32_t g = 0; g < gpus; g++) {
        a->from[g] = RK_TOPO_NONE;
        a->dist[g] = *count_of(a, class, g) < a->p->size[class] ? a->p->cost[(size_t)class * gpus + g] : INFINITE;
    }
    for (uint32_t round = 0; changed && round < gpus; round++) {
        changed = false;
        for (uint32_t g = 0; g < gpus; g++) {
            for (uint32_t h = 0; a->dist[g] < INFINITE && h < gpus; h++) {
                int64_t cost = h == g ? INFINITE : edge_cost(a, g, h);
                if (cost >= INFINITE || a->dist[g] + cost >= a->dist[h])
                    continue;
                a->dist[h] = a->dist[g] + cost;
                a->from[h] = g;
                changed = true;
            }
        }
    }
    for (uint32_t g = 0; g < gpus; g++) {
        if (has_place(a, g) && a->dist[g] < INFINITE && (end == RK_TOPO_NONE || a->dist[g] < a->dist[end]))
            end = g;
    }
    return end;
}

/* Add a rank at the start of the path and shift one along each edge. All edges are fixed before the first change. */
static void apply_path(struct assignment *a, uint32_t class, uint32_t end)
{
    uint32_t at;

    for (at = end; a->from[at] != RK_TOPO_NONE; at = a->from[at]) {
        struct pair_move *move = move_of(a, a->from[at], at);
        a->via[at] = extra_moves(a, a->from[at], at) && move->cost > 0 ? RK_TOPO_NONE : move->of;
    }
    a->extras -= a->load[end] == a->share;
    a->load[end]++;
    for (at = end; a->from[at] != RK_TOPO_NONE; at = a->from[at]) {
        uint32_t g = a->from[at];
        if (a->via[at] == RK_TOPO_NONE) {
            a->load[g]++;
            a->load[at]--;
        } else {
            change_count(a, a->via[at], g, -1);
            change_count(a, a->via[at], at, 1);
        }
    }
    change_count(a, class, at, 1);
}

static rank_status_t assign_ranks(struct assignment *a)
{
    const struct rk_pair_problem *p = a->p;

    for (uint32_t i = 0; i < p->gpus * p->gpus; i++)
        a->move[i] = (struct pair_move){INFINITE, RK_TOPO_NONE};
    for (uint32_t c = 0; c < p->classes; c++) {
        for (uint64_t i = 0; i < (uint64_t)p->size[c] * p->per_rank; i++) {
            uint32_t end = find_path(a, c);
            if (end == RK_TOPO_NONE)
                return RANK_ERR_ARG;
            apply_path(a, c, end);
        }
    }
    return RANK_OK;
}

rank_status_t rk_pair_assign(const struct rk_pair_problem *p, uint32_t *count)
{
    uint64_t all = (uint64_t)p->ranks * p->per_rank;
    size_t gpus = p->gpus;
    struct assignment a = {
        .p = p,
        .count = count,
        .move = malloc(gpus * gpus * sizeof(*a.move)),
        .load = calloc(gpus, sizeof(*a.load)),
        .from = calloc(gpus, sizeof(*a.from)),
        .via = calloc(gpus, sizeof(*a.via)),
        .dist = calloc(gpus, sizeof(*a.dist)),
        .share = (uint32_t)(all / gpus),
        .extras = (uint32_t)(all % gpus),
    };
    rank_status_t st = RANK_ERR_NO_MEMORY;

    memset(count, 0, (size_t)p->classes * gpus * sizeof(*count));
    if (a.move && a.load && a.from && a.via && a.dist)
        st = assign_ranks(&a);
    free(a.move);
    free(a.load);
    free(a.from);
    free(a.via);
    free(a.dist);
    return st;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pair_gpus.c: choose GPUs by the cores that ranks were given. See pair.h.
 *
 * Ranks at the same distances from all GPUs form a class. pair_assign.c gives each class its GPUs, and the ranks of a
 * class have these in order, so that consecutive ranks share.
 */
#include "lib/topo/pair_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- distance */

static uint32_t cores_inside(const uint32_t *before, struct rk_core_range range)
{
    return before[range.first + range.n] - before[range.first];
}

/* Count the cores of a rank before each core of the machine, so that those of a range are one difference. */
static void count_before(const struct rk_machine *m, const struct rk_pair_cores *cores, uint32_t *before)
{
    memset(before, 0, ((size_t)m->ncores + 1) * sizeof(*before));
    for (uint32_t i = 0; i < cores->n; i++)
        before[cores->core[i] + 1]++;
    for (uint32_t i = 0; cores->n == 0 && i < m->ncores; i++)
        before[i + 1] = m->core[i].allowed;
    for (uint32_t i = 0; i < m->ncores; i++)
        before[i + 1] += before[i];
}

/* Average over the cores: 0 beside the device, RK_PAIR_FAR in its package, twice that elsewhere. */
static int64_t mean_distance(const struct rk_machine *m, const uint32_t *before, const struct rk_device *d)
{
    uint32_t package = rk_package_of(m, d->near);
    int64_t all = before[m->ncores], near = cores_inside(before, d->near);
    int64_t inside = package == RK_TOPO_NONE ? near : cores_inside(before, m->package[package]);

    return all ? ((all - inside) * 2 + (inside - near)) * RK_PAIR_FAR / all : 0;
}

int64_t rk_pair_core_distance(const struct rk_machine *m, const struct rk_pair_cores *cores, const struct rk_device *d)
{
    uint32_t *before = malloc(((size_t)m->ncores + 1) * sizeof(*before));
    int64_t result = 0;

    if (before) {
        count_before(m, cores, before);
        result = mean_distance(m, before, d);
    }
    free(before);
    return result;
}

enum rk_path rk_pair_core_path(const struct rk_machine *m, const struct rk_pair_rank *rank, const struct rk_device *d)
{
    uint32_t last = d->near.first + d->near.n;

    for (uint32_t i = 0; i < rank->ncores; i++) {
        if (rank->core[i] < d->near.first || rank->core[i] >= last)
            return RK_PATH_SYS;
    }
    for (uint32_t i = 0; rank->ncores == 0 && i < m->ncores; i++) {
        if (m->core[i].allowed && (i < d->near.first || i >= last))
            return RK_PATH_SYS;
    }
    return RK_PATH_NODE;
}

/* ----------------------------------------------------------------- classes */

struct classes {
    uint32_t n, gpus;
    uint32_t *of;   /* class of each rank */
    uint32_t *size; /* ranks of each class */
    int64_t *cost;  /* classes x gpus */
    uint32_t *count, *before;
};

static bool classes_alloc(struct classes *c, uint32_t ranks, uint32_t gpus, uint32_t ncores)
{
    size_t cells = ((size_t)ranks + 1) * gpus;

    *c = (struct classes){
        .gpus = gpus,
        .of = calloc((size_t)ranks + 1, sizeof(*c->of)),
        .size = calloc((size_t)ranks + 1, sizeof(*c->size)),
        .cost = calloc(cells, sizeof(*c->cost)),
        .count = calloc(cells, sizeof(*c->count)),
        .before = calloc((size_t)ncores + 1, sizeof(*c->before)),
    };
    return c->of && c->size && c->cost && c->count && c->before;
}

static void classes_free(struct classes *c)
{
    free(c->of);
    free(c->size);
    free(c->cost);
    free(c->count);
    free(c->before);
}

/* Put a rank into the class with its distances, or into a new one. */
static void classify_rank(const struct rk_machine *m, const struct rk_pair_pool *gpus, const struct rk_pair_cores *cores,
                     uint32_t rank, struct classes *c)
{
    size_t row = c->gpus * sizeof(*c->cost);
    int64_t *cost = c->cost + (size_t)c->n * c->gpus;
    uint32_t at = 0;

    count_before(m, cores, c->before);
    for (uint32_t g = 0; g < c->gpus; g++)
        cost[g] = mean_distance(m, c->before, &m->gpu[gpus->device[g]]);
    while (at < c->n && memcmp(c->cost + (size_t)at * c->gpus, cost, row) != 0)
        at++;
    c->n += at == c->n;
    c->of[rank] = at;
    c->size[at]++;
}

/* ------------------------------------------------------------------- deal */

/*
 * Take the GPUs of the next rank of a class: those that all of its remaining ranks need, then the lowest ones. This
 * never leaves a GPU more ranks than remain.
 */
static void take_gpus(struct classes *c, const struct rk_pair_pool *gpus, uint32_t class, struct rk_pair_link *link)
{
    uint32_t *count = c->count + (size_t)class * c->gpus, taken = 0, left = c->size[class]--;
    const int64_t *cost = c->cost + (size_t)class * c->gpus;
    int64_t least = INT64_MAX; /* of the GPUs that this rank does not have */

    for (uint32_t g = 0; g < c->gpus; g++)
        taken += count[g] == left;
    for (uint32_t g = 0, free_ones = gpus->per_rank - taken, n = 0; g < c->gpus; g++) {
        bool needed = count[g] == left;
        if (!needed && (!count[g] || !free_ones)) {
            least = cost[g] < least ? cost[g] : least;
            continue;
        }
        free_ones -= !needed;
        count[g]--;
        link[n++] = (struct rk_pair_link){g, RK_PATH_NODE, RK_PAIR_ONLY};
    }
    for (uint32_t n = 0; n < gpus->per_rank; n++) {
        if (c->gpus > 1)
            link[n].reason = cost[link[n].device] <= least ? RK_PAIR_NEAREST : RK_PAIR_EQUAL_LOADS;
        link[n].device = gpus->device[link[n].device];
    }
}

rank_status_t rk_pair_gpus_by_cores(const struct rk_machine *m, const struct rk_pair_request *rq,
                                    const struct rk_pair_pool *gpus, struct rk_pairing *out)
{
    struct classes c;
    rank_status_t st = RANK_ERR_NO_MEMORY;

    if (classes_alloc(&c, rq->ranks, gpus->n, m->ncores)) {
        struct rk_pair_problem p;
        for (uint32_t r = 0; r < rq->ranks; r++)
            classify_rank(m, gpus, &rq->placed[r], r, &c);
        p = (struct rk_pair_problem){c.n, gpus->n, gpus->per_rank, rq->ranks, c.size, c.cost};
        st = rk_pair_assign(&p, c.count);
    }
    for (uint32_t r = 0; !st && r < rq->ranks; r++)
        take_gpus(&c, gpus, c.of[r], out->gpus + (size_t)r * gpus->per_rank);
    classes_free(&c);
    return st;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pair_nics.c: choose the NIC nearest to GPU or cores of each rank.
 *
 * RDMA precedes Ethernet, then distance counts, then InfiniBand precedes RoCE. Of equals a rank has the NIC that is least
 * loaded for its bandwidth, so that ranks of one GPU use all NICs that are as near, then the first in PCI order.
 */
#include "lib/topo/pair_internal.h"

#include <stdlib.h>
#include <string.h>

struct nic_choice {
    const struct rk_machine *m;
    const struct rk_pair_pool *nics;
    uint64_t *load, *rate; /* by place in the pool */
    int64_t *far;          /* distances from the present rank */
    bool *mine;            /* the rank has it already */
};

static const struct rk_device *nic_at(const struct nic_choice *c, uint32_t i)
{
    return &c->m->nic[c->nics->device[i]];
}

/* Return the GPU that the i-th NIC of a rank is for, or NULL. */
static const struct rk_device *gpu_for(const struct nic_choice *c, const struct rk_pair_rank *rank, uint32_t i)
{
    return rank->ngpus ? &c->m->gpu[rank->gpu[i % rank->ngpus].device] : NULL;
}

static void measure_distances(struct nic_choice *c, const struct rk_pair_rank *rank, const struct rk_device *gpu)
{
    struct rk_pair_cores cores = {rank->core, rank->ncores};

    for (uint32_t i = 0; i < c->nics->n; i++)
        c->far[i] = gpu ? rk_path_distance(c->m, gpu, nic_at(c, i))
                        : rk_pair_core_distance(c->m, &cores, nic_at(c, i));
}

/* Compare by kind and distance, not by load. */
static int compare_near(const struct nic_choice *c, uint32_t a, uint32_t b)
{
    const struct rk_device *x = nic_at(c, a), *y = nic_at(c, b);

    if ((x->kind == RK_NIC_ETHERNET) != (y->kind == RK_NIC_ETHERNET))
        return y->kind == RK_NIC_ETHERNET ? -1 : 1;
    if (c->far[a] != c->far[b])
        return c->far[a] < c->far[b] ? -1 : 1;
    return x->kind < y->kind ? -1 : x->kind > y->kind;
}

/* Compare the loads that one more rank would make. */
static int compare_load(const struct nic_choice *c, uint32_t a, uint32_t b)
{
    uint64_t x = (c->load[a] + 1) * c->rate[b], y = (c->load[b] + 1) * c->rate[a];

    return x < y ? -1 : x > y;
}

/* Return why the rank has this NIC and no other one. */
static enum rk_pair_reason reason_for(const struct nic_choice *c, uint32_t best)
{
    bool equals = false, lighter = false, ethernet = false;

    for (uint32_t i = 0; i < c->nics->n; i++) {
        if (i == best || c->mine[i])
            continue;
        if (compare_near(c, best, i) == 0) {
            equals = true;
            lighter = lighter || compare_load(c, best, i) < 0;
        }
        ethernet = ethernet || (nic_at(c, i)->kind == RK_NIC_ETHERNET && nic_at(c, best)->kind != RK_NIC_ETHERNET &&
                                c->far[i] < c->far[best]);
    }
    return c->nics->n == 1 ? RK_PAIR_ONLY
           : equals        ? (lighter ? RK_PAIR_LEAST_LOADED : RK_PAIR_PCI_ORDER)
           : ethernet      ? RK_PAIR_RDMA_FIRST
                           : RK_PAIR_NEAREST;
}

static uint32_t best_nic(const struct nic_choice *c)
{
    uint32_t best = RK_TOPO_NONE;

    for (uint32_t i = 0; i < c->nics->n; i++) {
        int order;
        if (c->mine[i])
            continue;
        order = best == RK_TOPO_NONE ? -1 : compare_near(c, i, best);
        if (order < 0 || (order == 0 && compare_load(c, i, best) < 0))
            best = i;
    }
    return best;
}

static void choose_for(struct nic_choice *c, const struct rk_pair_rank *rank, uint32_t r, struct rk_pair_link *link)
{
    bool listed = c->nics->rq->bind == RK_PAIR_MAP;

    memset(c->mine, 0, c->nics->n * sizeof(*c->mine));
    for (uint32_t i = 0; i < c->nics->per_rank; i++) {
        const struct rk_device *gpu = gpu_for(c, rank, i);
        uint32_t at = (uint32_t)(((uint64_t)r * c->nics->per_rank + i) % c->nics->n);
        if (!listed) {
            if (gpu || i == 0)
                measure_distances(c, rank, gpu);
            at = best_nic(c);
        }
        link[i] = (struct rk_pair_link){c->nics->device[at],
                                        gpu ? rk_path_devices(c->m, gpu, nic_at(c, at))
                                            : rk_pair_core_path(c->m, rank, nic_at(c, at)),
                                        listed ? RK_PAIR_LISTED : reason_for(c, at)};
        c->mine[at] = true;
        c->load[at]++;
    }
}

rank_status_t rk_pair_choose_nics(const struct rk_machine *m, const struct rk_pair_pool *nics, struct rk_pairing *out)
{
    struct nic_choice c = {
        .m = m,
        .nics = nics,
        .load = calloc(nics->n, sizeof(*c.load)),
        .rate = calloc(nics->n, sizeof(*c.rate)),
        .far = calloc(nics->n, sizeof(*c.far)),
        .mine = calloc(nics->n, sizeof(*c.mine)),
    };
    bool ok = c.load && c.rate && c.far && c.mine;

    for (uint32_t i = 0; ok && i < nics->n; i++)
        c.rate[i] = rk_nic_rate(&m->nic[nics->device[i]]);
    for (uint32_t r = 0; ok && r < out->ranks; r++)
        choose_for(&c, &out->rank[r], r, out->nics + (size_t)r * nics->per_rank);
    free(c.load);
    free(c.rate);
    free(c.far);
    free(c.mine);
    return ok ? RANK_OK : RANK_ERR_NO_MEMORY;
}

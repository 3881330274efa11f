/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pair_cores.c: choose cores beside the GPUs of ranks. See pair.h.
 *
 * The ranks with a GPU beside the same cores divide these in order. If they are more than the cores, cores of the
 * package count as near, then those of the machine; then ranks share cores.
 */
#include "lib/topo/pair_internal.h"

#include <stdlib.h>

enum reach { REACH_NODE, REACH_PACKAGE, REACH_MACHINE };

/* Ranks that divide a range of cores. */
struct core_group {
    struct rk_core_range range;
    uint32_t ranks, dealt; /* dealt: ranks that have their cores */
    uint32_t *cores;       /* its cores, in order */
    uint32_t ncores;
};

struct core_deal {
    const struct rk_machine *m;
    struct core_group *group;
    uint32_t ngroups;
    uint32_t *of;   /* group of each rank */
    bool *taken;    /* by core */
    uint32_t *list; /* all groups' cores; groups of one reach may overlap */
};

/* Return the cores that count as near the first GPU of a rank, or all. */
static struct rk_core_range near_range(const struct rk_machine *m, const struct rk_pair_rank *rank, enum reach reach)
{
    struct rk_core_range all = {0, m->ncores}, near = all;

    if (!rank->ngpus || reach == REACH_MACHINE)
        return all;
    near = m->gpu[rank->gpu[0].device].near;
    if (reach == REACH_PACKAGE || !near.n) {
        uint32_t package = rk_package_of(m, near);
        return package == RK_TOPO_NONE ? all : m->package[package];
    }
    return near;
}

static uint32_t allowed_cores(const struct rk_machine *m, struct rk_core_range range)
{
    uint32_t n = 0;

    for (uint32_t i = range.first; i < range.first + range.n; i++)
        n += m->core[i].allowed;
    return n;
}

static void group_ranks(struct core_deal *d, const struct rk_pairing *p, enum reach reach)
{
    d->ngroups = 0;
    for (uint32_t r = 0; r < p->ranks; r++) {
        struct rk_core_range range = near_range(d->m, &p->rank[r], reach);
        uint32_t at = 0;
        while (at < d->ngroups && (d->group[at].range.first != range.first || d->group[at].range.n != range.n))
            at++;
        if (at == d->ngroups)
            d->group[d->ngroups++] = (struct core_group){.range = range};
        d->group[at].ranks++;
        d->of[r] = at;
    }
}

static bool all_fit(const struct core_deal *d)
{
    for (uint32_t i = 0; i < d->ngroups; i++) {
        if (d->group[i].ranks > allowed_cores(d->m, d->group[i].range))
            return false;
    }
    return true;
}

/* Give a group its allowed cores that are free, or all of them if that leaves too few. */
static uint32_t claim_range(struct core_deal *d, struct core_group *g, uint32_t *to)
{
    struct rk_core_range range = g->range;

    for (bool every = false;; every = true) {
        g->cores = to;
        g->ncores = 0;
        for (uint32_t i = range.first; i < range.first + range.n; i++) {
            if (d->m->core[i].allowed && (every || !d->taken[i]))
                to[g->ncores++] = i;
        }
        if (g->ncores >= g->ranks || every)
            break;
    }
    for (uint32_t i = 0; i < g->ncores; i++)
        d->taken[to[i]] = true;
    return g->ncores;
}

/* Smaller ranges first: a larger one around them has the rest. */
static void claim_ranges(struct core_deal *d)
{
    uint32_t *to = d->list;
    uint32_t last = 0;

    for (;;) {
        uint32_t next = RK_TOPO_NONE;
        for (uint32_t i = 0; i < d->ngroups; i++) {
            if (d->group[i].range.n > last && d->group[i].range.n < next)
                next = d->group[i].range.n;
        }
        if (next == RK_TOPO_NONE)
            return;
        for (uint32_t i = 0; i < d->ngroups; i++) {
            if (d->group[i].range.n == next)
                to += claim_range(d, &d->group[i], to);
        }
        last = next;
    }
}

/* The k-th of n ranks has an equal part of the cores, or one that it shares. */
static void deal_cores(const struct core_deal *d, struct rk_pairing *p)
{
    for (uint32_t r = 0; r < p->ranks; r++) {
        struct core_group *g = &d->group[d->of[r]];
        uint64_t k = g->dealt++;
        uint32_t first = (uint32_t)(k * g->ncores / g->ranks), next = (uint32_t)((k + 1) * g->ncores / g->ranks);
        if (!g->ncores)
            continue;
        p->rank[r].core = g->cores + first;
        p->rank[r].ncores = next > first ? next - first : 1;
    }
}

rank_status_t rk_pair_choose_cores(const struct rk_machine *m, struct rk_pairing *out)
{
    size_t groups = (size_t)m->ngpus + 2; /* a range a GPU, and the machine */
    struct core_deal d = {
        .m = m,
        .group = calloc(groups, sizeof(*d.group)),
        .of = calloc((size_t)out->ranks + 1, sizeof(*d.of)),
        .taken = calloc((size_t)m->ncores + 1, sizeof(*d.taken)),
        .list = calloc(groups * m->ncores + 1, sizeof(*d.list)),
    };
    bool ok = d.group && d.of && d.taken && d.list;

    if (ok) {
        enum reach reach = REACH_NODE;
        for (group_ranks(&d, out, reach); reach < REACH_MACHINE && !all_fit(&d);)
            group_ranks(&d, out, ++reach);
        claim_ranges(&d);
        deal_cores(&d, out);
        out->cores = d.list;
        d.list = NULL;
    }
    free(d.group);
    free(d.of);
    free(d.taken);
    free(d.list);
    return ok ? RANK_OK : RANK_ERR_NO_MEMORY;
}

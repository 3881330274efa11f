/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topo_module.c: find GPU, NIC and cores of a rank: the module librank-topo.so.
 *
 * The ranks of a host compute the same pairs, each for itself, from the machine and the cores of all of them.
 */
#include "lib/topo/module/topo_module.h"
#include "lib/channel/module_core.h"
#include "lib/topo/core_list.h"
#include "lib/topo/pair_request.h"
#include "lib/topo/pair_text.h"

#include <stdio.h>
#include <stdlib.h>

struct local_pairs {
    struct rk_machine m;
    struct rk_pair_prepared prepared;
    struct rk_pairing pairs;
    struct rk_pair_cores *placed;
    uint32_t *lists;
};

static bool recorded_cpu(const void *set, uint32_t cpu)
{
    const struct rk_affinity *of = set;

    return cpu / 64 < sizeof(of->word) / sizeof(*of->word) && (of->word[cpu / 64] >> cpu % 64 & 1);
}

/*
 * Allow the cores that any rank may use, or those of the cpuset if no rank's are known. The affinity of this process
 * does not count: each rank must find the same pairs. Returns the number of cores that a rank has unless it is bound.
 */
static uint32_t allow_cores(struct rk_machine *m, const struct rk_pair_cores *placed, uint32_t n)
{
    uint32_t all = 0;
    bool any = false;

    for (uint32_t r = 0; r < n; r++)
        any = any || placed[r].n;
    for (uint32_t i = 0; i < m->ncores; i++)
        m->core[i].allowed = !any && m->core[i].cpuset;
    for (uint32_t r = 0; r < n; r++) {
        for (uint32_t i = 0; i < placed[r].n; i++)
            m->core[placed[r].core[i]].allowed = true;
    }
    for (uint32_t i = 0; i < m->ncores; i++)
        all += m->core[i].cpuset || m->core[i].allowed;
    return all;
}

/* Set the cores of all ranks, if any is bound. On a recorded machine none is. Returns false without memory. */
static bool place_ranks(const struct rk_topo_query *query, struct local_pairs *l)
{
    uint32_t n = query->cores ? query->nlocal : 0, all;
    bool any = false;

    if (!l->m.live)
        return true;
    l->placed = calloc((size_t)n + 1, sizeof(*l->placed));
    l->lists = calloc((size_t)n * l->m.ncores + 1, sizeof(*l->lists));
    if (!l->placed || !l->lists)
        return false;
    for (uint32_t i = 0; i < n; i++)
        l->placed[i] = rk_core_list_of_cpus(&l->m, recorded_cpu, &query->cores[i], l->lists + (size_t)i * l->m.ncores);
    all = allow_cores(&l->m, l->placed, n);
    for (uint32_t i = 0; i < n; i++) {
        if (l->placed[i].n == all)
            l->placed[i].n = 0;
        any = any || l->placed[i].n;
    }
    l->prepared.rq.placed = any ? l->placed : NULL;
    return true;
}

static rank_status_t pair_ranks(const struct rk_topo_query *query, struct local_pairs *l, char *err, size_t errlen)
{
    const struct rk_pair_words words = {.gpus = "", .nics = "", .visible = query->visible};
    rank_status_t st = rk_pair_request_make(&words, "this host", &l->m, &l->prepared, err, errlen);

    l->prepared.rq.ranks = query->nlocal;
    if (!st && !place_ranks(query, l)) {
        snprintf(err, errlen, "out of memory for the devices of the rank");
        st = RANK_ERR_NO_MEMORY;
    }
    if (!st)
        st = rk_pair(&l->m, &l->prepared.rq, &l->pairs, err, errlen);
    return st;
}

static char *topo_describe(const struct rk_topo_query *query, char *err, size_t errlen)
{
    struct local_pairs l = {.placed = NULL};
    char *text = NULL;

    if (rk_machine_load(NULL, &l.m, err, errlen))
        return NULL;
    if (pair_ranks(query, &l, err, errlen) == RANK_OK) {
        text = rk_pair_text(&l.m, &l.pairs.rank[query->index]);
        if (!text)
            snprintf(err, errlen, "out of memory for the devices of the rank");
    }
    rk_pair_free(&l.pairs);
    rk_pair_request_clear(&l.prepared);
    free(l.placed);
    free(l.lists);
    rk_machine_free(&l.m);
    return text;
}

static const struct rk_topo_ops ops = {topo_describe};

const void *rank_module(const struct rk_services *services)
{
    return rk_module_begin(services) ? &ops : NULL;
}

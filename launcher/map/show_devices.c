/* SPDX-License-Identifier: BSD-3-Clause */
/* show_devices.c: show GPU and NIC of each rank on the machine of --xml. */
#include "launcher/map/plan.h"
#include "lib/topo/show_topology.h"

#include <stdlib.h>
#include <string.h>

/* The ranks of one host. */
struct host_ranks {
    const struct rk_machine *m;
    uint32_t *rank, n;
    struct rk_pair_cores *cores;
    uint32_t *lists; /* cores of all ranks */
};

/* List the cores that a rank is bound to; none if it is not bound. */
static struct rk_pair_cores bound_cores(const struct rk_machine *m, hwloc_const_bitmap_t cpus, uint32_t *list)
{
    struct rk_pair_cores cores = {list, 0};
    unsigned cpu;

    if (!cpus)
        return cores;
    for (uint32_t i = 0; i < m->ncores; i++)
        list[i] = 0;
    hwloc_bitmap_foreach_begin(cpu, cpus)
        if (cpu < m->ncpus && m->core_of_cpu[cpu] != RK_TOPO_NONE)
            list[m->core_of_cpu[cpu]] = 1;
    hwloc_bitmap_foreach_end();
    for (uint32_t i = 0; i < m->ncores; i++) {
        if (list[i])
            list[cores.n++] = i;
    }
    return cores;
}

static bool host_ranks_make(const struct xr_plan *p, const struct rk_machine *m, uint32_t host, struct host_ranks *h)
{
    uint32_t ranks = p->placement.host[host].ranks;

    *h = (struct host_ranks){.m = m,
                             .rank = calloc((size_t)ranks + 1, sizeof(*h->rank)),
                             .cores = calloc((size_t)ranks + 1, sizeof(*h->cores)),
                             .lists = calloc((size_t)ranks * m->ncores + 1, sizeof(*h->lists))};
    if (!h->rank || !h->cores || !h->lists)
        return false;
    for (uint32_t r = 0; r < p->placement.n && h->n < ranks; r++) {
        const struct xr_place *at = &p->placement.rank[r];
        if (at->host != host)
            continue;
        h->cores[h->n] = bound_cores(m, at->cpus, h->lists + (size_t)h->n * m->ncores);
        h->rank[h->n++] = r;
    }
    return true;
}

static void host_ranks_free(struct host_ranks *h)
{
    free(h->rank);
    free(h->cores);
    free(h->lists);
}

static void show_links(FILE *to, const char *kind, const struct rk_device *all, const struct rk_pair_link *link, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct rk_device *d = &all[link[i].device];
        fprintf(to, "%s%s %u (%s) %s, %s", i || *kind == 'N' ? "; " : "", kind, link[i].device, *d->name ? d->name : d->pci,
                rk_path_name(link[i].path), rk_pair_reason_text(link[i].reason));
    }
}

/* Return whether any rank is bound: then the GPUs follow the cores. */
static bool any_bound(const struct host_ranks *h)
{
    for (uint32_t i = 0; i < h->n; i++) {
        if (h->cores[i].n)
            return true;
    }
    return false;
}

static rank_status_t show_host(const struct xr_plan *p, const struct rk_machine *m, const struct rk_pair_request *prepared,
                               uint32_t host, FILE *to, char *err, size_t errlen)
{
    struct rk_pair_request rq = *prepared;
    struct rk_pairing pairs;
    struct host_ranks h;
    rank_status_t st = RANK_ERR_NO_MEMORY;

    if (host_ranks_make(p, m, host, &h)) {
        rq.ranks = h.n;
        rq.placed = any_bound(&h) ? h.cores : NULL;
        st = rk_pair(m, &rq, &pairs, err, errlen);
    } else {
        snprintf(err, errlen, "out of memory");
    }
    if (!st) {
        fprintf(to, "\n%s: devices\n", xr_plan_name(p, host));
        for (uint32_t i = 0; i < h.n; i++) {
            fprintf(to, "%6u  ", h.rank[i]);
            if (!pairs.rank[i].ngpus)
                fprintf(to, "no GPU");
            show_links(to, "GPU", m->gpu, pairs.rank[i].gpu, pairs.rank[i].ngpus);
            show_links(to, "NIC", m->nic, pairs.rank[i].nic, pairs.rank[i].nnics);
            fprintf(to, "\n");
        }
        rk_pair_free(&pairs);
    }
    host_ranks_free(&h);
    return st;
}

static struct rk_pair_words device_words(const struct xr_policy *where)
{
    return (struct rk_pair_words){.gpus = xr_policy_gpu_words(where),
                                  .gpus_per_rank = where->gpus_per_rank,
                                  .nics = xr_policy_nic_words(where),
                                  .nics_per_rank = where->nics_per_rank};
}

rank_status_t xr_plan_show_devices(const struct xr_plan *p, FILE *to, char *err, size_t errlen)
{
    struct rk_pair_words words = device_words(p->where);
    struct rk_pair_prepared prepared;
    struct rk_machine m;
    rank_status_t st;

    if (!p->where->xml)
        return RANK_OK;
    st = rk_machine_load(p->where->xml, &m, err, errlen);
    if (st)
        return st;
    st = rk_pair_request_make(&words, p->where->xml, &m, &prepared, err, errlen);
    for (uint32_t host = 0; !st && host < p->hosts.n; host++) {
        if (p->placement.host[host].ranks)
            st = show_host(p, &m, &prepared.rq, host, to, err, errlen);
    }
    rk_pair_request_clear(&prepared);
    rk_machine_free(&m);
    return st;
}

rank_status_t xr_policy_show_topology(const struct xr_policy *where, uint32_t n, FILE *to, char *err, size_t errlen)
{
    struct rk_topo_view view = {.xml = where->xml, .pairs = true, .ranks = n, .words = device_words(where)};

    if (!n && where->request.ppr && where->request.map == XR_LEVEL_NODE)
        view.ranks = where->request.ppr;
    return rk_topo_show(to, &view, err, errlen);
}

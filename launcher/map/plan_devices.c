/* SPDX-License-Identifier: BSD-3-Clause */
/* plan_devices.c: pair the placed ranks with GPUs and NICs of their hosts. */
#include "launcher/map/plan.h"
#include "lib/topo/core_list.h"
#include "lib/topo/show_topology.h"
#include "lib/topo/topo.h"

#include <stdlib.h>
#include <string.h>

/* The ranks of one host. */
struct host_ranks {
    const struct rk_machine *m;
    uint32_t *rank, n;
    struct rk_pair_cores *cores;
    uint32_t *lists; /* cores of all ranks */
    const char **visible; /* CUDA_VISIBLE_DEVICES of each */
};

static bool host_ranks_make(const struct xr_plan *p, const struct rk_machine *m, uint32_t host, struct host_ranks *h)
{
    uint32_t ranks = p->placement.host[host].ranks;

    *h = (struct host_ranks){.m = m,
                             .rank = calloc((size_t)ranks + 1, sizeof(*h->rank)),
                             .cores = calloc((size_t)ranks + 1, sizeof(*h->cores)),
                             .lists = calloc((size_t)ranks * m->ncores + 1, sizeof(*h->lists)),
                             .visible = calloc((size_t)ranks + 1, sizeof(*h->visible))};
    if (!h->rank || !h->cores || !h->lists || !h->visible)
        return false;
    for (uint32_t r = 0; r < p->placement.n && h->n < ranks; r++) {
        const struct xr_place *at = &p->placement.rank[r];
        if (at->host != host)
            continue;
        if (at->cpus) /* the rank is bound */
            h->cores[h->n] = rk_core_list_of_cpus(m, rk_topo_has_cpu, at->cpus, h->lists + (size_t)h->n * m->ncores);
        if (p->nprograms && !p->where->xml) /* the variable is of this machine */
            h->visible[h->n] = p->programs[xr_plan_program_of(p, r)].visible;
        h->rank[h->n++] = r;
    }
    return true;
}

static void host_ranks_free(struct host_ranks *h)
{
    free(h->rank);
    free(h->cores);
    free(h->lists);
    free(h->visible);
}

static void show_links(FILE *to, const char *kind, const struct rk_device *all, const struct rk_pair_link *link, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct rk_device *d = &all[link[i].device];
        fprintf(to, "%s%s %u (%s) %s, %s", i || *kind == 'N' ? "; " : "", kind, link[i].device, *d->name ? d->name : d->pci,
                rk_path_name(link[i].path), rk_pair_reason_text(link[i].reason));
    }
}

/* The given cores of a pairing are borrowed. */
static void forget_cores(struct rk_pairing *pairs)
{
    for (uint32_t r = 0; r < pairs->ranks; r++) {
        pairs->rank[r].core = NULL;
        pairs->rank[r].ncores = 0;
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

/* -------------------------------------------------------------- machines */

static struct rk_pair_words device_words(const struct xr_policy *where)
{
    return (struct rk_pair_words){.gpus = xr_policy_gpu_words(where),
                                  .gpus_per_rank = where->gpus_per_rank,
                                  .nics = xr_policy_nic_words(where),
                                  .nics_per_rank = where->nics_per_rank};
}

/* Return whether ranks are given devices. */
static bool gives_devices(const struct xr_policy *where)
{
    return rk_pair_gives(xr_policy_gpu_words(where)) || rk_pair_gives(xr_policy_nic_words(where));
}

bool xr_plan_wants_devices(const struct xr_plan *p)
{
    return gives_devices(p->where) || p->where->show_map || p->where->dry_run || p->where->json_map;
}

struct rk_machine *xr_plan_keep_machine(struct xr_plan *p, struct rk_machine *m)
{
    struct rk_machine **more = realloc(p->machines, (p->nmachines + 1) * sizeof(*more)), *kept = malloc(sizeof(*kept));

    if (more)
        p->machines = more;
    if (!more || !kept) {
        free(kept);
        rk_machine_free(m);
        return NULL;
    }
    *kept = *m;
    p->machines[p->nmachines++] = kept;
    return kept;
}

/* Load the machine of --xml for all hosts, or that of this host. */
static rank_status_t load_devices(struct xr_plan *p, char *err, size_t errlen)
{
    struct rk_machine m, *kept;
    rank_status_t st;

    if (!p->where->xml && (p->local == XR_NO_HOST || p->known[p->local].devices))
        return RANK_OK;
    st = rk_machine_load(p->where->xml, &m, err, errlen);
    if (st && !p->where->xml) {
        p->known[p->local].no_devices = strdup(err);
        return RANK_OK;
    }
    if (st)
        return st;
    kept = xr_plan_keep_machine(p, &m);
    if (!kept)
        return RANK_ERR_NO_MEMORY;
    for (uint32_t i = 0; i < p->hosts.n; i++) {
        if (p->where->xml || i == p->local)
            p->known[i].devices = kept;
    }
    return RANK_OK;
}

/* ----------------------------------------------------------------- pairs */

static rank_status_t pair_host(struct xr_plan *p, uint32_t host, char *err, size_t errlen)
{
    struct rk_machine *m = p->known[host].devices;
    struct rk_pair_words words = device_words(p->where);
    struct rk_pair_prepared prepared = {.hidden = NULL};
    struct host_ranks h;
    char where[300], why[256] = "out of memory";
    rank_status_t st = RANK_ERR_NO_MEMORY;

    snprintf(where, sizeof(where), "%s%s", p->where->xml ? "" : "host ", p->where->xml ? p->where->xml : xr_plan_name(p, host));
    if (!host_ranks_make(p, m, host, &h))
        snprintf(err, errlen, "out of memory for the devices of the ranks");
    else if (!rk_pair_set_visible(&words, h.visible, h.n, err, errlen))
        st = RANK_ERR_ARG;
    else
        st = rk_pair_request_make(&words, where, m, &prepared, err, errlen);
    if (!st) {
        prepared.rq.ranks = h.n;
        prepared.rq.placed = any_bound(&h) ? h.cores : NULL;
        st = rk_pair(m, &prepared.rq, &p->pairs[host], why, sizeof(why));
        if (st)
            snprintf(err, errlen, "%s: %s", where, why);
        else if (prepared.rq.placed) /* the cores are freed now */
            forget_cores(&p->pairs[host]);
    }
    rk_pair_request_clear(&prepared);
    host_ranks_free(&h);
    return st;
}

rank_status_t xr_plan_pair(struct xr_plan *p, char *err, size_t errlen)
{
    rank_status_t st;

    if (!xr_plan_wants_devices(p) || p->pairs)
        return RANK_OK;
    p->pairs = calloc(p->hosts.n, sizeof(*p->pairs));
    st = p->pairs ? load_devices(p, err, errlen) : RANK_ERR_NO_MEMORY;
    for (uint32_t host = 0; !st && host < p->hosts.n; host++) {
        if (!p->placement.host[host].ranks)
            continue;
        if (p->known[host].devices) {
            st = pair_host(p, host, err, errlen);
        } else if (gives_devices(p->where)) {
            snprintf(err, errlen, "host %s: %s", xr_plan_name(p, host),
                     p->known[host].no_devices ? p->known[host].no_devices : "its devices are not known");
            st = RANK_ERR_SYSTEM;
        }
    }
    if (st == RANK_ERR_NO_MEMORY)
        snprintf(err, errlen, "out of memory for the devices of the ranks");
    return st;
}

const struct rk_pair_rank *xr_plan_devices(const struct xr_plan *p, uint32_t rank, const struct rk_machine **m)
{
    const struct xr_place *at = &p->placement.rank[rank];

    if (!p->pairs || at->local >= p->pairs[at->host].ranks)
        return NULL;
    *m = p->known[at->host].devices;
    return &p->pairs[at->host].rank[at->local];
}

void xr_plan_clear_devices(struct xr_plan *p)
{
    for (uint32_t i = 0; p->pairs && i < p->hosts.n; i++)
        rk_pair_free(&p->pairs[i]);
    free(p->pairs);
    p->pairs = NULL;
    for (uint32_t i = 0; i < p->nmachines; i++) {
        rk_machine_free(p->machines[i]);
        free(p->machines[i]);
    }
    free(p->machines);
    p->machines = NULL;
    p->nmachines = 0;
}

/* ------------------------------------------------------------------ show */

static void show_rank(const struct xr_plan *p, uint32_t rank, FILE *to)
{
    const struct rk_machine *m;
    const struct rk_pair_rank *r = xr_plan_devices(p, rank, &m);

    if (!r)
        return;
    fprintf(to, "%6u  ", rank);
    if (!r->ngpus)
        fprintf(to, "no GPU");
    show_links(to, "GPU", m->gpu, r->gpu, r->ngpus);
    show_links(to, "NIC", m->nic, r->nic, r->nnics);
    fprintf(to, "\n");
}

void xr_plan_show_devices(const struct xr_plan *p, FILE *to)
{
    for (uint32_t host = 0; p->pairs && host < p->hosts.n; host++) {
        const struct rk_machine *m = p->known[host].devices;
        if (!m || !p->pairs[host].ranks || (!m->ngpus && !p->where->xml && !gives_devices(p->where)))
            continue;
        fprintf(to, "\n%s: devices\n", xr_plan_name(p, host));
        for (uint32_t r = 0; r < p->placement.n; r++) {
            if (p->placement.rank[r].host == host)
                show_rank(p, r, to);
        }
    }
}

rank_status_t xr_policy_show_topology(const struct xr_policy *where, uint32_t n, const char *const *visible, uint32_t nvisible,
                                      FILE *to, char *err, size_t errlen)
{
    struct rk_topo_view view = {.xml = where->xml, .pairs = true, .ranks = n, .words = device_words(where)};

    if (!rk_pair_set_visible(&view.words, visible, where->xml ? 0 : nvisible, err, errlen))
        return RANK_ERR_ARG;
    if (!n && where->request.ppr && where->request.map == XR_LEVEL_NODE)
        view.ranks = where->request.ppr;
    return rk_topo_show(to, &view, err, errlen);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* plan.c: see plan.h. */
#include "launcher/map/plan.h"
#include "launcher/alloc/slurm.h"
#include "launcher/util/shell_words.h"
#include "launcher/alloc/local_alias.h"
#include "lib/base/conf.h"
#include "lib/topo/topo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------ hosts */

static rank_status_t named_hosts(struct xr_plan *p, struct xr_local_host *here, char *err, size_t errlen)
{
    struct xr_hostlist only = {.source = "--host"};
    char why[512];
    rank_status_t st = RANK_OK;

    if (p->where->given) {
        st = xr_hostlist_parse(&p->hosts, p->where->given, why, sizeof(why));
        p->hosts.source = "the first job";
        if (st)
            snprintf(err, errlen, "the first job's hosts: %s", why);
    }
    for (uint32_t i = 0; !st && !p->where->given && i < p->where->nhostfiles; i++)
        st = xr_hostlist_read(&p->hosts, p->where->hostfiles[i], err, errlen);
    if (!st && !p->where->given && p->where->nhostfiles == 0)
        st = xr_hostlist_allocated(&p->hosts, err, errlen);
    p->fill = p->hosts.source != NULL;
    if (st || !p->where->hosts)
        return st;
    st = xr_hostlist_parse(&only, p->where->hosts, why, sizeof(why));
    if (st) {
        snprintf(err, errlen, "--host: %s", why);
    } else if (p->hosts.source) {
        st = xr_hostlist_restrict(&p->hosts, &only, here, err, errlen);
    } else {
        p->hosts = only;
        for (uint32_t i = 0; i < only.n; i++)
            p->fill = p->fill || only.host[i].slots;
        return RANK_OK;
    }
    xr_hostlist_clear(&only);
    return st;
}

/*
 * Return whether srun starts the agents: inside Slurm, if they are hosts of the job and the user selects no other
 * command.
 */
static bool uses_srun(const struct xr_plan *p)
{
    if (p->where->agent)
        return xr_shell_words_run_program(p->where->agent, "srun");
    return xr_slurm_has(&p->hosts);
}

/*
 * Return whether the host is this one and runs xrun's own agent. Inside Slurm this process must be a part of the
 * job: else its ranks had neither the cores nor the end that Slurm gives.
 */
static bool is_local_host(const struct xr_plan *p, const char *name, struct xr_local_host *here)
{
    const char *node = xr_slurm_node();

    if (!p->step)
        return xr_local_host_is(here, name);
    return node && strcmp(node, name) == 0;
}

/* Format the list as --host has it. NULL: out of memory. */
static char *format_hosts(const struct xr_hostlist *hosts)
{
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);
    bool ok;

    if (!to)
        return NULL;
    for (uint32_t i = 0; i < hosts->n; i++) {
        const struct xr_hostspec *h = &hosts->host[i];
        bool address = strchr(h->name, ':') != NULL;
        fprintf(to, "%s%s%s%s", i ? "," : "", address ? "[" : "", h->name, address ? "]" : "");
        if (h->slots)
            fprintf(to, ":%u", h->slots);
    }
    ok = !ferror(to);
    if (!fclose(to) && ok)
        return text;
    free(text);
    return NULL;
}

static rank_status_t plan_make(struct xr_plan *p, uint32_t *n, struct xr_local_host *here, char *err, size_t errlen)
{
    rank_status_t st = named_hosts(p, here, err, errlen);
    struct xr_local_host *own = here;
    uint32_t needed;

    if (st)
        return st;
    if (uses_srun(p)) /* then names are Slurm's */
        own = NULL;
    else
        st = xr_local_alias_merge(&p->hosts, here);
    if (!st && p->where->rankfile)
        st = xr_rankfile_read(p->where->rankfile, &p->hosts, own, &p->file, err, errlen);
    if (!st && p->hosts.n == 0)
        st = xr_hostlist_add(&p->hosts, here->name, strlen(here->name), 0);
    if (st)
        return st;
    if (*n == 0 && !p->fill && !p->file.n && !p->where->request.ppr)
        *n = 1;
    if (p->hosts.source || p->where->rankfile) {
        p->given = format_hosts(&p->hosts);
        if (!p->given)
            return RANK_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < p->hosts.n; i++)
        p->slots_given = p->slots_given || p->hosts.host[i].slots;
    needed = xr_plan_needed(p, *n);
    for (uint32_t i = needed; i < p->hosts.n; i++)
        p->spare += p->hosts.host[i].slots ? p->hosts.host[i].slots : 1;
    xr_hostlist_cut(&p->hosts, needed);
    p->step = uses_srun(p);
    p->known = calloc(p->hosts.n, sizeof(*p->known));
    if (!p->known)
        return RANK_ERR_NO_MEMORY;
    for (uint32_t i = 0; i < p->hosts.n && p->local == XR_NO_HOST; i++) {
        if (is_local_host(p, p->hosts.host[i].name, here))
            p->local = i;
    }
    if (p->local != XR_NO_HOST)
        p->known[p->local].real_name = strdup(here->name);
    return RANK_OK;
}

rank_status_t xr_plan_make(const struct xr_policy *where, uint32_t *n, struct xr_plan *p, char *err,
                           size_t errlen)
{
    struct xr_local_host here;
    rank_status_t st;

    memset(p, 0, sizeof(*p));
    p->where = where;
    p->local = XR_NO_HOST;
    xr_local_host_find(&here);
    st = plan_make(p, n, &here, err, errlen);
    xr_local_host_clear(&here);
    if (st == RANK_ERR_NO_MEMORY)
        snprintf(err, errlen, "out of memory");
    return st;
}

void xr_plan_clear(struct xr_plan *p)
{
    if (!p)
        return;
    xr_plan_clear_devices(p);
    xr_placement_clear(&p->placement);
    for (uint32_t i = 0; p->known && i < p->hosts.n; i++) {
        free(p->known[i].real_name);
        free(p->known[i].no_devices);
    }
    free(p->known);
    free(p->given);
    for (uint32_t i = 0; i < p->ntopologies; i++)
        hwloc_topology_destroy(p->topologies[i]);
    free(p->topologies);
    xr_rankfile_clear(&p->file);
    xr_hostlist_clear(&p->hosts);
}

bool xr_plan_remote(const struct xr_plan *p)
{
    return !p->where->xml && p->hosts.n > (p->local != XR_NO_HOST);
}

const char *xr_plan_name(const struct xr_plan *p, uint32_t i)
{
    return p->known[i].real_name ? p->known[i].real_name : p->hosts.host[i].name;
}

uint32_t xr_plan_universe(const struct xr_plan *p)
{
    uint64_t sum = p->spare;

    for (uint32_t i = 0; i < p->hosts.n; i++) {
        uint32_t slots = p->hosts.host[i].slots, units = p->known[i].units, ranks = p->placement.host[i].ranks;
        sum += slots ? slots : units > ranks ? units : ranks;
    }
    if (sum < p->placement.n)
        sum = p->placement.n;
    return sum > INT32_MAX ? INT32_MAX : (uint32_t)sum; /* it becomes an int in MPI */
}

/* -------------------------------------------------------------------- topologies */

bool xr_plan_wants_topology(const struct xr_plan *p, uint32_t n, uint32_t units)
{
    const struct xr_policy *w = p->where;

    if (w->rankfile || xr_place_wants_topology(&w->request) || w->show_map || w->json_map)
        return true;
    /* More ranks than units are also more than cores. */
    return w->request.bind != XR_BIND_NONE && n <= units;
}

rank_status_t xr_plan_keep(struct xr_plan *p, hwloc_topology_t t)
{
    hwloc_topology_t *more = realloc(p->topologies, (p->ntopologies + 1) * sizeof(*more));

    if (!more) {
        hwloc_topology_destroy(t);
        return RANK_ERR_NO_MEMORY;
    }
    p->topologies = more;
    p->topologies[p->ntopologies++] = t;
    return RANK_OK;
}

/*
 * Load without hwloc's plugins (X11, OpenCL, PCI): loading them takes longer than discovery. Ranks still inherit
 * them.
 */
static rank_status_t load_cores(bool full, hwloc_topology_t *t)
{
    bool ours = !rk_env("HWLOC_PLUGINS_PATH");
    rank_status_t st;

    if (ours)
        setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1);
    st = rk_topo_load(full, t);
    if (ours)
        unsetenv("HWLOC_PLUGINS_PATH");
    return st;
}

/* xrun reads this host's topology itself, before it creates any process. */
static rank_status_t load_own_topology(struct xr_plan *p, uint32_t n, char *err, size_t errlen)
{
    struct xr_plan_host *k = &p->known[p->local];
    bool full = p->where->rankfile || xr_place_wants_topology(&p->where->request) ||
                p->where->show_map || p->where->json_map;
    hwloc_topology_t t;

    k->units = rk_topo_units();
    if (k->topology || !xr_plan_wants_topology(p, xr_plan_remote(p) ? 1 : n, k->units))
        return RANK_OK;
    if (load_cores(full, &t) || xr_plan_keep(p, t)) {
        if (!full) /* already reported, and ranks can do without */
            return RANK_OK;
        snprintf(err, errlen, "the cores of this host are not known");
        return RANK_ERR_SYSTEM;
    }
    k->topology = t;
    return RANK_OK;
}

/* All hosts are the machine of --xml. */
static rank_status_t load_given_topology(struct xr_plan *p, char *err, size_t errlen)
{
    hwloc_topology_t t;
    rank_status_t st = rk_topo_load_xml(p->where->xml, &t, err, errlen);

    if (!st && xr_plan_keep(p, t)) {
        snprintf(err, errlen, "out of memory");
        st = RANK_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; !st && i < p->hosts.n; i++) {
        p->known[i].topology = t;
        p->known[i].units = (uint32_t)hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PU);
    }
    return st;
}

rank_status_t xr_plan_place(struct xr_plan *p, uint32_t n, char *err, size_t errlen)
{
    struct xr_place_request rq = p->where->request;
    struct xr_place_host *hosts = calloc(p->hosts.n, sizeof(*hosts));
    rank_status_t st = hosts ? RANK_OK : RANK_ERR_NO_MEMORY;

    if (!st && p->where->xml)
        st = load_given_topology(p, err, errlen);
    else if (!st && p->local != XR_NO_HOST)
        st = load_own_topology(p, n, err, errlen);
    for (uint32_t i = 0; !st && i < p->hosts.n; i++)
        hosts[i] = (struct xr_place_host){.name = xr_plan_name(p, i),
                                          .slots = p->hosts.host[i].slots,
                                          .most = p->hosts.host[i].most,
                                          .units = p->known[i].units,
                                          .names = p->known[i].names,
                                          .topology = p->known[i].topology};
    rq.n = n;
    rq.fill = p->fill;
    rq.pin = p->file.n ? p->file.pin : NULL;
    rq.npins = p->file.n;
    if (!st)
        st = xr_place(&rq, hosts, p->hosts.n, &p->placement, err, errlen);
    free(hosts);
    return st;
}

/* --------------------------------------------------------- unused hosts */

/*
 * The number of ranks of a host may be unknown until its agent reports its machine. But no host takes fewer than
 * this minimum, and hosts are used in their order.
 */
/* Return the fewest ranks that a host takes before the next one gets any. */
static uint32_t least(const struct xr_place_request *rq, const struct xr_hostspec *host)
{
    if (rq->map == XR_LEVEL_NODE)
        return 1; /* round robin */
    if (rq->ppr)
        return rq->ppr; /* on each of its objects; it has at least one */
    if (host->most && host->most < host->slots)
        return host->most;
    return host->slots ? host->slots : 1;
}

uint32_t xr_plan_needed(const struct xr_plan *p, uint32_t n)
{
    const struct xr_place_request *rq = &p->where->request;
    uint32_t pins = n && n < p->file.n ? n : p->file.n, last = 0;
    uint64_t nslots = 0;

    if (p->file.n) {
        for (uint32_t i = 0; i < pins; i++)
            last = p->file.pin[i].host > last ? p->file.pin[i].host : last;
        return last + 1;
    }
    if (n == 0 && (rq->ppr || p->fill))
        return p->hosts.n;
    for (uint32_t i = 0; i < p->hosts.n; i++) {
        nslots += least(rq, &p->hosts.host[i]);
        if (nslots >= (n ? n : 1))
            return i + 1;
    }
    return p->hosts.n;
}

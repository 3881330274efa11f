/* SPDX-License-Identifier: BSD-3-Clause */
/* job_map.c: put the placement of ranks into the job. See job_map.h. */
#include "launcher/frontend/job_map.h"
#include "launcher/frontend/torch_master.h"

#include <stdlib.h>
#include <string.h>

/* Return whether no two hosts report the same name. Else the names that the user gave are used. */
static bool names_differ(const struct xr_plan *plan)
{
    struct xr_hostlist seen = {.n = 0};
    bool differ = true;

    for (uint32_t i = 0; i < plan->hosts.n && differ; i++) {
        const char *name = xr_plan_name(plan, i);
        differ = xr_hostlist_find(&seen, name) == UINT32_MAX &&
                 xr_hostlist_add(&seen, name, strlen(name), 0) == RANK_OK;
    }
    xr_hostlist_clear(&seen);
    return differ;
}

rank_status_t xr_map_job(const struct xr_plan *plan, uint32_t fanout, struct xr_job *job)
{
    const struct xr_placement *placed = &plan->placement;
    bool differ = names_differ(plan);

    job->nhosts = plan->hosts.n;
    job->fanout = fanout;
    job->universe = xr_plan_universe(plan);
    job->slots_given = plan->slots_given;
    job->hosts = calloc((size_t)job->nhosts + 1, sizeof(*job->hosts));
    job->host_of = calloc(placed->n, sizeof(*job->host_of));
    if (!job->hosts || !job->host_of)
        return RANK_ERR_NO_MEMORY;
    for (uint32_t i = 0; i < job->nhosts; i++) {
        job->hosts[i] = strdup(differ ? xr_plan_name(plan, i) : plan->hosts.host[i].name);
        if (!job->hosts[i])
            return RANK_ERR_NO_MEMORY;
    }
    for (uint32_t r = 0; r < placed->n; r++)
        job->host_of[r] = placed->rank[r].host;
    return !job->torch || xr_torch_place(&job->env, plan) ? RANK_OK : RANK_ERR_NO_MEMORY;
}

rank_status_t xr_map_local_ranks(const struct xr_plan *plan, uint32_t host,
                              const struct xr_by_host *ranks, struct xr_packer *p)
{
    const struct xr_placement *placed = &plan->placement;
    uint32_t first = ranks->first[host], n = ranks->first[host + 1] - first;
    struct xr_local_ranks local_ranks = {.units = placed->host[host].units,
                             .oversubscribed = placed->host[host].oversubscribed,
                             .cpus = calloc((size_t)n + 1, sizeof(*local_ranks.cpus))};
    bool ok = local_ranks.cpus != NULL;

    for (uint32_t i = 0; ok && i < n; i++) {
        const struct xr_place *place = &placed->rank[ranks->ranks[first + i]];
        if (!place->cpus)
            local_ranks.cpus[i] = strdup("");
        else if (hwloc_bitmap_list_asprintf(&local_ranks.cpus[i], place->cpus) < 0)
            local_ranks.cpus[i] = NULL;
        ok = local_ranks.cpus[i] != NULL;
    }
    if (ok)
        xr_local_ranks_pack(&local_ranks, p);
    ok = ok && !p->failed;
    xr_local_ranks_clear(&local_ranks);
    return ok ? RANK_OK : RANK_ERR_NO_MEMORY;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* local_ranks.c: unpack a job, and find the ranks and cpusets of this host. */
#include "launcher/agent/agent_internal.h"

#include <hwloc.h>
#include <stdlib.h>

struct xr_rank *xr_agent_rank(const struct xr_agent *agent, uint32_t rank)
{
    uint32_t low = 0, high = agent->ranks ? agent->nlocal : 0;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (agent->ranks[mid].rank == rank)
            return &agent->ranks[mid];
        if (agent->ranks[mid].rank < rank)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* Find the ranks of this host, and its number among the hosts that have any. */
static bool find_local_ranks(struct xr_agent *agent)
{
    const struct xr_job *job = &agent->job;
    bool *used = calloc(job->nhosts, sizeof(*used));
    uint32_t at = 0;

    agent->nlocal = xr_job_ranks_on(job, agent->node);
    agent->ranks = calloc(agent->nlocal ? agent->nlocal : 1, sizeof(*agent->ranks));
    for (uint32_t r = 0; used && agent->ranks && r < job->size; r++) {
        used[job->host_of[r]] = true;
        if (job->host_of[r] == agent->node)
            agent->ranks[at++] = (struct xr_rank){.rank = r, .pidfd = -1};
    }
    for (uint32_t h = 0; used && h < job->nhosts; h++) {
        agent->order += used[h] && h < agent->node;
        agent->nused += used[h];
    }
    free(used);
    return used && agent->ranks;
}

bool xr_agent_unpack_job(struct xr_agent *agent, struct xr_unpacker *u)
{
    if (xr_job_unpack(u, &agent->job) || agent->job.nhosts != agent->setup->shape.nodes ||
        agent->job.fanout != agent->setup->shape.fanout)
        return false;
    return find_local_ranks(agent);
}

/* Convert the cpu lists of n ranks to cpusets. Returns false if one is malformed. */
static bool make_sets(struct xr_agent *agent, uint32_t n)
{
    hwloc_bitmap_t map = hwloc_bitmap_alloc();
    int last = -1;
    bool ok = map != NULL;

    for (uint32_t i = 0; ok && i < n; i++) {
        ok = hwloc_bitmap_list_sscanf(map, agent->local_ranks.cpus[i]) == 0;
        if (hwloc_bitmap_last(map) > last)
            last = hwloc_bitmap_last(map);
    }
    if (!ok || last < 0 || last > 1 << 20) { /* no rank is bound */
        hwloc_bitmap_free(map);
        return ok && last < 0;
    }
    agent->set_size = CPU_ALLOC_SIZE((size_t)last + 1);
    agent->sets = calloc(n, agent->set_size);
    for (uint32_t i = 0; agent->sets && i < n; i++) {
        cpu_set_t *set = (cpu_set_t *)(void *)((char *)agent->sets + i * agent->set_size);
        unsigned cpu;
        hwloc_bitmap_list_sscanf(map, agent->local_ranks.cpus[i]);
        hwloc_bitmap_foreach_begin(cpu, map)
            CPU_SET_S((size_t)cpu, agent->set_size, set);
        hwloc_bitmap_foreach_end();
    }
    hwloc_bitmap_free(map);
    return agent->sets != NULL;
}

bool xr_agent_unpack_local_ranks(struct xr_agent *agent, struct xr_unpacker *u)
{
    uint32_t n = 0;

    if (agent->local_ranks.cpus || xr_local_ranks_unpack(u, &agent->local_ranks))
        return false;
    while (agent->local_ranks.cpus[n])
        n++;
    return make_sets(agent, n);
}

const cpu_set_t *xr_agent_cpus(const struct xr_agent *agent, uint32_t local)
{
    if (!agent->sets || !agent->local_ranks.cpus[local][0])
        return NULL;
    return (const cpu_set_t *)(const void *)((const char *)agent->sets + local * agent->set_size);
}

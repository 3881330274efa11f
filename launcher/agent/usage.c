/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage.c: send where the ranks run and what each has used.
 *
 * That is for the report of a job (--json). See job_report.h.
 */
#include "launcher/agent/agent_internal.h"
#include "launcher/overlay/protocol.h"
#include "lib/base/clock.h"
#include "lib/topo/topo.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static uint64_t wall_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void xr_usage_send_placed(struct xr_agent *agent)
{
    uint64_t now = rk_clock_ns(), wall = wall_ns();
    struct xr_packer p = {0};
    char *own;

    if (!agent->job.report || !agent->wire)
        return;
    own = rk_topo_units_list();
    xr_pack_string(&p, agent->host);
    xr_pack_string(&p, xr_server_version());
    xr_pack_u32(&p, agent->nlocal);
    for (uint32_t i = 0; i < agent->nlocal; i++) {
        const char *list = agent->local_ranks.cpus[i];
        xr_pack_u32(&p, agent->ranks[i].rank);
        xr_pack_u32(&p, (uint32_t)agent->ranks[i].pid);
        xr_pack_u32(&p, *list != 0);
        xr_pack_u64(&p, wall - (now - agent->ranks[i].start_ns));
        xr_pack_string(&p, *list ? list : own ? own : ""); /* a rank that is not bound may use all of them */
    }
    free(own);
    xr_conn_send(agent->wire, XR_MSG_PLACED, &p);
}

static uint64_t ns_of(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000u;
}

void xr_usage_send(struct xr_agent *agent, uint32_t rank, const struct rusage *usage)
{
    const uint64_t fields[XR_USAGE_FIELDS] = {
        [XR_USAGE_USER_NS] = ns_of(usage->ru_utime),
        [XR_USAGE_SYSTEM_NS] = ns_of(usage->ru_stime),
        [XR_USAGE_MAX_RSS_KIB] = (uint64_t)usage->ru_maxrss,
        [XR_USAGE_MINOR_FAULTS] = (uint64_t)usage->ru_minflt,
        [XR_USAGE_MAJOR_FAULTS] = (uint64_t)usage->ru_majflt,
        [XR_USAGE_BLOCKS_IN] = (uint64_t)usage->ru_inblock,
        [XR_USAGE_BLOCKS_OUT] = (uint64_t)usage->ru_oublock,
        [XR_USAGE_VOLUNTARY] = (uint64_t)usage->ru_nvcsw,
        [XR_USAGE_INVOLUNTARY] = (uint64_t)usage->ru_nivcsw,
    };
    struct xr_packer p = {0};

    if (!agent->job.report || !agent->wire)
        return;
    xr_pack_u32(&p, rank);
    xr_pack_u64(&p, wall_ns());
    for (int i = 0; i < XR_USAGE_FIELDS; i++)
        xr_pack_u64(&p, fields[i]);
    xr_conn_send(agent->wire, XR_MSG_USAGE, &p);
}

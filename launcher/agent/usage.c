/*
 * usage.c: what an agent tells for the report of a job (--json): where its
 * ranks run, and what each has used. See agent.h, job_report.h.
 */
#include "launcher/agent/agent.h"
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

void rk_account_placed(struct rk_agent *agent)
{
    uint64_t now = rk_clock_ns(), wall = wall_ns();
    struct rk_packer p = {0};
    char *own;

    if (!agent->job.report || !agent->wire)
        return;
    own = rk_topo_units_list();
    rk_pack_string(&p, agent->host);
    rk_pack_string(&p, rk_server_version());
    rk_pack_u32(&p, agent->nlocal);
    for (uint32_t i = 0; i < agent->nlocal; i++) {
        const char *list = agent->seats.cpus[i];
        rk_pack_u32(&p, agent->ranks[i].rank);
        rk_pack_u32(&p, (uint32_t)agent->ranks[i].pid);
        rk_pack_u32(&p, *list != 0);
        rk_pack_u64(&p, wall - (now - agent->ranks[i].start_ns));
        rk_pack_string(&p, *list ? list : own ? own : ""); /* who is not bound may use all of them */
    }
    free(own);
    rk_wire_send(agent->wire, RK_MSG_PLACED, &p);
}

static uint64_t ns_of(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000u;
}

void rk_account_usage(struct rk_agent *agent, uint32_t rank, const struct rusage *usage)
{
    const uint64_t fields[RK_USAGE_FIELDS] = {
        [RK_USAGE_USER_NS] = ns_of(usage->ru_utime),
        [RK_USAGE_SYSTEM_NS] = ns_of(usage->ru_stime),
        [RK_USAGE_MAX_RSS_KIB] = (uint64_t)usage->ru_maxrss,
        [RK_USAGE_MINOR_FAULTS] = (uint64_t)usage->ru_minflt,
        [RK_USAGE_MAJOR_FAULTS] = (uint64_t)usage->ru_majflt,
        [RK_USAGE_BLOCKS_IN] = (uint64_t)usage->ru_inblock,
        [RK_USAGE_BLOCKS_OUT] = (uint64_t)usage->ru_oublock,
        [RK_USAGE_VOLUNTARY] = (uint64_t)usage->ru_nvcsw,
        [RK_USAGE_INVOLUNTARY] = (uint64_t)usage->ru_nivcsw,
    };
    struct rk_packer p = {0};

    if (!agent->job.report || !agent->wire)
        return;
    rk_pack_u32(&p, rank);
    rk_pack_u64(&p, wall_ns());
    for (int i = 0; i < RK_USAGE_FIELDS; i++)
        rk_pack_u64(&p, fields[i]);
    rk_wire_send(agent->wire, RK_MSG_USAGE, &p);
}

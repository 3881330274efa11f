/* SPDX-License-Identifier: BSD-3-Clause */
/* job_start.c: start a job on this host: limits, PMIx and PMI-1 servers, ranks. */
#include "launcher/agent/agent_internal.h"
#include "launcher/agent/supervisor_page.h"
#include "launcher/exec/rlimits.h"
#include "launcher/overlay/protocol.h"
#include "launcher/exec/find_program.h"
#include "launcher/agent/progress_watch.h"
#include "lib/base/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* Report that nothing was started, and why. */
static void job_start_refuse(struct xr_agent *agent, int code, const char *text)
{
    struct xr_packer p = {0};

    if (!agent->wire)
        return;
    xr_pack_u32(&p, agent->node);
    xr_pack_u32(&p, (uint32_t)code);
    xr_pack_string(&p, text);
    xr_conn_send(agent->wire, XR_MSG_REFUSED, &p);
}

/* Report that the ranks have started, and how long each phase took. */
static void send_started(struct xr_agent *agent, uint64_t init, uint64_t nspace, uint64_t ranks)
{
    const struct {
        const char *name;
        uint64_t ns;
    } phase[] = {{"PMIx server", init}, {"namespace", nspace}, {"ranks", ranks}};
    uint32_t first = agent->server ? 0 : 2;
    struct xr_packer p = {0};

    xr_pack_u32(&p, agent->node);
    xr_pack_u32(&p, 3 - first);
    for (uint32_t i = first; i < 3; i++) {
        xr_pack_string(&p, phase[i].name);
        xr_pack_u64(&p, phase[i].ns);
    }
    xr_conn_send(agent->wire, XR_MSG_STARTED, &p);
}

static rank_status_t open_server(struct xr_agent *agent, uint64_t *init_ns, uint64_t *register_ns)
{
    struct xr_server_job job = {.id = agent->job.id,
                                .host = agent->job.hosts[agent->node],
                                .size = agent->job.size,
                                .universe = agent->job.universe,
                                .nlocal = agent->nlocal,
                                .folder = xr_shm_cleanup_folder(agent->shm_cleanup),
                                .oversubscribed = agent->local_ranks.oversubscribed,
                                .topology = agent->topology,
                                .origin = &agent->job.origin};
    struct xr_job_map map = {0};
    struct xr_server_app *apps = calloc(agent->job.napps, sizeof(*apps));
    uint32_t *local = calloc(agent->nlocal ? agent->nlocal : 1, sizeof(*local));
    rank_status_t st = local && apps ? xr_job_map_make(&agent->job, &map) : RANK_ERR_NO_MEMORY;

    for (uint32_t i = 0; apps && i < agent->job.napps; i++)
        apps[i] = (struct xr_server_app){agent->job.apps[i].first, agent->job.apps[i].n};
    job.apps = apps;
    job.napps = agent->job.napps;

    for (uint32_t i = 0; !st && i < agent->nlocal; i++)
        local[i] = agent->ranks[i].rank;
    job.local = local;
    job.nhosts = map.n;
    job.hosts = map.hosts;
    job.ranks_of = (const char *const *)map.ranks;
    job.runs = map.runs;
    if (!st)
        st = xr_server_open(agent->base, &job, &xr_clients_server_events, agent, &agent->server, init_ns,
                            register_ns);
    xr_job_map_clear(&map);
    free(local);
    free(apps);
    return st;
}

static rank_status_t open_pmi1(struct xr_agent *agent)
{
    const struct xr_pmi1_job job = {.id = agent->job.id,
                                    .size = agent->job.size,
                                    .universe = agent->job.slots_given ? agent->job.universe : 0,
                                    .local = agent->nlocal,
                                    .keys = agent->job.origin.keys,
                                    .node_of = agent->nused > 1 ? agent->job.host_of : NULL};

    return xr_pmi1_open(agent->base, &job, &xr_clients_pmi1_ops[agent->nused > 1], agent, &agent->pmi1);
}

static rank_status_t prepare_job(struct xr_agent *agent)
{
    rank_status_t st = xr_liveness_open(&agent->job, &agent->liveness);

    agent->joined = calloc(agent->job.napps, sizeof(*agent->joined));
    if (!st && !agent->joined)
        st = RANK_ERR_NO_MEMORY;
    if (!st)
        st = xr_fence_open(agent->tree, &agent->job, agent->liveness, agent->node, xr_clients_fence_done, agent,
                            &agent->fences);
    if (!st)
        st = xr_rpc_table_open(agent->tree, agent->node, &agent->rpcs);
    return st ? st
              : xr_dmodex_open(agent->base, agent->tree, agent->liveness, agent->node, &xr_clients_dmodex_ops, agent,
                                &agent->dmodex);
}

/* Check this host's limits. On a single host xrun has done that before. */
static bool check_limits(const struct xr_agent *agent, char *text, size_t len)
{
    char why[768];

    if (agent->setup->shape.nodes == 1 ||
        xr_rlimits_check((int)agent->nlocal, agent->job.input == XR_INPUT_ALL ? 2 : 0,
                        xr_tree_children(agent->tree), why, sizeof(why)))
        return true;
    snprintf(text, len, "host %s: %s", agent->job.hosts[agent->node], why);
    return false;
}

/* No rank of this program has become a client. */
static void job_start_on_alone(void *arg, uint32_t app, bool over, const char *uses)
{
    struct xr_agent *agent = arg;
    struct xr_packer p = {0};

    if (!agent->wire)
        return;
    xr_pack_u32(&p, agent->node);
    xr_pack_u32(&p, app);
    xr_pack_u32(&p, over);
    xr_pack_string(&p, uses);
    xr_conn_send(agent->wire, XR_MSG_ALONE, &p);
}

static rank_status_t watch_singletons(struct xr_agent *agent)
{
    struct xr_singletons_app *apps;
    rank_status_t st;

    /* With --mpi none or torch a program gets rank and size from variables, so that it need not become a client. */
    if (agent->job.no_mpi || agent->job.size < 2 || agent->job.torch)
        return RANK_OK;
    apps = calloc(agent->job.napps, sizeof(*apps));
    if (!apps)
        return RANK_ERR_NO_MEMORY;
    for (uint32_t i = agent->nlocal; i-- > 0;) {
        const struct xr_app *of = xr_job_app_of(&agent->job, agent->ranks[i].rank);
        struct xr_singletons_app *app = &apps[of - agent->job.apps];
        *app = (struct xr_singletons_app){of->program, app->local + 1, agent->ranks[i].pid};
    }
    st = xr_singletons_watch(agent->base, apps, agent->job.napps, job_start_on_alone, agent, &agent->singletons);
    free(apps);
    return st;
}

/*
 * Grow the table of open files to its final size while there is one thread. The kernel doubles a full table. If threads
 * share it, each time takes 10 ms, until no processor can use the old one any more.
 */
static void widen_file_table(const struct xr_agent *agent, uint32_t ranks)
{
    int most = XR_FDS_OWN + 8 * (int)ranks, fd;
    struct rlimit lim;

    if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur != RLIM_INFINITY && (rlim_t)most >= lim.rlim_cur)
        most = (int)lim.rlim_cur - 1;
    fd = fcntl(agent->exits, F_DUPFD_CLOEXEC, most);
    if (fd >= 0)
        close(fd);
}

void xr_agent_prepare(struct xr_agent *agent)
{
    if (!agent->setup->early.job)
        return;
    widen_file_table(agent, agent->setup->early.ranks);
    if (!agent->setup->early.no_mpi)
        xr_server_begin(agent->setup->early.job, agent->setup->early.host);
}

void xr_agent_start_job(struct xr_agent *agent)
{
    uint64_t init_ns = 0, register_ns = 0, t;
    char text[1024] = "";
    int code = 1;
    rank_status_t st = prepare_job(agent);

    xr_agent_state_set(&agent->state, XR_AGENT_STARTING);
    xr_supervisor_page_set_job(agent->job.id);
    if (agent->nlocal == 0) { /* it only forwards messages */
        xr_agent_state_set(&agent->state, XR_AGENT_RUNNING);
        xr_supervisor_page_set_busy(false);
        xr_agent_check_done(agent);
        return;
    }
    xr_tree_suspend_keepalive(agent->tree); /* each of the following steps may take long */
    if (!st && !check_limits(agent, text, sizeof(text))) {
        code = XR_EXIT_USAGE;
        st = RANK_ERR_SYSTEM;
    }
    if (!st)
        st = xr_rank_programs_find(agent, &code, text, sizeof(text));
    if (!st)
        st = xr_rank_devices_choose(agent, &code, text, sizeof(text));
    if (!st)
        st = xr_shm_cleanup_create(agent->job.id, &agent->shm_cleanup);
    widen_file_table(agent, agent->nlocal);
    if (!st && !agent->job.no_mpi)
        st = open_server(agent, &init_ns, &register_ns);
    if (st && !text[0])
        snprintf(text, sizeof(text), "the PMIx server on %s did not start", agent->host);
    if (!st)
        st = open_pmi1(agent);
    t = rk_clock_ns();
    agent->progress = xr_progress_open(agent);
    if (!st)
        st = xr_ranks_start(agent, &code, text, sizeof(text));
    if (!st)
        st = watch_singletons(agent);
    if (!st) {
        xr_agent_state_set(&agent->state, XR_AGENT_RUNNING);
        send_started(agent, init_ns, register_ns, rk_clock_ns() - t);
        xr_usage_send_placed(agent);
    } else {
        job_start_refuse(agent, code, text);
        xr_agent_end(agent, 0);
    }
    xr_supervisor_page_set_busy(false);
    xr_agent_reap(agent);
}

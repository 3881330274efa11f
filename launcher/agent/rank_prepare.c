/* SPDX-License-Identifier: BSD-3-Clause */
/* rank_prepare.c: make environment and streams of a rank before its start. */
#include "launcher/agent/agent_internal.h"
#include "launcher/agent/progress_watch.h"
#include "launcher/agent/rank_start_internal.h"
#include "launcher/compat/mpi_env.h"
#include "launcher/iof/pty.h"
#include "launcher/util/strv.h"
#include "lib/base/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char gpu_order[] = "CUDA_DEVICE_ORDER=PCI_BUS_ID";

/*
 * Build the environment of a rank. Its own variables come first, then those of PMIx and of other MPI libraries, then
 * the program's. The first of equal names counts.
 */
static bool make_rank_env(struct xr_agent *agent, uint32_t local, char *const *env, struct xr_rank_start *s)
{
    uint32_t rank = agent->ranks[local].rank;
    const struct xr_mpi_env where = {.rank = rank,
                                     .size = agent->job.size,
                                     .local_rank = local,
                                     .local_size = agent->nlocal,
                                     .oversubscribed = agent->local_ranks.oversubscribed,
                                     .spawned = agent->job.origin.job != NULL,
                                     .pmi1 = !agent->job.no_mpi};
    size_t npmix, nforeign, njob = xr_strv_count(env), n = 0;

    s->pmix = agent->server ? xr_server_rank_env(agent->server, rank) : calloc(1, sizeof(*s->pmix));
    s->foreign = xr_mpi_env_make(&where, env);
    npmix = xr_strv_count(s->pmix);
    nforeign = xr_strv_count(s->foreign);
    s->env = malloc((XR_OWN_VARS + XR_TORCH_VARS + XR_DEVICE_VARS + npmix + nforeign + njob + 1) * sizeof(*s->env));
    if (!s->pmix || !s->foreign || !s->env)
        return false;
    snprintf(s->own[0], sizeof(s->own[0]), "XRUN_RANK=%u", rank);
    snprintf(s->own[1], sizeof(s->own[1]), "XRUN_SIZE=%u", agent->job.size);
    snprintf(s->own[2], sizeof(s->own[2]), "XRUN_LOCAL_RANK=%u", local);
    snprintf(s->own[3], sizeof(s->own[3]), "XRUN_LOCAL_SIZE=%u", agent->nlocal);
    snprintf(s->own[4], sizeof(s->own[4]), "XRUN_NODE_RANK=%u", agent->order);
    snprintf(s->own[5], sizeof(s->own[5]), "XRUN_NODES=%u", agent->nused);
    snprintf(s->own[6], sizeof(s->own[6]), "XRUN_JOB=%s", agent->job.id);
    if (!xr_progress_variable(agent->progress, local, s->own[7], sizeof(s->own[7])))
        snprintf(s->own[7], sizeof(s->own[7]), "XRUN_BOARD="); /* there is no board */
    for (; n < XR_OWN_VARS; n++)
        s->env[n] = s->own[n];
    if (agent->job.torch) {
        for (int i = 0; i < XR_TORCH_VARS; i++)
            s->env[n++] = s->torch[i];
        xr_torch_rank(rank, agent->job.size, local, agent->nlocal, s->env + n - XR_TORCH_VARS);
    }
    if (agent->devices && agent->devices[local].gpus) {
        s->env[n++] = agent->devices[local].gpus;
        if (agent->gpu_numbers)
            s->env[n++] = gpu_order;
    }
    if (agent->devices && agent->devices[local].nics)
        s->env[n++] = agent->devices[local].nics;
    if (agent->devices)
        s->env[n++] = agent->devices[local].text;
    memcpy(s->env + n, s->pmix, npmix * sizeof(*s->env));
    n += npmix;
    memcpy(s->env + n, s->foreign, nforeign * sizeof(*s->env));
    memcpy(s->env + n + nforeign, env, (njob + 1) * sizeof(*s->env));
    return true;
}

/* Open a terminal for descriptors 0, 1 and 2. The agent keeps the master. */
static rank_status_t give_terminal(struct xr_agent *agent, uint32_t local, struct xr_rank_start *s)
{
    uint32_t rank = agent->ranks[local].rank;
    int master, slave, copies[2];
    rank_status_t st;

    if (xr_pty_open(&agent->job.window, &master, &slave)) {
        rk_error("no terminal for rank %u: %m", rank);
        return RANK_ERR_SYSTEM;
    }
    agent->terminal = master;
    s->spec.terminal = true;
    s->spec.fd[0] = slave;
    s->spec.fd[1] = fcntl(slave, F_DUPFD_CLOEXEC, 3);
    s->spec.fd[2] = fcntl(slave, F_DUPFD_CLOEXEC, 3);
    copies[0] = fcntl(master, F_DUPFD_CLOEXEC, 3);
    copies[1] = fcntl(master, F_DUPFD_CLOEXEC, 3);
    if (s->spec.fd[1] < 0 || s->spec.fd[2] < 0 || copies[0] < 0 || copies[1] < 0)
        return RANK_ERR_SYSTEM; /* the agent's end closes them */
    st = xr_rank_output_add_terminal(agent->outputs, local, copies[0]);
    if (!st && xr_rank_input_wanted(&agent->job, rank))
        return xr_rank_input_add_terminal(agent->inputs, copies[1]);
    close(copies[1]);
    return st;
}

static rank_status_t give_pipes(struct xr_agent *agent, uint32_t local, int null, struct xr_rank_start *s)
{
    rank_status_t st = RANK_OK;

    if (xr_rank_input_wanted(&agent->job, agent->ranks[local].rank))
        st = xr_rank_input_add(agent->inputs, &s->spec.fd[0]);
    else
        s->spec.fd[0] = null;
    if (!st)
        st = xr_rank_output_add(agent->outputs, local, 1, &s->spec.fd[1]);
    return st ? st : xr_rank_output_add(agent->outputs, local, 2, &s->spec.fd[2]);
}

rank_status_t xr_rank_prepare(struct xr_agent *agent, uint32_t local, char *const *env, int null,
                              struct xr_rank_start *s)
{
    const struct xr_app *app = xr_job_app_of(&agent->job, agent->ranks[local].rank);

    s->null = null;
    s->spec = (struct xr_spawn){.program = app->program,
                                .argv = app->argv,
                                .wdir = app->wdir,
                                .fd = {-1, -1, -1, -1},
                                .cpus = xr_agent_cpus(agent, local),
                                .cpus_size = agent->set_size,
                                .nofile = agent->job.nofile,
                                .limits = &agent->job.limits};
    if (!make_rank_env(agent, local, env, s))
        return RANK_ERR_NO_MEMORY;
    s->spec.env = s->env;
    if (agent->job.pty == agent->ranks[local].rank)
        return give_terminal(agent, local, s);
    return give_pipes(agent, local, null, s);
}

void xr_rank_start_clear(struct xr_rank_start *s)
{
    for (int i = 0; i <= 3; i++) {
        if (s->spec.fd[i] > STDERR_FILENO && (i != 0 || s->spec.fd[i] != s->null))
            close(s->spec.fd[i]);
        s->spec.fd[i] = -1;
    }
    free(s->env);
    xr_strv_free(s->pmix);
    xr_strv_free(s->foreign);
    s->env = s->pmix = s->foreign = NULL;
}

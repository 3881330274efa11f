/* SPDX-License-Identifier: BSD-3-Clause */
/* rank_reap.c: collect the ranks of this host as they end, and report them. */
#include "launcher/agent/agent_internal.h"
#include "launcher/agent/proxy_client.h"
#include "launcher/exec/proc_tree.h"
#include "launcher/overlay/protocol.h"
#include "launcher/agent/progress_watch.h"
#include "lib/base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Report the end of a rank to PMIx, PMI-1, the fences and the front end. */
static void on_rank_exit(struct xr_agent *agent, struct xr_rank *r, int status, const struct rusage *usage)
{
    bool unfinished, failed;
    struct xr_packer p = {0};

    /* It may have finalized just before. That is posted already, and counts only before exited is set. */
    if (agent->server)
        xr_server_run_posts(agent->server);
    r->exited = true;
    r->status = status;
    r->exit_ns = rk_clock_ns();
    agent->live--;
    if (r->pidfd >= 0) {
        close(r->pidfd);
        r->pidfd = -1;
    }
    unfinished = xr_pmi1_exited(agent->pmi1, (uint32_t)(r - agent->ranks)) || (r->connected && !r->finalized);
    failed = unfinished || !WIFEXITED(status) || WEXITSTATUS(status);
    if (r->connected && !r->finalized)
        agent->clients--;
    if (agent->server && agent->state == XR_AGENT_RUNNING && (failed || (agent->had_clients && !r->connected)))
        xr_server_deliver_death(agent->server, r->rank, WIFSIGNALED(status));
    xr_rank_output_drain(agent->outputs, (uint32_t)(r - agent->ranks));
    xr_liveness_note(agent->liveness, XR_FAILED_RANK, r->rank);
    /* Agents between this one and xrun take part in fences, but forward EXITED unread. */
    if (agent->fences && agent->nused > 1 && xr_kary_above(&agent->setup->shape, agent->node) != XR_NODE_FRONT)
        xr_fence_report_lost(agent->fences, r->rank);
    xr_singletons_ended(agent->singletons, (uint32_t)(xr_job_app_of(&agent->job, r->rank) - agent->job.apps), !failed);
    if (!agent->wire)
        return;
    xr_usage_send(agent, r->rank, usage);
    xr_pack_u32(&p, r->rank);
    xr_pack_u32(&p, (uint32_t)r->pid);
    xr_pack_u32(&p, (uint32_t)status);
    xr_pack_u64(&p, rk_clock_ns() - r->start_ns);
    xr_pack_u32(&p, unfinished ? XR_EXIT_UNFINISHED : 0);
    xr_conn_send(agent->wire, XR_MSG_EXITED, &p);
    xr_pmi1_check_stranded(agent->pmi1);
}

static struct xr_rank *rank_by_pid(struct xr_agent *agent, pid_t pid)
{
    for (uint32_t i = 0; agent->ranks && i < agent->nlocal; i++) {
        if (agent->ranks[i].pid == pid && !agent->ranks[i].exited)
            return &agent->ranks[i];
    }
    return NULL;
}

bool xr_ranks_reap(struct xr_agent *agent)
{
    struct epoll_event ev[64];
    struct rusage usage;
    bool pmix_alive = true;
    int n, status;
    pid_t pid;

    /* First the ranks, in the order of their deaths: the first failure is the one to report. */
    while (agent->exits >= 0 && (n = epoll_wait(agent->exits, ev, 64, 0)) > 0) {
        for (int i = 0; i < n; i++) {
            struct xr_rank *r = &agent->ranks[ev[i].data.u32];
            if (!r->exited && wait4(r->pid, &status, WNOHANG, &usage) == r->pid)
                on_rank_exit(agent, r, status, &usage);
        }
    }
    /* Then the processes that they left behind, and ranks where the kernel has no pidfds. */
    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
        struct xr_rank *r = rank_by_pid(agent, pid);
        if (r)
            on_rank_exit(agent, r, status, &usage);
        else if (!xr_launch_reaped(agent->launch, pid, status) && !xr_progress_reaped(agent->progress, pid) &&
                 !xr_proxy_client_reaped(agent, pid, status))
            pmix_alive = false;
    }
    return pmix_alive;
}

bool xr_ranks_all_ended(const struct xr_agent *agent)
{
    siginfo_t info = {.si_pid = 0};
    size_t n = 0, kept = 0;
    pid_t *children;

    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) && errno == ECHILD)
        return true;
    if (!agent->launch)
        return false;
    /* The commands that started the agents below do not count. */
    children = xr_proc_tree_children(&n);
    for (size_t i = 0; children && i < n; i++)
        kept += xr_launch_has(agent->launch, children[i]);
    free(children);
    return kept == n;
}

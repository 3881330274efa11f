/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agent_terminate.c: end the processes of this host, then the agent.
 *
 * The end has three steps: a signal and a grace period, rounds of SIGKILL, and
 * the last output. An agent that still has children in the tree stays until they
 * have left, because their messages pass through it.
 */
#include "launcher/agent/agent_internal.h"
#include "launcher/agent/proxy_client.h"
#include "launcher/exec/proc_tree.h"
#include "launcher/job/timeouts.h"
#include "launcher/overlay/protocol.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <signal.h>

#define AGAIN_MS 20     /* between two rounds of SIGKILL: a killed process may just have forked */
#define QUIET_MS 200    /* silence after which pipes that outside processes hold are closed */
#define OUTSIDE_MS 1000 /* limit of the wait for that silence */
#define LEAVE_S 10      /* for the parent to read the last messages */
#define MAX_COMMANDS 4096 /* children that are no ranks but start other agents; the fanout limits them */

static struct timeval ms(uint32_t n)
{
    return (struct timeval){n / 1000, (n % 1000) * 1000};
}

void xr_agent_signal_ranks(struct xr_agent *agent, int sig)
{
    pid_t keep[MAX_COMMANDS];

    xr_proc_tree_signal(sig, keep, xr_launch_pids(agent->launch, keep, MAX_COMMANDS));
}

/* ------------------------------------------------------------------- the signals */

static void kill_round(struct xr_agent *agent)
{
    struct timeval again = ms(AGAIN_MS);

    xr_agent_state_set(&agent->state, XR_AGENT_KILLING);
    xr_agent_signal_ranks(agent, SIGKILL);
    event_add(agent->on_grace, &again);
}

/* Send sig to all processes, and wait ms_from_now for them. */
static void agent_request_end(struct xr_agent *agent, int sig, uint32_t ms_from_now)
{
    struct timeval t = ms(ms_from_now);

    xr_agent_signal_ranks(agent, sig);
    xr_agent_signal_ranks(agent, SIGCONT); /* a stopped process would not handle sig */
    event_add(agent->on_grace, &t);
}

/* Follow the first signal with TERM. A program may use INT or HUP for other purposes. */
static void agent_request_term(struct xr_agent *agent)
{
    uint32_t left = agent->term_ms;

    agent->term_ms = 0;
    agent_request_end(agent, SIGTERM, left);
}

static void on_grace(evutil_socket_t fd, short what, void *arg)
{
    struct xr_agent *agent = arg;

    (void)fd;
    (void)what;
    if (agent->state == XR_AGENT_DONE)
        return;
    if (agent->term_ms)
        agent_request_term(agent);
    else
        kill_round(agent);
    xr_agent_reap(agent);
}

void xr_agent_end(struct xr_agent *agent, uint32_t grace_ms)
{
    int sig = agent->end_signal ? agent->end_signal : SIGTERM;

    if (agent->state == XR_AGENT_KILLING || agent->state == XR_AGENT_DONE)
        return;
    if (agent->state != XR_AGENT_TERMINATING) {
        xr_server_ending(agent->server);
        /* MPICH's ranks do not register their files, so they must not create one after the search for
         * them. Others continue to run, and may. */
        if (xr_pmi1_used(agent->pmi1))
            xr_proc_tree_signal(SIGSTOP, NULL, 0);
        xr_shm_cleanup_note(agent->shm_cleanup);
    }
    if (grace_ms == 0) {
        kill_round(agent);
    } else if (agent->state != XR_AGENT_TERMINATING) {
        xr_agent_state_set(&agent->state, XR_AGENT_TERMINATING);
        agent->term_ms = sig == SIGTERM ? 0 : grace_ms - grace_ms / 2;
        agent_request_end(agent, sig, grace_ms - agent->term_ms);
    }
    xr_agent_reap(agent);
}

/* ------------------------------------------------------------------ the last output */

static void on_quiet(evutil_socket_t fd, short what, void *arg)
{
    struct xr_agent *agent = arg;

    (void)fd;
    (void)what;
    if (agent->live || !xr_ranks_all_ended(agent) || xr_rank_output_stalled(agent->outputs))
        return;
    xr_rank_output_close(agent->outputs);
    agent->outputs = NULL;
    xr_agent_check_done(agent);
}

/* Forward output of outside processes that hold our pipes, until silence or the limit. */
static void await_quiet(struct xr_agent *agent)
{
    const struct timeval quiet = ms(QUIET_MS);

    if (!agent->drain_ns) {
        agent->drain_ns = rk_clock_ns();
        xr_rank_output_note_last(agent->outputs);
    } else if (rk_clock_ns() > agent->drain_ns + OUTSIDE_MS * 1000000ull) {
        xr_rank_output_cut(agent->outputs);
    }
    if (!xr_rank_output_stalled(agent->outputs))
        event_add(agent->on_quiet, &quiet);
}

/* ------------------------------------------------------------------- the agent's end */

void xr_agent_leave_if_sent(struct xr_agent *agent)
{
    const struct timeval grace = {LEAVE_S, 0};

    if (xr_tree_child_count(agent->tree) || (agent->wire && xr_conn_backlog(agent->wire)))
        return;
    if (agent->wire && agent->remote) {
        xr_conn_shutdown_write(agent->wire); /* the parent then closes, which ends the loop */
        event_base_loopexit(agent->base, &grace);
    } else {
        event_base_loopexit(agent->base, NULL);
    }
}

void xr_agent_send_unauthenticated(struct xr_agent *agent, uint32_t n)
{
    struct xr_packer p = {0};

    if (n == 0 || !agent->wire)
        return;
    xr_pack_u32(&p, agent->node);
    xr_pack_u32(&p, n);
    xr_conn_send(agent->wire, XR_MSG_UNAUTHENTICATED, &p);
}

void xr_agent_check_done(struct xr_agent *agent)
{
    struct xr_packer p = {0};

    if (agent->state <= XR_AGENT_STARTING || agent->state == XR_AGENT_DONE || agent->live)
        return;
    if (agent->nused > 1 && agent->nlocal)
        xr_liveness_note(agent->liveness, XR_FAILED_HOST, agent->node);
    if (!xr_ranks_all_ended(agent)) {
        /* Processes that the ranks have left behind end with the job. */
        if (agent->state == XR_AGENT_RUNNING)
            xr_agent_end(agent, XR_FAILURE_GRACE_MS);
        return;
    }
    if (xr_rank_output_open_count(agent->outputs))
        await_quiet(agent);
    if (xr_rank_output_open_count(agent->outputs))
        return;
    xr_agent_state_set(&agent->state, XR_AGENT_DONE);
    event_del(agent->on_grace);
    xr_server_end_job(agent->server);
    xr_shm_cleanup_remove(agent->shm_cleanup, xr_pmi1_used(agent->pmi1));
    xr_agent_send_unauthenticated(agent, xr_server_rejected());
    if (agent->wire) {
        xr_pack_u32(&p, agent->node);
        xr_conn_send(agent->wire, XR_MSG_DONE, &p);
    }
    xr_agent_leave_if_sent(agent);
}

void xr_agent_reap(struct xr_agent *agent)
{
    if (!xr_ranks_reap(agent)) {
        rk_error("the PMIx server on %s does not answer any more since a rank was killed while it "
                 "connected; the job ends",
                 agent->host);
        xr_agent_end(agent, XR_FAILURE_GRACE_MS);
    }
    xr_proxy_client_check(agent);
    xr_agent_check_done(agent);
}

rank_status_t xr_agent_terminate_open(struct xr_agent *agent)
{
    agent->on_grace = evtimer_new(agent->base, on_grace, agent);
    agent->on_quiet = evtimer_new(agent->base, on_quiet, agent);
    return agent->on_grace && agent->on_quiet ? RANK_OK : RANK_ERR_NO_MEMORY;
}

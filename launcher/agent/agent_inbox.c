/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agent_inbox.c: handle the messages that reach an agent.
 *
 * Each handler returns false if its message is malformed, which closes the
 * connection.
 */
#include "launcher/agent/agent_internal.h"
#include "launcher/agent/progress_watch.h"
#include "launcher/iof/pty.h"
#include "launcher/job/timeouts.h"
#include "launcher/overlay/event.h"
#include "launcher/overlay/protocol.h"

#include <signal.h>

#define SIGNAL_MAX 64

/* ------------------------------------------------------------------ start and end */

/* Close the listener: no more agents come from below. */
static void agent_close_listener(struct xr_agent *agent)
{
    uint32_t unauthenticated = xr_launch_unauthenticated(agent->launch);

    xr_launch_close_listener(agent->launch);
    xr_agent_send_unauthenticated(agent, unauthenticated);
}

static uint32_t count_local_ranks(const struct xr_agent *agent)
{
    uint32_t n = 0;

    while (agent->local_ranks.cpus && agent->local_ranks.cpus[n])
        n++;
    return n;
}

static bool agent_receive_job(struct xr_agent *agent, struct xr_unpacker *u)
{
    if (agent->state != XR_AGENT_CONNECTED || !xr_agent_unpack_job(agent, u) || count_local_ranks(agent) != agent->nlocal)
        return false;
    agent_close_listener(agent);
    xr_agent_start_job(agent);
    return true;
}

/* Confirm END, or xrun has this agent killed. */
static void agent_send_ending(struct xr_agent *agent)
{
    struct xr_packer p = {0};

    if (!agent->wire)
        return;
    xr_pack_u32(&p, agent->node);
    xr_conn_send(agent->wire, XR_MSG_ENDING, &p);
}

static bool agent_receive_end(struct xr_agent *agent, struct xr_unpacker *u)
{
    uint32_t grace_ms = xr_unpack_u32(u), sig = xr_unpack_u32(u);

    if (!xr_unpack_done(u) || sig > SIGNAL_MAX)
        return false;
    agent->end_signal = (int)sig;
    agent_send_ending(agent);
    if (agent->state != XR_AGENT_CONNECTED) {
        xr_agent_end(agent, grace_ms);
        return true;
    }
    /* It has no job, so that nothing runs here. */
    agent_close_listener(agent);
    xr_agent_state_set(&agent->state, XR_AGENT_RUNNING);
    xr_agent_check_done(agent);
    return true;
}

/* ----------------------------------------------------------------- failures and events */

static bool agent_receive_died(struct xr_agent *agent, struct xr_unpacker *u)
{
    uint32_t rank = xr_unpack_u32(u), by_signal = xr_unpack_u32(u);

    if (!xr_unpack_done(u) || rank >= agent->job.size)
        return false;
    if (agent->server && agent->job.host_of[rank] != agent->node)
        xr_server_deliver_death(agent->server, rank, by_signal != 0);
    xr_liveness_note(agent->liveness, XR_FAILED_RANK, rank);
    return true;
}

static bool agent_receive_other_died(struct xr_agent *agent, struct xr_unpacker *u)
{
    const char *job = xr_unpack_string(u);
    uint32_t rank = xr_unpack_u32(u), by_signal = xr_unpack_u32(u);

    if (!xr_unpack_done(u) || !job)
        return false;
    if (agent->server && by_signal == XR_ONLY_FORGET)
        xr_server_job_ended(agent->server, job);
    else if (agent->server)
        xr_server_deliver_other_death(agent->server, job, rank, by_signal != 0);
    return true;
}

void xr_agent_note_lost(struct xr_agent *agent, uint32_t top)
{
    for (uint32_t node = 0; agent->liveness && node < agent->setup->shape.nodes; node++) {
        if (xr_tree_below(agent->tree, top, node))
            xr_liveness_note(agent->liveness, XR_FAILED_AGENT, node);
    }
}

static bool agent_receive_lost(struct xr_agent *agent, struct xr_unpacker *u)
{
    uint32_t top = xr_unpack_u32(u);

    if (!xr_unpack_string(u) || !xr_unpack_done(u))
        return false;
    xr_agent_note_lost(agent, top);
    return true;
}

static bool agent_receive_over(struct xr_agent *agent, struct xr_unpacker *u)
{
    uint32_t n = xr_unpack_u32(u);

    while (n-- && !u->failed) {
        uint32_t node = xr_unpack_u32(u);
        if (u->failed || node >= agent->setup->shape.nodes)
            return false;
        xr_liveness_note(agent->liveness, XR_FAILED_AGENT, node);
    }
    return xr_unpack_done(u);
}

static bool agent_receive_event(struct xr_agent *agent, struct xr_unpacker *u)
{
    struct xr_event notice;

    if (!xr_event_unpack(u, agent->job.size, &notice))
        return false;
    if (agent->server && agent->job.host_of[notice.rank] != agent->node)
        xr_server_deliver_event(agent->server, NULL, &notice);
    return true;
}

static bool agent_receive_other_event(struct xr_agent *agent, struct xr_unpacker *u)
{
    const char *job = xr_unpack_string(u);
    struct xr_event notice;

    if (!job || !xr_event_unpack(u, UINT32_MAX, &notice))
        return false;
    if (agent->server)
        xr_server_deliver_event(agent->server, job, &notice);
    return true;
}

/* ------------------------------------------------------------------------- signals */

/* Stop ranks that still run after TSTP. They ignore it, or have no terminal that could continue them. */
static void agent_on_stop(evutil_socket_t fd, short what, void *arg)
{
    struct xr_agent *agent = arg;

    (void)fd;
    (void)what;
    if (agent->state == XR_AGENT_RUNNING)
        xr_agent_signal_ranks(agent, SIGSTOP);
}

static bool agent_receive_signal(struct xr_agent *agent, struct xr_unpacker *u)
{
    const struct timeval soon = {0, XR_STOP_MS * 1000};
    uint32_t number = xr_unpack_u32(u);
    int sig = (int)number;

    if (!xr_unpack_done(u) || number > SIGNAL_MAX)
        return false;
    xr_progress_signal(agent->progress, sig);
    xr_agent_signal_ranks(agent, sig);
    if (sig == SIGTSTP)
        event_add(agent->on_stop, &soon);
    else if (sig == SIGCONT)
        event_del(agent->on_stop);
    return true;
}

static bool agent_receive_targets(struct xr_agent *agent, struct xr_unpacker *u)
{
    uint32_t sig = xr_unpack_u32(u), n = xr_unpack_u32(u);

    while (n-- && !u->failed) {
        uint32_t rank = xr_unpack_u32(u);
        struct xr_rank *r = u->failed ? NULL : xr_agent_rank(agent, rank);
        if (r && r->pid > 0 && !r->exited && agent->state == XR_AGENT_RUNNING)
            kill(-r->pid, (int)sig); /* its process group: it may be a script */
    }
    return xr_unpack_done(u) && sig <= SIGNAL_MAX;
}

/* ------------------------------------------------------------------------- streams */

static bool agent_receive_output_taken(struct xr_agent *agent, struct xr_unpacker *u)
{
    uint32_t bytes = xr_unpack_u32(u);

    if (!xr_unpack_done(u))
        return false;
    xr_rank_output_taken(agent->outputs, bytes);
    xr_agent_check_done(agent); /* reading resumes, perhaps from a pipe that an outside process holds */
    return true;
}

static bool agent_receive_window(struct xr_agent *agent, struct xr_unpacker *u)
{
    struct xr_window window;

    window.rows = (uint16_t)xr_unpack_u32(u);
    window.cols = (uint16_t)xr_unpack_u32(u);
    xr_pty_resize(agent->terminal, &window);
    return xr_unpack_done(u);
}

/* ------------------------------------------------------------------------ dispatch */

bool xr_agent_receive(void *arg, uint32_t kind, struct xr_unpacker *u)
{
    struct xr_agent *agent = arg;

    switch (kind) {
    case XR_MSG_LOCAL_RANKS:
        return agent->state == XR_AGENT_CONNECTED && xr_agent_unpack_local_ranks(agent, u);
    case XR_MSG_JOB:
        return agent_receive_job(agent, u);
    case XR_MSG_GET_TOPOLOGY:
        xr_agent_send_topology(agent);
        return true;
    case XR_MSG_GET_MACHINE:
        xr_agent_send_machine(agent);
        return true;
    case XR_MSG_INPUT:
        xr_rank_input_put(agent->inputs, u->at, u->left);
        return true;
    case XR_MSG_DIED:
        return agent_receive_died(agent, u);
    case XR_MSG_LOST:
        return agent_receive_lost(agent, u);
    case XR_MSG_OVER:
        return agent_receive_over(agent, u);
    case XR_MSG_EVENT:
        return agent_receive_event(agent, u);
    case XR_MSG_OTHER_EVENT:
        return agent_receive_other_event(agent, u);
    case XR_MSG_END:
        return agent_receive_end(agent, u);
    case XR_MSG_SIGNAL:
        return agent_receive_signal(agent, u);
    case XR_MSG_OUTPUT_TAKEN:
        return agent_receive_output_taken(agent, u);
    case XR_MSG_TARGETS:
        return agent_receive_targets(agent, u);
    case XR_MSG_DMODEX_REQUEST:
    case XR_MSG_DMODEX_REPLY:
        return agent->dmodex && xr_dmodex_receive(agent->dmodex, kind, u);
    case XR_MSG_RPC_DONE:
        return agent->rpcs && xr_rpc_table_take(agent->rpcs, u);
    case XR_MSG_OTHER_DIED:
        return agent_receive_other_died(agent, u);
    case XR_MSG_WINDOW:
        return agent_receive_window(agent, u);
    default:
        return xr_progress_message(agent->progress, kind, u);
    }
}

bool xr_agent_receive_step(void *arg, uint32_t from, uint32_t kind, struct xr_unpacker *u)
{
    struct xr_agent *agent = arg;

    return kind >= XR_MSG_FENCE_UP && kind <= XR_MSG_FENCE_ENDED && agent->fences &&
           xr_fence_take(agent->fences, from, kind, u);
}

rank_status_t xr_agent_inbox_open(struct xr_agent *agent)
{
    agent->on_stop = evtimer_new(agent->base, agent_on_stop, agent);
    return agent->on_stop ? RANK_OK : RANK_ERR_NO_MEMORY;
}

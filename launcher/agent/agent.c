/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agent.c: run the loop of an agent. See agent.h.
 *
 * Messages are handled in agent_inbox.c, the end in agent_terminate.c.
 */
#include "launcher/agent/agent.h"
#include "launcher/agent/agent_internal.h"
#include "launcher/job/timeouts.h"
#include "launcher/overlay/protocol.h"
#include "launcher/monitor/rundir.h"
#include "launcher/agent/progress_watch.h"
#include "launcher/agent/proxy_client.h"
#include "lib/base/log.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

/* ------------------------------------------------------------------------- parent */

static void agent_on_parent_gone(void *arg, const char *why)
{
    struct xr_agent *agent = arg;

    if (why && agent->state != XR_AGENT_DONE)
        rk_error("the agent on %s lost xrun: %s", agent->host, why);
    agent->wire = NULL;
    if (agent->state == XR_AGENT_CONNECTED || agent->state == XR_AGENT_DONE) {
        event_base_loopexit(agent->base, NULL);
        return;
    }
    xr_rank_output_release(agent->outputs);
    xr_agent_end(agent, XR_FAILURE_GRACE_MS);
}

static void agent_on_drained(void *arg)
{
    struct xr_agent *agent = arg;

    if (agent->state == XR_AGENT_DONE)
        xr_agent_leave_if_sent(agent);
    xr_agent_check_done(agent);
}

/* ------------------------------------------------------------ agents below */

static void send_node_text(struct xr_agent *agent, uint32_t kind, uint32_t node, const char *text)
{
    struct xr_packer p = {0};

    if (!agent->wire)
        return;
    xr_pack_u32(&p, node);
    xr_pack_string(&p, text ? text : "");
    xr_conn_send(agent->wire, kind, &p);
}

static void agent_on_child_gone(void *arg, uint32_t node, const char *why)
{
    struct xr_agent *agent = arg;

    xr_agent_note_lost(agent, node);
    /* xrun decides whether the agent was done. */
    send_node_text(agent, XR_MSG_LOST, node, why);
    if (why && *why) /* else its supervisor lives, and may report more */
        xr_launch_lost(agent->launch, node);
    if (agent->state == XR_AGENT_DONE)
        xr_agent_leave_if_sent(agent);
}

static void agent_on_lost_ended(void *arg, uint32_t node, bool seen)
{
    struct xr_agent *agent = arg;

    if (!seen)
        rk_error("nothing shows that the agent on %s has ended; its ranks, if any, are left there",
                 agent->setup->names[node]);
    if (agent->state == XR_AGENT_DONE)
        xr_agent_leave_if_sent(agent);
}

static void on_launch_failed(void *arg, uint32_t node, const char *text)
{
    send_node_text(arg, XR_MSG_FAILED, node, text);
}

static void on_launch_output(void *arg, uint32_t node, const char *line)
{
    struct xr_agent *agent = arg;

    fprintf(stderr, "%s: %s\n", agent->setup->names[node], line);
}

static const struct xr_launch_ops launch_ops = {on_launch_failed, on_launch_output};

/* srun has started the agents below. They get our address from xrun. */
static void send_listener(struct xr_agent *agent)
{
    struct xr_packer p = {0};

    xr_launch_pack_listener(agent->launch, agent->node, xr_conn_fd(agent->wire), &p);
    xr_conn_send(agent->wire, XR_MSG_LISTENER, &p);
}

static void open_launch(struct xr_agent *agent)
{
    uint32_t n = xr_tree_children(agent->tree);
    char text[1024] = "";

    if (n && xr_launch_open(agent->base, agent->tree, agent->setup, XR_NODE_FRONT, &launch_ops, agent,
                              &agent->launch, text, sizeof(text)))
        send_node_text(agent, XR_MSG_FAILED, xr_tree_child(agent->tree, 0), text);
    else if (n && agent->setup->step)
        send_listener(agent);
}

static const struct xr_tree_ops tree_ops = {
    .on_message = xr_agent_receive,
    .on_step = xr_agent_receive_step,
    .on_child_gone = agent_on_child_gone,
    .on_lost_ended = agent_on_lost_ended,
    .on_parent_gone = agent_on_parent_gone,
    .on_drained = agent_on_drained,
};

/* --------------------------------------------------------------------------- loop */

static void on_exits(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    xr_agent_reap(arg);
}

/* Report it before the ranks end, which die by this agent's signal. */
static void send_unsupervised(struct xr_agent *agent)
{
    struct xr_packer p = {0};

    if (!agent->wire)
        return;
    xr_pack_u32(&p, agent->node);
    xr_conn_send(agent->wire, XR_MSG_UNSUPERVISED, &p);
}

/* The supervisor died, or a user wants this agent to end. */
static void on_term(evutil_socket_t fd, short what, void *arg)
{
    struct xr_agent *agent = arg;

    (void)fd;
    (void)what;
    if (agent->state == XR_AGENT_CONNECTED) {
        event_base_loopexit(agent->base, NULL);
        return;
    }
    if (getppid() != agent->supervisor)
        send_unsupervised(agent);
    xr_agent_end(agent, XR_FAILURE_GRACE_MS);
}

static rank_status_t open_agent(struct xr_agent *agent, int fd, bool remote)
{
    const struct xr_setup *setup = agent->setup;

    if (gethostname(agent->host, sizeof(agent->host) - 1) || !agent->host[0])
        snprintf(agent->host, sizeof(agent->host), "localhost");
    agent->node = setup->node;
    agent->exits = epoll_create1(EPOLL_CLOEXEC);
    agent->base = event_base_new();
    if (!agent->base || xr_tree_open(agent->base, setup->node, &setup->shape, &tree_ops, agent, &agent->tree))
        return RANK_ERR_NO_MEMORY;
    if (xr_tree_add_parent(agent->tree, fd, remote ? &setup->seals : NULL))
        return RANK_ERR_NO_MEMORY;
    agent->wire = xr_tree_parent(agent->tree);
    agent->on_child = evsignal_new(agent->base, SIGCHLD, on_exits, agent);
    agent->on_term = evsignal_new(agent->base, SIGTERM, on_term, agent);
    if (agent->exits >= 0)
        agent->on_exits =
            event_new(agent->base, agent->exits, EV_READ | EV_PERSIST, on_exits, agent);
    if (!agent->on_child || !agent->on_term || xr_agent_inbox_open(agent) || xr_agent_terminate_open(agent) ||
        xr_proxy_client_open(agent) || event_add(agent->on_child, NULL) || event_add(agent->on_term, NULL))
        return RANK_ERR_NO_MEMORY;
    if (agent->on_exits)
        event_add(agent->on_exits, NULL);
    return RANK_OK;
}

int xr_agent_main(int fd, const struct xr_setup *setup, bool remote, struct xr_direct *direct)
{
    struct xr_agent agent = {.exits = -1, .terminal = -1, .setup = setup, .remote = remote,
                             .direct = direct, .supervisor = getppid()};

    /* Keep hwloc from loading its plugins (X11, OpenCL). Ranks get their environment from the job, not from here. */
    setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (open_agent(&agent, fd, remote)) {
        rk_error("the agent has no memory for its loop");
        return 1;
    }
    open_launch(&agent);
    if (remote)
        xr_agent_send_ready(&agent);
    xr_agent_prepare(&agent);
    event_base_dispatch(agent.base);
    xr_progress_close(agent.progress);
    rk_machine_free(&agent.machine);
    /* The front end or the supervisor died before it could. */
    if (agent.job.id && (!agent.wire || getppid() != agent.supervisor))
        xr_rundir_remove(agent.job.id);
    /* The PMIx server is not finalized: it owns only memory of this process, and clients that were killed within a
     * message could block it. */
    return 0;
}

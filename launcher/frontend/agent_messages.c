/* SPDX-License-Identifier: BSD-3-Clause */
/* agent_messages.c: dispatch the messages of agents, and their connections' ends. */
#include "launcher/frontend/child_jobs.h"
#include "launcher/frontend/job_link.h"
#include "launcher/overlay/protocol.h"
#include "launcher/overlay/event.h"
#include "launcher/util/shell_words.h"
#include "lib/base/clock.h"

#include <stdio.h>

#define ANNOUNCE_DONE_MS 50

/* -------------------------------------------------------------------- start and end */

/* The ranks of a host run: report how long the start took. */
static bool on_ranks_started(struct front *f, struct xr_unpacker *u)
{
    uint32_t node = xr_unpack_u32(u), n = xr_unpack_u32(u);
    uint64_t now = rk_clock_ns();
    char line[1024], name[448] = "";
    struct xr_report *report;
    int len;

    if (node >= f->nnodes || !xr_front_launched(f))
        return false;
    report = node == f->job->host_of[0] ? f->report : NULL; /* the host of rank 0 stands for all */
    xr_report_phase(report, "front end", f->forked_ns - f->job->started_ns);
    xr_report_phase(report, "agent", f->launched_ns - f->forked_ns);
    if (f->job->origin.job)
        snprintf(name, sizeof(name), "%.200s, spawned by rank %u of %.200s: ", f->job->id, f->job->origin.rank,
                 f->job->origin.job);
    len = snprintf(line, sizeof(line), "xrun: %sstart-up in ms: front end %.2f, agent %.2f", name,
                   (double)(f->forked_ns - f->job->started_ns) * 1e-6,
                   (double)(f->launched_ns - f->forked_ns) * 1e-6);
    for (uint32_t i = 0; i < n; i++) {
        const char *phase = xr_unpack_string(u);
        uint64_t ns = xr_unpack_u64(u);
        if (!phase || u->failed)
            return false;
        if (len < (int)sizeof(line))
            len += snprintf(line + len, sizeof(line) - (size_t)len, ", %s %.2f", phase, (double)ns * 1e-6);
        xr_report_phase(report, phase, ns);
        xr_report_host_phase(f->report, node, phase, ns);
    }
    xr_report_phase(report, "total", now - f->job->started_ns);
    f->nodes[node].started = true;
    xr_job_link_check_started(f);
    if (f->options->verbose)
        xr_stream_print(f->err, "%s; in all %.2f for %u rank%s on %s", line, (double)(now - f->job->started_ns) * 1e-6,
                      f->plan->placement.host[node].ranks, xr_plural(f->plan->placement.host[node].ranks), f->job->hosts[node]);
    return true;
}

/*
 * Done hosts answer no more requests, and others may have sent some. Hosts that end at about the same time are
 * announced together: at the end of a large job that is one message, or none.
 */
void xr_front_on_announce_done(evutil_socket_t fd, short what, void *arg)
{
    struct front *f = arg;
    struct xr_packer p = {0}, nodes = {0};
    uint32_t n = 0;

    (void)fd;
    (void)what;
    for (uint32_t i = 0; i < f->nnodes && !xr_job_is_done(f->state); i++) {
        if (!f->nodes[i].done || f->nodes[i].done_announced)
            continue;
        f->nodes[i].done_announced = true;
        xr_pack_u32(&nodes, i);
        n++;
    }
    if (n) {
        xr_pack_u32(&p, n);
        xr_pack_raw(&p, nodes.data, nodes.len);
        xr_tree_send(f->tree, XR_NODE_ALL, XR_MSG_OVER, &p);
    }
    xr_packer_free(&nodes);
}

static void on_all_done(struct front *f)
{
    xr_front_enter(f, xr_job_state_when_done(f->state));
    xr_front_report_cause(f);
    for (uint32_t i = 0; i < f->job->napps; i++)
        xr_front_warn_singleton(f, i);
    xr_job_link_ended(f);
    if (!xr_child_jobs_running(f) && !xr_stream_backlog(f->out) && !xr_stream_backlog(f->err))
        xr_heartbeat_shut(f->heartbeat);
}

static bool agent_messages_on_done(struct front *f, struct xr_unpacker *u)
{
    const struct timeval soon = {0, ANNOUNCE_DONE_MS * 1000};
    uint32_t node = xr_unpack_u32(u);

    if (!xr_unpack_done(u) || node >= f->nnodes || f->nodes[node].done)
        return false;
    f->nodes[node].done = true;
    xr_liveness_note(f->liveness, XR_FAILED_AGENT, node);
    if (++f->ndone == f->nnodes)
        on_all_done(f);
    else if (!event_pending(f->announce_done, EV_TIMEOUT, NULL))
        event_add(f->announce_done, &soon);
    return true;
}

/* ----------------------------------------------------------------------- messages */

static bool on_ready(struct front *f, struct xr_unpacker *u)
{
    uint32_t node = xr_unpack_u32(&(struct xr_unpacker){u->at, u->left, false});

    if (node < f->nnodes)
        f->nodes[node].joined = true;
    xr_launch_connected(f->launch, node); /* first: the last agent completes the wait for hosts */
    return f->wait_hosts && xr_wait_hosts_take(f->wait_hosts, XR_MSG_READY, u);
}

/* Unauthenticated peers at the listener of an agent. */
static bool on_unauthenticated(struct front *f, struct xr_unpacker *u)
{
    uint32_t node = xr_unpack_u32(u), n = xr_unpack_u32(u);

    if (!xr_unpack_done(u) || node >= f->nnodes)
        return false;
    f->unauthenticated += n;
    return true;
}

/* An event that a rank raised: for all hosts, and for other jobs if its range is wider than the job. */
static bool on_notice(struct front *f, struct xr_unpacker *u)
{
    struct xr_event event;
    struct xr_packer p = {0};

    if (!xr_front_launched(f) || !xr_event_unpack(u, f->job->size, &event))
        return false;
    if (xr_job_is_ending(f->state))
        return true;
    if (event.wide)
        xr_job_link_event(f, &event);
    xr_event_pack(&event, &p);
    xr_tree_send(f->tree, XR_NODE_ALL, XR_MSG_EVENT, &p);
    return true;
}

static bool on_ending(struct front *f, struct xr_unpacker *u)
{
    uint32_t node = xr_unpack_u32(u);

    if (!xr_unpack_done(u) || node >= f->nnodes)
        return false;
    xr_front_end_acked(f, node);
    return true;
}

static bool agent_messages_on_message(void *arg, uint32_t kind, struct xr_unpacker *u)
{
    struct front *f = arg;
    bool mine = false, fine;

    switch (kind) {
    case XR_MSG_READY:
        return on_ready(f, u);
    case XR_MSG_LISTENER:
        return xr_launch_take_listener(f->launch, u);
    case XR_MSG_TOPOLOGY:
    case XR_MSG_MACHINE:
        return f->wait_hosts && xr_wait_hosts_take(f->wait_hosts, kind, u);
    case XR_MSG_STARTED:
        return on_ranks_started(f, u);
    case XR_MSG_UNSUPERVISED:
        return xr_front_on_unsupervised(f, u);
    case XR_MSG_REFUSED:
        return xr_front_on_refused(f, u);
    case XR_MSG_OUTPUT:
        return xr_front_on_output(f, u);
    case XR_MSG_INPUT_TAKEN:
        return xr_front_on_input_taken(f, u);
    case XR_MSG_INPUT_CLOSED:
        return xr_front_on_input_closed(f, u);
    case XR_MSG_EXITED:
        return xr_front_on_exited(f, u);
    case XR_MSG_ABORT:
        return xr_front_on_abort(f, u);
    case XR_MSG_LOG:
        return xr_front_on_log(f, u);
    case XR_MSG_FAILED:
    case XR_MSG_LOST:
        return xr_front_on_node_text(f, kind, u);
    case XR_MSG_PLACED:
    case XR_MSG_USAGE:
        return xr_report_message(f->report, kind, u);
    case XR_MSG_BROKEN:
        return xr_front_on_output_broken(f, u);
    case XR_MSG_CLIENT_LOST:
        xr_job_link_client_lost(f, u);
        return true;
    case XR_MSG_UNAUTHENTICATED:
        return on_unauthenticated(f, u);
    case XR_MSG_EVENT:
        return on_notice(f, u);
    case XR_MSG_ENDING:
        return on_ending(f, u);
    case XR_MSG_CONTROL:
        return xr_front_control(f, u);
    case XR_MSG_JOINED:
        return xr_front_on_joined(f, u);
    case XR_MSG_ALONE:
        return xr_front_on_singleton(f, u);
    case XR_MSG_DONE:
        return agent_messages_on_done(f, u);
    case XR_MSG_RPC:
    case XR_MSG_DMODEX_REPLY:
        return xr_job_link_take(f, kind, u);
    default:
        fine = f->heartbeat && xr_heartbeat_message(f->heartbeat, kind, u, &mine);
        return mine && fine;
    }
}

static bool agent_messages_on_step(void *arg, uint32_t from, uint32_t kind, struct xr_unpacker *u)
{
    struct front *f = arg;

    return (kind == XR_MSG_FENCE_UP || kind == XR_MSG_FENCE_ENDED) && f->fences && xr_fence_take(f->fences, from, kind, u);
}

/* -------------------------------------------------------------------- connections */

static void after_child(struct front *f)
{
    if (xr_tree_child_count(f->tree) == 0) {
        xr_reader_close(f->reader);
        f->reader = NULL;
        xr_job_link_ended(f);
    }
    xr_front_leave_if_over(f);
}

static void agent_messages_on_child_gone(void *arg, uint32_t node, const char *why)
{
    struct front *f = arg;

    xr_front_lose_agent(f, node, why);
    after_child(f);
}

static void on_lost_ended(void *arg, uint32_t node, bool seen)
{
    struct front *f = arg;

    if (!seen)
        xr_stream_print(f->err, XR_LEFT_BEHIND, xr_plan_name(f->plan, node));
    after_child(f);
}

static void agent_messages_on_parent_gone(void *arg, const char *why)
{
    (void)arg;
    (void)why;
}

const struct xr_tree_ops xr_front_tree_ops = {agent_messages_on_message,    agent_messages_on_step,
                                              agent_messages_on_child_gone, on_lost_ended,
                                              agent_messages_on_parent_gone, NULL};

/* ---------------------------------------------------------------------- heartbeat */

/* Returns the number of agents that get the message. */
static int send_to_agents(void *arg, uint32_t kind, struct xr_packer *p)
{
    struct front *f = arg;
    int n = 0;

    for (uint32_t i = 0; i < f->nnodes; i++)
        n += xr_front_launched(f) && !f->nodes[i].done && !f->nodes[i].gone && f->plan->placement.host[i].ranks > 0;
    if (xr_job_is_done(f->state))
        n = 0;
    if (n)
        xr_tree_send(f->tree, XR_NODE_ALL, kind, p);
    else
        xr_packer_free(p);
    return n;
}

/* The ranks may wait for other jobs, so the hub decides whether all of them are stalled. */
static void on_job_stalled(void *arg, bool stalled)
{
    struct front *f = arg;

    if (xr_job_is_active(f->state))
        xr_job_link_stalled(f, stalled);
}

static const struct xr_fence_table *fences_of(void *arg)
{
    const struct front *f = arg;

    return f->fences;
}

const struct xr_heartbeat_ops xr_front_heartbeat_ops = {send_to_agents, on_job_stalled, fences_of};

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agent_messages.c: what agents say: output, ends and failures of ranks, and what
 * becomes of the agents themselves.
 */
#include "launcher/frontend/child_jobs.h"
#include "launcher/frontend/job_link.h"
#include "launcher/overlay/protocol.h"
#include "launcher/overlay/event.h"
#include "launcher/job/exit_status.h"
#include "launcher/util/shell_words.h"
#include "lib/base/clock.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define OVER_MS 50

static bool show_budget(struct front *f, struct xr_unpacker *u)
{
    uint32_t node = xr_unpack_u32(u), n = xr_unpack_u32(u);
    uint64_t now = rk_clock_ns();
    char line[1024], name[448] = "";
    struct xr_report *report;
    int len;

    if (node >= f->nnodes)
        return false;
    report = node == f->job->host_of[0] ? f->report : NULL; /* of one for all */
    xr_report_phase(report, "front end", f->forked_ns - f->job->started_ns);
    xr_report_phase(report, "agent", f->told_ns - f->forked_ns);
    if (f->job->origin.job)
        snprintf(name, sizeof(name), "%.200s, spawned by rank %u of %.200s: ", f->job->id, f->job->origin.rank,
                 f->job->origin.job);
    len = snprintf(line, sizeof(line), "xrun: %sstart-up in ms: front end %.2f, agent %.2f", name,
                   (double)(f->forked_ns - f->job->started_ns) * 1e-6,
                   (double)(f->told_ns - f->forked_ns) * 1e-6);
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
    xr_front_check_started(f);
    if (f->options->verbose)
        xr_stream_say(f->err, "%s; in all %.2f for %u rank%s on %s", line, (double)(now - f->job->started_ns) * 1e-6,
                      f->plan->placement.host[node].ranks, xr_plural(f->plan->placement.host[node].ranks), f->job->hosts[node]);
    return true;
}

static bool on_strangers(struct front *f, struct xr_unpacker *u)
{
    uint32_t node = xr_unpack_u32(u), n = xr_unpack_u32(u);

    if (!xr_unpack_done(u) || node >= f->nnodes)
        return false;
    f->strangers += n;
    return true;
}

/* An event that a rank has raised: to all hosts, and perhaps to other jobs. */
static bool on_notice(struct front *f, struct xr_unpacker *u)
{
    struct xr_notice notice;
    struct xr_packer p = {0};

    if (!f->told || !xr_notice_unpack(u, f->job->size, &notice))
        return false;
    if (f->ending)
        return true;
    if (notice.wide)
        xr_job_link_event(f, &notice);
    xr_notice_pack(&notice, &p);
    xr_tree_send(f->tree, XR_NODE_ALL, XR_MSG_NOTICE, &p);
    return true;
}

/*
 * Hosts that are done answer no questions, which others may have asked them just then. All that end at about the
 * same time are told of at once: at the end of a large job that is one message, or none.
 */
void xr_front_on_over(evutil_socket_t fd, short what, void *arg)
{
    struct front *f = arg;
    struct xr_packer p = {0}, nodes = {0};
    uint32_t n = 0;

    (void)fd;
    (void)what;
    for (uint32_t i = 0; i < f->nnodes && !f->done; i++) {
        if (!f->nodes[i].done || f->nodes[i].told_over)
            continue;
        f->nodes[i].told_over = true;
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

static bool agent_messages_on_done(struct front *f, struct xr_unpacker *u)
{
    const struct timeval soon = {0, OVER_MS * 1000};
    uint32_t node = xr_unpack_u32(u);

    if (!xr_unpack_done(u) || node >= f->nnodes || f->nodes[node].done)
        return false;
    f->nodes[node].done = true;
    xr_gone_note(f->gone, XR_GONE_AGENT, node); /* it answers no more questions */
    f->done = ++f->ndone == f->nnodes;
    if (!f->done && !event_pending(f->over, EV_TIMEOUT, NULL))
        event_add(f->over, &soon);
    if (f->done)
        xr_front_blame(f);
    for (uint32_t i = 0; f->done && i < f->job->napps; i++)
        xr_front_warn_singleton(f, i);
    if (f->done)
        xr_job_link_ended(f);
    if (f->done && !xr_child_jobs_running(f) && !xr_stream_backlog(f->out) && !xr_stream_backlog(f->err))
        xr_life_shut(f->life);
    return true;
}

static bool agent_messages_on_message(void *arg, uint32_t kind, struct xr_unpacker *u)
{
    struct front *f = arg;
    bool mine = false, fine;
    uint32_t n, node;

    switch (kind) {
    case XR_MSG_READY:
        node = xr_unpack_u32(&(struct xr_unpacker){u->at, u->left, false});
        if (node < f->nnodes)
            f->nodes[node].joined = true;
        xr_branches_connected(f->branches, node); /* first: nobody is missing when the muster is complete */
        return f->muster && xr_muster_take(f->muster, kind, u);
    case XR_MSG_DOOR:
        return xr_branches_hear_door(f->branches, u);
    case XR_MSG_TOPOLOGY:
        return f->muster && xr_muster_take(f->muster, kind, u);
    case XR_MSG_STARTED:
        return show_budget(f, u);
    case XR_MSG_REFUSED:
        return xr_front_on_refused(f, u);
    case XR_MSG_OUTPUT:
        return xr_front_on_output(f, u);
    case XR_MSG_INPUT_TAKEN:
        node = xr_unpack_u32(u);
        n = xr_unpack_u32(u);
        if (!xr_unpack_done(u) || node >= f->nnodes)
            return false;
        if (f->feed)
            xr_reader_credit(f->reader, xr_feed_taken(f->feed, node, n));
        return true;
    case XR_MSG_INPUT_CLOSED:
        node = xr_unpack_u32(u);
        if (!xr_unpack_done(u) || node >= f->nnodes)
            return false;
        xr_front_on_input_closed(f, node);
        return true;
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
    case XR_MSG_STRANGERS:
        return on_strangers(f, u);
    case XR_MSG_NOTICE:
        return on_notice(f, u);
    case XR_MSG_ENDING:
        node = xr_unpack_u32(u);
        if (!xr_unpack_done(u) || node >= f->nnodes)
            return false;
        xr_front_heard_end(f, node);
        return true;
    case XR_MSG_CONTROL:
        return xr_front_control(f, u);
    case XR_MSG_JOINED:
        return xr_front_on_joined(f, u);
    case XR_MSG_ALONE:
        return xr_front_on_singleton(f, u);
    case XR_MSG_DONE:
        return agent_messages_on_done(f, u);
    case XR_MSG_ERRAND:
    case XR_MSG_MODEX_ANSWER:
        return xr_job_link_take(f, kind, u);
    default:
        fine = f->life && xr_life_message(f->life, kind, u, &mine);
        return mine && fine;
    }
}

/* ------------------------------------------------------------------- signs of life */

static int send_to_agents(void *arg, uint32_t kind, struct xr_packer *p)
{
    struct front *f = arg;
    int n = 0;

    for (uint32_t i = 0; i < f->nnodes; i++)
        n += f->told && !f->nodes[i].done && !f->nodes[i].gone && f->plan->placement.host[i].ranks > 0;
    if (n == 0 || f->done)
        xr_packer_free(p);
    else
        xr_tree_send(f->tree, XR_NODE_ALL, kind, p);
    return f->done ? 0 : n;
}

/* Other jobs of this xrun may be what the ranks wait for: the hub knows of all. */
static void on_still(void *arg, bool still)
{
    struct front *f = arg;

    if (!f->done && !f->ending && !f->given_up)
        xr_job_link_stalled(f, still);
}

static const struct xr_fences *fences(void *arg)
{
    const struct front *f = arg;

    return f->fences;
}

const struct xr_life_ops xr_front_life_ops = {send_to_agents, on_still, fences};

static bool agent_messages_on_step(void *arg, uint32_t from, uint32_t kind, struct xr_unpacker *u)
{
    struct front *f = arg;

    return (kind == XR_MSG_FENCE_UP || kind == XR_MSG_FENCE_ENDED) && f->fences && xr_fences_take(f->fences, from, kind, u);
}

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

static void agent_messages_on_lost_ended(void *arg, uint32_t node, bool seen)
{
    struct front *f = arg;

    if (!seen)
        xr_stream_say(f->err, XR_LEFT_BEHIND, xr_plan_name(f->plan, node));
    after_child(f);
}

static void agent_messages_on_parent_gone(void *arg, const char *why)
{
    (void)arg;
    (void)why;
}

const struct xr_tree_ops xr_front_tree_ops = {agent_messages_on_message, agent_messages_on_step, agent_messages_on_child_gone, agent_messages_on_lost_ended, agent_messages_on_parent_gone, NULL};

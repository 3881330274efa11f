/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * terminate.c: end the job on all hosts, and leave when nothing of it is left.
 *
 * The first reason sets the exit code. All agents are ordered to end the job. xrun leaves when all agents are
 * disconnected and all output is written.
 */
#include "launcher/frontend/child_jobs.h"
#include "launcher/frontend/job_link.h"
#include "launcher/overlay/protocol.h"
#include "launcher/exec/find_program.h"

#include <signal.h>
#include <stdint.h>

#define TICK_MS 100

static const struct timeval tick = {0, TICK_MS * 1000};

/* ------------------------------------------------------ agents that do not confirm the end */

/*
 * Every agent confirms an end order. One that does not (it is stopped, or blocked) cannot end its ranks, so others
 * have to, in three steps:
 *
 *   1. The supervisor of this host gets TERM: it kills its agent and the ranks.
 *   2. Other hosts are disconnected. Their supervisors see that and do the same; the other end of the connection
 *      is closed when they have.
 *   3. xrun leaves, with a line for each host that has not closed its end.
 *
 * Time is counted in ticks of our own loop, because a user may have stopped xrun meanwhile (^Z).
 */

/* An agent that is not connected has no ranks. The command that started it is ended separately. */
static bool has_to_end(const struct node *n)
{
    return n->joined && !n->done && !n->gone;
}

static bool has_confirmed(const struct front *f, const struct node *n)
{
    return n->ends_acked == f->ends_sent;
}

static bool any_unconfirmed(const struct front *f)
{
    for (uint32_t i = 0; i < f->nnodes; i++) {
        if (has_to_end(&f->nodes[i]) && !has_confirmed(f, &f->nodes[i]))
            return true;
    }
    return false;
}

/* An end order is about to be sent: set the time limit for its confirmation. */
static void await_confirmation(struct front *f, uint32_t grace_ms)
{
    uint32_t ticks = (!xr_job_is_forced(f->state) ? XR_END_FAILED_MS : grace_ms ? XR_END_FORCED_MS : XR_END_AT_ONCE_MS) / TICK_MS;

    if (f->escalation != XR_ESCALATION_NONE)
        return;
    if (f->plan->local != XR_NO_HOST && f->supervisor > 0) /* our own agent may hang before it reports READY */
        f->nodes[f->plan->local].joined = true;
    /* A second order may shorten the limit, but does not extend it. */
    if (event_pending(f->escalate, EV_TIMEOUT, NULL) && any_unconfirmed(f)) {
        if (ticks < f->grace)
            f->grace = ticks;
        return;
    }
    f->ends_sent++;
    f->grace = ticks;
    event_add(f->escalate, &tick);
}

void xr_front_end_acked(struct front *f, uint32_t node)
{
    if (f->nodes[node].ends_acked < f->ends_sent)
        f->nodes[node].ends_acked++;
}

static void report_unresponsive(struct front *f, uint32_t node)
{
    xr_report_cause(f->report, "the agent on %s stands still", xr_plan_name(f->plan, node));
    xr_stream_print(f->err, "xrun: error: the agent on %s stands still; killing it and its ranks",
                  xr_plan_name(f->plan, node));
}

/* Step 1. Returns false if it was done before, or the agent of this host has confirmed. */
static bool signal_supervisor(struct front *f)
{
    uint32_t local = f->plan->local;

    if (local == XR_NO_HOST || f->supervisor <= 0 || f->escalation != XR_ESCALATION_NONE ||
        !has_to_end(&f->nodes[local]) || has_confirmed(f, &f->nodes[local]))
        return false;
    report_unresponsive(f, local);
    kill(f->supervisor, SIGTERM);
    f->escalation = XR_ESCALATION_KILL;
    return true;
}

/* Step 2. Returns false if it was done before. All agents on the route to one have confirmed and ended. */
static bool disconnect_others(struct front *f)
{
    if (f->escalation == XR_ESCALATION_DISCONNECT)
        return false;
    f->escalation = XR_ESCALATION_DISCONNECT;
    for (uint32_t i = 0; i < f->nnodes; i++) {
        if (!has_to_end(&f->nodes[i]) || i == f->plan->local)
            continue;
        report_unresponsive(f, i);
        xr_tree_disconnect_child(f->tree, xr_tree_way(f->tree, i));
    }
    return true;
}

void xr_front_on_escalate(evutil_socket_t fd, short what, void *arg)
{
    struct front *f = arg;
    uint32_t busy = 0;

    (void)fd;
    (void)what;
    if (f->grace > 0) {
        f->grace--;
        event_add(f->escalate, &tick);
        return;
    }
    if (!any_unconfirmed(f))
        return;
    for (uint32_t i = 0; i < f->nnodes; i++)
        busy += has_to_end(&f->nodes[i]) && has_confirmed(f, &f->nodes[i]);
    if (signal_supervisor(f)) {
        f->grace = XR_SUPERVISOR_MS / TICK_MS;
        event_add(f->escalate, &tick);
        return;
    }
    if (busy) { /* they may be on the route to others */
        event_add(f->escalate, &tick);
        return;
    }
    if (disconnect_others(f)) {
        f->grace = XR_SUPERVISOR_MS / TICK_MS;
        event_add(f->escalate, &tick);
        return;
    }
    for (uint32_t i = 0; i < f->nnodes; i++) {
        if (has_to_end(&f->nodes[i]) && i != f->plan->local)
            xr_stream_print(f->err, XR_LEFT_BEHIND, xr_plan_name(f->plan, i));
    }
    event_base_loopexit(f->base, NULL);
}

/* --------------------------------------------------------------------------- leave */

void xr_front_on_launcher_wait(evutil_socket_t fd, short what, void *arg)
{
    struct front *f = arg;

    (void)fd;
    (void)what;
    event_base_loopexit(f->base, NULL);
}

/* The launcher commands end when nothing of the job is left on their hosts: wait for them, up to XR_LAUNCHER_WAIT_MS. */
void xr_front_leave_if_over(struct front *f)
{
    const struct timeval launcher_wait = {XR_LAUNCHER_WAIT_MS / 1000, XR_LAUNCHER_WAIT_MS % 1000 * 1000};

    if (xr_child_jobs_running(f) || xr_job_link_sending(f) || xr_tree_child_count(f->tree) ||
        xr_stream_backlog(f->out) || xr_stream_backlog(f->err))
        return;
    /* A launcher command ended. Its last output, which holds the reason, has not been read yet. */
    if (!xr_job_is_done(f->state) && !xr_job_is_ending(f->state) && !f->judged)
        return;
    if (xr_launch_pids(f->launch, NULL, SIZE_MAX) == 0)
        event_base_loopexit(f->base, NULL);
    else if (!event_pending(f->launcher_wait, EV_TIMEOUT, NULL))
        event_add(f->launcher_wait, &launcher_wait);
}

/* ----------------------------------------------------------------------------- end */

void xr_front_end_job_by(struct front *f, int sig, uint32_t grace_ms)
{
    struct xr_packer p = {0};

    xr_job_link_end(f, sig, grace_ms);
    if (xr_job_is_done(f->state) || !f->tree) /* nothing runs, or xrun is leaving */
        return;
    if (!xr_job_is_ending(f->state))
        xr_front_enter(f, XR_JOB_ENDING);
    xr_launch_close_listener(f->launch);
    await_confirmation(f, grace_ms);
    xr_pack_u32(&p, grace_ms);
    xr_pack_u32(&p, (uint32_t)sig);
    xr_tree_send(f->tree, XR_NODE_ALL, XR_MSG_END, &p);
    xr_front_leave_if_over(f);
}

void xr_front_end_job(struct front *f)
{
    xr_front_end_job_by(f, SIGTERM, xr_front_grace(f, XR_FAILURE_GRACE_MS));
}

static uint64_t terminate_written(const struct front *f)
{
    return xr_stream_written(f->out) + xr_stream_written(f->err) +
           (f->direct ? atomic_load(&f->direct->written) : 0);
}

static uint64_t queued(const struct front *f)
{
    return xr_stream_backlog(f->out) + xr_stream_backlog(f->err) +
           (f->direct ? atomic_load(&f->direct->queued) : 0);
}

/* After a forced end: leave as soon as the reader of our output makes no progress. */
void xr_front_on_stalled_output(evutil_socket_t fd, short what, void *arg)
{
    const struct timeval again = {XR_SILENT_MS / 1000, XR_SILENT_MS % 1000 * 1000};
    struct front *f = arg;
    uint64_t now = terminate_written(f);

    (void)fd;
    (void)what;
    if (now == f->seen_written && queued(f) > 0) {
        event_base_loopexit(f->base, NULL);
        return;
    }
    f->seen_written = now;
    event_add(f->stalled_output, &again);
}

void xr_front_force(struct front *f, int code, int sig, uint32_t grace_ms)
{
    const struct timeval first = {(XR_SILENT_MS + grace_ms) / 1000, (XR_SILENT_MS + grace_ms) % 1000 * 1000};

    xr_front_set_exit_code(f, code);
    if (!xr_job_is_forced(f->state))
        xr_front_enter(f, xr_job_state_when_forced(f->state));
    f->seen_written = terminate_written(f);
    event_add(f->stalled_output, &first);
    xr_launch_give_up(f->launch);
    xr_front_end_job_by(f, sig, grace_ms);
}

/* -------------------------------------------------------------------- time limits */

/* Return whether the job or a spawned job runs without an order to end. */
static bool runs_unordered(const struct front *f)
{
    return xr_job_is_done(f->state) ? xr_child_jobs_running(f) && !xr_job_is_forced(f->state)
                                    : !xr_job_is_ending(f->state);
}

static void force_after_traces(void *arg)
{
    struct front *f = arg;

    if (runs_unordered(f))
        xr_front_force(f, XR_EXIT_TIMEOUT, SIGTERM, xr_front_grace(f, XR_FAILURE_GRACE_MS));
}

void xr_front_expire(struct front *f)
{
    event_del(f->timeout); /* one limit is enough */
    xr_front_set_exit_code(f, XR_EXIT_TIMEOUT);
    if (!f->options->timeout_traces || !f->heartbeat) {
        force_after_traces(f);
        return;
    }
    if (!xr_job_is_done(f->state))
        xr_front_enter(f, XR_JOB_EXPIRED);
    xr_heartbeat_trace(f->heartbeat, force_after_traces, f);
}

void xr_front_on_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct front *f = arg;

    (void)fd;
    (void)what;
    if (!runs_unordered(f) || f->state == XR_JOB_EXPIRED)
        return;
    xr_report_cause(f->report, "timeout");
    xr_stream_print(f->err, "xrun: error: the job did not end within %g s (--timeout); ending it",
                  f->options->timeout);
    xr_front_expire(f);
}

void xr_front_stalled(struct front *f)
{
    if (!xr_job_is_active(f->state))
        return;
    xr_heartbeat_explain(f->heartbeat);
    if (!f->options->heartbeat_kill)
        return;
    xr_stream_print(f->err, "xrun: error: no rank makes progress (--heartbeat %g:kill); ending the job",
                  f->options->heartbeat);
    xr_front_expire(f);
}

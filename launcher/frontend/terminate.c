/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * terminate.c: how a job ends: the first reason counts, everything is told to
 * end, and xrun leaves when all of it is gone and all output is out.
 */
#include "launcher/frontend/child_jobs.h"
#include "launcher/frontend/job_link.h"
#include "launcher/overlay/protocol.h"
#include "launcher/exec/find_program.h"

#include <signal.h>
#include <stdint.h>

#define SILENT_MS 1000 /* a job that had to end does not wait longer for a reader that stands still */
#define LINGER_MS 3000 /* for the commands that started agents to end after these */
#define TICK_MS 100
/* An agent that starts many ranks hears nothing meanwhile. */
#define FAILED_MS 10000
#define FORCED_MS 3000  /* by a signal or a time-out */
#define AT_ONCE_MS 1000 /* the user insists */
/* From TERM to the keeper until all that was below it is gone; see supervisor.c. */
#define SUPERVISOR_MS 9000

static const struct timeval tick = {0, TICK_MS * 1000};

/* One that has not come yet has nothing to end; who started it sees to it. */
static bool has_to_end(const struct node *n)
{
    return n->joined && !n->done && !n->gone;
}

static bool hears(const struct front *f, const struct node *n)
{
    return n->heard == f->ends;
}

static bool any_silent(const struct front *f)
{
    for (uint32_t i = 0; i < f->nnodes; i++) {
        if (has_to_end(&f->nodes[i]) && !hears(f, &f->nodes[i]))
            return true;
    }
    return false;
}

static void insist_on_end(struct front *f, uint32_t grace_ms)
{
    uint32_t ticks = (!f->forced ? FAILED_MS : grace_ms ? FORCED_MS : AT_ONCE_MS) / TICK_MS;

    if (f->keeper_told || f->hung_up) /* that has its time already */
        return;
    if (f->plan->local != XR_NO_HOST && f->keeper > 0) /* our own may stand still before it can say that it is there */
        f->nodes[f->plan->local].joined = true;
    /* Who is silent is not given more time by being told again. */
    if (event_pending(f->insist, EV_TIMEOUT, NULL) && any_silent(f)) {
        if (ticks < f->patience)
            f->patience = ticks;
        return;
    }
    f->ends++;
    f->patience = ticks;
    event_add(f->insist, &tick);
}

void xr_front_heard_end(struct front *f, uint32_t node)
{
    if (f->nodes[node].heard < f->ends)
        f->nodes[node].heard++;
}

/* The one of this host. False: it has been done, or there is nobody to tell. */
static bool tell_keeper(struct front *f)
{
    uint32_t local = f->plan->local;

    if (local == XR_NO_HOST || f->keeper <= 0 || f->keeper_told || !has_to_end(&f->nodes[local]) ||
        hears(f, &f->nodes[local]))
        return false;
    xr_report_cause(f->report, "the agent on %s stands still", xr_plan_name(f->plan, local));
    xr_stream_say(f->err, "xrun: error: the agent on %s stands still; killing it and its ranks",
                  xr_plan_name(f->plan, local));
    kill(f->keeper, SIGTERM);
    f->keeper_told = true;
    return true;
}

/* Those of other hosts. False: it has been done. An agent between here and a silent one has nothing more to do. */
static bool disconnect_silent(struct front *f)
{
    if (f->hung_up)
        return false;
    f->hung_up = true;
    for (uint32_t i = 0; i < f->nnodes; i++) {
        if (!has_to_end(&f->nodes[i]) || i == f->plan->local)
            continue;
        xr_report_cause(f->report, "the agent on %s stands still", xr_plan_name(f->plan, i));
        xr_stream_say(f->err, "xrun: error: the agent on %s stands still; killing it and its ranks",
                      xr_plan_name(f->plan, i));
        xr_tree_hang_up(f->tree, xr_tree_way(f->tree, i));
    }
    return true;
}

void xr_front_on_insist(evutil_socket_t fd, short what, void *arg)
{
    struct front *f = arg;
    uint32_t busy = 0;

    (void)fd;
    (void)what;
    if (f->patience > 0) {
        f->patience--;
        event_add(f->insist, &tick);
        return;
    }
    if (!any_silent(f))
        return;
    for (uint32_t i = 0; i < f->nnodes; i++)
        busy += has_to_end(&f->nodes[i]) && hears(f, &f->nodes[i]);
    if (tell_keeper(f)) {
        f->patience = SUPERVISOR_MS / TICK_MS;
        event_add(f->insist, &tick);
        return;
    }
    if (busy) {
        event_add(f->insist, &tick);
        return;
    }
    if (disconnect_silent(f)) {
        f->patience = SUPERVISOR_MS / TICK_MS;
        event_add(f->insist, &tick);
        return;
    }
    for (uint32_t i = 0; i < f->nnodes; i++) {
        if (has_to_end(&f->nodes[i]) && i != f->plan->local)
            xr_stream_say(f->err, XR_LEFT_BEHIND, xr_plan_name(f->plan, i));
    }
    event_base_loopexit(f->base, NULL);
}

/* --------------------------------------------------------------------------- end */

void xr_front_on_linger(evutil_socket_t fd, short what, void *arg)
{
    struct front *f = arg;

    (void)fd;
    (void)what;
    event_base_loopexit(f->base, NULL);
}

/*
 * All wires are closed and all output is out. The commands that started agents
 * of other hosts end when nothing of the job is left there, and that is worth
 * waiting for, though not forever.
 */
void xr_front_leave_if_over(struct front *f)
{
    const struct timeval linger = {LINGER_MS / 1000, LINGER_MS % 1000 * 1000};

    if (xr_child_jobs_running(f) || xr_job_link_sending(f) || xr_tree_child_count(f->tree) ||
        xr_stream_backlog(f->out) || xr_stream_backlog(f->err))
        return;
    /* A command has ended, and its last words, which say why, are still on their way. */
    if (!f->done && !f->ending && !f->judged)
        return;
    if (xr_branches_pids(f->branches, NULL, SIZE_MAX) == 0)
        event_base_loopexit(f->base, NULL);
    else if (!event_pending(f->linger, EV_TIMEOUT, NULL))
        event_add(f->linger, &linger);
}

/* sig: what the ranks get first. */
void xr_front_end_job_by(struct front *f, int sig, uint32_t grace_ms)
{
    struct xr_packer p = {0};

    xr_job_link_end(f, sig, grace_ms);
    if (f->done || !f->tree) /* nothing runs any more, or xrun is about to leave */
        return;
    f->ending = true;
    xr_branches_shut_door(f->branches);
    insist_on_end(f, grace_ms);
    xr_pack_u32(&p, grace_ms);
    xr_pack_u32(&p, (uint32_t)sig);
    xr_tree_send(f->tree, XR_NODE_ALL, XR_MSG_END, &p);
    xr_front_leave_if_over(f);
}

void xr_front_end_job(struct front *f)
{
    xr_front_end_job_by(f, SIGTERM, xr_front_grace(f, XR_FAILURE_GRACE_MS));
}

/* The first reason counts. */
void xr_front_judge(struct front *f, int code)
{
    if (!f->judged)
        f->code = code;
    f->judged = true;
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

/* After a forced end: go as soon as the reader of our output stands still. */
void xr_front_on_silence(evutil_socket_t fd, short what, void *arg)
{
    const struct timeval again = {SILENT_MS / 1000, SILENT_MS % 1000 * 1000};
    struct front *f = arg;
    uint64_t now = terminate_written(f);

    (void)fd;
    (void)what;
    if (now == f->seen_written && queued(f) > 0) {
        event_base_loopexit(f->base, NULL);
        return;
    }
    f->seen_written = now;
    event_add(f->silence, &again);
}

void xr_front_force(struct front *f, int code, int sig, uint32_t grace_ms)
{
    const struct timeval first = {(SILENT_MS + grace_ms) / 1000,
                                  (SILENT_MS + grace_ms) % 1000 * 1000};

    xr_front_judge(f, code);
    f->forced = true;
    f->seen_written = terminate_written(f);
    event_add(f->silence, &first);
    xr_front_end_job_by(f, sig, grace_ms);
}

/* Something of it, or a job that it has spawned, and it has not been told to end. */
static bool terminate_runs(const struct front *f)
{
    return f->done ? xr_child_jobs_running(f) && !f->forced : !f->ending;
}

static void force_after_traces(void *arg)
{
    struct front *f = arg;

    if (terminate_runs(f))
        xr_front_force(f, XR_EXIT_TIMEOUT, SIGTERM, xr_front_grace(f, XR_FAILURE_GRACE_MS));
}

/* The job takes too long: end it, if wanted after its stack traces. */
void xr_front_give_up(struct front *f)
{
    f->given_up = true;
    xr_front_judge(f, XR_EXIT_TIMEOUT);
    if (f->options->timeout_traces && f->life)
        xr_life_trace(f->life, force_after_traces, f);
    else
        force_after_traces(f);
}

void xr_front_on_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct front *f = arg;

    (void)fd;
    (void)what;
    if (!terminate_runs(f) || f->given_up)
        return;
    xr_report_cause(f->report, "timeout");
    xr_stream_say(f->err, "xrun: error: the job did not end within %g s (--timeout); ending it",
                  f->options->timeout);
    xr_front_give_up(f);
}

void xr_front_hopeless(struct front *f)
{
    if (f->done || f->ending || f->given_up)
        return;
    xr_life_explain(f->life);
    if (!f->options->heartbeat_kill)
        return;
    xr_stream_say(f->err, "xrun: error: no rank makes progress (--heartbeat %g:kill); ending the job",
                  f->options->heartbeat);
    xr_front_give_up(f);
}

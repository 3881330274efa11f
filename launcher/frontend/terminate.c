/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * terminate.c: how a job ends: the first reason counts, everything is told to
 * end, and xrun leaves when all of it is gone and all output is out.
 */
#include "launcher/frontend/job_link.h"
#include "launcher/overlay/protocol.h"
#include "launcher/exec/find_program.h"

#include <signal.h>
#include <stdint.h>

#define SILENT_MS 1000 /* a job that had to end does not wait longer for a reader that stands still */
#define LINGER_MS 3000 /* for the commands that started agents to end after these */

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

    if (xr_front_jobs_running(f) || xr_front_jobs_speaking(f) || xr_tree_child_count(f->tree) ||
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

uint32_t xr_front_grace(const struct front *f, uint32_t dflt_ms)
{
    return f->options->kill_grace < 0 ? dflt_ms : (uint32_t)(f->options->kill_grace * 1000);
}

/* sig: what the ranks get first. */
void xr_front_end_job_by(struct front *f, int sig, uint32_t grace_ms)
{
    struct xr_packer p = {0};

    xr_front_jobs_end(f, sig, grace_ms);
    if (f->done || !f->tree) /* nothing runs any more, or xrun is about to leave */
        return;
    f->ending = true;
    xr_branches_shut_door(f->branches);
    xr_front_insist(f, grace_ms);
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
    return f->done ? xr_front_jobs_running(f) && !f->forced : !f->ending;
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

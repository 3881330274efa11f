/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * failure.c: report failures of ranks and agents, and find the root cause.
 *
 * When a rank dies, ranks that wait for it may fail within milliseconds, before the kernel has removed the first.
 * Reports of several hosts arrive in any order. So a rank that exits with an error is not reported at once: a rank
 * that was killed by a signal, or a lost host, is the likelier cause if it is reported within BLAME_*_MS.
 */
#include "launcher/frontend/job_link.h"
#include "launcher/job/exit_status.h"
#include "launcher/overlay/protocol.h"

#include <signal.h>
#include <sys/wait.h>

/* ---------------------------------------------------------------------- root cause */

static void report_failure(struct front *f, const struct xr_failure *why)
{
    char how[160], time[32];

    xr_exit_status_how(why->status, why->unfinished, how, sizeof(how));
    xr_exit_status_time(why->lived_ns, time, sizeof(time));
    xr_report_cause(f->report, "rank %u %s", why->rank, how);
    xr_stream_print(f->err, "xrun: error: rank %u (host %s, pid %u) %s after %s%s", why->rank,
                  xr_front_host_of(f, why->rank), why->pid, how, time,
                  f->options->go_on ? "; the others go on" : "; ending the job");
    xr_front_set_exit_code(f, xr_exit_status_code(why->status, why->unfinished));
    if (!f->options->go_on)
        xr_front_end_job(f);
}

static void drop_cause(struct front *f)
{
    f->cause_pending = false;
    event_del(f->cause_timer);
}

void xr_front_report_cause(struct front *f)
{
    if (!f->cause_pending)
        return;
    drop_cause(f);
    if (!xr_job_is_ending(f->state))
        report_failure(f, &f->failure);
}

/* A host is lost: a rank of another host that exited with an error just before did so because of that. */
static void report_host_cause(struct front *f)
{
    struct node *n = f->cause_pending ? xr_front_node_of(f, f->failure.rank) : NULL;

    if (!n || n->gone) /* it failed before its own host was lost */
        xr_front_report_cause(f);
    else
        drop_cause(f);
}

void xr_front_on_root_cause(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    xr_front_report_cause(arg);
}

static void note_cause(struct front *f, const struct xr_failure *why)
{
    const struct timeval moment = {0, (f->nnodes > 1 ? XR_CAUSE_HOSTS_MS : XR_CAUSE_LOCAL_MS) * 1000};

    if (f->options->go_on) {
        report_failure(f, why);
        return;
    }
    if (!f->cause_pending || WIFSIGNALED(why->status))
        f->failure = *why;
    if (!f->cause_pending)
        event_add(f->cause_timer, &moment);
    f->cause_pending = true;
    if (WIFSIGNALED(why->status))
        xr_front_report_cause(f);
}

/* -------------------------------------------------------------------- before it runs */

void xr_front_refuse(struct front *f, int code, const char *text)
{
    if (xr_job_is_ending(f->state))
        return;
    xr_stream_print(f->err, "xrun: error: %s", text);
    xr_front_set_exit_code(f, code);
    xr_front_end_job_by(f, SIGTERM, 0);
}

void xr_front_on_launch_failed(void *arg, uint32_t node, const char *text)
{
    struct front *f = arg;
    bool ending = xr_job_is_ending(f->state);

    if (!ending && node == XR_NODE_ALL)
        xr_stream_print(f->err, "xrun: error: %s", text);
    else if (!ending)
        xr_stream_print(f->err, "xrun: error: host %s: %s", f->plan->hosts.host[node].name, text);
    xr_front_set_exit_code(f, 1);
    if (!ending)
        xr_front_end_job_by(f, SIGTERM, 0);
}

bool xr_front_on_refused(struct front *f, struct xr_unpacker *u)
{
    uint32_t node = xr_unpack_u32(u), code = xr_unpack_u32(u);
    const char *text = xr_unpack_string(u);

    if (!xr_unpack_done(u) || !text || node >= f->nnodes)
        return false;
    if (xr_job_is_ending(f->state))
        return true;
    xr_report_cause(f->report, "%s", text);
    xr_stream_print(f->err, "xrun: error: %s", text);
    xr_front_set_exit_code(f, (int)code);
    if (f->nnodes > 1)
        xr_front_end_job_by(f, SIGTERM, 0); /* ranks may have started on other hosts */
    else if (!xr_job_is_done(f->state))
        xr_front_enter(f, XR_JOB_ENDING); /* the agent ends by itself */
    return true;
}

/* -------------------------------------------------------------------------- ranks */

/* Notify the ranks that stay. The agent of the rank's own host needs no message. */
static void announce_death(struct front *f, uint32_t rank, bool by_signal)
{
    struct xr_packer p = {0};

    xr_pack_u32(&p, rank);
    xr_pack_u32(&p, by_signal);
    xr_tree_send(f->tree, XR_NODE_ALL, XR_MSG_DIED, &p);
}

bool xr_front_on_exited(struct front *f, struct xr_unpacker *u)
{
    uint32_t rank = xr_unpack_u32(u), pid = xr_unpack_u32(u);
    int status = (int)xr_unpack_u32(u);
    uint64_t lived = xr_unpack_u64(u);
    bool unfinished = xr_unpack_u32(u) & XR_EXIT_UNFINISHED, failed;
    const struct xr_failure failure = {rank, pid, status, lived, unfinished};

    if (!xr_unpack_done(u))
        return false;
    xr_heartbeat_exited(f->heartbeat, rank);
    xr_report_exited(f->report, rank, pid, status, lived, unfinished);
    xr_liveness_note(f->liveness, XR_FAILED_RANK, rank);
    if (rank == f->job->pty) {
        xr_user_tty_close(f->terminal);
        f->terminal = NULL;
    }
    failed = xr_exit_status_failed(status, unfinished);
    xr_job_link_rank_ended(f, rank, failed, WIFSIGNALED(status));
    if (xr_job_is_ending(f->state) || !failed)
        return true;
    if (f->options->go_on && f->nnodes > 1)
        announce_death(f, rank, WIFSIGNALED(status));
    note_cause(f, &failure);
    return true;
}

bool xr_front_on_abort(struct front *f, struct xr_unpacker *u)
{
    uint32_t rank = xr_unpack_u32(u), pid = xr_unpack_u32(u);
    int code = (int)xr_unpack_u32(u);
    const char *text = xr_unpack_string(u);

    if (!xr_unpack_done(u))
        return false;
    xr_front_report_cause(f); /* an earlier failure is the cause */
    if (xr_job_is_ending(f->state))
        return true;
    xr_report_cause(f->report, "rank %u aborted with code %d%s%s", rank, code,
                    text && *text ? ": " : "", text ? text : "");
    xr_stream_print(f->err, "xrun: error: rank %u (host %s, pid %u) aborted the job with code %d%s%s",
                  rank, xr_front_host_of(f, rank), pid, code, text && *text ? ": " : "", text ? text : "");
    xr_front_set_exit_code(f, xr_exit_status_abort_code(code));
    xr_front_end_job(f);
    return true;
}

void xr_front_end_connected(struct front *f, int code)
{
    xr_front_report_cause(f); /* a rank of this job may be the cause */
    if (xr_job_is_done(f->state) || xr_job_is_ending(f->state))
        return;
    xr_report_cause(f->report, "a job that is connected with this one failed");
    xr_stream_print(f->err, "xrun: error: a job that is connected with %s failed; ending the job", f->job->id);
    xr_front_set_exit_code(f, code);
    xr_front_end_job(f);
}

/* ------------------------------------------------------------------------- agents */

bool xr_front_on_unsupervised(struct front *f, struct xr_unpacker *u)
{
    uint32_t node = xr_unpack_u32(u);

    if (!xr_unpack_done(u) || node >= f->nnodes)
        return false;
    xr_front_report_cause(f); /* an earlier failure is the cause */
    if (xr_job_is_ending(f->state))
        return true;
    xr_report_cause(f->report, "the supervisor on %s was killed", xr_plan_name(f->plan, node));
    xr_stream_print(f->err, "xrun: error: the supervisor on %s was killed%s", xr_plan_name(f->plan, node),
                    f->options->go_on && f->nnodes > 1 ? "; its ranks end, the others go on" : "; ending the job");
    xr_front_set_exit_code(f, 1);
    if (!f->options->go_on)
        xr_front_end_job(f);
    return true;
}

/* The ranks of a lost host count as killed. */
static void lose_ranks(struct front *f, uint32_t node)
{
    xr_job_link_host_lost(f, node);
    if (!f->options->go_on || xr_job_is_ending(f->state))
        return;
    xr_job_link_check_started(f);
    for (uint32_t r = f->of_host.first[node]; r < f->of_host.first[node + 1]; r++) {
        xr_heartbeat_exited(f->heartbeat, f->of_host.ranks[r]);
        announce_death(f, f->of_host.ranks[r], true);
    }
}

/* Returns the number of agents at top and below that were lost before their hosts were done. */
static uint32_t lose_nodes(struct front *f, uint32_t top)
{
    uint32_t lost = 0;

    for (uint32_t i = 0; i < f->nnodes; i++) {
        struct node *n = &f->nodes[i];
        if (n->gone || !xr_tree_below(f->tree, top, i))
            continue;
        n->gone = true;
        xr_front_close_input(f, i);
        xr_liveness_note(f->liveness, XR_FAILED_AGENT, i);
        if (n->done)
            continue;
        lost++;
        if (xr_front_launched(f))
            lose_ranks(f, i);
    }
    return lost;
}

/* The launcher command may have printed or returned a better reason than the connection gave. */
static const char *reason_of_loss(const struct front *f, const char *why)
{
    bool given = why && *why;

    if (!xr_front_launched(f) && !given) /* srun ends connected agents if it cannot start another one */
        why = xr_launch_reason(f->launch);
    if (!(why && *why) && *xr_launch_killed(f->launch))
        why = xr_launch_killed(f->launch);
    return why ? why : "";
}

void xr_front_lose_agent(struct front *f, uint32_t top, const char *why)
{
    bool go_on = f->options->go_on;
    struct xr_packer p = {0};

    if (lose_nodes(f, top) == 0)
        return;
    if (why && *why) /* else its supervisor is there, may report more, and ends when all below it has ended */
        xr_launch_lost(f->launch, top);
    report_host_cause(f);
    why = reason_of_loss(f, why);
    if (!xr_job_is_ending(f->state)) {
        xr_report_cause(f->report, "the agent on %s died", xr_plan_name(f->plan, top));
        xr_stream_print(f->err, "xrun: error: the agent on %s died%s%s%s", xr_plan_name(f->plan, top),
                      *why ? ": " : "", why,
                      go_on && f->nnodes > 1 ? "; the others go on" : "; its ranks end with it");
        xr_front_set_exit_code(f, 1);
    }
    xr_pack_u32(&p, top);
    xr_pack_string(&p, "");
    xr_tree_send(f->tree, XR_NODE_ALL, XR_MSG_LOST, &p);
    if (!go_on || !xr_front_launched(f))
        xr_front_end_job(f);
}

/* An agent reports that it lost one below it, or could not start it. */
bool xr_front_on_node_text(struct front *f, uint32_t kind, struct xr_unpacker *u)
{
    uint32_t node = xr_unpack_u32(u);
    const char *text = xr_unpack_string(u);

    if (!xr_unpack_done(u) || !text || node >= f->nnodes)
        return false;
    if (kind == XR_MSG_LOST)
        xr_front_lose_agent(f, node, text);
    else
        xr_front_on_launch_failed(f, node, text);
    return true;
}

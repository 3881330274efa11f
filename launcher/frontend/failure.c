/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * failure.c: which rank's failure it is that ends the job.
 *
 * When a rank dies, those who wait for it may fail by that within milliseconds,
 * sooner than the kernel has done with the first; and what the agents of several
 * hosts say need not come in the order in which it happened. So a rank that
 * exits badly is not blamed at once: one that was killed by a signal, or a host
 * that was lost, and is heard of meanwhile, is the likelier cause.
 */
#include "launcher/frontend/job_link.h"
#include "launcher/job/exit_status.h"
#include "launcher/overlay/protocol.h"

#include <signal.h>
#include <sys/wait.h>

#define HERE_MS 20
#define HOSTS_MS 100

static void blame(struct front *f, const struct xr_failure *why)
{
    char how[160], time[32];

    xr_verdict_how(why->status, why->unfinished, how, sizeof(how));
    xr_verdict_time(why->lived_ns, time, sizeof(time));
    xr_report_cause(f->report, "rank %u %s", why->rank, how);
    xr_stream_say(f->err, "xrun: error: rank %u (host %s, pid %u) %s after %s%s", why->rank,
                  xr_front_host_of(f, why->rank), why->pid, how, time,
                  f->options->go_on ? "; the others go on" : "; ending the job");
    xr_front_judge(f, xr_verdict_code(why->status, why->unfinished));
    if (!f->options->go_on)
        xr_front_end_job(f);
}

void xr_front_blame(struct front *f)
{
    if (!f->blaming)
        return;
    f->blaming = false;
    event_del(f->blame);
    if (!f->ending)
        blame(f, &f->failure);
}

void xr_front_blame_host(struct front *f)
{
    uint32_t node = f->blaming && f->told && f->failure.rank < f->job->size ? f->job->host_of[f->failure.rank] : XR_NO_HOST;

    if (node == XR_NO_HOST || f->nodes[node].gone) { /* it has failed before its host was lost */
        xr_front_blame(f);
        return;
    }
    f->blaming = false;
    event_del(f->blame);
}

/* Another job that is connected with this one failed. */
void xr_front_end_connected(struct front *f, int code)
{
    xr_front_blame(f); /* a rank of this job may be the cause */
    if (f->done || f->ending)
        return;
    xr_report_cause(f->report, "a job that is connected with this one failed");
    xr_stream_say(f->err, "xrun: error: a job that is connected with %s failed; ending the job", f->job->id);
    xr_front_judge(f, code);
    xr_front_end_job(f);
}

void xr_front_on_blame(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    xr_front_blame(arg);
}

void xr_front_failed(struct front *f, const struct xr_failure *why)
{
    const struct timeval moment = {0, (f->nnodes > 1 ? HOSTS_MS : HERE_MS) * 1000};

    if (f->options->go_on) {
        blame(f, why);
        return;
    }
    if (!f->blaming || WIFSIGNALED(why->status))
        f->failure = *why;
    if (!f->blaming)
        event_add(f->blame, &moment);
    f->blaming = true;
    if (WIFSIGNALED(why->status))
        xr_front_blame(f);
}

void xr_front_on_branch_failed(void *arg, uint32_t node, const char *text)
{
    struct front *f = arg;

    if (!f->ending && node == XR_NODE_ALL)
        xr_stream_say(f->err, "xrun: error: %s", text);
    else if (!f->ending)
        xr_stream_say(f->err, "xrun: error: host %s: %s", f->plan->hosts.host[node].name, text);
    xr_front_judge(f, 1);
    if (!f->ending)
        xr_front_end_job_by(f, SIGTERM, 0);
}

bool xr_front_on_refused(struct front *f, struct xr_unpacker *u)
{
    uint32_t node = xr_unpack_u32(u), code = xr_unpack_u32(u);
    const char *text = xr_unpack_string(u);

    if (!xr_unpack_done(u) || !text || node >= f->nnodes)
        return false;
    if (f->ending)
        return true;
    xr_report_cause(f->report, "%s", text);
    xr_stream_say(f->err, "xrun: error: %s", text);
    xr_front_judge(f, (int)code);
    if (f->nnodes > 1)
        xr_front_end_job_by(f, SIGTERM, 0); /* those that have started elsewhere */
    f->ending = true;
    return true;
}

/* The agent of the rank's own host knows. */
static void tell_death(struct front *f, uint32_t rank, bool by_signal)
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
    xr_life_exited(f->life, rank);
    xr_report_exited(f->report, rank, pid, status, lived, unfinished);
    xr_gone_note(f->gone, XR_GONE_RANK, rank);
    if (rank == f->job->pty) {
        xr_user_terminal_close(f->terminal);
        f->terminal = NULL;
    }
    failed = xr_verdict_failed(status, unfinished);
    xr_job_link_rank_ended(f, rank, failed, WIFSIGNALED(status));
    if (f->ending || !failed) /* what follows from an end is no news */
        return true;
    if (f->options->go_on && f->nnodes > 1)
        tell_death(f, rank, WIFSIGNALED(status));
    xr_front_failed(f, &failure);
    return true;
}

bool xr_front_on_abort(struct front *f, struct xr_unpacker *u)
{
    uint32_t rank = xr_unpack_u32(u), pid = xr_unpack_u32(u);
    int code = (int)xr_unpack_u32(u);
    const char *text = xr_unpack_string(u);

    if (!xr_unpack_done(u))
        return false;
    xr_front_blame(f); /* who failed before is the cause */
    if (f->ending)
        return true;
    xr_report_cause(f->report, "rank %u aborted with code %d%s%s", rank, code,
                    text && *text ? ": " : "", text ? text : "");
    xr_stream_say(f->err, "xrun: error: rank %u (host %s, pid %u) aborted the job with code %d%s%s",
                  rank, xr_front_host_of(f, rank), pid, code, text && *text ? ": " : "", text ? text : "");
    xr_front_judge(f, xr_verdict_abort_code(code));
    xr_front_end_job(f);
    return true;
}

/* An agent is gone, and so is all below it. */
void xr_front_lose_agent(struct front *f, uint32_t top, const char *why)
{
    struct xr_packer p = {0};
    uint32_t lost = 0;

    for (uint32_t i = 0; i < f->nnodes; i++) {
        struct node *n = &f->nodes[i];
        if (n->gone || !xr_tree_below(f->tree, top, i))
            continue;
        n->gone = true;
        xr_front_on_input_closed(f, i);
        xr_gone_note(f->gone, XR_GONE_AGENT, i);
        if (n->done)
            continue;
        if (f->told)
            xr_job_link_host_lost(f, i);
        if (f->told && f->options->go_on && !f->ending)
            xr_front_check_started(f);
        lost++;
        if (!f->told || !f->options->go_on || f->ending)
            continue;
        for (uint32_t r = f->of_host.first[i]; r < f->of_host.first[i + 1]; r++) {
            xr_life_exited(f->life, f->of_host.ranks[r]);
            tell_death(f, f->of_host.ranks[r], true);
        }
    }
    if (lost == 0)
        return;
    if (why && *why) /* else its keeper is there, may say more than we know, and ends when all has */
        xr_branches_lost(f->branches, top);
    xr_front_blame_host(f);
    if (!f->told && !(why && *why)) /* srun ends those that have come when another cannot be started */
        why = xr_branches_words(f->branches);
    if (!(why && *why) && *xr_branches_killed(f->branches))
        why = xr_branches_killed(f->branches);
    if (!f->ending) {
        xr_report_cause(f->report, "the agent on %s died", xr_plan_name(f->plan, top));
        xr_stream_say(f->err, "xrun: error: the agent on %s died%s%s%s", xr_plan_name(f->plan, top),
                      why && *why ? ": " : "", why ? why : "",
                      f->options->go_on && f->nnodes > 1 ? "; the others go on"
                                                         : "; its ranks end with it");
        xr_front_judge(f, 1);
    }
    xr_pack_u32(&p, top);
    xr_pack_string(&p, "");
    xr_tree_send(f->tree, XR_NODE_ALL, XR_MSG_LOST, &p);
    if (!f->options->go_on || !f->told)
        xr_front_end_job(f);
}

bool xr_front_on_node_text(struct front *f, uint32_t kind, struct xr_unpacker *u)
{
    uint32_t node = xr_unpack_u32(u);
    const char *text = xr_unpack_string(u);

    if (!xr_unpack_done(u) || !text || node >= f->nnodes)
        return false;
    if (kind == XR_MSG_LOST)
        xr_front_lose_agent(f, node, text);
    else
        xr_front_on_branch_failed(f, node, text);
    return true;
}

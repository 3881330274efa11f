/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agent_messages.c: what agents say: output, ends and failures of ranks, and what
 * becomes of the agents themselves.
 */
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
#define STALL_AT (1 << 20) /* bytes queued for the user: agents are not told that they are passed on */
#define TELL_AT (32 << 10) /* bytes passed on that are worth a message */

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
    xr_front_jobs_started(f, node);
    if (f->options->verbose)
        xr_stream_say(f->err, "%s; in all %.2f for %u rank%s on %s", line, (double)(now - f->job->started_ns) * 1e-6,
                      f->plan->placement.host[node].ranks, xr_plural(f->plan->placement.host[node].ranks), f->job->hosts[node]);
    return true;
}

static bool on_refused(struct front *f, struct xr_unpacker *u)
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

/* The host that a rank runs on, or NULL. */
static struct node *node_of(struct front *f, uint32_t rank)
{
    return f->told && rank < f->job->size ? &f->nodes[f->job->host_of[rank]] : NULL;
}

const char *xr_front_host_of(const struct front *f, uint32_t rank)
{
    return f->told && rank < f->job->size ? f->job->hosts[f->job->host_of[rank]] : f->host;
}

/* Tell an agent that so much of its output is where the user wants it. */
void xr_front_pay(struct front *f, struct node *n, uint32_t least)
{
    struct xr_packer p = {0};

    if (n->owed < least || n->owed == 0 || n->gone)
        return;
    xr_pack_u32(&p, n->owed);
    xr_tree_send(f->tree, (uint32_t)(n - f->nodes), XR_MSG_OUTPUT_TAKEN, &p);
    n->owed = 0;
}

static void agent_messages_put_output(struct front *f, uint32_t rank, uint32_t stream, const char *data,
                       size_t len, bool partial)
{
    if (f->files)
        xr_output_dir_put(f->files, rank, (int)stream, data, len, partial);
    else
        xr_stream_put(stream == 1 ? f->out : f->err, rank, data, len, partial);
}

static bool agent_messages_on_output(struct front *f, struct xr_unpacker *u)
{
    uint32_t rank = xr_unpack_u32(u), stream = xr_unpack_u32(u), flags = xr_unpack_u32(u);
    size_t len;
    const char *data = xr_unpack_bytes(u, &len);
    struct node *n = node_of(f, rank);

    if (!xr_unpack_done(u) || (stream != 1 && stream != 2) || !n)
        return false;
    agent_messages_put_output(f, rank, stream, data, len, flags & XR_OUT_PARTIAL);
    n->owed += (uint32_t)len;
    if (f->files ||
        (xr_stream_backlog(f->out) <= STALL_AT && xr_stream_backlog(f->err) <= STALL_AT))
        xr_front_pay(f, n, TELL_AT);
    return true;
}

/* The agent writes standard output itself and cannot. */
static bool agent_messages_on_broken(struct front *f, struct xr_unpacker *u)
{
    uint32_t error = xr_unpack_u32(u);

    if (!xr_unpack_done(u) || !f->direct)
        return false;
    xr_front_stream_ops.on_broken(f, f->out, (int)error);
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

static bool on_exited(struct front *f, struct xr_unpacker *u)
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
    xr_front_jobs_ended(f, rank, failed, WIFSIGNALED(status));
    if (f->ending || !failed) /* what follows from an end is no news */
        return true;
    if (f->options->go_on && f->nnodes > 1)
        tell_death(f, rank, WIFSIGNALED(status));
    xr_front_failed(f, &failure);
    return true;
}

static bool agent_messages_on_abort(struct front *f, struct xr_unpacker *u)
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

static bool agent_messages_on_log(struct front *f, struct xr_unpacker *u)
{
    uint32_t rank = xr_unpack_u32(u), stream = xr_unpack_u32(u);
    size_t len;
    const char *data = xr_unpack_bytes(u, &len);

    if (!xr_unpack_done(u) || (stream != 1 && stream != 2))
        return false;
    agent_messages_put_output(f, rank, stream, data, len, len > 0 && data[len - 1] != '\n');
    return true;
}

/* The ranks of a host read no more; if nobody does, the input stays with whoever else has it. */
static void on_input_closed(struct front *f, uint32_t host)
{
    if (!f->feed || !xr_feed_reads(f->feed, host))
        return;
    xr_reader_credit(f->reader, xr_feed_gone(f->feed, host));
    if (xr_feed_any(f->feed))
        return;
    xr_reader_close(f->reader);
    f->reader = NULL;
}

/* An agent is gone, and so is all below it. */
static void agent_messages_lose(struct front *f, uint32_t top, const char *why)
{
    struct xr_packer p = {0};
    uint32_t lost = 0;

    for (uint32_t i = 0; i < f->nnodes; i++) {
        struct node *n = &f->nodes[i];
        if (n->gone || !xr_tree_below(f->tree, top, i))
            continue;
        n->gone = true;
        on_input_closed(f, i);
        xr_gone_note(f->gone, XR_GONE_AGENT, i);
        if (n->done)
            continue;
        xr_front_jobs_lost(f, i);
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

static bool on_node_text(struct front *f, uint32_t kind, struct xr_unpacker *u)
{
    uint32_t node = xr_unpack_u32(u);
    const char *text = xr_unpack_string(u);

    if (!xr_unpack_done(u) || !text || node >= f->nnodes)
        return false;
    if (kind == XR_MSG_LOST)
        agent_messages_lose(f, node, text);
    else
        xr_front_on_branch_failed(f, node, text);
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
        xr_front_jobs_notice(f, &notice);
    xr_notice_pack(&notice, &p);
    xr_tree_send(f->tree, XR_NODE_ALL, XR_MSG_NOTICE, &p);
    return true;
}

static bool any_joined(const struct front *f)
{
    for (uint32_t i = 0; i < f->job->napps; i++) {
        if (f->joins[i].joined)
            return true;
    }
    return false;
}

/* One line a job. A single rank that does not join others' job may have its reasons. */
static void say_alone(struct front *f, uint32_t app)
{
    const struct xr_app *of = &f->job->apps[app];
    char who[80];

    if (f->alone || f->ending || f->joins[app].joined || !f->joins[app].uses || (of->n < 2 && any_joined(f)))
        return;
    f->alone = true;
    if (of->n == 1)
        snprintf(who, sizeof(who), "rank %u has not joined the job although its", of->first);
    else if (f->job->napps == 1)
        snprintf(who, sizeof(who), "none of the %u ranks has joined the job although their", of->n);
    else
        snprintf(who, sizeof(who), "none of ranks %u to %u has joined the job although their", of->first, of->first + of->n - 1);
    xr_stream_say(f->err, "xrun: warning: %s program uses %s: %s is rank 0 of 1 to itself; use an MPI that speaks PMIx or "
                          "PMI-1, or its own launcher",
                  who, f->joins[app].uses, of->n == 1 ? "it" : "each");
}

/* If those who have not joined have ended, others may do so yet. */
static bool agent_messages_on_alone(struct front *f, struct xr_unpacker *u)
{
    uint32_t node = xr_unpack_u32(u), app = xr_unpack_u32(u), over = xr_unpack_u32(u);
    const char *uses = xr_unpack_string(u);

    if (!xr_unpack_done(u) || !uses || node >= f->nnodes || app >= f->job->napps)
        return false;
    if (!f->joins[app].uses)
        f->joins[app].uses = strdup(uses);
    if (!over)
        say_alone(f, app);
    return true;
}

static bool on_joined(struct front *f, struct xr_unpacker *u)
{
    uint32_t node = xr_unpack_u32(u), app = xr_unpack_u32(u);

    if (!xr_unpack_done(u) || node >= f->nnodes || app >= f->job->napps)
        return false;
    f->joins[app].joined = true;
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
        say_alone(f, i);
    if (f->done)
        xr_front_jobs_over(f);
    if (f->done && !xr_front_jobs_running(f) && !xr_stream_backlog(f->out) && !xr_stream_backlog(f->err))
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
        return on_refused(f, u);
    case XR_MSG_OUTPUT:
        return agent_messages_on_output(f, u);
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
        on_input_closed(f, node);
        return true;
    case XR_MSG_EXITED:
        return on_exited(f, u);
    case XR_MSG_ABORT:
        return agent_messages_on_abort(f, u);
    case XR_MSG_LOG:
        return agent_messages_on_log(f, u);
    case XR_MSG_FAILED:
    case XR_MSG_LOST:
        return on_node_text(f, kind, u);
    case XR_MSG_PLACED:
    case XR_MSG_USAGE:
        return xr_report_message(f->report, kind, u);
    case XR_MSG_BROKEN:
        return agent_messages_on_broken(f, u);
    case XR_MSG_CLIENT_LOST:
        xr_front_jobs_broken(f, u);
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
        return on_joined(f, u);
    case XR_MSG_ALONE:
        return agent_messages_on_alone(f, u);
    case XR_MSG_DONE:
        return agent_messages_on_done(f, u);
    case XR_MSG_ERRAND:
    case XR_MSG_MODEX_ANSWER:
        return xr_front_jobs_take(f, kind, u);
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
        xr_front_jobs_still(f, still);
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
        xr_front_jobs_over(f);
    }
    xr_front_leave_if_over(f);
}

static void agent_messages_on_child_gone(void *arg, uint32_t node, const char *why)
{
    struct front *f = arg;

    agent_messages_lose(f, node, why);
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

/* front.c: see front.h. */
#include "launcher/front.h"
#include "launcher/assign.h"
#include "launcher/branches.h"
#include "launcher/descend.h"
#include "launcher/feed.h"
#include "launcher/keeper.h"
#include "launcher/fences.h"
#include "launcher/life.h"
#include "launcher/leftovers.h"
#include "launcher/message.h"
#include "launcher/muster.h"
#include "launcher/output_dir.h"
#include "launcher/program.h"
#include "launcher/reader.h"
#include "launcher/job_report.h"
#include "launcher/streams.h"
#include "launcher/verdict.h"
#include "launcher/tree.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAILURE_GRACE_MS 400 /* a failed job is gone within a second */
#define SIGNAL_GRACE_MS 2000 /* what a user interrupts may want to save something */
#define SILENT_MS 1000       /* a job that had to end does not wait longer for a reader that stands still */
#define STALL_AT (1 << 20)   /* bytes queued for the user: agents are not told that they are passed on */
#define TELL_AT (32 << 10)   /* bytes passed on that are worth a message */
#define START_TIMEOUT_S 60
#define LINGER_MS 3000       /* for the commands that started agents to end after these */

/* A host of the job. */
struct node {
    bool done, gone; /* all of it has ended well; its agent is no more */
    uint32_t owed;   /* bytes of its output that have come, but not been passed on as far as it knows */
};

struct front {
    const struct rk_options *options;
    struct rk_job *job;
    struct rk_plan *plan;
    struct rk_setup setup;
    struct event_base *base;
    struct rk_tree *tree;
    struct rk_branches *branches; /* NULL: no agents of other hosts */
    struct rk_muster *muster;     /* NULL: all are known */
    struct rk_fences *fences;
    struct node *nodes; /* [nnodes] */
    uint32_t nnodes, ndone;
    pid_t keeper;
    char host[256];
    struct rk_stream *out, *err;
    struct rk_output_dir *files; /* NULL: output goes to out and err */
    bool lost; /* not all output could be written into files */
    struct rk_reader *reader;
    struct rk_feed *feed; /* with a reader */
    struct rk_user_terminal *terminal; /* with --pty */
    struct rk_report *report; /* with --json */
    struct event *signals[12];
    int nsignals;
    struct rk_life *life;
    struct event *timeout, *silence, *linger;
    int code;         /* what xrun exits with */
    bool judged;      /* code is final */
    bool ending;      /* the agents were told to end the job */
    bool told;        /* the agents know the job */
    bool forced;      /* by a time-out or a signal, not by the job itself */
    bool done;        /* all agents said so */
    bool given_up;    /* it takes too long; stack traces may still be made */
    int interrupts;
    uint64_t forked_ns, told_ns, seen_written;
};

/* --------------------------------------------------------------------- ending */

static void on_linger(evutil_socket_t fd, short what, void *arg)
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
static void leave_if_over(struct front *f)
{
    const struct timeval linger = {LINGER_MS / 1000, LINGER_MS % 1000 * 1000};

    if (rk_tree_child_count(f->tree) || rk_stream_backlog(f->out) || rk_stream_backlog(f->err))
        return;
    if (rk_branches_pids(f->branches, NULL, SIZE_MAX) == 0)
        event_base_loopexit(f->base, NULL);
    else if (!event_pending(f->linger, EV_TIMEOUT, NULL))
        event_add(f->linger, &linger);
}

static uint32_t grace(const struct front *f, uint32_t dflt_ms)
{
    return f->options->kill_grace < 0 ? dflt_ms : (uint32_t)(f->options->kill_grace * 1000);
}

/* sig: what the ranks get first. */
static void end_job_by(struct front *f, int sig, uint32_t grace_ms)
{
    struct rk_packer p = {0};

    if (f->done)
        return;
    f->ending = true;
    rk_branches_shut_door(f->branches);
    rk_pack_u32(&p, grace_ms);
    rk_pack_u32(&p, (uint32_t)sig);
    rk_tree_send(f->tree, RK_NODE_ALL, RK_MSG_END, &p);
    leave_if_over(f);
}

static void end_job(struct front *f)
{
    end_job_by(f, SIGTERM, grace(f, FAILURE_GRACE_MS));
}

static void on_branch_failed(void *arg, uint32_t node, const char *text);

/* The first reason counts. */
static void judge(struct front *f, int code)
{
    if (!f->judged)
        f->code = code;
    f->judged = true;
}


/* After a forced end: go as soon as the reader of our output stands still. */
static void on_silence(evutil_socket_t fd, short what, void *arg)
{
    const struct timeval again = {SILENT_MS / 1000, SILENT_MS % 1000 * 1000};
    struct front *f = arg;
    uint64_t written = rk_stream_written(f->out) + rk_stream_written(f->err);

    (void)fd;
    (void)what;
    if (written == f->seen_written && rk_stream_backlog(f->out) + rk_stream_backlog(f->err) > 0) {
        event_base_loopexit(f->base, NULL);
        return;
    }
    f->seen_written = written;
    event_add(f->silence, &again);
}

static void force(struct front *f, int code, int sig, uint32_t grace_ms)
{
    const struct timeval first = {(SILENT_MS + grace_ms) / 1000,
                                  (SILENT_MS + grace_ms) % 1000 * 1000};

    judge(f, code);
    f->forced = true;
    f->seen_written = rk_stream_written(f->out) + rk_stream_written(f->err);
    event_add(f->silence, &first);
    end_job_by(f, sig, grace_ms);
}

static void force_after_traces(void *arg)
{
    struct front *f = arg;

    if (!f->done && !f->ending)
        force(f, RK_EXIT_TIMEOUT, SIGTERM, grace(f, FAILURE_GRACE_MS));
}

/* The job takes too long: end it, if wanted after its stack traces. */
static void give_up(struct front *f)
{
    f->given_up = true;
    judge(f, RK_EXIT_TIMEOUT);
    if (f->options->timeout_traces && f->life)
        rk_life_trace(f->life, force_after_traces, f);
    else
        force_after_traces(f);
}

static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct front *f = arg;

    (void)fd;
    (void)what;
    if (f->done || f->ending || f->given_up)
        return;
    rk_report_cause(f->report, "timeout");
    rk_stream_say(f->err, "xrun: error: the job did not end within %g s (--timeout); ending it",
                  f->options->timeout);
    give_up(f);
}

/* -------------------------------------------------------------------- signals */

static void forward(struct front *f, int sig)
{
    struct rk_packer p = {0};

    if (f->done)
        return;
    rk_pack_u32(&p, (uint32_t)sig);
    rk_tree_send(f->tree, RK_NODE_ALL, RK_MSG_SIGNAL, &p);
}

static void on_end_signal(evutil_socket_t sig, short what, void *arg)
{
    struct front *f = arg;

    (void)what;
    rk_report_cause(f->report, "signal %d (%s)", (int)sig, strsignal(sig));
    if (++f->interrupts == 1) {
        if (!f->options->quiet)
            rk_stream_say(f->err, "xrun: got %s; ending the job (once more to kill it at once)",
                          strsignal(sig));
        force(f, 128 + sig, sig, grace(f, SIGNAL_GRACE_MS));
    } else {
        force(f, 128 + sig, sig, 0);
    }
    /* Nobody reads our output and the user insists. */
    if (f->interrupts > 2 && !rk_tree_child_count(f->tree))
        event_base_loopexit(f->base, NULL);
}

static void on_forward_signal(evutil_socket_t sig, short what, void *arg)
{
    (void)what;
    forward(arg, sig);
}

static void stop_self(evutil_socket_t fd, short what, void *arg)
{
    struct front *f = arg;

    (void)fd;
    (void)what;
    rk_user_terminal_give_back(f->terminal);
    raise(SIGSTOP); /* the SIGCONT that ends it is handed on as any other */
    rk_user_terminal_take(f->terminal);
    rk_reader_wake(f->reader);
}

/* ^Z stops the ranks and, once the loop has sent that off, xrun; fg goes on with both. */
static void on_stop(evutil_socket_t sig, short what, void *arg)
{
    const struct timeval soon = {0, 10000};
    struct front *f = arg;

    (void)sig;
    (void)what;
    forward(f, SIGSTOP);
    event_base_once(f->base, -1, EV_TIMEOUT, stop_self, f, &soon);
}

/* Orphans of a dead keeper come to us too; those are for end_all. */
static void on_child(evutil_socket_t sig, short what, void *arg)
{
    struct front *f = arg;
    size_t n = rk_branches_pids(f->branches, NULL, SIZE_MAX);
    pid_t *pids = n ? calloc(n, sizeof(*pids)) : NULL;
    int status;

    (void)sig;
    (void)what;
    if (f->keeper > 0 && waitpid(f->keeper, &status, WNOHANG) == f->keeper)
        f->keeper = 0;
    n = pids ? rk_branches_pids(f->branches, pids, n) : 0;
    for (size_t i = 0; i < n; i++) {
        if (waitpid(pids[i], &status, WNOHANG) == pids[i])
            rk_branches_reaped(f->branches, pids[i], status);
    }
    free(pids);
    if (n)
        leave_if_over(f);
}

static rank_status_t watch_signal(struct front *f, int sig, event_callback_fn fn)
{
    struct sigaction old;
    struct event *ev;

    /* What is ignored stays so (nohup, a background job of an old shell). */
    if (sigaction(sig, NULL, &old) == 0 && old.sa_handler == SIG_IGN && sig != SIGCHLD &&
        sig != SIGCONT)
        return RANK_OK;
    ev = evsignal_new(f->base, sig, fn, f);
    if (!ev || event_add(ev, NULL)) {
        if (ev)
            event_free(ev);
        return RANK_ERR_NO_MEMORY;
    }
    f->signals[f->nsignals++] = ev;
    return RANK_OK;
}

static rank_status_t watch_signals(struct front *f)
{
    static const struct {
        int sig;
        event_callback_fn fn;
    } wanted[] = {{SIGCHLD, on_child},          {SIGINT, on_end_signal},
                  {SIGTERM, on_end_signal},     {SIGHUP, on_end_signal},
                  {SIGUSR1, on_forward_signal}, {SIGUSR2, on_forward_signal},
                  {SIGWINCH, on_forward_signal},
                  {SIGCONT, on_forward_signal}, {SIGTSTP, on_stop}};

    for (size_t i = 0; i < RK_ARRAY_LEN(wanted); i++) {
        rank_status_t st = watch_signal(f, wanted[i].sig, wanted[i].fn);
        if (st)
            return st;
    }
    return RANK_OK;
}

/* ------------------------------------------------------------- the agent's words */

static bool show_budget(struct front *f, struct rk_unpacker *u)
{
    uint32_t node = rk_unpack_u32(u), n = rk_unpack_u32(u);
    uint64_t now = rk_clock_ns();
    char line[512];
    int len;

    struct rk_report *report;

    if (node >= f->nnodes)
        return false;
    report = node == f->job->host_of[0] ? f->report : NULL; /* of one for all */
    rk_report_phase(report, "front end", f->forked_ns - f->job->started_ns);
    rk_report_phase(report, "agent", f->told_ns - f->forked_ns);
    len = snprintf(line, sizeof(line), "xrun: start-up in ms: front end %.2f, agent %.2f",
                   (double)(f->forked_ns - f->job->started_ns) * 1e-6,
                   (double)(f->told_ns - f->forked_ns) * 1e-6);
    for (uint32_t i = 0; i < n && i < 16 && len < (int)sizeof(line); i++) {
        const char *name = rk_unpack_string(u);
        uint64_t ns = rk_unpack_u64(u);
        if (!name)
            break;
        len += snprintf(line + len, sizeof(line) - (size_t)len, ", %s %.2f", name,
                        (double)ns * 1e-6);
        rk_report_phase(f->report, name, ns);
    }
    rk_report_phase(report, "total", now - f->job->started_ns);
    if (f->options->verbose)
        rk_stream_say(f->err, "%s; in all %.2f for %u ranks on %s", line,
                      (double)(now - f->job->started_ns) * 1e-6,
                      f->plan->placement.host[node].ranks, f->job->hosts[node]);
    return true;
}

static bool on_refused(struct front *f, struct rk_unpacker *u)
{
    uint32_t node = rk_unpack_u32(u), code = rk_unpack_u32(u);
    const char *text = rk_unpack_string(u);

    if (!rk_unpack_done(u) || !text || node >= f->nnodes)
        return false;
    if (f->ending)
        return true;
    rk_report_cause(f->report, "%s", text);
    rk_stream_say(f->err, "xrun: error: %s", text);
    judge(f, (int)code);
    if (f->nnodes > 1)
        end_job_by(f, SIGTERM, 0); /* those that have started elsewhere */
    f->ending = true;
    return true;
}

/* The host that a rank runs on, or NULL. */
static struct node *node_of(struct front *f, uint32_t rank)
{
    return f->told && rank < f->job->size ? &f->nodes[f->job->host_of[rank]] : NULL;
}

static const char *host_of(const struct front *f, uint32_t rank)
{
    return f->told && rank < f->job->size ? f->job->hosts[f->job->host_of[rank]] : f->host;
}

/* Tell an agent that so much of its output is where the user wants it. */
static void pay(struct front *f, struct node *n, uint32_t least)
{
    struct rk_packer p = {0};

    if (n->owed < least || n->owed == 0 || n->gone)
        return;
    rk_pack_u32(&p, n->owed);
    rk_tree_send(f->tree, (uint32_t)(n - f->nodes), RK_MSG_OUTPUT_TAKEN, &p);
    n->owed = 0;
}

static void put_output(struct front *f, uint32_t rank, uint32_t stream, const char *data,
                       size_t len, bool partial)
{
    if (f->files)
        rk_output_dir_put(f->files, rank, (int)stream, data, len, partial);
    else
        rk_stream_put(stream == 1 ? f->out : f->err, rank, data, len, partial);
}

static bool on_output(struct front *f, struct rk_unpacker *u)
{
    uint32_t rank = rk_unpack_u32(u), stream = rk_unpack_u32(u), flags = rk_unpack_u32(u);
    size_t len;
    const char *data = rk_unpack_bytes(u, &len);
    struct node *n = node_of(f, rank);

    if (!rk_unpack_done(u) || (stream != 1 && stream != 2) || !n)
        return false;
    put_output(f, rank, stream, data, len, flags & RK_OUT_PARTIAL);
    n->owed += (uint32_t)len;
    if (f->files ||
        (rk_stream_backlog(f->out) <= STALL_AT && rk_stream_backlog(f->err) <= STALL_AT))
        pay(f, n, TELL_AT);
    return true;
}

/* The agent of the rank's own host knows. */
static void tell_death(struct front *f, uint32_t rank, bool by_signal)
{
    struct rk_packer p = {0};

    rk_pack_u32(&p, rank);
    rk_pack_u32(&p, by_signal);
    rk_tree_send(f->tree, RK_NODE_ALL, RK_MSG_DIED, &p);
}

static bool on_exited(struct front *f, struct rk_unpacker *u)
{
    uint32_t rank = rk_unpack_u32(u), pid = rk_unpack_u32(u);
    int status = (int)rk_unpack_u32(u);
    uint64_t lived = rk_unpack_u64(u);
    bool unfinished = rk_unpack_u32(u) & RK_EXIT_UNFINISHED, failed;
    char how[160], time[32];

    if (!rk_unpack_done(u))
        return false;
    rk_life_exited(f->life, rank);
    rk_report_exited(f->report, rank, pid, status, lived, unfinished);
    if (rank == f->job->pty)
        rk_user_terminal_give_back(f->terminal);
    failed = rk_verdict_failed(status, unfinished);
    rk_verdict_how(status, unfinished, how, sizeof(how));
    rk_verdict_time(lived, time, sizeof(time));
    if (f->ending || !failed) /* what follows from an end is no news */
        return true;
    if (f->options->go_on && f->nnodes > 1)
        tell_death(f, rank, WIFSIGNALED(status));
    rk_report_cause(f->report, "rank %u %s", rank, how);
    rk_stream_say(f->err, "xrun: error: rank %u (host %s, pid %u) %s after %s%s", rank, host_of(f, rank),
                  pid, how, time, f->options->go_on ? "; the others go on" : "; ending the job");
    judge(f, rk_verdict_code(status, unfinished));
    if (!f->options->go_on)
        end_job(f);
    return true;
}

static bool on_abort(struct front *f, struct rk_unpacker *u)
{
    uint32_t rank = rk_unpack_u32(u), pid = rk_unpack_u32(u);
    int code = (int)rk_unpack_u32(u);
    const char *text = rk_unpack_string(u);

    if (!rk_unpack_done(u))
        return false;
    if (f->ending)
        return true;
    rk_report_cause(f->report, "rank %u aborted with code %d%s%s", rank, code,
                    text && *text ? ": " : "", text ? text : "");
    rk_stream_say(f->err, "xrun: error: rank %u (host %s, pid %u) aborted the job with code %d%s%s",
                  rank, host_of(f, rank), pid, code, text && *text ? ": " : "", text ? text : "");
    judge(f, rk_verdict_abort_code(code));
    end_job(f);
    return true;
}

static bool on_log(struct front *f, struct rk_unpacker *u)
{
    uint32_t rank = rk_unpack_u32(u), stream = rk_unpack_u32(u);
    size_t len;
    const char *data = rk_unpack_bytes(u, &len);

    if (!rk_unpack_done(u) || (stream != 1 && stream != 2))
        return false;
    put_output(f, rank, stream, data, len, len > 0 && data[len - 1] != '\n');
    return true;
}

/* The ranks of a host read no more; if nobody does, the input stays with whoever else has it. */
static void on_input_closed(struct front *f, uint32_t host)
{
    if (!f->feed || !rk_feed_reads(f->feed, host))
        return;
    rk_reader_credit(f->reader, rk_feed_gone(f->feed, host));
    if (rk_feed_any(f->feed))
        return;
    rk_reader_close(f->reader);
    f->reader = NULL;
}

/* An agent is gone, and so is all below it. */
static void lose(struct front *f, uint32_t top, const char *why)
{
    struct rk_packer p = {0};
    uint32_t lost = 0;

    for (uint32_t i = 0; i < f->nnodes; i++) {
        struct node *n = &f->nodes[i];
        if (n->gone || !rk_tree_below(f->tree, top, i))
            continue;
        n->gone = true;
        on_input_closed(f, i);
        if (n->done)
            continue;
        lost++;
        for (uint32_t r = 0; f->told && f->options->go_on && !f->ending && r < f->job->size; r++) {
            if (f->job->host_of[r] == i)
                tell_death(f, r, true);
        }
    }
    if (lost == 0)
        return;
    rk_branches_lost(f->branches, top);
    if (!f->ending) {
        rk_report_cause(f->report, "the agent on %s died", rk_plan_name(f->plan, top));
        rk_stream_say(f->err, "xrun: error: the agent on %s died%s%s%s", rk_plan_name(f->plan, top),
                      why && *why ? ": " : "", why ? why : "",
                      f->options->go_on && f->nnodes > 1 ? "; the others go on"
                                                         : "; its ranks end with it");
        judge(f, 1);
    }
    rk_pack_u32(&p, top);
    rk_pack_string(&p, "");
    rk_tree_send(f->tree, RK_NODE_ALL, RK_MSG_LOST, &p);
    if (!f->options->go_on || !f->told)
        end_job(f);
}

static bool on_node_text(struct front *f, uint32_t kind, struct rk_unpacker *u)
{
    uint32_t node = rk_unpack_u32(u);
    const char *text = rk_unpack_string(u);

    if (!rk_unpack_done(u) || !text || node >= f->nnodes)
        return false;
    if (kind == RK_MSG_LOST)
        lose(f, node, text);
    else
        on_branch_failed(f, node, text);
    return true;
}

static bool on_done(struct front *f, struct rk_unpacker *u)
{
    uint32_t node = rk_unpack_u32(u);

    if (!rk_unpack_done(u) || node >= f->nnodes || f->nodes[node].done)
        return false;
    f->nodes[node].done = true;
    f->done = ++f->ndone == f->nnodes;
    return true;
}

static bool on_warning(struct front *f, struct rk_unpacker *u)
{
    const char *text = rk_unpack_string(u);

    if (!rk_unpack_done(u) || !text)
        return false;
    rk_stream_say(f->err, "xrun: warning: %s", text);
    return true;
}

static bool on_message(void *arg, uint32_t kind, struct rk_unpacker *u)
{
    struct front *f = arg;
    bool mine, fine;
    uint32_t n, node;

    switch (kind) {
    case RK_MSG_READY:
    case RK_MSG_TOPOLOGY:
        return f->muster && rk_muster_take(f->muster, kind, u);
    case RK_MSG_STARTED:
        return show_budget(f, u);
    case RK_MSG_REFUSED:
        return on_refused(f, u);
    case RK_MSG_OUTPUT:
        return on_output(f, u);
    case RK_MSG_INPUT_TAKEN:
        node = rk_unpack_u32(u);
        n = rk_unpack_u32(u);
        if (!rk_unpack_done(u) || node >= f->nnodes)
            return false;
        if (f->feed)
            rk_reader_credit(f->reader, rk_feed_taken(f->feed, node, n));
        return true;
    case RK_MSG_INPUT_CLOSED:
        node = rk_unpack_u32(u);
        if (!rk_unpack_done(u) || node >= f->nnodes)
            return false;
        on_input_closed(f, node);
        return true;
    case RK_MSG_EXITED:
        return on_exited(f, u);
    case RK_MSG_ABORT:
        return on_abort(f, u);
    case RK_MSG_LOG:
        return on_log(f, u);
    case RK_MSG_FAILED:
    case RK_MSG_LOST:
        return on_node_text(f, kind, u);
    case RK_MSG_PLACED:
    case RK_MSG_USAGE:
        return rk_report_message(f->report, kind, u);
    case RK_MSG_WARNING:
        return on_warning(f, u);
    case RK_MSG_DONE:
        return on_done(f, u);
    default:
        fine = f->life && rk_life_message(f->life, kind, u, &mine);
        return mine && fine;
    }
}

/* ------------------------------------------------------------------- signs of life */

static int send_to_agents(void *arg, uint32_t kind, struct rk_packer *p)
{
    struct front *f = arg;
    int n = 0;

    for (uint32_t i = 0; i < f->nnodes; i++)
        n += f->told && !f->nodes[i].done && !f->nodes[i].gone && f->plan->placement.host[i].ranks > 0;
    if (n == 0 || f->done)
        rk_packer_free(p);
    else
        rk_tree_send(f->tree, RK_NODE_ALL, kind, p);
    return f->done ? 0 : n;
}

static void on_hopeless(void *arg)
{
    struct front *f = arg;

    if (f->done || f->ending || f->given_up)
        return;
    rk_stream_say(f->err, "xrun: error: no rank makes progress (--heartbeat %g:kill); ending the job",
                  f->options->heartbeat);
    give_up(f);
}

static const struct rk_life_ops life_ops = {send_to_agents, on_hopeless};

static bool on_step(void *arg, uint32_t from, uint32_t kind, struct rk_unpacker *u)
{
    struct front *f = arg;

    return kind == RK_MSG_FENCE_UP && f->fences && rk_fences_take(f->fences, from, kind, u);
}

static void on_child_gone(void *arg, uint32_t node, const char *why)
{
    struct front *f = arg;

    if (f->fences)
        rk_fences_lost(f->fences, node);
    lose(f, node, why);
    if (rk_tree_child_count(f->tree) == 0) {
        rk_reader_close(f->reader);
        f->reader = NULL;
    }
    leave_if_over(f);
}

static void on_parent_gone(void *arg, const char *why)
{
    (void)arg;
    (void)why;
}

static const struct rk_tree_ops tree_ops = {on_message, on_step, on_child_gone, on_parent_gone, NULL};

/* ----------------------------------------------------------- the user's streams */

static void on_drained(void *arg)
{
    struct front *f = arg;

    for (uint32_t i = 0; i < f->nnodes; i++)
        pay(f, &f->nodes[i], 1);
    leave_if_over(f);
}

static void on_broken(void *arg, struct rk_stream *stream, int error)
{
    struct front *f = arg;

    if (stream == f->out && error != EPIPE)
        rk_stream_say(f->err, "xrun: error: cannot write the output: %s; ending the job",
                      strerror(error));
    rk_report_cause(f->report, "the output cannot be written: %s", strerror(error));
    judge(f, error == EPIPE ? 128 + SIGPIPE : 1);
    end_job(f);
}

static const struct rk_stream_ops stream_ops = {on_drained, on_broken};

/* The job itself is well: xrun's exit code says it at the end. */
static void on_lost(void *arg, const char *file, int error)
{
    struct front *f = arg;

    f->lost = true;
    rk_stream_say(f->err, "xrun: error: cannot write %s: %s; output is lost, the job goes on", file,
                  strerror(error));
}

static void on_input(void *arg, const void *data, size_t len)
{
    struct front *f = arg;
    struct rk_packer p = {0};

    if (!f->told)
        return;
    /* The payload is the bytes themselves. */
    p.data = len ? malloc(len) : NULL;
    p.failed = len && !p.data;
    if (p.data)
        memcpy(p.data, data, len);
    p.len = p.cap = len;
    if (f->job->input == RK_INPUT_ALL)
        rk_tree_send(f->tree, RK_NODE_ALL, RK_MSG_INPUT, &p);
    else
        rk_tree_send(f->tree, f->job->host_of[f->job->input], RK_MSG_INPUT, &p);
    rk_feed_sent(f->feed, (uint32_t)len);
}

/* With --pty. */
static void on_resize(void *arg, const struct rk_window *window)
{
    struct front *f = arg;
    struct rk_packer p = {0};

    if (f->done)
        return;
    rk_pack_u32(&p, window->rows);
    rk_pack_u32(&p, window->cols);
    rk_tree_send(f->tree, f->job->host_of[f->job->pty], RK_MSG_WINDOW, &p);
}

static rank_status_t open_input(struct front *f)
{
    bool keys = f->job->input == RK_INPUT_ALL || f->job->input == f->job->pty;

    if (f->job->pty != RK_PTY_NONE) {
        f->terminal = rk_user_terminal_open(f->base, keys, on_resize, f);
        if (!f->terminal)
            return RANK_ERR_NO_MEMORY;
    }
    if (f->job->input == RK_INPUT_NONE)
        return RANK_OK;
    f->feed = rk_feed_open(f->nnodes);
    if (!f->feed)
        return RANK_ERR_NO_MEMORY;
    for (uint32_t i = 0; i < f->nnodes; i++) {
        if (f->job->input == RK_INPUT_ALL ? f->plan->placement.host[i].ranks == 0
                                          : f->job->host_of[f->job->input] != i)
            rk_feed_gone(f->feed, i);
    }
    return rk_reader_open(f->base, STDIN_FILENO, on_input, f, &f->reader);
}

/* -------------------------------------------------------------- start and end */

/* Before there is an event loop: the agent has its own, and one process can have only one that
 * handles signals. *fd: this end of the wire. */
static rank_status_t start_agent(struct front *f, int *fd)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
        rk_error("no socket pair for the agent: %m");
        return RANK_ERR_SYSTEM;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* should keeper and agent both be killed */
    f->keeper = rk_keeper_start(ends[1], ends[0], &f->setup, f->job->id);
    close(ends[1]);
    if (f->keeper < 0) {
        rk_error("cannot create a process for the agent: %m");
        close(ends[0]);
        return RANK_ERR_SYSTEM;
    }
    *fd = ends[0];
    return RANK_OK;
}

/* A host that has more ranks than cores gets one line; many such hosts get one too. */
static void say_oversubscribed(struct front *f)
{
    const struct rk_placement *placed = &f->plan->placement;
    uint32_t hosts = 0, first = 0;

    for (uint32_t i = f->nnodes; i-- > 0;) {
        if (placed->host[i].oversubscribed) {
            hosts++;
            first = i;
        }
    }
    if (hosts == 0 || f->options->quiet || f->options->where.request.bind == RK_BIND_NONE)
        return;
    rk_stream_say(f->err, "xrun: %u ranks share %u core%s on %s%s: nobody is bound, and waiting ranks yield",
                  placed->host[first].ranks, placed->host[first].units,
                  placed->host[first].units == 1 ? "" : "s", f->job->hosts[first],
                  hosts > 1 ? " (and more such hosts)" : "");
}

static const char *label_host(void *arg, uint32_t rank)
{
    return host_of(arg, rank);
}

static struct rk_label label_of(struct front *f)
{
    return (struct rk_label){.time = f->options->timestamp,
                             .rank = f->options->tag_output,
                             .host = f->options->label_host ? label_host : NULL,
                             .host_arg = f};
}

/* All is known: place the ranks, and tell the agents. */
static rank_status_t send_job(struct front *f)
{
    struct rk_packer p = {0};
    struct rk_label label;
    rank_status_t st = rk_assign_map(f->plan, f->setup.fanout, f->job);

    if (!st)
        st = rk_fences_open(f->tree, f->job, RK_NODE_FRONT, NULL, NULL, &f->fences);
    label = label_of(f);
    if (!st && f->options->output_dir)
        st = rk_output_dir_open(f->base, f->options->output_dir, f->job->size, &label, on_lost, f,
                                &f->files);
    if (!st)
        st = rk_life_open(f->base, f->options, f->job, f->host, f->err, &life_ops, f, &f->life);
    if (st)
        return st;
    f->told = true;
    f->told_ns = rk_clock_ns();
    for (uint32_t i = 0; !st && i < f->nnodes; i++) {
        st = rk_assign_seats(f->plan, i, &p);
        rk_tree_send(f->tree, i, RK_MSG_SEATS, &p);
    }
    rk_job_pack(f->job, &p);
    if (p.failed)
        st = RANK_ERR_NO_MEMORY;
    rk_tree_send(f->tree, RK_NODE_ALL, RK_MSG_JOB, &p);
    if (!st)
        say_oversubscribed(f);
    if (!st)
        rk_life_started(f->life);
    return st;
}

/* ------------------------------------------------------------ agents of other hosts */

static void fail(struct front *f, const char *text)
{
    if (f->ending)
        return;
    rk_stream_say(f->err, "xrun: error: %s", text);
    judge(f, 1);
    end_job_by(f, SIGTERM, 0);
}

static void on_branch_failed(void *arg, uint32_t node, const char *text)
{
    struct front *f = arg;

    if (!f->ending)
        rk_stream_say(f->err, "xrun: error: host %s: %s", f->plan->hosts.host[node].name, text);
    judge(f, 1);
    if (!f->ending)
        end_job_by(f, SIGTERM, 0);
}

static void on_branch_said(void *arg, uint32_t node, const char *line)
{
    struct front *f = arg;

    rk_stream_say(f->err, "%s: %s", f->plan->hosts.host[node].name, line);
}

static const struct rk_branch_ops branch_ops = {on_branch_failed, on_branch_said};

static bool open_report(struct front *f)
{
    char text[4096 + 128];

    if (!f->options->json || f->report || f->job->size == 0)
        return true;
    f->report = rk_report_open(f->options->json, f->job, text, sizeof(text));
    if (!f->report)
        rk_error("%s", text);
    return f->report != NULL;
}

static void on_all_here(void *arg)
{
    struct front *f = arg;
    char text[1024] = "";

    rk_branches_shut_door(f->branches);
    if (f->options->verbose)
        rk_stream_say(f->err, "xrun: %u hosts are there after %.2f ms", f->nnodes,
                      (double)(rk_clock_ns() - f->job->started_ns) * 1e-6);
    if (rk_assign_place(f->options, f->plan, text, sizeof(text))) {
        fail(f, text);
        f->code = 2;
    } else if (f->options->where.dry_run) {
        judge(f, 0);
        end_job_by(f, SIGTERM, 0);
    } else if (rk_assign_size(f->options, f->plan->placement.n, f->job, text, sizeof(text))) {
        fail(f, text);
        f->code = 2;
    } else if (!open_report(f)) {
        fail(f, "the report cannot be written");
    } else if (send_job(f) || open_input(f)) {
        fail(f, "out of memory");
    }
}

static void on_slow(void *arg, const char *line)
{
    struct front *f = arg;

    if (!f->options->quiet && !f->ending)
        rk_stream_say(f->err, "xrun: %s", line);
}

static void on_not_here(void *arg, const char *line)
{
    fail(arg, line);
}

static const struct rk_muster_ops muster_ops = {on_all_here, on_slow, on_not_here};

/* fd: to the agent of this host, or -1. */
static rank_status_t open_tree(struct front *f, int fd)
{
    double s = f->options->where.start_timeout;
    char text[1024] = "";
    rank_status_t st = rk_tree_open(f->base, RK_NODE_FRONT, f->nnodes, f->setup.fanout, &tree_ops, f, &f->tree);

    if (st || (fd >= 0 && (st = rk_tree_add_child(f->tree, f->plan->local, fd, false))))
        return st;
    if (!rk_plan_remote(f->plan))
        return send_job(f);
    st = rk_branches_open(f->base, f->tree, &f->setup, f->plan->local, &branch_ops, f, &f->branches,
                          text, sizeof(text));
    if (st)
        rk_error("%s", text);
    return st ? st : rk_muster_open(f->base, f->tree, f->plan, s > 0 ? s : START_TIMEOUT_S, &muster_ops,
                                    f, &f->muster);
}

static rank_status_t open_front(struct front *f)
{
    struct rk_label label = label_of(f);
    rank_status_t st;

    if (gethostname(f->host, sizeof(f->host) - 1))
        snprintf(f->host, sizeof(f->host), "localhost");
    f->base = event_base_new();
    if (!f->base)
        return RANK_ERR_NO_MEMORY;
    st = rk_stream_open(f->base, STDOUT_FILENO, &label, &stream_ops, f, &f->out);
    if (!st)
        st = rk_stream_open(f->base, STDERR_FILENO, &label, &stream_ops, f, &f->err);
    if (!st)
        st = watch_signals(f);
    f->silence = evtimer_new(f->base, on_silence, f);
    f->timeout = evtimer_new(f->base, on_timeout, f);
    f->linger = evtimer_new(f->base, on_linger, f);
    if (!st && (!f->silence || !f->timeout || !f->linger))
        st = RANK_ERR_NO_MEMORY;
    return st;
}

static void start_clock(struct front *f)
{
    double s = f->options->timeout;
    struct timeval t = {(time_t)s, (suseconds_t)((s - (double)(time_t)s) * 1e6)};

    if (s > 0)
        event_add(f->timeout, &t);
}

/* The keeper ends when all of the job has. If it was killed itself, its orphans are ours. */
static void end_all(struct front *f, const pid_t *before, size_t nbefore)
{
    int status = 0;
    pid_t pid;

    if (f->keeper > 0) {
        do
            pid = waitpid(f->keeper, &status, 0);
        while (pid < 0 && errno == EINTR);
    }
    if (!f->done && !rk_descend_end(5000, before, nbefore))
        rk_error("some processes of the job do not end although they were killed");
}

/* An agent that died could not remove what the libraries of its ranks left. */
static void remove_leftovers(const struct front *f)
{
    struct rk_leftovers *l;

    if (f->done || rk_leftovers_create(f->job->id, &l))
        return;
    rk_leftovers_remove(l);
    rk_leftovers_destroy(l);
}

static void close_front(struct front *f)
{
    rk_muster_close(f->muster);
    rk_branches_close(f->branches);
    rk_fences_close(f->fences);
    rk_tree_close(f->tree);
    rk_reader_close(f->reader);
    rk_feed_close(f->feed);
    rk_user_terminal_close(f->terminal);
    for (int i = 0; i < f->nsignals; i++)
        event_free(f->signals[i]);
    if (f->silence)
        event_free(f->silence);
    if (f->timeout)
        event_free(f->timeout);
    if (f->linger)
        event_free(f->linger);
    rk_life_close(f->life);
    rk_output_dir_close(f->files);
    rk_stream_close(f->out);
    rk_stream_close(f->err);
    if (f->base)
        event_base_free(f->base);
    free(f->nodes);
    rk_setup_clear(&f->setup);
}

int rk_front_run(const struct rk_options *options, struct rk_job *job, struct rk_plan *plan)
{
    struct front f = {.options = options, .job = job, .plan = plan, .forked_ns = rk_clock_ns(),
                      .nnodes = plan->hosts.n};
    size_t nbefore = 0;
    /* Whoever replaced itself by xrun may have left it children: those are not ours to end. */
    pid_t *before = rk_descend_children(&nbefore);
    int fd = -1;
    rank_status_t st;

    if (!open_report(&f)) {
        free(before);
        return RK_EXIT_USAGE;
    }
    st = rk_assign_setup(options, plan, &f.setup);
    f.nodes = calloc(f.nnodes, sizeof(*f.nodes));
    if (!f.nodes)
        st = RANK_ERR_NO_MEMORY;
    if (!st && plan->local != RK_NO_HOST)
        st = start_agent(&f, &fd);
    else if (!st)
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file that may grow no more is an error of write */
    if (!st)
        st = open_front(&f);
    if (!st)
        st = open_tree(&f, fd);
    else if (fd >= 0)
        close(fd);
    if (!st && f.told)
        st = open_input(&f);
    if (!st) {
        start_clock(&f);
        event_base_dispatch(f.base);
    } else {
        rk_error("xrun cannot start: %s", rank_status_string(st));
        judge(&f, 1);
    }
    if (f.options->verbose && rk_branches_strangers(f.branches))
        rk_stream_say(f.err, "xrun: %u strangers came to the door", rk_branches_strangers(f.branches));
    rk_tree_close(f.tree); /* who is still there ends what runs */
    f.tree = NULL;
    rk_branches_close(f.branches);
    f.branches = NULL;
    end_all(&f, before, nbefore);
    remove_leftovers(&f);
    if (f.lost)
        judge(&f, RK_EXIT_OUTPUT_LOST);
    if (!rk_report_write(f.report, f.code, f.lost))
        judge(&f, RK_EXIT_OUTPUT_LOST);
    rk_report_close(f.report);
    close_front(&f);
    free(before);
    return f.code;
}

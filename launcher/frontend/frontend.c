/* SPDX-License-Identifier: BSD-3-Clause */
/* frontend.c: open all that a job needs, run the loop, close it. See frontend.h. */
#include "launcher/frontend/agent_setup.h"
#include "launcher/exec/proc_tree.h"
#include "launcher/frontend/job_link.h"
#include "launcher/agent/supervisor.h"
#include "launcher/compat/shm_cleanup.h"
#include "launcher/exec/find_program.h"
#include "launcher/util/shell_words.h"
#include "launcher/frontend/spawned_xrun.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEEPER_MS 10000 /* for the keeper to end all that is below it: supervisor.c */

/* May the agent write standard output? See direct_out.h. */
static bool writes_itself(const struct front *f)
{
    const struct xr_options *o = f->options;

    return f->nnodes == 1 && !o->timestamp && !o->tag_output && !o->label_host && !o->output_dir &&
           f->job->pty == XR_PTY_NONE && !isatty(STDOUT_FILENO);
}

/* Before there is an event loop: the agent has its own, and one process can have only one that
 * handles signals. *fd: this end of the wire. */
static rank_status_t frontend_start_agent(struct front *f, int *fd)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
        rk_error("no socket pair for the agent: %m");
        return RANK_ERR_SYSTEM;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* should keeper and agent both be killed */
    if (writes_itself(f))
        f->direct = xr_direct_open();
    f->keeper = xr_keeper_start(ends[1], ends[0], xr_spawned_link(), &f->setup, f->job->id, f->direct);
    xr_direct_leave_fd(f->direct);
    close(ends[1]);
    if (f->keeper < 0) {
        rk_error("cannot create a process for the agent: %m");
        close(ends[0]);
        return RANK_ERR_SYSTEM;
    }
    *fd = ends[0];
    return RANK_OK;
}

static const struct xr_job_link_ops link_ops = {xr_front_end_connected, xr_front_force, xr_front_forward,
                                                xr_front_hopeless, xr_front_leave_if_over};

static rank_status_t open_front(struct front *f)
{
    struct xr_label label = xr_front_label_of(f);
    rank_status_t st;

    if (gethostname(f->host, sizeof(f->host) - 1))
        snprintf(f->host, sizeof(f->host), "localhost");
    f->base = event_base_new();
    if (!f->base)
        return RANK_ERR_NO_MEMORY;
    st = xr_stream_open(f->base, STDOUT_FILENO, &label, &xr_front_stream_ops, f, &f->out);
    if (!st)
        st = xr_stream_open(f->base, STDERR_FILENO, &label, &xr_front_stream_ops, f, &f->err);
    if (!st)
        xr_stream_pair(f->out, f->err);
    if (!st)
        st = xr_job_link_open(f, &link_ops);
    if (!st)
        st = xr_front_watch_signals(f);
    f->silence = evtimer_new(f->base, xr_front_on_silence, f);
    f->timeout = evtimer_new(f->base, xr_front_on_timeout, f);
    f->linger = evtimer_new(f->base, xr_front_on_linger, f);
    f->over = evtimer_new(f->base, xr_front_on_over, f);
    f->blame = evtimer_new(f->base, xr_front_on_blame, f);
    f->insist = evtimer_new(f->base, xr_front_on_insist, f);
    f->stopping = evtimer_new(f->base, xr_front_on_stopping, f);
    if (!st && (!f->silence || !f->timeout || !f->linger || !f->over || !f->blame || !f->insist || !f->stopping))
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

/* False: it has not ended within that time. */
static bool wait_for_keeper(struct front *f, uint32_t ms)
{
    const struct timespec tick = {0, 1000000};
    uint64_t deadline = rk_clock_ns() + ms * 1000000ull;
    int fd = (int)syscall(SYS_pidfd_open, f->keeper, 0), status;
    struct pollfd p = {fd, POLLIN, 0};
    bool ended;

    for (;;) {
        pid_t pid = waitpid(f->keeper, &status, WNOHANG);
        uint64_t now = rk_clock_ns();
        ended = pid == f->keeper || (pid < 0 && errno == ECHILD);
        if (ended || now >= deadline)
            break;
        if (fd < 0)
            nanosleep(&tick, NULL);
        else
            poll(&p, 1, (int)((deadline - now) / 1000000) + 1);
    }
    if (fd >= 0)
        close(fd);
    return ended;
}

/*
 * The keeper ends when all of the job has. If it was killed itself, its orphans are ours. An agent that stands still
 * it kills when it is told to, and one that stands still itself must go, too.
 */
static void end_all(struct front *f, const pid_t *before, size_t nbefore)
{
    if (f->keeper > 0 && !wait_for_keeper(f, KEEPER_MS)) {
        kill(f->keeper, SIGTERM);
        if (!wait_for_keeper(f, KEEPER_MS)) {
            kill(f->keeper, SIGKILL);
            f->orphans = true;
            wait_for_keeper(f, KEEPER_MS);
        }
    }
    if ((!f->done || f->orphans) && !xr_descend_end(5000, before, nbefore))
        rk_error("some processes of the job do not end although they were killed");
}

/* An agent that died could not remove what the libraries of its ranks left; its keeper may have died with it. */
static void frontend_remove_leftovers(const struct front *f, const struct timespec *since)
{
    struct xr_leftovers *l;

    if (f->done || xr_leftovers_create(f->job->id, &l))
        return;
    xr_leftovers_remove(l, true);
    xr_leftovers_destroy(l);
    xr_leftovers_remove_unheld(since);
}

static void close_front(struct front *f)
{
    xr_muster_close(f->muster);
    xr_branches_close(f->branches);
    xr_fences_close(f->fences);
    xr_gone_close(f->gone);
    xr_tree_close(f->tree);
    xr_reader_close(f->reader);
    xr_feed_close(f->feed);
    xr_user_terminal_close(f->terminal);
    for (int i = 0; i < f->nsignals; i++)
        event_free(f->signals[i]);
    if (f->silence)
        event_free(f->silence);
    if (f->timeout)
        event_free(f->timeout);
    if (f->linger)
        event_free(f->linger);
    if (f->over)
        event_free(f->over);
    if (f->blame)
        event_free(f->blame);
    if (f->insist)
        event_free(f->insist);
    if (f->stopping)
        event_free(f->stopping);
    xr_life_close(f->life);
    xr_output_dir_close(f->files);
    xr_stream_close(f->out);
    xr_stream_close(f->err);
    xr_direct_close(f->direct);
    if (f->base)
        event_base_free(f->base);
    free(f->nodes);
    for (uint32_t i = 0; f->joins && i < f->job->napps; i++)
        free(f->joins[i].uses);
    free(f->joins);
    xr_by_host_clear(&f->of_host);
    xr_setup_clear(&f->setup);
}

/* Nothing has been started but an agent that has nothing to do, and ends when its wire does. */
static void end_early(struct front *f, int fd, const pid_t *before, size_t nbefore)
{
    close(fd);
    end_all(f, before, nbefore);
    close_front(f);
}

int xr_front_run(const struct xr_options *options, struct xr_job *job, struct xr_plan *plan, xr_front_late_fn late)
{
    struct front f = {.options = options, .job = job, .plan = plan, .forked_ns = rk_clock_ns(),
                      .nnodes = plan->hosts.n};
    const struct timespec since = xr_leftovers_now();
    size_t nbefore = 0;
    /* Whoever replaced itself by xrun may have left it children: those are not ours to end. */
    pid_t *before = xr_descend_children(&nbefore);
    int fd = -1, code;
    rank_status_t st;

    if (!xr_front_open_report(&f)) {
        free(before);
        return XR_EXIT_USAGE;
    }
    st = xr_setup_make(options, plan, &f.setup);
    f.setup.nofile = job->nofile;
    f.nodes = calloc(f.nnodes, sizeof(*f.nodes));
    f.joins = calloc(job->napps, sizeof(*f.joins));
    if (!f.nodes || !f.joins)
        st = RANK_ERR_NO_MEMORY;
    if (!st && late) {
        f.setup.early.job = job->id;
        f.setup.early.host = xr_plan_name(plan, plan->local);
        f.setup.early.ranks = job->size;
        f.setup.early.no_mpi = job->no_mpi;
    }
    if (!st && plan->local != XR_NO_HOST)
        st = frontend_start_agent(&f, &fd);
    else if (!st)
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file that may grow no more is an error of write */
    code = !st && late ? late(options, plan, job) : 0;
    if (code) {
        end_early(&f, fd, before, nbefore);
        free(before);
        return code;
    }
    if (!st)
        st = open_front(&f);
    if (!st)
        st = xr_front_open_tree(&f, fd);
    else if (fd >= 0)
        close(fd);
    if (!st && f.told)
        st = xr_front_open_input(&f);
    if (!st) {
        start_clock(&f);
        event_base_dispatch(f.base);
        xr_front_blame(&f);
    } else {
        rk_error("xrun cannot start: %s", rank_status_string(st));
        xr_front_judge(&f, 1);
    }
    f.strangers += xr_branches_strangers(f.branches);
    if (f.options->verbose && f.strangers)
        xr_stream_say(f.err, "xrun: %u stranger%s came to the door", f.strangers, xr_plural(f.strangers));
    xr_tree_close(f.tree); /* who is still there ends what runs */
    f.tree = NULL;
    xr_branches_close(f.branches);
    f.branches = NULL;
    xr_job_link_close(&f);
    end_all(&f, before, nbefore);
    frontend_remove_leftovers(&f, &since);
    if (f.lost)
        xr_front_judge(&f, XR_EXIT_OUTPUT_LOST);
    if (!xr_report_write(f.report, f.code, f.lost))
        xr_front_judge(&f, XR_EXIT_OUTPUT_LOST);
    xr_report_close(f.report);
    close_front(&f);
    free(before);
    return f.code;
}

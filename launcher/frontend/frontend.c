/* SPDX-License-Identifier: BSD-3-Clause */
/* frontend.c: open all that a job needs, run the loop, close it. See frontend.h. */
#include "launcher/frontend/agent_setup.h"
#include "launcher/frontend/job_link.h"
#include "launcher/frontend/spawned_xrun.h"
#include "launcher/agent/supervisor.h"
#include "launcher/compat/shm_cleanup.h"
#include "launcher/exec/find_program.h"
#include "launcher/exec/proc_tree.h"
#include "launcher/util/shell_words.h"
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

/* The children of this process before the job: a program that replaced itself by xrun may have left some. */
struct earlier_children {
    pid_t *pid;
    size_t n;
};

/* -------------------------------------------------------------------------- start */

/* Return whether the agent may write standard output itself; see direct_out.h. */
static bool writes_itself(const struct front *f)
{
    const struct xr_options *o = f->options;

    return f->nnodes == 1 && !o->timestamp && !o->tag_output && !o->label_host && !o->output_dir &&
           f->job->pty == XR_PTY_NONE && !isatty(STDOUT_FILENO);
}

/*
 * Fork the supervisor and agent of this host; *fd is our end of the connection. Call before there is an event loop:
 * the agent has its own, and libevent handles signals for one loop of a process.
 */
static rank_status_t start_agent(struct front *f, int *fd)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
        rk_error("no socket pair for the agent: %m");
        return RANK_ERR_SYSTEM;
    }
    if (writes_itself(f))
        f->direct = xr_direct_open();
    f->supervisor = xr_supervisor_start(ends[1], ends[0], xr_spawned_fd(), &f->setup, f->job->id, f->direct);
    xr_direct_leave_fd(f->direct);
    close(ends[1]);
    if (f->supervisor < 0) {
        rk_error("cannot create a process for the agent: %m");
        close(ends[0]);
        return RANK_ERR_SYSTEM;
    }
    *fd = ends[0];
    return RANK_OK;
}

/* What the agent may begin before the job arrives. With other hosts, its name in the job is not known yet. */
static void set_early_work(struct front *f)
{
    if (f->nnodes > 1 || f->plan->local == XR_NO_HOST)
        return;
    f->setup.early.job = f->job->id;
    f->setup.early.host = xr_plan_name(f->plan, f->plan->local);
    f->setup.early.ranks = f->job->size;
    f->setup.early.no_mpi = f->job->no_mpi;
}

static rank_status_t prepare_agents(struct front *f, int *fd)
{
    rank_status_t st = xr_setup_make(f->options, f->plan, &f->setup);

    f->setup.nofile = f->job->nofile;
    f->nodes = calloc(f->nnodes, sizeof(*f->nodes));
    f->joins = calloc(f->job->napps, sizeof(*f->joins));
    if (st || !f->nodes || !f->joins)
        return st ? st : RANK_ERR_NO_MEMORY;
    set_early_work(f);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* for the case that supervisor and agent are both killed */
    return f->plan->local != XR_NO_HOST ? start_agent(f, fd) : RANK_OK;
}

static const struct xr_job_link_ops link_ops = {xr_front_end_connected, xr_front_force, xr_front_forward,
                                                xr_front_stalled, xr_front_leave_if_over};

static rank_status_t open_timers(struct front *f)
{
    f->timeout = evtimer_new(f->base, xr_front_on_timeout, f);
    f->stalled_output = evtimer_new(f->base, xr_front_on_stalled_output, f);
    f->launcher_wait = evtimer_new(f->base, xr_front_on_launcher_wait, f);
    f->announce_done = evtimer_new(f->base, xr_front_on_announce_done, f);
    f->cause_timer = evtimer_new(f->base, xr_front_on_root_cause, f);
    f->escalate = evtimer_new(f->base, xr_front_on_escalate, f);
    f->stop_self = evtimer_new(f->base, xr_front_on_stop_self, f);
    return f->timeout && f->stalled_output && f->launcher_wait && f->announce_done && f->cause_timer && f->escalate && f->stop_self
               ? RANK_OK
               : RANK_ERR_NO_MEMORY;
}

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
    return st ? st : open_timers(f);
}

static void start_clock(struct front *f)
{
    double s = f->options->timeout;
    struct timeval t = {(time_t)s, (suseconds_t)((s - (double)(time_t)s) * 1e6)};

    if (s > 0)
        event_add(f->timeout, &t);
}

/* ---------------------------------------------------------------------------- end */

/* Returns false if the supervisor has not ended within that time. */
static bool wait_for_supervisor(struct front *f, uint32_t ms)
{
    const struct timespec tick = {0, 1000000};
    uint64_t deadline = rk_clock_ns() + ms * 1000000ull;
    int fd = (int)syscall(SYS_pidfd_open, f->supervisor, 0), status;
    struct pollfd p = {fd, POLLIN, 0};
    bool ended;

    for (;;) {
        pid_t pid = waitpid(f->supervisor, &status, WNOHANG);
        uint64_t now = rk_clock_ns();
        ended = pid == f->supervisor || (pid < 0 && errno == ECHILD);
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
 * The supervisor ends when all of the job on this host has ended. TERM makes it kill an agent that does not end.
 * After its own death its orphans are children of this process.
 */
static void end_processes(struct front *f, const struct earlier_children *before)
{
    if (f->supervisor > 0 && !wait_for_supervisor(f, XR_SUPERVISOR_EXIT_MS)) {
        kill(f->supervisor, SIGTERM);
        if (!wait_for_supervisor(f, XR_SUPERVISOR_EXIT_MS)) {
            kill(f->supervisor, SIGKILL);
            f->orphans = true;
            wait_for_supervisor(f, XR_SUPERVISOR_EXIT_MS);
        }
    }
    if ((!xr_job_is_done(f->state) || f->orphans) && !xr_proc_tree_end(XR_DESCENDANTS_MS, before->pid, before->n))
        rk_error("some processes of the job do not end although they were killed");
}

/* Remove shared memory of the ranks' libraries, where a killed agent and its supervisor could not. */
static void clean_shm(const struct front *f)
{
    struct xr_shm_cleanup *l;

    if (xr_job_is_done(f->state) || xr_shm_cleanup_create(f->job->id, &l))
        return;
    xr_shm_cleanup_remove(l, true);
    xr_shm_cleanup_destroy(l);
}

static void close_timers(struct front *f)
{
    struct event *timers[] = {f->timeout, f->stalled_output, f->launcher_wait, f->announce_done, f->cause_timer, f->escalate, f->stop_self};

    for (size_t i = 0; i < sizeof(timers) / sizeof(*timers); i++) {
        if (timers[i])
            event_free(timers[i]);
    }
}

static void close_front(struct front *f)
{
    xr_wait_hosts_close(f->wait_hosts);
    xr_launch_close(f->launch);
    xr_fence_close(f->fences);
    xr_liveness_close(f->liveness);
    xr_tree_close(f->tree);
    xr_reader_close(f->reader);
    xr_stdin_credit_close(f->credit);
    xr_user_tty_close(f->terminal);
    for (int i = 0; i < f->nsignals; i++)
        event_free(f->signals[i]);
    close_timers(f);
    xr_heartbeat_close(f->heartbeat);
    xr_out_files_close(f->files);
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

/* Connect the agents and run the loop until the job has ended. Takes ownership of fd. */
static void run_loop(struct front *f, int fd, rank_status_t st)
{
    if (!st)
        st = open_front(f);
    if (!st)
        st = xr_front_open_tree(f, fd);
    else if (fd >= 0)
        close(fd);
    if (!st && xr_front_launched(f))
        st = xr_front_open_input(f);
    if (st) {
        rk_error("xrun cannot start: %s", rank_status_string(st));
        xr_front_set_exit_code(f, 1);
        return;
    }
    start_clock(f);
    event_base_dispatch(f->base);
    xr_front_report_cause(f);
}

/* After the loop: end what still runs, and write the report. */
static void finish_job(struct front *f, const struct earlier_children *before)
{
    f->unauthenticated += xr_launch_unauthenticated(f->launch);
    if (f->options->verbose && f->unauthenticated)
        xr_stream_print(f->err, "xrun: %u stranger%s came to the door", f->unauthenticated, xr_plural(f->unauthenticated));
    xr_tree_close(f->tree); /* agents that are still connected end what runs */
    f->tree = NULL;
    xr_launch_close(f->launch);
    f->launch = NULL;
    xr_job_link_close(f);
    end_processes(f, before);
    clean_shm(f);
    if (f->output_lost)
        xr_front_set_exit_code(f, XR_EXIT_OUTPUT_LOST);
    if (!xr_report_write(f->report, f->code, f->output_lost))
        xr_front_set_exit_code(f, XR_EXIT_OUTPUT_LOST);
    xr_report_close(f->report);
}

int xr_front_run(const struct xr_options *options, struct xr_job *job, struct xr_plan *plan)
{
    struct front f = {.options = options, .job = job, .plan = plan, .forked_ns = rk_clock_ns(),
                      .nnodes = plan->hosts.n};
    struct earlier_children before = {0};
    int fd = -1, code = 0;
    rank_status_t st;

    if (options->where.dry_run && !xr_plan_remote(plan))
        return xr_front_place(&f);
    before.pid = xr_proc_tree_children(&before.n);
    st = prepare_agents(&f, &fd);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* writing to a file that may not grow fails instead */
    if (!st && !xr_plan_remote(plan))
        code = xr_front_place(&f);
    if (code) { /* the agent has nothing to do, and ends with its connection */
        close(fd);
        end_processes(&f, &before);
    } else {
        run_loop(&f, fd, st);
        finish_job(&f, &before);
        code = f.code;
    }
    close_front(&f);
    free(before.pid);
    return code;
}

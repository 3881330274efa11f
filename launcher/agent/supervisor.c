/* SPDX-License-Identifier: BSD-3-Clause */
/* supervisor.c: wait for the agent, then end what it has left. See supervisor.h. */
#include "launcher/agent/supervisor.h"
#include "launcher/agent/agent.h"
#include "launcher/agent/supervisor_page.h"
#include "launcher/exec/proc_tree.h"
#include "launcher/compat/shm_cleanup.h"
#include "launcher/job/timeouts.h"
#include "launcher/monitor/rundir.h"
#include "launcher/util/procfs.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS 100
#define PROBE_MS 1000

/* Remove the folder of the job, and segments that name it. The agent, which died, could not. */
static void clean_shm(void)
{
    const char *job = xr_supervisor_page_job();
    struct xr_shm_cleanup *l;

    if (!job || xr_shm_cleanup_create(job, &l))
        return;
    xr_shm_cleanup_remove(l, true);
    xr_shm_cleanup_destroy(l);
}

static void keep_only_stderr(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0)
        return;
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    if (null > STDERR_FILENO)
        close(null);
}

static pid_t start_agent(int fd, const struct xr_setup *setup, bool remote, struct xr_direct *direct,
                                    const sigset_t *mask, int signals)
{
    pid_t self = getpid(), pid = fork();

    if (pid)
        return pid;
    close(signals);
    prctl(PR_SET_NAME, "xrun-agent");
    sigprocmask(SIG_SETMASK, mask, NULL);
    /* Without a supervisor nothing would end the ranks of a killed agent. So its end ends the job. */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != self)
        _exit(1);
    _exit(xr_agent_main(fd, setup, remote, direct));
}

/*
 * Wait for a signal or ms (-1: no limit). Returns whether the agent must end: TERM has come, or the other end of its
 * connection was closed.
 */
static bool supervisor_poll(int signals, int wire, int ms)
{
    struct pollfd p[2] = {{.fd = signals, .events = POLLIN}, {.fd = wire, .events = POLLRDHUP}};
    struct signalfd_siginfo info;
    bool term = false;

    if (poll(p, 2, ms) < 0)
        return false;
    while (read(signals, &info, sizeof(info)) == sizeof(info))
        term = term || info.ssi_signo == SIGTERM;
    return term || (p[1].revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL));
}

/* Return whether the agent has been stopped for too long. *since: when that was seen first, or 0. */
static bool agent_stopped(pid_t agent, uint64_t *since)
{
    uint64_t now = rk_clock_ns();
    struct xr_procfs_stat stat;

    if (!xr_procfs_stat(agent, &stat) || stat.state != 'T') {
        *since = 0;
        return false;
    }
    if (!*since)
        *since = now;
    if (now - *since < XR_STOPPED_S * 1000000000ull)
        return false;
    rk_error("the agent has been stopped for %d s, in the middle of what takes long; killing it and its ranks",
             XR_STOPPED_S);
    return true;
}

/*
 * Wait until the agent has ended. Returns its wait status. wire: the agent's, or -1. *orphan: it has lost its parent.
 * *killed: another process has killed it.
 */
static int wait_for_agent(pid_t agent, pid_t front, int signals, int wire, bool *orphan, bool *killed)
{
    uint64_t deadline = getppid() == front ? 0 : rk_clock_ns() + XR_ORPHAN_MS * 1000000ull, stopped_ns = 0;
    bool spared = true;
    int status;

    for (;;) {
        bool busy = xr_supervisor_page_busy();
        bool over = supervisor_poll(signals, deadline ? -1 : wire, deadline ? TICK_MS : busy ? PROBE_MS : -1);
        pid_t pid;

        *orphan = deadline || over;
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
            *killed = spared && WIFSIGNALED(status);
            if (pid == agent)
                return status;
        }
        if (over && !deadline) /* the agent ends by itself, unless it is stopped */
            deadline = rk_clock_ns() + XR_ORPHAN_MS * 1000000ull;
        if ((deadline && rk_clock_ns() > deadline) || (busy && agent_stopped(agent, &stopped_ns))) {
            kill(agent, SIGKILL);
            spared = false;
        }
    }
}

/*
 * Return whether the front end has ended, or is about to. A killed one stays the supervisor's parent until it has run
 * and freed its memory; until then only /proc shows its end.
 */
static bool front_has_ended(pid_t front)
{
    struct xr_procfs_stat stat;

    return getppid() != front || !xr_procfs_stat(front, &stat) || stat.ending;
}

static int supervise(int fd, pid_t front, const struct xr_setup *setup, const char *job, bool remote,
                     struct xr_direct *direct)
{
    sigset_t set, old;
    pid_t agent;
    int status, signals;
    bool orphan, killed;

    prctl(PR_SET_NAME, "xrun-supervisor");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    /* A session of its own, so that no terminal stops or interrupts the processes below. */
    setsid();
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, &old);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN); /* the reader of standard error may be gone */
    keep_only_stderr();
    xr_supervisor_page_open(remote);
    signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    agent = signals < 0 ? -1 : start_agent(fd, setup, remote, direct, &old, signals);
    xr_direct_leave_fd(direct);
    if (agent < 0) {
        rk_error("cannot create the agent's process: %m");
        return 1;
    }
    if (!remote) {
        close(fd);
        fd = -1;
    }
    status = wait_for_agent(agent, front, signals, fd, &orphan, &killed);
    if (killed && !orphan && !front_has_ended(front)) /* a user that killed both needs no report */
        rk_error("the agent was killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (remote && !orphan) /* the parent detects its death at once; of an orphan, when all has ended */
        close(fd);
    if (!xr_proc_tree_end(XR_DESCENDANTS_MS, NULL, 0))
        rk_error("some processes of the job do not end although they were killed");
    if (status)
        clean_shm();
    /* The front end may have been killed together with the agent, and still be about to end. */
    if (job && (killed || getppid() != front))
        xr_rundir_remove(job);
    return status ? 1 : 0;
}

int xr_supervisor_run(int fd, const struct xr_setup *setup)
{
    return supervise(fd, getppid(), setup, NULL, true, NULL);
}

pid_t xr_supervisor_start(int fd, int front_fd, int link_fd, const struct xr_setup *setup, const char *job,
                      struct xr_direct *direct)
{
    pid_t self = getpid(), pid = fork();

    if (pid)
        return pid;
    if (link_fd >= 0)
        close(link_fd);
    close(front_fd); /* or the agent could not detect the end of the front end */
    _exit(supervise(fd, self, setup, job, false, direct));
}

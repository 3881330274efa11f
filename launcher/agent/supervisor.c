/* SPDX-License-Identifier: BSD-3-Clause */
/* supervisor.c: see supervisor.h. */
#include "launcher/agent/supervisor.h"
#include "launcher/agent/agent.h"
#include "launcher/exec/proc_tree.h"
#include "launcher/compat/shm_cleanup.h"
#include "launcher/monitor/rundir.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* An agent whose front end died has this long to end its job. */
#define ORPHAN_MS 3000
/* And what the kernel does not let go of at once, this long. */
#define END_MS 5000
#define TICK_MS 100

/* An agent that is stopped is given up by its parent after 6 s, for its silence; but while it is busy that says nothing,
 * and its keeper looks. */
#define STOPPED_S 6
#define LOOK_MS 1000

/* What the agent tells: a page that both see. Which job it is one on another host learns only when it is connected. */
static struct shared {
    char job[256];
    atomic_bool busy;
} *shared;

void xr_keeper_serves(const char *job)
{
    if (shared && strlen(job) < sizeof(shared->job))
        memcpy(shared->job, job, strlen(job) + 1);
}

void xr_keeper_busy(bool busy)
{
    if (shared)
        atomic_store(&shared->busy, busy);
}

static void supervisor_share(bool busy)
{
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        shared = NULL;
    xr_keeper_busy(busy);
}

/* What /proc/PID/stat says from the state on; NULL: there is no such process. */
static const char *supervisor_read_stat(pid_t pid, char *text, size_t len)
{
    char path[48], *after;
    ssize_t n = 0;
    int file;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        n = read(file, text, len - 1);
        close(file);
    }
    if (n <= 0)
        return NULL;
    text[n] = '\0';
    after = strrchr(text, ')'); /* the name may hold anything */
    return after && after[1] ? after + 2 : NULL;
}

/* The agent's ranks died with it, before anybody could look at what they had. */
static void supervisor_remove_leftovers(const struct timespec *since)
{
    struct xr_leftovers *l;

    if (!shared || !*shared->job || xr_leftovers_create(shared->job, &l))
        return;
    xr_leftovers_remove(l, true);
    xr_leftovers_destroy(l);
    xr_leftovers_remove_unheld(since);
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

static pid_t supervisor_start_agent(int fd, const struct xr_setup *setup, bool remote, struct xr_direct *direct,
                         const sigset_t *mask, int signals)
{
    pid_t self = getpid(), pid = fork();

    if (pid)
        return pid;
    close(signals);
    prctl(PR_SET_NAME, "xrun-agent");
    sigprocmask(SIG_SETMASK, mask, NULL);
    /* Without a keeper there is no second line of defence: end the job. */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != self)
        _exit(1);
    _exit(xr_agent_main(fd, setup, remote, direct));
}

/* Shall the agent end, by a TERM or because the other end of its wire has been closed? Waits for ms at most (-1: for
 * ever) and until some signal comes. */
static bool is_over(int signals, int wire, int ms)
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

/* Has the agent been stopped for too long? since: when that was seen first, or 0. */
static bool has_stood(pid_t agent, uint64_t *since)
{
    char text[1024];
    const char *stat = supervisor_read_stat(agent, text, sizeof(text));
    uint64_t now = rk_clock_ns();

    if (!stat || *stat != 'T') {
        *since = 0;
        return false;
    }
    if (!*since)
        *since = now;
    if (now - *since < STOPPED_S * 1000000000ull)
        return false;
    rk_error("the agent has been stopped for %d s, in the middle of what takes long; killing it and its ranks", STOPPED_S);
    return true;
}

/* Wait until the agent is gone. Returns its wait status. wire: the agent's, or -1; *orphan: it has lost its parent; *killed: by
 * somebody else than us. */
static int wait_agent(pid_t agent, pid_t front, int signals, int wire, bool *orphan, bool *killed)
{
    uint64_t deadline = getppid() == front ? 0 : rk_clock_ns() + ORPHAN_MS * 1000000ull, stopped_ns = 0;
    bool spared = true;
    int status;

    for (;;) {
        bool busy = shared && atomic_load(&shared->busy);
        bool over = is_over(signals, deadline ? -1 : wire, deadline ? TICK_MS : busy ? LOOK_MS : -1);
        pid_t pid;

        *orphan = deadline || over;
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
            *killed = spared && WIFSIGNALED(status);
            if (pid == agent)
                return status;
        }
        if (over && !deadline) /* the agent knows by itself, unless it stands still */
            deadline = rk_clock_ns() + ORPHAN_MS * 1000000ull;
        if ((deadline && rk_clock_ns() > deadline) || (busy && has_stood(agent, &stopped_ns))) {
            kill(agent, SIGKILL);
            spared = false;
        }
    }
}

/* Has the front end ended, or is it about to? One that was killed together with the agent may take its time (it has
 * to come to run, and gives its memory back first) and is the keeper's parent until then: its entry in /proc tells. */
static bool front_has_ended(pid_t front)
{
    enum { PF_EXITING = 4, KILLED = 1 << (SIGKILL - 1) }; /* in fields 9 and 31 of proc(5): flags, pending signals */
    char text[1024];
    const char *stat;
    unsigned long pending;
    unsigned flags;

    if (getppid() != front)
        return true;
    stat = supervisor_read_stat(front, text, sizeof(text));
    return !stat ||
           (sscanf(stat, "%*c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %*u %*u %*d "
                         "%*u %*u %*u %*u %*u %*u %lu", &flags, &pending) == 2 &&
            ((flags & PF_EXITING) || (pending & KILLED)));
}

static int run_keeper(int fd, pid_t front, const struct xr_setup *setup, const char *job, bool remote,
                      struct xr_direct *direct)
{
    const struct timespec since = xr_leftovers_now();
    sigset_t set, old;
    pid_t agent;
    int status, signals;
    bool orphan, killed;

    prctl(PR_SET_NAME, "job-keeper");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    /* A session of its own: no terminal can stop or interrupt what is below. */
    setsid();
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, &old);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN); /* whoever read what goes wrong may be gone */
    keep_only_stderr();
    supervisor_share(remote);
    signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    agent = signals < 0 ? -1 : supervisor_start_agent(fd, setup, remote, direct, &old, signals);
    xr_direct_leave_fd(direct);
    if (agent < 0) {
        rk_error("cannot create the agent's process: %m");
        return 1;
    }
    if (!remote) {
        close(fd);
        fd = -1;
    }
    status = wait_agent(agent, front, signals, fd, &orphan, &killed);
    if (killed && !orphan && !front_has_ended(front)) /* else nobody is there who wants to know */
        rk_error("the agent was killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (remote && !orphan) /* the parent hears of its death at once; else it hears when all has ended */
        close(fd);
    if (!xr_descend_end(END_MS, NULL, 0))
        rk_error("some processes of the job do not end although they were killed");
    if (status)
        supervisor_remove_leftovers(&since);
    if (job && front_has_ended(front))
        xr_rundir_remove(job); /* the front end could not */
    return status ? 1 : 0;
}

int xr_keeper_run(int fd, const struct xr_setup *setup)
{
    return run_keeper(fd, getppid(), setup, NULL, true, NULL);
}

pid_t xr_keeper_start(int fd, int front_fd, int link_fd, const struct xr_setup *setup, const char *job,
                      struct xr_direct *direct)
{
    pid_t self = getpid(), pid = fork();

    if (pid)
        return pid;
    if (link_fd >= 0)
        close(link_fd);
    close(front_fd); /* or the agent would never see that the front end is gone */
    _exit(run_keeper(fd, self, setup, job, false, direct));
}

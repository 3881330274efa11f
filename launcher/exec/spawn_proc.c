/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spawn_proc.c: see spawn_proc.h.
 *
 * The child runs in the parent's memory while the parent's thread waits
 * (CLONE_VM and CLONE_VFORK). Nothing is copied, and the child stores the error of
 * a failed exec in a variable of the parent. Until the exec it calls only
 * functions that need no lock and change no memory of the parent.
 *
 * An agent holds several descriptors for each rank. If each child copied them all
 * to close them, the start of n ranks would cost n * n. So the child shares the
 * parent's table (CLONE_FILES) and leaves it with a copy of the low numbers only,
 * where its own descriptors were put before.
 *
 * Tools that run a program by other means (valgrind, qemu) do not support such a
 * clone. There the child is forked and reports through a pipe, which the exec
 * closes.
 */
#include "launcher/exec/spawn_proc.h"
#include "launcher/exec/kernel_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK (64 << 10)

struct child {
    const struct xr_spawn *spec;
    const int *slot; /* descriptors that become 0, 1, 2, 3 */
    int nslots;      /* 3 or 4 */
    int report;      /* forked child: write end of the pipe; else -1 */
    pid_t parent;
    sigset_t mask;
    volatile int error;
    const char *volatile step;
};

/* The message of a forked child. The parent has the same texts at the same addresses. */
struct report {
    int error;
    const char *step;
};

/*
 * A child that executes the program never returns from its functions. The address sanitizer would find the marks of
 * their variables on the stack of the next child.
 */
#define ON_CHILD_STACK __attribute__((no_sanitize("address", "undefined")))

static ON_CHILD_STACK int spawn_proc_fail(struct child *c, const char *step)
{
    const struct report r = {.error = errno, .step = step};

    c->error = r.error;
    c->step = step;
    if (c->report >= 0 && write(c->report, &r, sizeof(r)) != sizeof(r))
        return 126; /* the parent sees a process that ends */
    return 127;
}

/*
 * Reset the signals that an agent handles or ignores. Its handlers must not run here. An exec resets handlers, but
 * not ignored signals.
 */
static ON_CHILD_STACK void default_signals(void)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGCHLD};
    struct sigaction dflt = {.sa_handler = SIG_DFL};

    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        sigaction(signals[i], &dflt, NULL);
}

/* Leave the parent's table of open files. Keep only the descriptors that become 0 to 3, and *report as the next. */
static ON_CHILD_STACK int place_fds(const int *slot, int n, int *report)
{
    unsigned first = *report >= 0 ? (unsigned)*report + 1 : 0;

    for (int i = 0; i < n; i++) {
        if ((unsigned)slot[i] >= first)
            first = (unsigned)slot[i] + 1;
    }
    /* A kernel before 5.9 copies them all. Then the exec closes them. */
    if (close_range(first, ~0u, CLOSE_RANGE_UNSHARE) && unshare(CLONE_FILES))
        return -1;
    for (int i = 0; i < n; i++) {
        if (dup2(slot[i], i) < 0)
            return -1;
    }
    if (*report > n) {
        if (dup3(*report, n, O_CLOEXEC) < 0)
            return -1;
        *report = n;
    }
    /* Close those that xrun was started with, too. */
    close_range((unsigned)(*report >= 0 ? *report + 1 : n), ~0u, 0);
    return 0;
}

static ON_CHILD_STACK int run_child(void *arg)
{
    struct child *c = arg;
    const struct xr_spawn *spec = c->spec;
    struct rlimit lim;

    default_signals();
    if (prctl(PR_SET_PDEATHSIG, SIGKILL))
        return spawn_proc_fail(c, "prctl");
    if (getppid() != c->parent)
        return 127; /* the parent died before the prctl */
    if (spec->terminal ? setsid() < 0 : setpgid(0, 0) != 0)
        return spawn_proc_fail(c, spec->terminal ? "setsid" : "setpgid");
    if (place_fds(c->slot, c->nslots, &c->report))
        return spawn_proc_fail(c, "dup2");
    if (spec->terminal && ioctl(0, TIOCSCTTY, 0))
        return spawn_proc_fail(c, "taking the terminal");
    if (chdir(spec->wdir))
        return spawn_proc_fail(c, "chdir");
    if (spec->cpus && sched_setaffinity(0, spec->cpus_size, spec->cpus))
        return spawn_proc_fail(c, "sched_setaffinity");
    if (spec->nofile && getrlimit(RLIMIT_NOFILE, &lim) == 0) {
        lim.rlim_cur = spec->nofile < lim.rlim_max ? spec->nofile : lim.rlim_max;
        setrlimit(RLIMIT_NOFILE, &lim);
    }
    if (spec->limits)
        xr_rlimits_set(spec->limits);
    sigprocmask(SIG_SETMASK, &c->mask, NULL);
    execve(spec->program, spec->argv, spec->env);
    return spawn_proc_fail(c, "exec");
}

int xr_spawner_open(struct xr_spawner *spawner)
{
    void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    int n, error;

    if (stack == MAP_FAILED)
        return -1;
    spawner->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (spawner->null < 0)
        goto no_null;
    for (n = 0; n < 4; n++) {
        /* Above 3, so that a dup2 to 0..3 does not replace another slot. */
        spawner->slot[n] = fcntl(spawner->null, F_DUPFD_CLOEXEC, 4);
        if (spawner->slot[n] < 0)
            goto no_slot;
    }
    spawner->stack = (char *)stack + STACK; /* last: marks the spawner as complete */
    return 0;

no_slot:
    error = errno;
    while (n-- > 0)
        close(spawner->slot[n]);
    close(spawner->null);
    errno = error;
no_null:
    error = errno;
    munmap(stack, STACK);
    errno = error;
    return -1;
}

/* Put fd[i] into the slots, or /dev/null if fd is NULL. */
static int fill_slots(const struct xr_spawner *spawner, const int *fd, int n)
{
    for (int i = 0; i < n; i++) {
        if (dup3(fd ? fd[i] : spawner->null, spawner->slot[i], O_CLOEXEC) < 0)
            return -1;
    }
    return 0;
}

static pid_t spawn_by_clone(struct child *c, void *stack, int *pidfd)
{
    int flags = CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD;
    pid_t pid = clone(run_child, stack, flags | CLONE_PIDFD, c, pidfd);

    if (pid < 0 && errno == EINVAL) { /* a kernel without pidfds */
        *pidfd = -1;
        pid = clone(run_child, stack, flags, c);
    }
    return pid;
}

static pid_t spawn_by_fork(struct child *c, int *pidfd)
{
    struct report r = {0};
    int ends[2], low;
    ssize_t n;
    pid_t pid;

    *pidfd = -1;
    if (pipe2(ends, O_CLOEXEC))
        return -1;
    low = fcntl(ends[1], F_DUPFD_CLOEXEC, 4); /* above 3, which place_fds replaces */
    close(ends[1]);
    c->report = low;
    pid = low < 0 ? -1 : fork();
    if (pid == 0)
        _exit(run_child(c));
    if (low >= 0)
        close(low);
    while (pid > 0 && (n = read(ends[0], &r, sizeof(r))) < 0 && errno == EINTR)
        ;
    if (pid > 0 && n == sizeof(r)) {
        c->error = r.error;
        c->step = r.step;
    }
    close(ends[0]);
    if (pid > 0 && !c->error)
        *pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    return pid;
}

pid_t xr_spawn(const struct xr_spawn *spec, struct xr_spawner *spawner, int *pidfd,
               const char **step)
{
    int nslots = spec->fd[3] >= 0 ? 4 : 3;
    struct child c = {.spec = spec, .slot = spawner->slot, .nslots = nslots, .report = -1, .parent = getpid()};
    sigset_t all, old;
    pid_t pid = -1;
    int error;

    *step = "dup3";
    *pidfd = -1;
    if (fill_slots(spawner, spec->fd, nslots))
        return -1;
    *step = "clone";
    sigfillset(&all);
    sigemptyset(&c.mask);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    errno = EINVAL;
    if (!xr_kernel_is_valgrind()) /* that would end this program */
        pid = spawn_by_clone(&c, spawner->stack, pidfd);
    if (pid < 0 && (errno == EINVAL || errno == ENOSYS || errno == EPERM))
        pid = spawn_by_fork(&c, pidfd);
    error = errno;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    fill_slots(spawner, NULL, nslots); /* or a pipe would never end */
    if (pid > 0 && c.error) {
        *step = c.step;
        if (*pidfd >= 0)
            close(*pidfd);
        *pidfd = -1;
        waitpid(pid, NULL, 0);
        error = c.error;
        pid = -1;
    }
    errno = error;
    return pid;
}

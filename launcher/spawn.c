/*
 * spawn.c: see spawn.h.
 *
 * The child runs in the parent's memory while the parent's thread waits
 * (CLONE_VM and CLONE_VFORK), so nothing is copied however large the agent is,
 * and a failed exec is told by simply writing it down. Until the exec the child
 * may call only what needs no lock and changes no memory of the parent's.
 */
#include "launcher/spawn.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK (64 << 10)

struct child {
    const struct rk_spawn *spec;
    pid_t parent;
    sigset_t mask;
    volatile int error;
    const char *volatile step;
};

/*
 * The child never returns from its functions when it executes the program, so
 * the address sanitizer would find the marks of their variables on the stack of
 * the next child.
 */
#define ON_CHILD_STACK __attribute__((no_sanitize("address", "undefined")))

static ON_CHILD_STACK int fail(struct child *c, const char *step)
{
    c->error = errno;
    c->step = step;
    return 127;
}

/* What an agent handles or ignores (keeper.c, agent.c). Its handlers must not run here; an exec
 * resets those, but not what is ignored. */
static ON_CHILD_STACK void default_signals(void)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGCHLD};
    struct sigaction dflt = {.sa_handler = SIG_DFL};

    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        sigaction(signals[i], &dflt, NULL);
}

/* Put spec->fd in place; they are close-on-exec and above 2, the copies are not. */
static ON_CHILD_STACK int place_fds(const struct rk_spawn *spec)
{
    for (int i = 0; i < 3; i++) {
        if (dup2(spec->fd[i], i) < 0)
            return -1;
    }
    return 0;
}

static ON_CHILD_STACK int run_child(void *arg)
{
    struct child *c = arg;
    const struct rk_spawn *spec = c->spec;
    struct rlimit lim;

    default_signals();
    if (prctl(PR_SET_PDEATHSIG, SIGKILL))
        return fail(c, "prctl");
    if (getppid() != c->parent)
        return 127; /* it died just now */
    if (setpgid(0, 0))
        return fail(c, "setpgid");
    if (place_fds(spec))
        return fail(c, "dup2");
    if (chdir(spec->wdir))
        return fail(c, "chdir");
    if (spec->cpus && sched_setaffinity(0, spec->cpus_size, spec->cpus))
        return fail(c, "binding to cores");
    if (spec->nofile && getrlimit(RLIMIT_NOFILE, &lim) == 0) {
        lim.rlim_cur = spec->nofile;
        setrlimit(RLIMIT_NOFILE, &lim);
    }
    sigprocmask(SIG_SETMASK, &c->mask, NULL);
    execve(spec->program, spec->argv, spec->env);
    return fail(c, "exec");
}

void *rk_spawn_stack(void)
{
    void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

    return stack == MAP_FAILED ? NULL : (char *)stack + STACK;
}

pid_t rk_spawn(const struct rk_spawn *spec, void *stack, int *pidfd, const char **step)
{
    struct child c = {.spec = spec, .parent = getpid()};
    int flags = CLONE_VM | CLONE_VFORK | SIGCHLD;
    sigset_t all, old;
    pid_t pid;

    *step = "clone";
    *pidfd = -1;
    sigfillset(&all);
    sigemptyset(&c.mask);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pid = clone(run_child, stack, flags | CLONE_PIDFD, &c, pidfd);
    if (pid < 0 && errno == EINVAL) { /* a kernel without pidfds */
        *pidfd = -1;
        pid = clone(run_child, stack, flags, &c);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (pid > 0 && c.error) {
        *step = c.step;
        if (*pidfd >= 0)
            close(*pidfd);
        *pidfd = -1;
        waitpid(pid, NULL, 0);
        errno = c.error;
        return -1;
    }
    return pid;
}

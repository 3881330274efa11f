/* keeper.c: see keeper.h. */
#include "launcher/keeper.h"
#include "launcher/agent.h"
#include "launcher/descend.h"
#include "launcher/leftovers.h"
#include "launcher/rundir.h"
#include "launcher/spawned.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* An agent whose front end died has this long to end its job. */
#define ORPHAN_MS 3000
/* And what the kernel does not let go of at once, this long. */
#define END_MS 5000

#define JOB_NAME 256

/* Which job it is an agent on another host learns only when it is connected: a page that both see. */
static char *served;

void rk_keeper_serves(const char *job)
{
    if (served && strlen(job) < JOB_NAME)
        memcpy(served, job, strlen(job) + 1);
}

static void share_name(void)
{
    served = mmap(NULL, JOB_NAME, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (served == MAP_FAILED)
        served = NULL;
}

static void remove_leftovers(void)
{
    struct rk_leftovers *l;

    if (!served || !*served || rk_leftovers_create(served, &l))
        return;
    rk_leftovers_remove(l);
    rk_leftovers_destroy(l);
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

static pid_t start_agent(int fd, const struct rk_setup *setup, bool remote, struct rk_direct *direct,
                         const sigset_t *mask)
{
    pid_t self = getpid(), pid = fork();

    if (pid)
        return pid;
    prctl(PR_SET_NAME, "xrun-agent");
    sigprocmask(SIG_SETMASK, mask, NULL);
    /* Without a keeper there is no second line of defence: end the job. */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != self)
        _exit(1);
    _exit(rk_agent_main(fd, setup, remote, direct));
}

/* Wait until the agent is gone. Returns its wait status. */
static int wait_agent(pid_t agent, pid_t front, const sigset_t *signals)
{
    const struct timespec tick = {0, 100000000};
    uint64_t deadline = getppid() == front ? 0 : rk_clock_ns() + ORPHAN_MS * 1000000ull;
    int status;

    for (;;) {
        int sig = deadline ? sigtimedwait(signals, NULL, &tick) : sigwaitinfo(signals, NULL);
        pid_t pid;

        while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
            if (pid == agent)
                return status;
        }
        if (sig == SIGTERM && !deadline) /* the front end died: the agent knows by itself */
            deadline = rk_clock_ns() + ORPHAN_MS * 1000000ull;
        if (deadline && rk_clock_ns() > deadline)
            kill(agent, SIGKILL);
    }
}

static int run_keeper(int fd, pid_t front, const struct rk_setup *setup, const char *job, bool remote,
                      struct rk_direct *direct)
{
    sigset_t signals, old;
    pid_t agent;
    int status;

    prctl(PR_SET_NAME, "job-keeper");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    /* A session of its own: no terminal can stop or interrupt what is below. */
    setsid();
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, &old);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    keep_only_stderr();
    share_name();
    agent = start_agent(fd, setup, remote, direct, &old);
    close(fd);
    rk_direct_leave_fd(direct);
    if (agent < 0) {
        rk_error("cannot create the agent's process: %m");
        return 1;
    }
    status = wait_agent(agent, front, &signals);
    if (!rk_descend_end(END_MS, NULL, 0))
        rk_error("some processes of the job do not end although they were killed");
    if (status)
        remove_leftovers();
    if (getppid() != front)
        rk_rundir_remove(job); /* the front end could not */
    return status ? 1 : 0;
}

int rk_keeper_run(int fd, const struct rk_setup *setup)
{
    return run_keeper(fd, getppid(), setup, NULL, true, NULL);
}

pid_t rk_keeper_start(int fd, int front_fd, const struct rk_setup *setup, const char *job,
                      struct rk_direct *direct)
{
    pid_t self = getpid(), pid = fork();

    if (pid)
        return pid;
    rk_spawned_let_go();
    close(front_fd); /* or the agent would never see that the front end is gone */
    _exit(run_keeper(fd, self, setup, job, false, direct));
}

/* ranks.c: start the ranks of this host, and collect them. See agent.h. */
#include "launcher/agent.h"
#include "launcher/descend.h"
#include "launcher/message.h"
#include "launcher/program.h"
#include "launcher/spawn.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#define OWN_VARS 5

/* ----------------------------------------------------------------- starting */

static size_t count(char *const *v)
{
    size_t n = 0;

    while (v && v[n])
        n++;
    return n;
}

/*
 * The environment of one rank: the rank's own variables, what PMIx wants, then
 * the job's. The first of a name counts. own: OWN_VARS buffers that the array
 * points into.
 */
static char **rank_env(struct rk_agent *agent, uint32_t rank, char *const *pmix,
                       char own[OWN_VARS][400])
{
    size_t npmix = count(pmix), njob = count(agent->job.env);
    char **env = malloc((OWN_VARS + npmix + njob + 1) * sizeof(*env));
    size_t n = 0;

    if (!env)
        return NULL;
    snprintf(own[0], sizeof(own[0]), "XRUN_RANK=%u", rank);
    snprintf(own[1], sizeof(own[1]), "XRUN_SIZE=%u", agent->job.size);
    snprintf(own[2], sizeof(own[2]), "XRUN_LOCAL_RANK=%u", rank);
    snprintf(own[3], sizeof(own[3]), "XRUN_LOCAL_SIZE=%u", agent->job.size);
    snprintf(own[4], sizeof(own[4]), "XRUN_JOB=%s", agent->job.id);
    for (; n < OWN_VARS; n++)
        env[n] = own[n];
    memcpy(env + n, pmix, npmix * sizeof(*env));
    memcpy(env + n + npmix, agent->job.env, (njob + 1) * sizeof(*env));
    return env;
}

static void explain(struct rk_agent *agent, uint32_t rank, const char *step, int error, int *code,
                    char *text, size_t len)
{
    *code = RK_EXIT_USAGE;
    if (strcmp(step, "exec") == 0) {
        *code = error == ENOENT ? RK_EXIT_NOT_FOUND : RK_EXIT_CANNOT_EXECUTE;
        snprintf(text, len, "cannot execute %s on %s: %s%s", agent->job.program, agent->host,
                 strerror(error),
                 error == ENOENT    ? " (it is there: is its interpreter, after #!, missing?)"
                 : error == ENOEXEC ? " (a script needs #! in its first line)"
                                    : "");
    } else if (strcmp(step, "chdir") == 0) {
        snprintf(text, len, "cannot start in %s on %s: %s", agent->job.wdir, agent->host,
                 strerror(error));
    } else {
        snprintf(text, len, "cannot start rank %u of %u on %s: %s: %s%s", rank, agent->job.size,
                 agent->host, step, strerror(error),
                 error == EAGAIN ? " (too many processes: start fewer)" : "");
    }
}

/* One rank. fd[0] is open already. */
static rank_status_t start_one(struct rk_agent *agent, struct rk_rank *r, int fd[3], int *code,
                               char *text, size_t len)
{
    struct rk_spawn spec = {.program = agent->job.program,
                            .argv = agent->job.argv,
                            .wdir = agent->job.wdir,
                            .fd = {fd[0], -1, -1},
                            .cpus = rk_bind_of(&agent->plan, r->rank),
                            .cpus_size = agent->plan.set_size,
                            .nofile = agent->job.nofile};
    char own[OWN_VARS][400], **env, **pmix;
    const char *step = "environment";
    rank_status_t st = RANK_OK;

    pmix = rk_server_rank_env(agent->server, r->rank);
    env = pmix ? rank_env(agent, r->rank, pmix, own) : NULL;
    if (!env)
        st = RANK_ERR_NO_MEMORY;
    if (!st)
        st = rk_outputs_add(agent->outputs, r->rank, 1, &spec.fd[1]);
    if (!st)
        st = rk_outputs_add(agent->outputs, r->rank, 2, &spec.fd[2]);
    if (!st) {
        spec.env = env;
        r->start_ns = rk_clock_ns();
        r->pid = rk_spawn(&spec, &r->pidfd, &step);
        if (r->pid < 0) {
            explain(agent, r->rank, step, errno, code, text, len);
            r->pid = 0;
            st = RANK_ERR_SYSTEM;
        }
    } else {
        snprintf(text, len, "cannot start rank %u of %u on %s: %s", r->rank, agent->job.size,
                 agent->host, rank_status_string(st));
    }
    for (int i = 1; i <= 2; i++) {
        if (spec.fd[i] >= 0)
            close(spec.fd[i]);
    }
    free(env);
    rk_strings_free(pmix);
    return st;
}

static void watch(struct rk_agent *agent, struct rk_rank *r)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.u32 = r->rank};

    agent->live++;
    if (r->pidfd >= 0 && epoll_ctl(agent->exits, EPOLL_CTL_ADD, r->pidfd, &ev)) {
        close(r->pidfd);
        r->pidfd = -1;
    }
}

rank_status_t rk_ranks_start(struct rk_agent *agent, int *code, char *text, size_t len)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    rank_status_t st = RANK_OK;
    int input = -1;

    *code = 1;
    text[0] = '\0';
    agent->ranks = calloc(agent->job.size, sizeof(*agent->ranks));
    if (!agent->ranks || null < 0)
        st = RANK_ERR_NO_MEMORY;
    if (!st)
        st = rk_outputs_open(agent, &agent->outputs);
    if (!st)
        st = rk_inputs_open(agent, &agent->inputs, &input);
    for (uint32_t i = 0; !st && i < agent->job.size; i++) {
        struct rk_rank *r = &agent->ranks[i];
        int fd[3] = {i == 0 ? input : null, -1, -1};
        r->rank = i;
        r->pidfd = -1;
        st = start_one(agent, r, fd, code, text, len);
        if (!st)
            watch(agent, r);
    }
    if (st && !text[0])
        snprintf(text, len, "cannot start ranks on %s: %s", agent->host, rank_status_string(st));
    if (input >= 0)
        close(input);
    if (null >= 0)
        close(null);
    return st;
}

/* ------------------------------------------------------------------- exiting */

static void on_exit_of(struct rk_agent *agent, struct rk_rank *r, int status)
{
    bool unfinished, failed;
    struct rk_packer p = {0};

    /* It may have finalized just before: that was posted earlier, and counts only while it is not
     * said to have exited. */
    rk_server_catch_up(agent->server);
    r->exited = true;
    agent->live--;
    if (r->pidfd >= 0) {
        close(r->pidfd);
        r->pidfd = -1;
    }
    unfinished = r->connected && !r->finalized;
    failed = unfinished || !WIFEXITED(status) || WEXITSTATUS(status);
    if (unfinished)
        agent->clients--;
    if (failed && agent->phase == RK_AGENT_RUNNING)
        rk_server_tell_death(agent->server, r->rank, WIFSIGNALED(status));
    rk_outputs_drain(agent->outputs, r->rank);
    if (!agent->wire)
        return;
    rk_pack_u32(&p, r->rank);
    rk_pack_u32(&p, (uint32_t)r->pid);
    rk_pack_u32(&p, (uint32_t)status);
    rk_pack_u64(&p, rk_clock_ns() - r->start_ns);
    rk_pack_u32(&p, unfinished ? RK_EXIT_UNFINISHED : 0);
    rk_wire_send(agent->wire, RK_MSG_EXITED, &p);
}

static struct rk_rank *by_pid(struct rk_agent *agent, pid_t pid)
{
    for (uint32_t i = 0; agent->ranks && i < agent->job.size; i++) {
        if (agent->ranks[i].pid == pid && !agent->ranks[i].exited)
            return &agent->ranks[i];
    }
    return NULL;
}

void rk_ranks_reap(struct rk_agent *agent)
{
    struct epoll_event ev[64];
    int n, status;
    pid_t pid;

    /* First those of the ranks, in the order in which they died: the first failure is the one
     * that the user wants to hear of. */
    while (agent->exits >= 0 && (n = epoll_wait(agent->exits, ev, 64, 0)) > 0) {
        for (int i = 0; i < n; i++) {
            struct rk_rank *r = &agent->ranks[ev[i].data.u32];
            if (!r->exited && waitpid(r->pid, &status, WNOHANG) == r->pid)
                on_exit_of(agent, r, status);
        }
    }
    /* Then what they left behind, and ranks where the kernel has no pidfds. */
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        struct rk_rank *r = by_pid(agent, pid);
        if (r)
            on_exit_of(agent, r, status);
        else
            rk_stand_in_reaped(agent, pid);
    }
    rk_stand_in_check(agent);
    rk_agent_check_done(agent);
}

bool rk_ranks_gone(void)
{
    siginfo_t info = {.si_pid = 0};

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) && errno == ECHILD;
}

/*
 * start.c: start the ranks of this host. See agent.h.
 *
 * Everything a rank needs is made ready by the agent's thread; starting it is
 * then one call that waits until the program is being executed, most of which
 * is work of the kernel's for the new process. A few threads do that side by
 * side. They stay as long as the agent does: the kernel kills a rank when the
 * thread that started it ends.
 *
 * Rank 0 is started first and alone: what keeps it from starting would keep
 * the others too.
 */
#include "launcher/agent.h"
#include "launcher/foreign.h"
#include "launcher/plain.h"
#include "launcher/program.h"
#include "launcher/spawn.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define OWN_VARS 7
#define MAX_THREADS 16
#define RANKS_PER_THREAD 8 /* fewer are not worth a thread */

struct start {
    struct rk_spawn spec;
    char own[OWN_VARS][400]; /* the rank's own variables */
    char **env, **pmix, **foreign;
    int error; /* errno, if it did not start */
    const char *step;
};

struct crew {
    struct rk_agent *agent;
    struct start *starts; /* [job.size] */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t ready; /* those before it can be started */
    uint32_t next;  /* the next to be started */
    uint32_t busy;  /* being started */
    bool stop;      /* one failed, or no more will be ready */
};

/* ------------------------------------------------------------------ one rank */

static size_t count(char *const *v)
{
    size_t n = 0;

    while (v && v[n])
        n++;
    return n;
}

/* The rank's own variables, what PMIx and other MPI libraries want, then the job's. The first of a
 * name counts. */
static bool make_env(struct rk_agent *agent, uint32_t rank, struct start *s)
{
    const struct rk_foreign where = {.rank = rank,
                                     .size = agent->job.size,
                                     .local_rank = rank,
                                     .local_size = agent->job.size,
                                     .oversubscribed = agent->plan.oversubscribed,
                                     .pmi1 = true};
    size_t npmix, nforeign, njob = count(agent->job.env), n = 0;

    s->pmix = rk_server_rank_env(agent->server, rank);
    s->foreign = rk_foreign_env(&where, agent->job.env);
    npmix = count(s->pmix);
    nforeign = count(s->foreign);
    s->env = malloc((OWN_VARS + npmix + nforeign + njob + 1) * sizeof(*s->env));
    if (!s->pmix || !s->foreign || !s->env)
        return false;
    snprintf(s->own[0], sizeof(s->own[0]), "XRUN_RANK=%u", rank);
    snprintf(s->own[1], sizeof(s->own[1]), "XRUN_SIZE=%u", agent->job.size);
    snprintf(s->own[2], sizeof(s->own[2]), "XRUN_LOCAL_RANK=%u", rank);
    snprintf(s->own[3], sizeof(s->own[3]), "XRUN_LOCAL_SIZE=%u", agent->job.size);
    snprintf(s->own[4], sizeof(s->own[4]), "XRUN_NODE_RANK=0"); /* of the host among the hosts */
    snprintf(s->own[5], sizeof(s->own[5]), "XRUN_NODES=1");
    snprintf(s->own[6], sizeof(s->own[6]), "XRUN_JOB=%s", agent->job.id);
    for (; n < OWN_VARS; n++)
        s->env[n] = s->own[n];
    memcpy(s->env + n, s->pmix, npmix * sizeof(*s->env));
    n += npmix;
    memcpy(s->env + n, s->foreign, nforeign * sizeof(*s->env));
    memcpy(s->env + n + nforeign, agent->job.env, (njob + 1) * sizeof(*s->env));
    return true;
}

static rank_status_t prepare(struct rk_agent *agent, uint32_t rank, int input, struct start *s)
{
    rank_status_t st;

    s->spec = (struct rk_spawn){.program = agent->job.program,
                                .argv = agent->job.argv,
                                .wdir = agent->job.wdir,
                                .fd = {input, -1, -1, -1},
                                .cpus = rk_bind_of(&agent->plan, rank),
                                .cpus_size = agent->plan.set_size,
                                .nofile = agent->job.nofile};
    if (!make_env(agent, rank, s))
        return RANK_ERR_NO_MEMORY;
    s->spec.env = s->env;
    st = rk_outputs_add(agent->outputs, rank, 1, &s->spec.fd[1]);
    return st ? st : rk_outputs_add(agent->outputs, rank, 2, &s->spec.fd[2]);
}

static void clear(struct start *s)
{
    for (int i = 1; i <= 3; i++) {
        if (s->spec.fd[i] > STDERR_FILENO)
            close(s->spec.fd[i]);
        s->spec.fd[i] = -1;
    }
    free(s->env);
    rk_strings_free(s->pmix);
    rk_strings_free(s->foreign);
    s->env = s->pmix = s->foreign = NULL;
}

/* Start a rank that is ready, on whatever thread. */
static bool start_one(struct rk_agent *agent, uint32_t rank, struct start *s,
                      struct rk_spawner *spawner)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.u32 = rank};
    struct rk_rank *r = &agent->ranks[rank];
    pid_t pid;

    r->start_ns = rk_clock_ns();
    s->step = "socketpair";
    pid = !agent->plain && rk_pmi1_add(agent->pmi1, rank, 0, &s->spec.fd[3])
              ? -1
              : rk_spawn(&s->spec, spawner, &r->pidfd, &s->step);
    s->error = pid < 0 ? errno : 0;
    clear(s); /* pipes and connection now end with the rank */
    if (pid < 0)
        return false;
    r->pid = pid;
    /* At once, so that those who die early are seen in their order too. */
    if (r->pidfd >= 0 && epoll_ctl(agent->exits, EPOLL_CTL_ADD, r->pidfd, &ev)) {
        close(r->pidfd);
        r->pidfd = -1;
    }
    return true;
}

/* ------------------------------------------------------------------- threads */

/* Start ranks as they get ready, until there are no more. */
static void work(struct crew *c, struct rk_spawner *spawner)
{
    pthread_mutex_lock(&c->lock);
    for (;;) {
        uint32_t rank;
        bool ok;
        while (c->next == c->ready && !c->stop)
            pthread_cond_wait(&c->changed, &c->lock);
        if (c->next == c->ready)
            break;
        rank = c->next++;
        c->busy++;
        pthread_mutex_unlock(&c->lock);
        ok = start_one(c->agent, rank, &c->starts[rank], spawner);
        pthread_mutex_lock(&c->lock);
        c->busy--;
        if (!ok) {
            c->stop = true;
            c->ready = c->next;
        }
        if (c->stop)
            pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->lock);
}

static void *thread_main(void *arg)
{
    struct rk_spawner spawner;

    if (rk_spawner_open(&spawner) == 0)
        work(arg, &spawner);
    for (;;)
        pause(); /* to the end of the process; all signals are blocked here */
    return NULL;
}

static uint32_t start_threads(struct rk_agent *agent, struct crew *c)
{
    uint32_t want = agent->job.size / RANKS_PER_THREAD, n = 0;
    pthread_attr_t attr;
    sigset_t all, old;
    pthread_t id;

    /* Most of the time a thread waits for its child to execute the program: two keep a core busy. */
    if (want > 2 * agent->plan.units)
        want = 2 * agent->plan.units;
    if (want > MAX_THREADS)
        want = MAX_THREADS;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, 256 << 10);
    /* This thread is one of them; and it does without if there are to be no more. */
    while (n + 1 < want && pthread_create(&id, &attr, thread_main, c) == 0)
        n++;
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return n;
}

static void publish(struct crew *c, uint32_t ready, bool stop)
{
    pthread_mutex_lock(&c->lock);
    if (!c->stop && ready > c->ready)
        c->ready = ready;
    c->stop = c->stop || stop;
    if (stop)
        pthread_cond_broadcast(&c->changed);
    else
        pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

/* Those that are being started by others. */
static void wait_for_busy(struct crew *c)
{
    pthread_mutex_lock(&c->lock);
    while (c->busy)
        pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

/* ----------------------------------------------------------------------- all */

static void explain(const struct rk_agent *agent, uint32_t rank, const struct start *s, int *code,
                    char *text, size_t len)
{
    *code = RK_EXIT_USAGE;
    if (strcmp(s->step, "exec") == 0) {
        *code = s->error == ENOENT ? RK_EXIT_NOT_FOUND : RK_EXIT_CANNOT_EXECUTE;
        snprintf(text, len, "cannot execute %s on %s: %s%s", agent->job.program, agent->host,
                 strerror(s->error),
                 s->error == ENOENT    ? " (it is there: is its interpreter, after #!, missing?)"
                 : s->error == ENOEXEC ? " (a script needs #! in its first line)"
                                       : "");
    } else if (strcmp(s->step, "chdir") == 0) {
        snprintf(text, len, "cannot start in %s on %s: %s", agent->job.wdir, agent->host,
                 strerror(s->error));
    } else {
        snprintf(text, len, "cannot start rank %u of %u on %s: %s: %s%s", rank, agent->job.size,
                 agent->host, s->step, strerror(s->error),
                 s->error == EAGAIN ? " (too many processes: start fewer)" : "");
    }
}

/* input: what rank 0 reads; null: what the others read. */
static rank_status_t start_all(struct rk_agent *agent, struct crew *c, int input, int null)
{
    uint32_t n = agent->job.size;
    struct rk_spawner spawner;
    rank_status_t st;

    if (rk_spawner_open(&spawner))
        return RANK_ERR_NO_MEMORY;
    st = prepare(agent, 0, input, &c->starts[0]);
    if (st)
        return st;
    c->ready = c->next = 1;
    if (!start_one(agent, 0, &c->starts[0], &spawner))
        return RANK_ERR_SYSTEM;
    start_threads(agent, c);
    for (uint32_t i = 1; !st && i < n; i++) {
        st = prepare(agent, i, null, &c->starts[i]);
        if (!st)
            publish(c, i + 1, false);
    }
    publish(c, 0, true);
    work(c, &spawner);
    wait_for_busy(c);
    return st;
}

rank_status_t rk_ranks_start(struct rk_agent *agent, int *code, char *text, size_t len)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC), input = -1;
    uint32_t n = agent->job.size;
    /* Parked threads keep looking at it, so it stays. */
    struct crew *c = calloc(1, sizeof(*c));
    rank_status_t st = RANK_OK;

    *code = 1;
    agent->plain = rk_plain(agent->job.program, agent->job.env);
    agent->ranks = calloc(n, sizeof(*agent->ranks));
    if (c)
        c->starts = calloc(n, sizeof(*c->starts));
    if (!agent->ranks || !c || !c->starts || null < 0)
        st = RANK_ERR_NO_MEMORY;
    for (uint32_t i = 0; !st && i < n; i++)
        agent->ranks[i] = (struct rk_rank){.rank = i, .pidfd = -1};
    if (!st) {
        c->agent = agent;
        pthread_mutex_init(&c->lock, NULL);
        pthread_cond_init(&c->changed, NULL);
        st = rk_outputs_open(agent, &agent->outputs);
    }
    if (!st)
        st = rk_inputs_open(agent, &agent->inputs, &input);
    if (!st)
        st = start_all(agent, c, input, null);
    if (st)
        snprintf(text, len, "cannot start ranks on %s: %s", agent->host, rank_status_string(st));
    for (uint32_t i = 0; c && c->starts && i < n; i++) {
        clear(&c->starts[i]);
        if (c->starts[i].error) {
            explain(agent, i, &c->starts[i], code, text, len);
            st = RANK_ERR_SYSTEM;
        }
        agent->live += agent->ranks && agent->ranks[i].pid > 0;
    }
    if (c) {
        free(c->starts);
        c->starts = NULL;
    }
    if (input >= 0)
        close(input);
    if (null >= 0)
        close(null);
    return st;
}

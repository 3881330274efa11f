/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rank_start.c: start the ranks of this host on several threads.
 *
 * The agent's thread prepares a rank. Starting it is one call, which waits until
 * the program is being executed; most of that is the kernel's work for the new
 * process. A few threads do it side by side. They live as long as the agent: the
 * kernel kills a rank when the thread that started it ends.
 *
 * Rank 0 is started first and alone, because its failure would mostly be the
 * failure of all.
 */
#include "launcher/agent/agent_internal.h"
#include "launcher/agent/rank_start_internal.h"
#include "launcher/exec/spawn_affinity.h"
#include "launcher/exec/environ.h"
#include "lib/base/clock.h"
#include "lib/topo/topo.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define MAX_THREADS 16
#define RANKS_PER_THREAD 8 /* below this a thread costs more than it gains */

struct start_pool {
    struct xr_agent *agent;
    struct xr_rank_start *starts; /* [nlocal] */
    int null;              /* input of ranks that get none */
    struct xr_spawn_affinity affinity; /* used if the agent's thread is the only one */
    char ***envs;          /* [job.napps]: the job's variables and the program's */
    pthread_mutex_t lock;  /* protects the rest */
    pthread_cond_t changed;
    uint32_t ready; /* the ranks before this one are prepared */
    uint32_t next;  /* the next rank to start */
    uint32_t busy;  /* ranks that are being started */
    bool stop;      /* one failed, or no more will be prepared */
};

/* ------------------------------------------------------------------ one rank */

/* Start a rank that is prepared. Runs on any thread of the crew. */
static bool rank_start_one(struct xr_agent *agent, uint32_t local, struct xr_rank_start *s,
                           struct xr_spawner *spawner)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.u32 = local};
    struct xr_rank *r = &agent->ranks[local];
    uint32_t app;
    pid_t pid;

    r->start_ns = rk_clock_ns();
    s->step = "socketpair";
    app = (uint32_t)(xr_job_app_of(&agent->job, r->rank) - agent->job.apps);
    pid = !agent->job.no_mpi && xr_pmi1_add(agent->pmi1, local, app, &s->spec.fd[3])
              ? -1
              : xr_spawn(&s->spec, spawner, &r->pidfd, &s->step);
    s->error = pid < 0 ? errno : 0;
    xr_rank_start_clear(s); /* pipes and connection now end with the rank */
    if (pid < 0)
        return false;
    r->pid = pid;
    /* At once, so that early deaths are detected in their order too. */
    if (r->pidfd >= 0 && epoll_ctl(agent->exits, EPOLL_CTL_ADD, r->pidfd, &ev)) {
        close(r->pidfd);
        r->pidfd = -1;
    }
    return true;
}

/* ------------------------------------------------------------------- threads */

/* Start ranks as they are prepared, until there are no more. */
static void rank_start_work(struct start_pool *c, struct xr_spawner *spawner)
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
        xr_spawn_affinity_keep_off(&c->affinity, c->starts[rank].spec.cpus, c->starts[rank].spec.cpus_size);
        ok = rank_start_one(c->agent, rank, &c->starts[rank], spawner);
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
    struct xr_spawner spawner;

    if (xr_spawner_open(&spawner) == 0)
        rank_start_work(arg, &spawner);
    for (;;)
        pause(); /* to the end of the process; all signals are blocked here */
    return NULL;
}

static uint32_t start_threads(struct xr_agent *agent, struct start_pool *c)
{
    uint32_t want = agent->nlocal / RANKS_PER_THREAD, n = 0, units = rk_topo_units();
    pthread_attr_t attr;
    sigset_t all, old;
    pthread_t id;

    /* A thread mostly waits for its child to execute the program: two keep a core busy. */
    if (want > 2 * units)
        want = 2 * units;
    if (want > MAX_THREADS)
        want = MAX_THREADS;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, 256 << 10);
    /* The agent's thread is one of them. Fewer are enough if some cannot be created. */
    while (n + 1 < want && pthread_create(&id, &attr, thread_main, c) == 0)
        n++;
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return n;
}

/* Let the threads start all ranks before ready. stop: no more will be prepared. */
static void rank_start_publish(struct start_pool *c, uint32_t ready, bool stop)
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

/* Wait for the ranks that other threads are starting. */
static void wait_for_busy(struct start_pool *c)
{
    pthread_mutex_lock(&c->lock);
    while (c->busy)
        pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

/* ------------------------------------------------------------------- all ranks */

static rank_status_t prepare_local(struct start_pool *c, uint32_t local)
{
    const struct xr_app *app = xr_job_app_of(&c->agent->job, c->agent->ranks[local].rank);

    return xr_rank_prepare(c->agent, local, c->envs[app - c->agent->job.apps], c->null, &c->starts[local]);
}

static rank_status_t start_all(struct xr_agent *agent, struct start_pool *c)
{
    uint32_t n = agent->nlocal;
    struct xr_spawner spawner;
    rank_status_t st;

    if (xr_spawner_open(&spawner))
        return RANK_ERR_NO_MEMORY;
    st = prepare_local(c, 0);
    if (st)
        return st;
    c->ready = c->next = 1;
    if (n > 1 && n / RANKS_PER_THREAD < 2)
        xr_spawn_affinity_open(&c->affinity);
    xr_spawn_affinity_keep_off(&c->affinity, c->starts[0].spec.cpus, c->starts[0].spec.cpus_size);
    if (!rank_start_one(agent, 0, &c->starts[0], &spawner))
        return RANK_ERR_SYSTEM;
    start_threads(agent, c);
    for (uint32_t i = 1; !st && i < n; i++) {
        st = prepare_local(c, i);
        if (!st)
            rank_start_publish(c, i + 1, false);
    }
    rank_start_publish(c, 0, true);
    rank_start_work(c, &spawner);
    wait_for_busy(c);
    return st;
}

static void free_envs(struct start_pool *c, uint32_t n)
{
    for (uint32_t i = 0; c->envs && i < n; i++)
        free(c->envs[i]);
    free(c->envs);
    c->envs = NULL;
}

static rank_status_t make_envs(struct start_pool *c, const struct xr_job *job)
{
    c->envs = calloc(job->napps, sizeof(*c->envs));
    for (uint32_t i = 0; c->envs && i < job->napps; i++) {
        c->envs[i] = xr_environ_merge(job->env, job->apps[i].env);
        if (!c->envs[i])
            return RANK_ERR_NO_MEMORY;
    }
    return c->envs ? RANK_OK : RANK_ERR_NO_MEMORY;
}

static uint32_t rank_of(void *arg, uint32_t local)
{
    const struct xr_agent *agent = arg;

    return agent->ranks[local].rank;
}

static void rank_start_on_progress(void *arg)
{
    xr_agent_check_done(arg);
}

/* Open the streams of all ranks. */
static rank_status_t open_rank_io(struct xr_agent *agent)
{
    rank_status_t st;

    agent->io = (struct xr_local_io){.base = agent->base,
                                     .wire = &agent->wire,
                                     .direct = agent->direct,
                                     .node = agent->node,
                                     .nlocal = agent->nlocal,
                                     .nhosts = agent->job.nhosts,
                                     .rank_of = rank_of,
                                     .on_progress = rank_start_on_progress,
                                     .arg = agent};
    st = xr_rank_output_open(&agent->io, &agent->outputs);
    return st ? st : xr_rank_input_open(&agent->io, agent->job.input == XR_INPUT_ALL, &agent->inputs);
}

/* Count the ranks that run, and free what was prepared. Sets *code and text for one that did not start. */
static rank_status_t rank_start_collect(struct xr_agent *agent, struct start_pool *c, int *code, char *text, size_t len)
{
    rank_status_t st = RANK_OK;

    for (uint32_t i = 0; c->starts && i < agent->nlocal; i++) {
        xr_rank_start_clear(&c->starts[i]);
        if (c->starts[i].error) {
            xr_rank_start_explain(agent, agent->ranks[i].rank, &c->starts[i], code, text, len);
            st = RANK_ERR_SYSTEM;
        }
        agent->live += agent->ranks[i].pid > 0;
    }
    free_envs(c, agent->job.napps);
    free(c->starts);
    c->starts = NULL;
    return st;
}

rank_status_t xr_ranks_start(struct xr_agent *agent, int *code, char *text, size_t len)
{
    struct start_pool *c = calloc(1, sizeof(*c)); /* never freed: the parked threads use it */
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    rank_status_t st = RANK_OK, failed = RANK_OK;

    *code = 1;
    if (c)
        c->starts = calloc(agent->nlocal, sizeof(*c->starts));
    if (!c || !c->starts || null < 0)
        st = RANK_ERR_NO_MEMORY;
    if (!st) {
        c->agent = agent;
        c->null = null;
        pthread_mutex_init(&c->lock, NULL);
        pthread_cond_init(&c->changed, NULL);
        st = make_envs(c, &agent->job);
    }
    if (!st)
        st = open_rank_io(agent);
    if (!st)
        st = start_all(agent, c);
    if (c)
        xr_spawn_affinity_close(&c->affinity);
    if (st)
        snprintf(text, len, "cannot start ranks on %s: %s", agent->host, rank_status_string(st));
    if (c)
        failed = rank_start_collect(agent, c, code, text, len);
    if (null >= 0)
        close(null);
    return failed ? failed : st;
}

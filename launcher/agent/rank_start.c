/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rank_start.c: start the ranks of this host. See agent.h.
 *
 * Everything a rank needs is made ready by the agent's thread; starting it is
 * then one call that waits until the program is being executed, most of which
 * is work of the kernel's for the new process. A few threads do that side by
 * side. They stay as long as the agent does: the kernel kills a rank when the
 * thread that started it ends.
 *
 * Rank 0 is started first and alone: what keeps it from starting would mostly
 * keep the others too.
 */
#include "launcher/agent/agent_internal.h"
#include "launcher/exec/spawn_affinity.h"
#include "launcher/exec/environ.h"
#include "launcher/compat/mpi_env.h"
#include "launcher/exec/find_program.h"
#include "launcher/exec/spawn_proc.h"
#include "launcher/job/torch_env.h"
#include "launcher/agent/progress_watch.h"
#include "launcher/iof/pty.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/topo/topo.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define OWN_VARS 8
#define MAX_THREADS 16
#define RANKS_PER_THREAD 8 /* fewer are not worth a thread */

struct start {
    struct xr_spawn spec;
    char own[OWN_VARS][400]; /* the rank's own variables */
    char torch[XR_TORCH_VARS][32];
    char **env, **pmix, **foreign;
    int null;  /* shared, if it reads from there */
    int error; /* errno, if it did not start */
    const char *step;
};

struct crew {
    struct xr_agent *agent;
    struct start *starts; /* [nlocal] */
    int null;             /* what those read who have no input */
    struct xr_aside aside; /* where no thread helps */
    char ***envs;         /* [job.napps]: the job's variables and the program's */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t ready; /* those before it can be started */
    uint32_t next;  /* the next to be started */
    uint32_t busy;  /* being started */
    bool stop;      /* one failed, or no more will be ready */
};

/* ------------------------------------------------------------------ one rank */

static size_t rank_start_count(char *const *v)
{
    size_t n = 0;

    while (v && v[n])
        n++;
    return n;
}

/* The rank's own variables, what PMIx and other MPI libraries want, then the program's. The first of a
 * name counts. */
static bool rank_start_make_env(struct xr_agent *agent, uint32_t local, char *const *env, struct start *s)
{
    uint32_t rank = agent->ranks[local].rank;
    const struct xr_foreign where = {.rank = rank,
                                     .size = agent->job.size,
                                     .local_rank = local,
                                     .local_size = agent->nlocal,
                                     .oversubscribed = agent->seats.oversubscribed,
                                     .spawned = agent->job.origin.job != NULL,
                                     .pmi1 = !agent->job.no_mpi};
    size_t npmix, nforeign, njob = rank_start_count(env), n = 0;

    s->pmix = agent->server ? xr_server_rank_env(agent->server, rank) : calloc(1, sizeof(*s->pmix));
    s->foreign = xr_foreign_env(&where, env);
    npmix = rank_start_count(s->pmix);
    nforeign = rank_start_count(s->foreign);
    s->env = malloc((OWN_VARS + XR_TORCH_VARS + npmix + nforeign + njob + 1) * sizeof(*s->env));
    if (!s->pmix || !s->foreign || !s->env)
        return false;
    snprintf(s->own[0], sizeof(s->own[0]), "XRUN_RANK=%u", rank);
    snprintf(s->own[1], sizeof(s->own[1]), "XRUN_SIZE=%u", agent->job.size);
    snprintf(s->own[2], sizeof(s->own[2]), "XRUN_LOCAL_RANK=%u", local);
    snprintf(s->own[3], sizeof(s->own[3]), "XRUN_LOCAL_SIZE=%u", agent->nlocal);
    snprintf(s->own[4], sizeof(s->own[4]), "XRUN_NODE_RANK=%u", agent->order);
    snprintf(s->own[5], sizeof(s->own[5]), "XRUN_NODES=%u", agent->nused);
    snprintf(s->own[6], sizeof(s->own[6]), "XRUN_JOB=%s", agent->job.id);
    if (!xr_progress_variable(agent->progress, local, s->own[7], sizeof(s->own[7])))
        snprintf(s->own[7], sizeof(s->own[7]), "XRUN_BOARD="); /* none */
    for (; n < OWN_VARS; n++)
        s->env[n] = s->own[n];
    if (agent->job.torch) {
        for (int i = 0; i < XR_TORCH_VARS; i++)
            s->env[n++] = s->torch[i];
        xr_torch_rank(rank, agent->job.size, local, agent->nlocal, s->env + n - XR_TORCH_VARS);
    }
    memcpy(s->env + n, s->pmix, npmix * sizeof(*s->env));
    n += npmix;
    memcpy(s->env + n, s->foreign, nforeign * sizeof(*s->env));
    memcpy(s->env + n + nforeign, env, (njob + 1) * sizeof(*s->env));
    return true;
}

/* A terminal for 0, 1 and 2; the agent keeps its other side. */
static rank_status_t give_terminal(struct xr_agent *agent, uint32_t local, struct start *s)
{
    uint32_t rank = agent->ranks[local].rank;
    int master, slave, copies[2];
    rank_status_t st;

    if (xr_terminal_open(&agent->job.window, &master, &slave)) {
        rk_error("no terminal for rank %u: %m", rank);
        return RANK_ERR_SYSTEM;
    }
    agent->terminal = master;
    s->spec.terminal = true;
    s->spec.fd[0] = slave;
    s->spec.fd[1] = fcntl(slave, F_DUPFD_CLOEXEC, 3);
    s->spec.fd[2] = fcntl(slave, F_DUPFD_CLOEXEC, 3);
    copies[0] = fcntl(master, F_DUPFD_CLOEXEC, 3);
    copies[1] = fcntl(master, F_DUPFD_CLOEXEC, 3);
    if (s->spec.fd[1] < 0 || s->spec.fd[2] < 0 || copies[0] < 0 || copies[1] < 0)
        return RANK_ERR_SYSTEM; /* the agent's end closes them */
    st = xr_outputs_add_terminal(agent->outputs, local, copies[0]);
    if (!st && xr_inputs_wanted(&agent->job, rank))
        return xr_inputs_add_terminal(agent->inputs, copies[1]);
    close(copies[1]);
    return st;
}

static rank_status_t give_pipes(struct xr_agent *agent, uint32_t local, int null, struct start *s)
{
    rank_status_t st = RANK_OK;

    if (xr_inputs_wanted(&agent->job, agent->ranks[local].rank))
        st = xr_inputs_add(agent->inputs, &s->spec.fd[0]);
    else
        s->spec.fd[0] = null;
    if (!st)
        st = xr_outputs_add(agent->outputs, local, 1, &s->spec.fd[1]);
    return st ? st : xr_outputs_add(agent->outputs, local, 2, &s->spec.fd[2]);
}

static rank_status_t rank_start_prepare(struct crew *c, uint32_t local)
{
    struct xr_agent *agent = c->agent;
    const struct xr_app *app = xr_job_app_of(&agent->job, agent->ranks[local].rank);
    struct start *s = &c->starts[local];

    s->null = c->null;
    s->spec = (struct xr_spawn){.program = app->program,
                                .argv = app->argv,
                                .wdir = app->wdir,
                                .fd = {-1, -1, -1, -1},
                                .cpus = xr_agent_cpus(agent, local),
                                .cpus_size = agent->set_size,
                                .nofile = agent->job.nofile,
                                .limits = &agent->job.limits};
    if (!rank_start_make_env(agent, local, c->envs[app - agent->job.apps], s))
        return RANK_ERR_NO_MEMORY;
    s->spec.env = s->env;
    if (agent->job.pty == agent->ranks[local].rank)
        return give_terminal(agent, local, s);
    return give_pipes(agent, local, c->null, s);
}

static void clear(struct start *s)
{
    for (int i = 0; i <= 3; i++) {
        if (s->spec.fd[i] > STDERR_FILENO && (i != 0 || s->spec.fd[i] != s->null))
            close(s->spec.fd[i]);
        s->spec.fd[i] = -1;
    }
    free(s->env);
    xr_strings_free(s->pmix);
    xr_strings_free(s->foreign);
    s->env = s->pmix = s->foreign = NULL;
}

/* Start a rank that is ready, on whatever thread. */
static bool start_one(struct xr_agent *agent, uint32_t local, struct start *s,
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
static void rank_start_work(struct crew *c, struct xr_spawner *spawner)
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
        xr_aside_keep_off(&c->aside, c->starts[rank].spec.cpus, c->starts[rank].spec.cpus_size);
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
    struct xr_spawner spawner;

    if (xr_spawner_open(&spawner) == 0)
        rank_start_work(arg, &spawner);
    for (;;)
        pause(); /* to the end of the process; all signals are blocked here */
    return NULL;
}

static uint32_t start_threads(struct xr_agent *agent, struct crew *c)
{
    uint32_t want = agent->nlocal / RANKS_PER_THREAD, n = 0, units = rk_topo_units();
    pthread_attr_t attr;
    sigset_t all, old;
    pthread_t id;

    /* Most of the time a thread waits for its child to execute the program: two keep a core busy. */
    if (want > 2 * units)
        want = 2 * units;
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

static size_t rank_start_name_app(const struct xr_agent *agent, const struct xr_app *app, char *text, size_t len)
{
    if (agent->job.napps == 1)
        return 0;
    return (size_t)snprintf(text, len, "program %u: ", (unsigned)(app - agent->job.apps) + 1);
}

static void explain(const struct xr_agent *agent, uint32_t rank, const struct start *s, int *code,
                    char *text, size_t len)
{
    const struct xr_app *app = xr_job_app_of(&agent->job, rank);
    size_t named = rank_start_name_app(agent, app, text, len);

    *code = XR_EXIT_USAGE;
    text += named;
    len -= named;
    if (strcmp(s->step, "exec") == 0 && s->error == ENOENT && access(app->program, F_OK)) {
        *code = XR_EXIT_NOT_FOUND;
        snprintf(text, len, "there is no program %s on %s", app->program, agent->host);
    } else if (strcmp(s->step, "exec") == 0) {
        *code = s->error == ENOENT ? XR_EXIT_NOT_FOUND : XR_EXIT_CANNOT_EXECUTE;
        snprintf(text, len, "cannot execute %s on %s: %s%s", app->program, agent->host,
                 strerror(s->error),
                 s->error == ENOENT    ? " (it is there: is its interpreter, after #!, missing?)"
                 : s->error == ENOEXEC ? " (a script needs #! in its first line)"
                                       : "");
    } else if (strcmp(s->step, "chdir") == 0) {
        snprintf(text, len, "cannot start in %s on %s: %s", app->wdir, agent->host,
                 strerror(s->error));
    } else {
        snprintf(text, len, "cannot start rank %u of %u on %s: %s: %s%s", rank, agent->job.size,
                 agent->host, s->step, strerror(s->error),
                 s->error == EAGAIN ? " (too many processes: start fewer, or raise ulimit -u or pids.max of the control group)" : "");
    }
}

/* xrun's host has no rank, and did not have these programs: look for those that run here. */
rank_status_t xr_ranks_find(struct xr_agent *agent, int *code, char *text, size_t len)
{
    for (struct xr_app *app = agent->job.apps; app < agent->job.apps + agent->job.napps; app++) {
        const char *path = xr_environ_value(app->env, "PATH");
        bool here = false;
        size_t named;
        char *found;
        for (uint32_t i = 0; i < agent->nlocal && !here; i++)
            here = xr_job_app_of(&agent->job, agent->ranks[i].rank) == app;
        if (!here || strchr(app->program, '/'))
            continue;
        named = rank_start_name_app(agent, app, text, len);
        named += (size_t)snprintf(text + named, len - named, "host %s: ", agent->host);
        found = xr_program_find(app->program, *app->path ? app->path : NULL,
                                path ? path : xr_environ_value(agent->job.env, "PATH"), app->wdir, text + named,
                                len - named, code);
        if (!found)
            return RANK_ERR_SYSTEM;
        free(app->program);
        app->program = found;
        *text = '\0';
    }
    return RANK_OK;
}

static rank_status_t start_all(struct xr_agent *agent, struct crew *c)
{
    uint32_t n = agent->nlocal;
    struct xr_spawner spawner;
    rank_status_t st;

    if (xr_spawner_open(&spawner))
        return RANK_ERR_NO_MEMORY;
    st = rank_start_prepare(c, 0);
    if (st)
        return st;
    c->ready = c->next = 1;
    if (n > 1 && n / RANKS_PER_THREAD < 2)
        xr_aside_open(&c->aside);
    xr_aside_keep_off(&c->aside, c->starts[0].spec.cpus, c->starts[0].spec.cpus_size);
    if (!start_one(agent, 0, &c->starts[0], &spawner))
        return RANK_ERR_SYSTEM;
    start_threads(agent, c);
    for (uint32_t i = 1; !st && i < n; i++) {
        st = rank_start_prepare(c, i);
        if (!st)
            publish(c, i + 1, false);
    }
    publish(c, 0, true);
    rank_start_work(c, &spawner);
    wait_for_busy(c);
    return st;
}

static void free_envs(struct crew *c, uint32_t n)
{
    for (uint32_t i = 0; c->envs && i < n; i++)
        free(c->envs[i]);
    free(c->envs);
    c->envs = NULL;
}

static rank_status_t make_envs(struct crew *c, const struct xr_job *job)
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

rank_status_t xr_ranks_start(struct xr_agent *agent, int *code, char *text, size_t len)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    uint32_t n = agent->nlocal;
    /* Parked threads keep looking at it, so it stays. */
    struct crew *c = calloc(1, sizeof(*c));
    rank_status_t st = RANK_OK;

    *code = 1;
    if (c)
        c->starts = calloc(n, sizeof(*c->starts));
    if (!c || !c->starts || null < 0)
        st = RANK_ERR_NO_MEMORY;
    if (!st) {
        c->agent = agent;
        c->null = null;
        pthread_mutex_init(&c->lock, NULL);
        pthread_cond_init(&c->changed, NULL);
        st = make_envs(c, &agent->job);
    }
    agent->io = (struct xr_local_io){.base = agent->base,
                                     .wire = &agent->wire,
                                     .direct = agent->direct,
                                     .node = agent->node,
                                     .nlocal = agent->nlocal,
                                     .nhosts = agent->job.nhosts,
                                     .rank_of = rank_of,
                                     .on_progress = rank_start_on_progress,
                                     .arg = agent};
    if (!st) {
        st = xr_outputs_open(&agent->io, &agent->outputs);
    }
    if (!st)
        st = xr_inputs_open(&agent->io, agent->job.input == XR_INPUT_ALL, &agent->inputs);
    if (!st)
        st = start_all(agent, c);
    if (c)
        xr_aside_close(&c->aside);
    if (st)
        snprintf(text, len, "cannot start ranks on %s: %s", agent->host, rank_status_string(st));
    for (uint32_t i = 0; c && c->starts && i < n; i++) {
        clear(&c->starts[i]);
        if (c->starts[i].error) {
            explain(agent, agent->ranks[i].rank, &c->starts[i], code, text, len);
            st = RANK_ERR_SYSTEM;
        }
        agent->live += agent->ranks[i].pid > 0;
    }
    if (c) {
        free_envs(c, agent->job.napps);
        free(c->starts);
        c->starts = NULL;
    }
    if (null >= 0)
        close(null);
    return st;
}

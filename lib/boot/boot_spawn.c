/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot_spawn.c: request another job from the launcher.
 *
 * PMIx answers on its own thread and wakes the caller, which waits in rk_wait. Some launchers never answer: after
 * RANK_SPAWN_TIMEOUT the request is abandoned, and a job that starts afterwards is ended.
 */
#include "lib/base/clock.h"
#include "lib/base/conf.h"
#include "lib/base/kept_fds.h"
#include "lib/base/log.h"
#include "lib/boot/boot_client.h"
#include "lib/boot/parent.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { WAITING, ANSWERED, ABANDONED };

struct rk_boot_spawn {
    struct rk_boot_pending pending; /* first */
    void (*wake)(void *);
    void *arg;
    pmix_status_t rc;
    char space[RK_NSPACE_MAX];
    const char *program; /* owned by the caller */
    uint64_t until;      /* or 0 */
    _Atomic int state;   /* set last; once ABANDONED the callback frees the struct */
};

static void ignore(pmix_status_t rc, pmix_info_t info[], size_t n, void *arg, pmix_release_cbfunc_t release,
                   void *release_arg)
{
    (void)rc;
    (void)info;
    (void)n;
    (void)arg;
    if (release)
        release(release_arg);
}

/* End a job without a parent. Launchers that do not support it leave the job to find out by itself. */
static void end_late(const char *space)
{
    static pmix_info_t kill; /* PMIx copies it asynchronously */
    pmix_proc_t job;

    PMIX_LOAD_PROCID(&job, space, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&kill, PMIX_JOB_CTRL_KILL, NULL, PMIX_BOOL);
    PMIx_Job_control_nb(&job, 1, &kill, 1, ignore, NULL);
}

static void answered(pmix_status_t rc, char *space, void *arg)
{
    struct rk_boot_spawn *s = arg;
    void (*wake)(void *);
    void *wake_arg;

    rk_tsan_acquire(s);
    wake = s->wake;
    wake_arg = s->arg;
    s->rc = rc;
    if (rc == PMIX_SUCCESS)
        snprintf(s->space, sizeof(s->space), "%s", space ? space : "");
    if (atomic_exchange(&s->state, ANSWERED) == ABANDONED) {
        if (s->space[0])
            end_late(s->space);
        free(s);
        return;
    }
    wake(wake_arg); /* s may be freed */
}

/* PMIx copies the list. */
static char **boot_spawn_list(const char *first, const char *const *rest, const char *last)
{
    size_t n = 0;
    char **all;

    while (rest && rest[n])
        n++;
    all = calloc(n + 3, sizeof(*all));
    if (!all)
        return NULL;
    if (first)
        all[0] = (char *)(uintptr_t)first;
    for (size_t i = 0; i < n; i++)
        all[(first != NULL) + i] = (char *)(uintptr_t)rest[i];
    if (last)
        all[(first != NULL) + n] = (char *)(uintptr_t)last;
    return all;
}

static char *variable(const char *name, const char *value)
{
    size_t room = strlen(name) + strlen(value) + 2;
    char *text = malloc(room);

    if (text)
        snprintf(text, room, "%s=%s", name, value);
    return text;
}

static bool spawn_over(void *spawn)
{
    struct rk_boot_spawn *s = spawn;

    return atomic_load(&s->state) == ANSWERED || (s->until && rk_clock_ns() >= s->until);
}

rank_status_t rk_client_spawn_begin(struct rk_boot *boot, const struct rk_boot_app *app,
                                    void (*wake)(void *), void *arg, struct rk_boot_spawn **out)
{
    struct rk_boot_spawn *s = calloc(1, sizeof(*s));
    char *parent = variable(RK_PARENT_VARIABLE, app->parent);
    char **argv = boot_spawn_list(app->program, app->args, NULL);
    char **env = parent ? boot_spawn_list(NULL, app->env, parent) : NULL;
    rank_status_t st = RANK_OK;
    pmix_app_t what = {.cmd = (char *)(uintptr_t)app->program,
                       .argv = argv,
                       .env = env,
                       .cwd = (char *)(uintptr_t)app->dir,
                       .maxprocs = app->n};
    pmix_info_t info[1];
    bool yes = true;
    pmix_status_t rc;

    (void)boot;
    if (!s || !argv || !env) {
        st = RANK_ERR_NO_MEMORY;
        goto out;
    }
    if (rk_kept_fds_closed("rank_spawn")) {
        st = RANK_ERR_SYSTEM;
        goto out;
    }
    s->pending.over = spawn_over;
    s->wake = wake;
    s->arg = arg;
    s->program = app->program;
    s->until = rk_conf.spawn_timeout ? rk_clock_ns() + (uint64_t)rk_conf.spawn_timeout : 0;
    /* Else the end of a job that never joins is no event. */
    PMIX_INFO_LOAD(&info[0], PMIX_NOTIFY_COMPLETION, &yes, PMIX_BOOL);
    rk_tsan_release(s);
    rc = PMIx_Spawn_nb(info, 1, &what, 1, answered, s);
    if (rc != PMIX_SUCCESS) { /* no callback follows; otherwise the callback may own s already */
        s->rc = rc;
        atomic_store(&s->state, ANSWERED);
    }
    PMIX_INFO_DESTRUCT(&info[0]);
out:
    if (st)
        free(s);
    else
        *out = s;
    free(parent);
    free(argv);
    free(env);
    return st;
}

rank_status_t rk_client_spawn_end(struct rk_boot_spawn *s, char space[RK_NSPACE_MAX])
{
    const char *program = s->program;
    rank_status_t st = RANK_OK;
    int waiting = WAITING;

    if (atomic_compare_exchange_strong(&s->state, &waiting, ABANDONED)) {
        rk_error("rank_spawn: the launcher has not said within %g s whether it has started %s "
                 "(RANK_SPAWN_TIMEOUT sets how long that may take)",
                 (double)rk_conf.spawn_timeout * 1e-9, program);
        return RANK_ERR_SPAWN;
    }
    /* A server without spawn may return an empty answer (4.2.2). */
    if (s->rc == PMIX_ERR_NOT_SUPPORTED || (s->rc == PMIX_SUCCESS && !s->space[0])) {
        rk_error("rank_spawn: this launcher does not start further programs; xrun and Open MPI's "
                 "mpirun do");
        st = RANK_ERR_NOT_SUPPORTED;
    } else if (s->rc != PMIX_SUCCESS) {
        rk_error("rank_spawn: the launcher could not start %s: %s", s->program,
                 PMIx_Error_string(s->rc));
        st = RANK_ERR_SPAWN;
    } else {
        memcpy(space, s->space, sizeof(s->space));
    }
    free(s);
    return st;
}

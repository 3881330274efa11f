/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot_spawn.c: request another job from the launcher.
 *
 * PMIx answers on its own thread and wakes the caller, which waits in rk_wait. Some launchers never answer: after
 * RANK_SPAWN_TIMEOUT the request is abandoned, and a job that starts afterwards is ended.
 */
#include "lib/base/conf.h"
#include "lib/base/kept_fds.h"
#include "lib/base/arg_error.h"
#include "lib/boot/boot_client.h"
#include "lib/boot/parent.h"

#include <stdlib.h>
#include <string.h>

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
static void end_late(struct rk_pending *a)
{
    static pmix_info_t kill; /* PMIx copies it asynchronously */
    pmix_proc_t job;

    if (!a->bytes)
        return;
    PMIX_LOAD_PROCID(&job, (char *)a->bytes, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&kill, PMIX_JOB_CTRL_KILL, NULL, PMIX_BOOL);
    PMIx_Job_control_nb(&job, 1, &kill, 1, ignore, NULL);
}

static void answered(pmix_status_t rc, char *space, void *arg)
{
    struct rk_pending *a = arg;

    rk_tsan_acquire(a);
    if (rc == PMIX_SUCCESS && space && space[0] && !(a->bytes = strndup(space, RK_NSPACE_MAX - 1)))
        rc = PMIX_ERR_NOMEM;
    rk_pending_arrived(rc, a);
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

rank_status_t rk_client_spawn_begin(struct rk_boot *boot, const struct rk_boot_app *app,
                                    void (*wake)(void *), void *arg, struct rk_pending **out)
{
    struct rk_pending *a = rk_pending_new();
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
    if (!a || !argv || !env) {
        st = RANK_ERR_NO_MEMORY;
        goto out;
    }
    if (rk_kept_fds_closed("rank_spawn")) {
        st = RANK_ERR_SYSTEM;
        goto out;
    }
    a->wake = wake;
    a->wake_arg = arg;
    a->late = end_late;
    /* Else the end of a job that never joins is no event. */
    PMIX_INFO_LOAD(&info[0], PMIX_NOTIFY_COMPLETION, &yes, PMIX_BOOL);
    rk_tsan_release(a);
    rc = PMIx_Spawn_nb(info, 1, &what, 1, answered, a);
    if (rc != PMIX_SUCCESS) /* no callback follows */
        rk_pending_arrived(rc, a);
    PMIX_INFO_DESTRUCT(&info[0]);
out:
    if (!st)
        *out = a;
    else if (a)
        rk_pending_free(a);
    free(parent);
    free(argv);
    free(env);
    return st;
}

rank_status_t rk_client_spawn_end(struct rk_pending *a, const char *program, char space[RK_NSPACE_MAX])
{
    rank_status_t st = RANK_OK;

    if (!rk_pending_is_ready(a)) {
        rk_pending_abandon(a);
        return rk_fail(RANK_ERR_SPAWN, "rank_spawn: the launcher has not reported within %g s that it started %s "
                       "(RANK_SPAWN_TIMEOUT sets how long that may take)", (double)rk_conf.spawn_timeout * 1e-9, program);
    }
    /* A server without spawn may return an empty answer (4.2.2). */
    if (a->rc == PMIX_ERR_NOT_SUPPORTED || (a->rc == PMIX_SUCCESS && !a->bytes)) {
        rk_fail(RANK_ERR_NOT_SUPPORTED, "rank_spawn: this launcher does not start further programs; xrun and Open MPI's "
                "mpirun do");
        st = RANK_ERR_NOT_SUPPORTED;
    } else if (a->rc != PMIX_SUCCESS) {
        rk_fail(RANK_ERR_SPAWN, "rank_spawn: the launcher could not start %s: %s", program, PMIx_Error_string(a->rc));
        st = RANK_ERR_SPAWN;
    } else {
        snprintf(space, RK_NSPACE_MAX, "%s", (char *)a->bytes);
    }
    rk_pending_free(a);
    return st;
}

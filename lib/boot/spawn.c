/*
 * spawn.c: ask the launcher for another job.
 *
 * PMIx answers on its own thread; who asked waits in the one function that waits, and is woken.
 */
#include "lib/base/log.h"
#include "lib/boot/parent.h"

#include <pmix.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct rk_boot_spawn {
    void (*wake)(void *);
    void *arg;
    pmix_status_t rc;
    char space[RK_SPACE_MAX];
    const char *program; /* the caller's */
    _Atomic bool over;   /* set last */
};

static void answered(pmix_status_t rc, char *space, void *arg)
{
    struct rk_boot_spawn *s = arg;
    void (*wake)(void *) = s->wake;
    void *wake_arg = s->arg;

    s->rc = rc;
    if (rc == PMIX_SUCCESS)
        snprintf(s->space, sizeof(s->space), "%s", space ? space : "");
    atomic_store(&s->over, true); /* from here on it may be freed */
    wake(wake_arg);
}

/* PMIx copies what it is given. */
static char **list(const char *first, const char *const *rest, const char *last)
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

rank_status_t rk_boot_spawn_begin(struct rk_boot *boot, const struct rk_boot_app *app,
                                  void (*wake)(void *), void *arg, struct rk_boot_spawn **out)
{
    struct rk_boot_spawn *s = calloc(1, sizeof(*s));
    char *parent = variable(RK_PARENT_VARIABLE, app->parent);
    char **argv = list(app->program, app->args, NULL);
    char **env = parent ? list(NULL, app->env, parent) : NULL;
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
    *out = s;
    if (!s || !argv || !env) {
        st = RANK_ERR_NO_MEMORY;
        goto out;
    }
    s->wake = wake;
    s->arg = arg;
    s->program = app->program;
    /* That a job which never joins has ended is else no event. */
    PMIX_INFO_LOAD(&info[0], PMIX_NOTIFY_COMPLETION, &yes, PMIX_BOOL);
    rc = PMIx_Spawn_nb(info, 1, &what, 1, answered, s);
    if (rc != PMIX_SUCCESS) { /* no callback will come; else s may be the callback's already */
        s->rc = rc;
        atomic_store(&s->over, true);
    }
    PMIX_INFO_DESTRUCT(&info[0]);
out:
    free(parent);
    free(argv);
    free(env);
    return st;
}

bool rk_boot_spawn_over(void *spawn)
{
    return atomic_load(&((struct rk_boot_spawn *)spawn)->over);
}

rank_status_t rk_boot_spawn_end(struct rk_boot_spawn *s, char space[RK_SPACE_MAX])
{
    rank_status_t st = RANK_OK;

    if (!s)
        return RANK_ERR_NO_MEMORY;
    /* A server without the call may answer with nothing (4.2.2). */
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

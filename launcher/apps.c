/* apps.c: see apps.h. */
#include "launcher/apps.h"
#include "launcher/environ.h"
#include "launcher/program.h"
#include "lib/base/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

static int out_of_memory(char *err, size_t errlen)
{
    snprintf(err, errlen, "out of memory");
    return 1;
}

/* The variables that -x gives a program. */
static int make_env(const struct rk_app_options *o, struct rk_app *app, char *err, size_t errlen)
{
    const char *missing;

    app->env = rk_environ_additions(o->set, o->nset, &missing);
    if (app->env)
        return 0;
    if (!missing)
        return out_of_memory(err, errlen);
    snprintf(err, errlen, "-x %s: %s is not set where xrun runs; write -x %s=value", missing,
             missing, missing);
    return RK_EXIT_USAGE;
}

static char **copy_command(const char *const *command)
{
    size_t n = 0;
    char **copy;

    while (command[n])
        n++;
    copy = calloc(n + 1, sizeof(*copy));
    for (size_t i = 0; copy && i < n; i++) {
        copy[i] = strdup(command[i]);
        if (!copy[i]) {
            rk_strings_free(copy);
            return NULL;
        }
    }
    return copy;
}

static int make_app(const struct rk_app_options *o, char *const *env, struct rk_app *app,
                    char *err, size_t errlen)
{
    int code = make_env(o, app, err, errlen);
    const char *path;

    if (code)
        return code;
    app->wdir = rk_program_wdir(o->wdir, err, errlen);
    if (!app->wdir)
        return RK_EXIT_USAGE;
    path = rk_environ_value(app->env, "PATH");
    if (!path)
        path = rk_environ_value(env, "PATH");
    app->program = rk_program_find(o->command[0], path, app->wdir, err, errlen, &code);
    if (!app->program)
        return code;
    app->argv = copy_command(o->command);
    return app->argv ? 0 : out_of_memory(err, errlen);
}

/* Load the library's configuration from another environment than ours. */
static rank_status_t load_with(char **env)
{
    char **own = environ;
    rank_status_t st;

    environ = env;
    st = rk_conf_load();
    environ = own;
    return st;
}

/* What a later program's -x says to the library. What they all have is looked at only once, and so
 * are the files. */
static rank_status_t check_additions(const struct rk_app *app)
{
    static char no_file[] = "RANK_CONF=/dev/null";
    char *base[] = {no_file, NULL}, **env;
    rank_status_t st = RANK_OK;
    bool any = false;

    for (char *const *e = app->env; *e; e++)
        any = any || strncmp(*e, "RANK_", 5) == 0;
    if (!any)
        return RANK_OK;
    env = rk_environ_merge(base, app->env);
    st = env ? load_with(env) : RANK_ERR_NO_MEMORY;
    free(env);
    return st;
}

/* The first program's come last and stay: they are xrun's own too. */
static rank_status_t check_conf(const struct rk_job *job)
{
    char **env;
    rank_status_t st = RANK_OK;

    for (uint32_t i = job->napps - 1; !st && i > 0; i--)
        st = check_additions(&job->apps[i]);
    if (st)
        return st;
    env = rk_environ_merge(job->env, job->apps[0].env);
    st = env ? load_with(env) : RANK_ERR_NO_MEMORY;
    free(env);
    return st;
}

int rk_apps_make(const struct rk_options *options, struct rk_job *job, char *err, size_t errlen)
{
    rank_status_t st;

    job->apps = calloc((size_t)options->napps, sizeof(*job->apps));
    if (!job->apps)
        return out_of_memory(err, errlen);
    job->napps = (uint32_t)options->napps;
    for (uint32_t i = 0; i < job->napps; i++) {
        const struct rk_app_options *o = &options->apps[i];
        int named = 0, code;
        job->apps[i].first = job->size;
        job->apps[i].n = (uint32_t)o->n;
        job->size += job->apps[i].n;
        if (job->napps > 1)
            named = snprintf(err, errlen, "program %u: ", i + 1);
        code = make_app(o, job->env, &job->apps[i], err + named, errlen - (size_t)named);
        if (code)
            return code;
    }
    err[0] = '\0';
    st = check_conf(job);
    if (st == RANK_ERR_CONFIG)
        return RK_EXIT_USAGE; /* it has said what and where */
    if (st)
        snprintf(err, errlen, "%s", rank_status_string(st));
    return st ? 1 : 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* programs.c: see programs.h. */
#include "launcher/cli/programs.h"
#include "launcher/exec/environ.h"
#include "launcher/exec/find_program.h"
#include "launcher/job/torch_env.h"
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

static char **copy_strings(const char *const *v)
{
    size_t n = 0;
    char **copy;

    while (v[n])
        n++;
    copy = calloc(n + 1, sizeof(*copy));
    for (size_t i = 0; copy && i < n; i++) {
        copy[i] = strdup(v[i]);
        if (!copy[i]) {
            xr_strings_free(copy);
            return NULL;
        }
    }
    return copy;
}

/* One -x. NAME alone says that it shall be passed on, as it mostly is anyway. */
static int put_x(const char *set, bool torch, struct xr_app *app, char *err, size_t errlen)
{
    const char *value = rk_env(set);
    char *text = NULL;
    bool ok;

    if (torch && xr_torch_own(set)) {
        snprintf(err, errlen, "-x %s: --env torch sets that variable for each rank", set);
        return XR_EXIT_USAGE;
    }
    if (!strchr(set, '=')) {
        if (!value) {
            snprintf(err, errlen, "-x %s: %s is not set where xrun runs; write -x %s=value", set,
                     set, set);
            return XR_EXIT_USAGE;
        }
        if (!xr_environ_foreign(set))
            return 0;
        if (asprintf(&text, "%s=%s", set, value) < 0)
            return out_of_memory(err, errlen);
    }
    ok = xr_environ_put(&app->env, text ? text : set);
    free(text);
    return ok ? 0 : out_of_memory(err, errlen);
}

/* The variables that a program is given, by files and by -x. */
static int programs_make_env(const struct xr_app_options *o, bool torch, struct xr_app *app, char *err,
                    size_t errlen)
{
    int code = 0;

    app->env = calloc(1, sizeof(*app->env));
    if (!app->env)
        return out_of_memory(err, errlen);
    for (int i = 0; i < o->nfiles; i++) {
        if (!xr_environ_put_file(&app->env, o->files[i], err, errlen))
            return XR_EXIT_USAGE;
    }
    for (int i = 0; !code && i < o->nset; i++)
        code = put_x(o->set[i], torch, app, err, errlen);
    return code;
}

/* NAME=DIR/SUB:what NAME was */
static bool put_before(char ***env, const char *name, const char *dir, const char *sub)
{
    const char *old = xr_environ_value(*env, name);
    char *text;
    bool ok;

    if (asprintf(&text, "%s=%s/%s%s%s", name, dir, sub, old && *old ? ":" : "", old ? old : "") < 0)
        return false;
    ok = xr_environ_put(env, text);
    free(text);
    return ok;
}

/* The environment of all. */
static bool make_job_env(const struct xr_options *o, struct xr_job *job)
{
    xr_environ_scrub();
    job->env = copy_strings((const char *const *)environ);
    job->no_mpi = o->no_mpi;
    job->torch = o->torch;
    if (!job->env)
        return false;
    if (o->torch)
        xr_torch_job(job->env);
    return !o->prefix || (put_before(&job->env, "PATH", o->prefix, "bin") &&
                          put_before(&job->env, "LD_LIBRARY_PATH", o->prefix, "lib"));
}

/* PWD is where the ranks start, unless the user says something else. */
static bool put_pwd(char *const *env, struct xr_app *app)
{
    const char *old = xr_environ_value(env, "PWD");
    char *text;
    bool ok;

    if (xr_environ_value(app->env, "PWD") || (old && strcmp(old, app->wdir) == 0))
        return true;
    if (asprintf(&text, "PWD=%s", app->wdir) < 0)
        return false;
    ok = xr_environ_put(&app->env, text);
    free(text);
    return ok;
}

/* Where it starts, and what. */
static int find_program(const struct xr_app_options *o, char *const *env, bool here, struct xr_app *app,
                        char *err, size_t errlen)
{
    const char *path;
    int code = XR_EXIT_USAGE;

    app->wdir = xr_program_wdir(o->wdir, here, err, errlen);
    if (!app->wdir)
        return code;
    if (!put_pwd(env, app))
        return out_of_memory(err, errlen);
    path = xr_environ_value(app->env, "PATH");
    if (!path)
        path = xr_environ_value(env, "PATH");
    app->program = xr_program_find(o->command[0], o->path, path, app->wdir, err, errlen, &code);
    if (!app->program && !here) {
        app->program = xr_program_path(o->command[0], app->wdir);
        app->path = o->path ? strdup(o->path) : NULL;
        if (!app->program || (o->path && !app->path))
            return out_of_memory(err, errlen);
    }
    if (!app->program)
        return code;
    app->argv = copy_strings(o->command);
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
static rank_status_t check_additions(const struct xr_app *app)
{
    static char no_file[] = "RANK_CONF=/dev/null";
    char *base[] = {no_file, NULL}, **env;
    rank_status_t st = RANK_OK;
    bool any = false;

    for (char *const *e = app->env; *e; e++)
        any = any || strncmp(*e, "RANK_", 5) == 0;
    if (!any)
        return RANK_OK;
    env = xr_environ_merge(base, app->env);
    st = env ? load_with(env) : RANK_ERR_NO_MEMORY;
    free(env);
    return st;
}

/* The first program's come last and stay: they are xrun's own too. */
static rank_status_t check_conf(const struct xr_job *job)
{
    char **env;
    rank_status_t st = RANK_OK;

    for (uint32_t i = job->napps - 1; !st && i > 0; i--)
        st = check_additions(&job->apps[i]);
    if (st)
        return st;
    env = xr_environ_merge(job->env, job->apps[0].env);
    st = env ? load_with(env) : RANK_ERR_NO_MEMORY;
    free(env);
    return st;
}

/* "program 2: ", where there are several. */
static size_t programs_name_app(const struct xr_job *job, uint32_t i, char *err, size_t errlen)
{
    err[0] = '\0';
    return job->napps > 1 ? (size_t)snprintf(err, errlen, "program %u: ", i + 1) : 0;
}

int xr_apps_make(const struct xr_options *options, bool here, struct xr_job *job, char *err, size_t errlen)
{
    rank_status_t st;
    int code = 0;

    job->apps = calloc((size_t)options->napps, sizeof(*job->apps));
    if (!job->apps)
        return out_of_memory(err, errlen);
    job->napps = (uint32_t)options->napps;
    for (uint32_t i = 0; !code && i < job->napps; i++) {
        size_t named = programs_name_app(job, i, err, errlen);
        job->apps[i].first = job->size;
        job->apps[i].n = (uint32_t)options->apps[i].n;
        job->size += job->apps[i].n;
        code = programs_make_env(&options->apps[i], options->torch, &job->apps[i], err + named,
                        errlen - named);
    }
    /* Only now, since -x may pass on what is taken out of it here. */
    if (!code && !make_job_env(options, job))
        code = out_of_memory(err, errlen);
    for (uint32_t i = 0; !code && i < job->napps; i++) {
        size_t named = programs_name_app(job, i, err, errlen);
        code = find_program(&options->apps[i], job->env, here, &job->apps[i], err + named,
                            errlen - named);
    }
    if (code)
        return code;
    err[0] = '\0';
    st = check_conf(job);
    if (st == RANK_ERR_CONFIG)
        return XR_EXIT_USAGE; /* it has said what and where */
    if (st)
        snprintf(err, errlen, "%s", rank_status_string(st));
    return st ? 1 : 0;
}

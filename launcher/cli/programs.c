/* SPDX-License-Identifier: BSD-3-Clause */
/* programs.c: make the programs of a job from their options. See programs.h. */
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
            xr_strv_free(copy);
            return NULL;
        }
    }
    return copy;
}

/* Apply one -x. NAME alone passes it on; that needs work only for variables of other launchers. */
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

/* Make the variables of a program from --env-file and -x. */
static int make_app_env(const struct xr_app_options *o, bool torch, struct xr_app *app, char *err,
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

/* Put DIR/SUB before the value of NAME. */
static bool prepend_path(char ***env, const char *name, const char *dir, const char *sub)
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

/* Make the environment of all programs. */
static bool make_job_env(const struct xr_options *o, struct xr_job *job)
{
    xr_environ_scrub();
    job->env = copy_strings((const char *const *)environ);
    job->no_mpi = o->no_mpi;
    job->torch = o->torch;
    job->gpus_per_rank = o->where.gpus_per_rank;
    job->gpu_bind = strdup(xr_policy_gpu_words(&o->where));
    job->nics_per_rank = o->where.nics_per_rank;
    job->nic_bind = strdup(xr_policy_nic_words(&o->where));
    if (!job->env || !job->gpu_bind || !job->nic_bind)
        return false;
    if (o->torch)
        xr_torch_job(job->env);
    return !o->prefix || (prepend_path(&job->env, "PATH", o->prefix, "bin") &&
                          prepend_path(&job->env, "LD_LIBRARY_PATH", o->prefix, "lib"));
}

/* Set PWD to the directory of the ranks, unless the user has set it for them. */
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

/* Set the directory, the path and the arguments of a program. */
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

/* Load the library's configuration from env. */
static rank_status_t load_conf_of(char **env)
{
    char **own = environ;
    rank_status_t st;

    environ = env;
    st = rk_conf_load();
    environ = own;
    return st;
}

/* Check the RANK_ variables that a later program adds, without the files and the common environment. */
static rank_status_t check_added_conf(const struct xr_app *app)
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
    st = env ? load_conf_of(env) : RANK_ERR_NO_MEMORY;
    free(env);
    return st;
}

/* Check the RANK_ variables of all programs. The first program comes last: xrun keeps its configuration. */
static rank_status_t check_conf(const struct xr_job *job)
{
    char **env;
    rank_status_t st = RANK_OK;

    for (uint32_t i = job->napps - 1; !st && i > 0; i--)
        st = check_added_conf(&job->apps[i]);
    if (st)
        return st;
    env = xr_environ_merge(job->env, job->apps[0].env);
    st = env ? load_conf_of(env) : RANK_ERR_NO_MEMORY;
    free(env);
    return st;
}

/* Print "program 2: " if there are several programs; return its length. */
static size_t print_app_name(const struct xr_job *job, uint32_t i, char *err, size_t errlen)
{
    err[0] = '\0';
    return job->napps > 1 ? (size_t)snprintf(err, errlen, "program %u: ", i + 1) : 0;
}

int xr_programs_make_env(const struct xr_options *options, struct xr_job *job, char *err, size_t errlen)
{
    int code = 0;

    job->apps = calloc((size_t)options->napps, sizeof(*job->apps));
    if (!job->apps)
        return out_of_memory(err, errlen);
    job->napps = (uint32_t)options->napps;
    for (uint32_t i = 0; !code && i < job->napps; i++) {
        size_t named = print_app_name(job, i, err, errlen);
        job->apps[i].first = job->size;
        job->apps[i].n = (uint32_t)options->apps[i].n;
        job->size += job->apps[i].n;
        code = make_app_env(&options->apps[i], options->torch, &job->apps[i], err + named,
                        errlen - named);
    }
    /* After the loop: -x may pass on variables that this removes. */
    if (!code && !make_job_env(options, job))
        code = out_of_memory(err, errlen);
    return code;
}

int xr_programs_make(const struct xr_options *options, bool here, struct xr_job *job, char *err, size_t errlen)
{
    int code = xr_programs_make_env(options, job, err, errlen);
    rank_status_t st;

    for (uint32_t i = 0; !code && i < job->napps; i++) {
        size_t named = print_app_name(job, i, err, errlen);
        code = find_program(&options->apps[i], job->env, here, &job->apps[i], err + named,
                            errlen - named);
    }
    if (code)
        return code;
    err[0] = '\0';
    st = check_conf(job);
    if (st == RANK_ERR_CONFIG)
        return XR_EXIT_USAGE; /* logged by rk_conf_load */
    if (st)
        snprintf(err, errlen, "%s", rank_status_string(st));
    return st ? 1 : 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* environ.c: see environ.h. */
#include "launcher/exec/environ.h"
#include "launcher/util/strv.h"
#include "launcher/util/text_file.h"
#include "lib/base/compiler.h"
#include "lib/base/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

static const struct {
    const char *prefix;
    bool stays;
} rules[] = {
    /* The first match decides. */
    {"PMIX_MCA_", true},
    {"PMIX_INSTALL_PREFIX", true},
    {"PMIX_", false},
    {"PMI_", false},
    {"PMI2_", false},
    {"OMPI_MCA_", true},
    {"OMPI_ALLOW_RUN_AS_ROOT", true},
    {"OMPI_CC", true},
    {"OMPI_CXX", true},
    {"OMPI_FC", true},
    {"OMPI_CFLAGS", true},
    {"OMPI_CPPFLAGS", true},
    {"OMPI_LDFLAGS", true},
    {"OMPI_", false},
    {"PRTE_MCA_", true},
    {"PRTE_ALLOW_RUN_AS_ROOT", true},
    {"PRTE_", false},
    {"HYDI_", false},
    {"MPI_LOCALNRANKS", false},
    {"MPI_LOCALRANKID", false},
    {"SLURM_PMI", false},
    {"SLURM_MPI_TYPE", false},
    {"SLURM_PROCID", false},
    {"SLURM_LOCALID", false},
    {"SLURM_GTIDS", false},
    {"SLURM_STEP", false},
    {"SLURM_TASK_PID", false},
    {"XRUN_", false},
};

bool xr_environ_foreign(const char *name)
{
    for (size_t i = 0; i < RK_ARRAY_LEN(rules); i++) {
        if (strncmp(name, rules[i].prefix, strlen(rules[i].prefix)) == 0)
            return !rules[i].stays;
    }
    return false;
}

/* This xrun runs in a rank of an xrun with --env torch. */
static void scrub_torch(void)
{
    static const char *const names[] = {"RANK",           "WORLD_SIZE",  "LOCAL_RANK",
                                        "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"};
    const char *outer = rk_env("XRUN_RANK"), *rank = rk_env("RANK");
    const char *size = rk_env("XRUN_SIZE"), *world = rk_env("WORLD_SIZE");

    if (!outer || !rank || !size || !world || strcmp(outer, rank) != 0 || strcmp(size, world) != 0)
        return;
    for (size_t i = 0; i < RK_ARRAY_LEN(names); i++)
        unsetenv(names[i]);
}

void xr_environ_scrub(void)
{
    char **to;

    scrub_torch();
    to = environ;
    for (char **from = environ; *from; from++) {
        if (!xr_environ_foreign(*from))
            *to++ = *from;
    }
    *to = NULL;
}

bool xr_environ_own(const char *s)
{
    static const char *const names[] = {"XRUN_RANK",       "XRUN_SIZE",      "XRUN_LOCAL_RANK",
                                        "XRUN_LOCAL_SIZE", "XRUN_NODE_RANK", "XRUN_NODES", "XRUN_BOARD", "XRUN_DEVICES",
                                        "XRUN_JOB"};
    size_t len = strcspn(s, "=");

    for (size_t i = 0; i < RK_ARRAY_LEN(names); i++) {
        if (strlen(names[i]) == len && memcmp(s, names[i], len) == 0)
            return true;
    }
    return false;
}

bool xr_environ_named(const char *s)
{
    size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");

    return n > 0 && (!s[n] || s[n] == '=') && !(s[0] >= '0' && s[0] <= '9');
}

/* Return the index of a variable with the name of s (up to = or the end) among the first n; n: none. */
static size_t environ_place(char *const *env, size_t n, const char *s)
{
    size_t len = strcspn(s, "="), i = 0;

    while (i < n && (strncmp(env[i], s, len) != 0 || env[i][len] != '='))
        i++;
    return i;
}

bool xr_environ_put(char ***env, const char *assignment)
{
    size_t n = xr_strv_count(*env), at = environ_place(*env, n, assignment);
    char *copy;

    if (at == n)
        return xr_strv_add(env, assignment);
    copy = strdup(assignment);
    if (!copy)
        return false;
    free((*env)[at]);
    (*env)[at] = copy;
    return true;
}

char **xr_environ_merge(char *const *base, char *const *extra)
{
    size_t nbase = xr_strv_count(base), nextra = xr_strv_count(extra), n = 0;
    char **out = malloc((nbase + nextra + 1) * sizeof(*out));

    if (!out)
        return NULL;
    for (size_t i = 0; i < nbase; i++) {
        if (environ_place(extra, nextra, base[i]) == nextra)
            out[n++] = base[i];
    }
    for (size_t i = 0; i < nextra; i++)
        out[n++] = extra[i];
    out[n] = NULL;
    return out;
}

const char *xr_environ_value(char *const *env, const char *name)
{
    size_t n = xr_strv_count(env), at = environ_place(env, n, name);

    return at < n ? strchr(env[at], '=') + 1 : NULL;
}

const char *xr_environ_value_of(char *const *own, char *const *common, const char *name)
{
    const char *value = xr_environ_value(own, name);

    return value ? value : xr_environ_value(common, name);
}

/* ------------------------------------------------------------------- --env-file */

/*
 * A line is NAME=value. The value extends to the end of the line, without quotes or expansion. Empty lines and
 * those that begin with # are skipped.
 */
struct lines {
    const char *path;
    int number, bad; /* bad: number of bad lines */
    char *err;
    size_t errlen;
};

/* Report the first bad line; the number of all is reported later. */
static void env_complain(struct lines *l, const char *what)
{
    if (l->bad++ == 0)
        snprintf(l->err, l->errlen, "--env-file %s:%d: %s", l->path, l->number, what);
}

static bool take_env_line(struct lines *l, char *line, bool nul, char ***env)
{
    if (nul) {
        env_complain(l, "the line holds a NUL byte");
        return true;
    }
    if (!line[strspn(line, " \t")] || line[0] == '#')
        return true;
    if (!xr_environ_named(line) || !strchr(line, '='))
        env_complain(l, "write NAME=value, with a name of letters, digits and _");
    else if (xr_environ_own(line))
        env_complain(l, "xrun itself sets that variable for each rank");
    else
        return xr_environ_put(env, line);
    return true;
}

bool xr_environ_put_file(char ***env, const char *path, char *err, size_t errlen)
{
    struct lines l = {path, 0, 0, err, errlen};
    struct xr_text_file f;
    bool memory = true;
    char *line, why[256];

    if (!xr_text_file_open(path, &f, why, sizeof(why))) {
        snprintf(err, errlen, "--env-file %s: %s", path, why);
        xr_text_file_close(&f);
        return false;
    }
    while (memory && (line = xr_text_file_line(&f))) {
        l.number = (int)f.number;
        memory = take_env_line(&l, line, f.nul, env);
    }
    if (!memory && l.bad++ == 0)
        snprintf(err, errlen, "out of memory");
    if (!xr_text_file_close(&f) && l.bad++ == 0)
        snprintf(err, errlen, "--env-file %s: it cannot be read to its end", path);
    if (l.bad > 1) {
        size_t n = strlen(err);
        snprintf(err + n, errlen - n, " (and %d more)", l.bad - 1);
    }
    return l.bad == 0;
}

/* environ.c: see environ.h. */
#include "launcher/environ.h"
#include "launcher/codec.h"
#include "lib/base/compiler.h"
#include "lib/base/conf.h"

#include <stdlib.h>
#include <string.h>

extern char **environ;

static const struct {
    const char *prefix;
    bool stays;
} rules[] = {
    /* The first that fits decides. */
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

bool rk_environ_foreign(const char *name)
{
    for (size_t i = 0; i < RK_ARRAY_LEN(rules); i++) {
        if (strncmp(name, rules[i].prefix, strlen(rules[i].prefix)) == 0)
            return !rules[i].stays;
    }
    return false;
}

void rk_environ_scrub(void)
{
    char **to = environ;

    for (char **from = environ; *from; from++) {
        if (!rk_environ_foreign(*from))
            *to++ = *from;
    }
    *to = NULL;
}

static size_t count(char *const *v)
{
    size_t n = 0;

    while (v[n])
        n++;
    return n;
}

/* The place of a variable of s's name (up to = or the end) among the first n; n: it is not there. */
static size_t place(char *const *env, size_t n, const char *s)
{
    size_t len = strcspn(s, "="), i = 0;

    while (i < n && (strncmp(env[i], s, len) != 0 || env[i][len] != '='))
        i++;
    return i;
}

char **rk_environ_additions(const char *const *set, int n, const char **missing)
{
    char **out = calloc((size_t)n + 1, sizeof(*out));
    size_t have = 0, at;

    *missing = NULL;
    for (int i = 0; out && i < n; i++) {
        char *copy;
        if (!strchr(set[i], '=')) {
            if (rk_env(set[i]))
                continue; /* passed on anyway */
            *missing = set[i];
            rk_strings_free(out);
            return NULL;
        }
        copy = strdup(set[i]);
        if (!copy) {
            rk_strings_free(out);
            return NULL;
        }
        at = place(out, have, copy);
        free(out[at]);
        out[at] = copy;
        have += at == have;
    }
    return out;
}

char **rk_environ_merge(char *const *base, char *const *extra)
{
    size_t nbase = count(base), nextra = count(extra), n = 0;
    char **out = malloc((nbase + nextra + 1) * sizeof(*out));

    if (!out)
        return NULL;
    for (size_t i = 0; i < nbase; i++) {
        if (place(extra, nextra, base[i]) == nextra)
            out[n++] = base[i];
    }
    memcpy(out + n, extra, (nextra + 1) * sizeof(*out));
    return out;
}

const char *rk_environ_value(char *const *env, const char *name)
{
    size_t at = place(env, count(env), name);

    return env[at] ? strchr(env[at], '=') + 1 : NULL;
}

/* environ.c: see environ.h. */
#include "launcher/environ.h"
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

bool rk_environ_export(const char *arg)
{
    const char *eq = strchr(arg, '=');
    char *copy;

    if (!eq)
        return rk_env(arg) != NULL;
    copy = strdup(arg);
    return copy && putenv(copy) == 0; /* the environment owns it now */
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* slurm.c: see slurm.h. */
#include "launcher/alloc/slurm.h"
#include "launcher/util/strv.h"
#include "launcher/exec/environ.h"
#include "launcher/exec/find_program.h"
#include "lib/base/compiler.h"
#include "lib/base/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

static bool have_srun(void)
{
    char why[512];
    int code;
    char *path = xr_program_find("srun", NULL, rk_env("PATH"), "/", why, sizeof(why), &code);

    free(path);
    return path != NULL;
}

bool xr_slurm_has(const struct xr_hostlist *hosts)
{
    const char *job = rk_env("SLURM_JOB_ID"), *nodes = rk_env("SLURM_JOB_NODELIST");
    struct xr_hostlist all = {.n = 0};
    char why[256];
    bool has;

    if (!job || !*job || !nodes || !*nodes)
        return false;
    has = xr_hostlist_parse(&all, nodes, why, sizeof(why)) == RANK_OK;
    for (uint32_t i = 0; has && i < hosts->n; i++)
        has = xr_hostlist_find(&all, hosts->host[i].name) != UINT32_MAX;
    xr_hostlist_clear(&all);
    return has && have_srun();
}

const char *xr_slurm_node(void)
{
    const char *name = rk_env("SLURMD_NODENAME");

    return name && *name ? name : NULL;
}

/*
 * Return whether the variable becomes an option of srun or describes the caller. Variables that identify the job
 * stay.
 */
static bool is_option(const char *variable)
{
    static const char *const kept[] = {"SLURM_CONF=",       "SLURM_JOB_ID=",         "SLURM_JOBID=",
                                       "SLURM_JWT=",        "SLURM_WORKING_CLUSTER=", "SLURM_CLUSTER_NAME=",
                                       "SLURM_NETWORK=",    "SLURM_CONF_SERVER="};

    if (strncmp(variable, "SRUN_", 5) == 0 || strncmp(variable, "SLURMD_", 7) == 0)
        return true;
    if (strncmp(variable, "SLURM_", 6) != 0)
        return false;
    for (size_t i = 0; i < RK_ARRAY_LEN(kept); i++) {
        if (strncmp(variable, kept[i], strlen(kept[i])) == 0)
            return false;
    }
    return true;
}

char **xr_slurm_environ(const char *library_path)
{
    char **env = NULL, *word = NULL;
    /*
     * Ranks may use the job's cores and devices in any step. A variable, because older versions do not know the
     * option.
     */
    bool ok = xr_environ_put(&env, "SLURM_OVERLAP=1");

    for (char **v = environ; ok && *v; v++) {
        if (!is_option(*v) && xr_environ_named(*v))
            ok = xr_environ_put(&env, *v);
    }
    if (ok && library_path)
        ok = asprintf(&word, "LD_LIBRARY_PATH=%s", library_path) >= 0 && xr_environ_put(&env, word);
    free(word);
    if (ok)
        return env;
    xr_strv_free(env);
    return NULL;
}

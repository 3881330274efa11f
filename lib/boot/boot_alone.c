/* SPDX-License-Identifier: BSD-3-Clause */
/* boot_alone.c: be a world of one, without a launcher. */
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/base/random.h"
#include "lib/boot/boot.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void rk_boot_alone_warn(void)
{
    static const char *const hints[] = {"SLURM_STEP_NUM_TASKS", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE"};

    for (size_t i = 0; i < RK_ARRAY_LEN(hints); i++) {
        const char *v = rk_env(hints[i]);
        if (!v || atoi(v) <= 1)
            continue;
        rk_warn("%s is %s, but there is no PMIx server: this process is a world of its own. Start with xrun, srun "
                "--mpi=pmix, or Open MPI's mpirun",
                hints[i], v);
        return;
    }
}

static rank_status_t alone_open(struct rk_boot **out)
{
    static _Atomic uint32_t opened; /* contexts of a process have different jobs */
    struct rk_boot *boot = calloc(1, sizeof(*boot));
    int *local = calloc(1, sizeof(*local));

    if (!boot || !local) {
        free(boot);
        free(local);
        return RANK_ERR_NO_MEMORY;
    }
    boot->ops = &rk_boot_alone;
    boot->alone = true;
    boot->size = boot->nlocal = 1;
    boot->local = local;
    /* Different on all hosts: keys name the job. */
    snprintf(boot->job, sizeof(boot->job), "alone-%d-%u-%016llx", (int)getpid(), (unsigned)atomic_fetch_add(&opened, 1),
             (unsigned long long)rk_random_word());
    *out = boot;
    return RANK_OK;
}

static void alone_close(struct rk_boot *boot)
{
    free(boot->local);
    free(boot->node_of);
    free(boot);
}

static rank_status_t alone_watch_deaths(struct rk_boot *boot, rk_boot_death_fn fn, void *arg)
{
    (void)boot;
    (void)fn;
    (void)arg;
    return RANK_OK;
}

static rank_status_t alone_get(struct rk_boot *boot, int rank, const char *key, void *data, size_t *len)
{
    (void)boot;
    (void)rank;
    (void)key;
    (void)data;
    (void)len;
    return RANK_ERR_UNREACHABLE;
}

const struct rk_boot_provider rk_boot_alone = {
    .name = "alone",
    .open = alone_open,
    .close = alone_close,
    .watch_deaths = alone_watch_deaths,
    .get = alone_get,
};

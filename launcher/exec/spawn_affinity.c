/* SPDX-License-Identifier: BSD-3-Clause */
/* spawn_affinity.c: see spawn_affinity.h. */
#include "launcher/exec/spawn_affinity.h"

#include <stdlib.h>
#include <string.h>

#define MOST_CPUS (1 << 20)

void xr_spawn_affinity_open(struct xr_spawn_affinity *affinity)
{
    memset(affinity, 0, sizeof(*affinity));
    /* The kernel rejects a set that is too small. */
    for (size_t cpus = 1024; cpus <= MOST_CPUS; cpus *= 2) {
        affinity->size = CPU_ALLOC_SIZE(cpus);
        affinity->all = CPU_ALLOC(cpus);
        if (!affinity->all || sched_getaffinity(0, affinity->size, affinity->all) == 0)
            break;
        CPU_FREE(affinity->all);
        affinity->all = NULL;
    }
    affinity->rest = affinity->all ? malloc(affinity->size) : NULL;
    if (affinity->rest) {
        memcpy(affinity->rest, affinity->all, affinity->size);
        return;
    }
    CPU_FREE(affinity->all);
    affinity->all = NULL;
}

void xr_spawn_affinity_keep_off(struct xr_spawn_affinity *affinity, const cpu_set_t *cpus, size_t size)
{
    bool fine;

    if (!affinity->rest) /* threads share a closed one and come here concurrently: write nothing */
        return;
    fine = cpus && !affinity->last;
    for (size_t cpu = 0; fine && cpu < 8 * size && cpu < 8 * affinity->size; cpu++) {
        if (CPU_ISSET_S(cpu, size, cpus))
            CPU_CLR_S(cpu, affinity->size, affinity->rest);
    }
    /* On any other core the last child would start behind a running program. */
    affinity->last = fine && CPU_COUNT_S(affinity->size, affinity->rest) == 0;
    if (affinity->last)
        fine = sched_setaffinity(0, size, cpus) == 0;
    else if (fine)
        fine = sched_setaffinity(0, affinity->size, affinity->rest) == 0;
    if (!fine)
        xr_spawn_affinity_close(affinity);
}

void xr_spawn_affinity_close(struct xr_spawn_affinity *affinity)
{
    if (affinity->all)
        sched_setaffinity(0, affinity->size, affinity->all);
    CPU_FREE(affinity->all);
    free(affinity->rest);
    memset(affinity, 0, sizeof(*affinity));
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* spawn_affinity.c: see spawn_affinity.h. */
#include "launcher/exec/spawn_affinity.h"

#include <stdlib.h>
#include <string.h>

#define MOST_CPUS (1 << 20)

void xr_aside_open(struct xr_aside *aside)
{
    memset(aside, 0, sizeof(*aside));
    /* The kernel rejects a set that is too small. */
    for (size_t cpus = 1024; cpus <= MOST_CPUS; cpus *= 2) {
        aside->size = CPU_ALLOC_SIZE(cpus);
        aside->all = CPU_ALLOC(cpus);
        if (!aside->all || sched_getaffinity(0, aside->size, aside->all) == 0)
            break;
        CPU_FREE(aside->all);
        aside->all = NULL;
    }
    aside->rest = aside->all ? malloc(aside->size) : NULL;
    if (aside->rest) {
        memcpy(aside->rest, aside->all, aside->size);
        return;
    }
    CPU_FREE(aside->all);
    aside->all = NULL;
}

void xr_aside_keep_off(struct xr_aside *aside, const cpu_set_t *cpus, size_t size)
{
    bool fine;

    if (!aside->rest) /* threads share a closed one and come here concurrently: write nothing */
        return;
    fine = cpus && !aside->last;
    for (size_t cpu = 0; fine && cpu < 8 * size && cpu < 8 * aside->size; cpu++) {
        if (CPU_ISSET_S(cpu, size, cpus))
            CPU_CLR_S(cpu, aside->size, aside->rest);
    }
    /* On any other core the last child would start behind a running program. */
    aside->last = fine && CPU_COUNT_S(aside->size, aside->rest) == 0;
    if (aside->last)
        fine = sched_setaffinity(0, size, cpus) == 0;
    else if (fine)
        fine = sched_setaffinity(0, aside->size, aside->rest) == 0;
    if (!fine)
        xr_aside_close(aside);
}

void xr_aside_close(struct xr_aside *aside)
{
    if (aside->all)
        sched_setaffinity(0, aside->size, aside->all);
    CPU_FREE(aside->all);
    free(aside->rest);
    memset(aside, 0, sizeof(*aside));
}

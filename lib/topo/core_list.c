/* SPDX-License-Identifier: BSD-3-Clause */
/* core_list.c: write cores as text, and list the cores of hardware threads. */
#include "lib/topo/core_list.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_of_core(const struct rk_machine *m, const bool *of, uint32_t cpu)
{
    return m->core_of_cpu[cpu] != RK_TOPO_NONE && of[m->core_of_cpu[cpu]];
}

char *rk_core_list_text(const struct rk_machine *m, const bool *of)
{
    char *text = NULL;
    const char *separator = "";
    size_t len;
    FILE *to = open_memstream(&text, &len);

    if (!to)
        return NULL;
    for (uint32_t cpu = 0, next; cpu < m->ncpus; cpu = next) {
        next = cpu + 1;
        if (!is_of_core(m, of, cpu))
            continue;
        while (next < m->ncpus && is_of_core(m, of, next))
            next++;
        fprintf(to, "%s%u", separator, cpu);
        if (next > cpu + 1)
            fprintf(to, "-%u", next - 1);
        separator = ",";
    }
    if (fclose(to) == 0)
        return text;
    free(text);
    return NULL;
}

struct rk_pair_cores rk_core_list_of_cpus(const struct rk_machine *m, rk_has_cpu has, const void *set, uint32_t *list)
{
    struct rk_pair_cores cores = {list, 0};

    for (uint32_t i = 0; i < m->ncores; i++)
        list[i] = 0;
    for (uint32_t cpu = 0; cpu < m->ncpus; cpu++) {
        if (m->core_of_cpu[cpu] != RK_TOPO_NONE && has(set, cpu))
            list[m->core_of_cpu[cpu]] = 1;
    }
    for (uint32_t i = 0; i < m->ncores; i++) {
        if (list[i])
            list[cores.n++] = i;
    }
    return cores;
}

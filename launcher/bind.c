/* bind.c: see bind.h. */
#include "launcher/bind.h"
#include "lib/topo/topo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Processing units that this process may use; far cheaper to learn than cores. */
static uint32_t usable_units(void)
{
    for (int cpus = 1024; cpus <= 1 << 20; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        size_t size = CPU_ALLOC_SIZE((size_t)cpus);
        int n = 0;
        if (set && sched_getaffinity(0, size, set) == 0)
            n = CPU_COUNT_S(size, set);
        CPU_FREE(set);
        if (n > 0)
            return (uint32_t)n;
    }
    return 1;
}

static rank_status_t fill_sets(struct rk_bind_plan *plan, enum rk_bind how, uint32_t n)
{
    hwloc_cpuset_t *maps = calloc(n, sizeof(*maps));
    hwloc_topology_t t = plan->topology;
    int last = hwloc_bitmap_last(hwloc_topology_get_complete_cpuset(t));
    rank_status_t st = maps ? RANK_OK : RANK_ERR_NO_MEMORY;

    plan->set_size = CPU_ALLOC_SIZE((size_t)(last < 0 ? 1 : last + 1));
    plan->sets = calloc(n, plan->set_size);
    if (!plan->sets)
        st = RANK_ERR_NO_MEMORY;
    for (uint32_t i = 0; !st && i < n; i++) {
        maps[i] = hwloc_bitmap_alloc();
        if (!maps[i])
            st = RANK_ERR_NO_MEMORY;
    }
    if (!st)
        st = rk_topo_share(t, NULL, (int)n, how == RK_BIND_CORE ? RK_TOPO_CORE : RK_TOPO_SHARE,
                           maps);
    for (uint32_t i = 0; !st && i < n; i++) {
        cpu_set_t *set = (cpu_set_t *)(void *)((char *)plan->sets + i * plan->set_size);
        int cpu;
        hwloc_bitmap_foreach_begin(cpu, maps[i])
            CPU_SET_S((size_t)cpu, plan->set_size, set);
        hwloc_bitmap_foreach_end();
    }
    for (uint32_t i = 0; maps && i < n; i++)
        hwloc_bitmap_free(maps[i]);
    free(maps);
    return st;
}

rank_status_t rk_bind_plan(enum rk_bind how, uint32_t n, struct rk_bind_plan *out, char *err,
                           size_t errlen)
{
    uint32_t units = usable_units(), cores;
    rank_status_t st;

    memset(out, 0, sizeof(*out));
    out->units = units;
    /* More ranks than units are more than cores, whatever the cores are. */
    if (n > units) {
        out->oversubscribed = true;
        if (how != RK_BIND_CORE)
            return RANK_OK;
        cores = units;
    } else {
        hwloc_topology_t t;
        st = rk_topo_load(&t);
        if (st) {
            snprintf(err, errlen, "the machine's cores are not known");
            return how == RK_BIND_NONE ? RANK_OK : st;
        }
        out->topology = t;
        cores = (uint32_t)rk_topo_cores(t, NULL);
        out->oversubscribed = n > cores;
    }
    if (how == RK_BIND_CORE && n > cores) {
        snprintf(err, errlen,
                 "--bind core: %u ranks, but xrun may use %u cores here; start fewer or use --bind "
                 "none",
                 n, cores);
        return RANK_ERR_COUNT;
    }
    if (how == RK_BIND_NONE || out->oversubscribed)
        return RANK_OK;
    st = fill_sets(out, how, n);
    if (st)
        snprintf(err, errlen, "binding %u ranks to %u cores: %s", n, cores,
                 rank_status_string(st));
    return st;
}

void rk_bind_clear(struct rk_bind_plan *plan)
{
    if (!plan)
        return;
    free(plan->sets);
    if (plan->topology)
        hwloc_topology_destroy(plan->topology);
    memset(plan, 0, sizeof(*plan));
}

const cpu_set_t *rk_bind_of(const struct rk_bind_plan *plan, uint32_t rank)
{
    if (!plan->sets)
        return NULL;
    return (const cpu_set_t *)(const void *)((const char *)plan->sets + rank * plan->set_size);
}

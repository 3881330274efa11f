/* SPDX-License-Identifier: BSD-3-Clause */
/* load.c: load the cores of this machine. */
#include "lib/base/arg_error.h"
#include "lib/base/log.h"
#include "lib/topo/topo.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#define FLAGS (HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM | HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING)
/*
 * Skip what costs time and is not needed, from hwloc 2.8 on. The run-time hwloc may be older than the one built
 * with, since MPI libraries bring theirs.
 */
#if HWLOC_API_VERSION >= 0x00020800
#define WITHOUT_EXTRAS                                                                             \
    (HWLOC_TOPOLOGY_FLAG_NO_DISTANCES | HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS |                          \
     HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS)
#else
#define WITHOUT_EXTRAS 0
#endif

/*
 * hwloc would also move to each core and run CPUID, a third of the time, as each traps in a virtual machine. For
 * cores the kernel's information suffices.
 */
static bool without_asking(hwloc_topology_t t)
{
    return hwloc_topology_set_components(t, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86") == 0;
}

static rank_status_t load_topo(bool full, bool ask, hwloc_topology_t *out)
{
    hwloc_topology_t t;

    if (rk_topo_affinity_refused())
        return rk_fail(RANK_ERR_SYSTEM, "cannot load this machine's cores: sched_getaffinity: %m%s; --bind none does without them",
                       rk_refusal_remedy(errno));
    if (hwloc_topology_init(&t)) {
        return rk_fail(RANK_ERR_NO_MEMORY, "out of memory for the machine's topology");
    }
    ask = ask || !without_asking(t);
    if (hwloc_topology_set_all_types_filter(t, HWLOC_TYPE_FILTER_KEEP_NONE) ||
        hwloc_topology_set_type_filter(t, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL) ||
        (full &&
         (hwloc_topology_set_type_filter(t, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL) ||
          /* NUMA nodes inside a package are beside groups; without these each node has all cores of the package */
          hwloc_topology_set_type_filter(t, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE) ||
          hwloc_topology_set_cache_types_filter(t, HWLOC_TYPE_FILTER_KEEP_ALL))) ||
        (hwloc_topology_set_flags(t, FLAGS | WITHOUT_EXTRAS) &&
         hwloc_topology_set_flags(t, FLAGS)) ||
        hwloc_topology_load(t)) {
        rk_fail(RANK_ERR_SYSTEM, "cannot load this machine's cores: %s; --bind none does without them", strerror(errno));
        hwloc_topology_destroy(t);
        return RANK_ERR_SYSTEM;
    }
    if (!ask && hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE) <= 0) {
        hwloc_topology_destroy(t);
        return load_topo(full, true, out);
    }
    *out = t;
    return RANK_OK;
}

rank_status_t rk_topo_load(bool full, hwloc_topology_t *out)
{
    return load_topo(full, full, out); /* for caches the cores may report more than the kernel */
}

/* Usable processing units; free with CPU_FREE. The kernel rejects a set that is too small. */
static cpu_set_t *allowed(size_t *size)
{
    for (int cpus = 1024; cpus <= 1 << 20; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        *size = CPU_ALLOC_SIZE((size_t)cpus);
        if (set && sched_getaffinity(0, *size, set) == 0)
            return set;
        CPU_FREE(set);
    }
    return NULL;
}

uint32_t rk_topo_units(void)
{
    size_t size;
    cpu_set_t *set = allowed(&size);
    int n = set ? CPU_COUNT_S(size, set) : 0;

    CPU_FREE(set);
    return n > 0 ? (uint32_t)n : 1;
}

char *rk_topo_units_list(void)
{
    hwloc_bitmap_t map = hwloc_bitmap_alloc();
    size_t size;
    cpu_set_t *set = allowed(&size);
    char *list = NULL;

    for (size_t cpu = 0; map && set && cpu < 8 * size; cpu++) {
        if (CPU_ISSET_S(cpu, size, set))
            hwloc_bitmap_set(map, (unsigned)cpu);
    }
    if (map && set && hwloc_bitmap_list_asprintf(&list, map) < 0)
        list = NULL;
    hwloc_bitmap_free(map);
    CPU_FREE(set);
    return list;
}

bool rk_topo_has_cpu(const void *bitmap, uint32_t cpu)
{
    return hwloc_bitmap_isset(bitmap, cpu);
}

/* load.c: look at this machine's cores. See topo.h. */
#include "lib/base/log.h"
#include "lib/topo/topo.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#define FLAGS (HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM | HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING)
/* What costs time and is not needed here can be left out from hwloc 2.8 on. It may run with an older
 * one than it was built with: MPI libraries bring theirs, and a path that finds it. */
#if HWLOC_API_VERSION >= 0x00020800
#define WITHOUT_EXTRAS                                                                             \
    (HWLOC_TOPOLOGY_FLAG_NO_DISTANCES | HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS |                          \
     HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS)
#else
#define WITHOUT_EXTRAS 0
#endif

rank_status_t rk_topo_load(bool full, hwloc_topology_t *out)
{
    hwloc_topology_t t;

    if (hwloc_topology_init(&t)) {
        rk_error("out of memory for the machine's topology");
        return RANK_ERR_NO_MEMORY;
    }
    if (hwloc_topology_set_all_types_filter(t, HWLOC_TYPE_FILTER_KEEP_NONE) ||
        hwloc_topology_set_type_filter(t, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL) ||
        (full &&
         (hwloc_topology_set_type_filter(t, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL) ||
          hwloc_topology_set_cache_types_filter(t, HWLOC_TYPE_FILTER_KEEP_ALL))) ||
        (hwloc_topology_set_flags(t, FLAGS | WITHOUT_EXTRAS) &&
         hwloc_topology_set_flags(t, FLAGS)) ||
        hwloc_topology_load(t)) {
        rk_error("cannot look at this machine's cores: %s; --bind none does without",
                 strerror(errno));
        hwloc_topology_destroy(t);
        return RANK_ERR_SYSTEM;
    }
    *out = t;
    return RANK_OK;
}

uint32_t rk_topo_units(void)
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

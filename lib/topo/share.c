/* share.c: split the cores of a machine among ranks. See topo.h. */
#include "lib/topo/topo.h"

static hwloc_obj_type_t unit(hwloc_topology_t t)
{
    return hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
}

static bool counts(hwloc_obj_t core, hwloc_const_cpuset_t usable)
{
    return !usable || hwloc_bitmap_intersects(core->cpuset, usable);
}

int rk_topo_cores(hwloc_topology_t t, hwloc_const_cpuset_t usable)
{
    hwloc_obj_t core = NULL;
    int n = 0;

    while ((core = hwloc_get_next_obj_by_type(t, unit(t), core)))
        n += counts(core, usable);
    return n;
}

rank_status_t rk_topo_share(hwloc_topology_t t, hwloc_const_cpuset_t usable, int n,
                            enum rk_topo_share how, hwloc_cpuset_t *sets)
{
    int cores = rk_topo_cores(t, usable), at = 0, rank = -1;
    hwloc_obj_t core = NULL;

    if (n < 1 || n > cores)
        return RANK_ERR_COUNT;
    for (int i = 0; i < n; i++)
        hwloc_bitmap_zero(sets[i]);
    while ((core = hwloc_get_next_obj_by_type(t, unit(t), core))) {
        bool first;
        if (!counts(core, usable))
            continue;
        /* Rank r has the cores from r * cores / n up to that of r + 1. */
        first = at == (int)((long long)(rank + 1) * cores / n);
        rank += first;
        if (first || how == RK_TOPO_SHARE)
            hwloc_bitmap_or(sets[rank], sets[rank], core->cpuset);
        at++;
    }
    for (int i = 0; usable && i < n; i++)
        hwloc_bitmap_and(sets[i], sets[i], usable);
    return RANK_OK;
}

/*
 * topo.h: who runs on which cores.
 *
 * The arithmetic is pure: a topology, the part of it that may be used and a
 * number of ranks go in, a set of processing units for each rank comes out. It
 * is tested on synthetic and recorded machines.
 */
#ifndef RK_TOPO_TOPO_H
#define RK_TOPO_TOPO_H

#include "lib/rank.h"

#include <hwloc.h>
#include <stdbool.h>

enum rk_topo_share {
    RK_TOPO_SHARE, /* all cores, in equal shares that differ by one core at most */
    RK_TOPO_CORE   /* the first core of each share */
};

/*
 * The cores of this machine that this process may use: its cpuset and its
 * inherited affinity. No devices and no plugins, so that it takes about a
 * millisecond. The caller destroys it.
 */
rank_status_t rk_topo_load(hwloc_topology_t *out);

/* Cores of which at least one unit is in usable (NULL: everything). A machine that shows no cores
 * counts its processing units. */
int rk_topo_cores(hwloc_topology_t topology, hwloc_const_cpuset_t usable);

/*
 * What rank i of n gets is written to sets[i], which the caller has allocated.
 * Shares lie side by side in the machine's order, so that a share crosses as few
 * caches and memories as can be. RANK_ERR_COUNT: fewer cores than ranks.
 */
rank_status_t rk_topo_share(hwloc_topology_t topology, hwloc_const_cpuset_t usable, int n,
                            enum rk_topo_share how, hwloc_cpuset_t *sets);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topo.h: describe the cores of this machine.
 *
 * Room: the machine's topology, by hwloc.
 * Callers: launcher/map, launcher/agent.
 * Never: binds; keeps state.
 * Tests: tests/launcher/mapping.sh.
 */
#ifndef RK_TOPO_TOPO_H
#define RK_TOPO_TOPO_H

#include "lib/rank.h"

#include <errno.h>
#include <hwloc.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Load the cores that this process may use (cpuset and affinity), without devices and plugins, in about a
 * millisecond. full: packages and caches too. The caller destroys it.
 */
rank_status_t rk_topo_load(bool full, hwloc_topology_t *out);

/* The same for the machine of a file of hwloc's XML, with packages and caches. On failure writes one line into err. */
rank_status_t rk_topo_load_xml(const char *xml, hwloc_topology_t *out, char *err, size_t errlen);

/*
 * Does a filter of system calls refuse the affinity, with errno set? Then no topology of this machine is loaded: hwloc 2.9
 * would ask again for ever, with ever longer sets.
 */
static inline bool rk_topo_affinity_refused(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) < 0 && (errno == EPERM || errno == ENOSYS);
}

/* Number of usable processing units; far cheaper than cores. */
uint32_t rk_topo_units(void);
/* Their list, as "0-3,8". Caller frees. NULL: not available. */
char *rk_topo_units_list(void);
/* Return whether a bitmap of hwloc has a hardware thread: for rk_core_list_of_cpus. */
bool rk_topo_has_cpu(const void *bitmap, uint32_t cpu);

#endif

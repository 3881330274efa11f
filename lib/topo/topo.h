/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topo.h: what a machine consists of.
 */
#ifndef RK_TOPO_TOPO_H
#define RK_TOPO_TOPO_H

#include "lib/rank.h"

#include <hwloc.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The cores of this machine that this process may use: its cpuset and its
 * inherited affinity. No devices and no plugins, so that it takes about a
 * millisecond; full: packages and caches too. The caller destroys it.
 */
rank_status_t rk_topo_load(bool full, hwloc_topology_t *out);

/* Processing units that this process may use; far cheaper to learn than cores. */
uint32_t rk_topo_units(void);
/* Which those are, as "0-3,8"; free it. NULL: that cannot be said. */
char *rk_topo_units_list(void);

#endif

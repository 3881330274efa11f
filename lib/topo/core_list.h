/* SPDX-License-Identifier: BSD-3-Clause */
/* core_list.h: write cores as text, and list the cores of hardware threads. */
#ifndef RK_TOPO_CORE_LIST_H
#define RK_TOPO_CORE_LIST_H

#include "lib/topo/pair.h"

/* Return the hardware threads of cores, as "0-3,8". of: a flag for each core. Returns NULL without memory. Caller frees. */
char *rk_core_list_text(const struct rk_machine *m, const bool *of);

/* Return whether a set has a hardware thread. */
typedef bool (*rk_has_cpu)(const void *set, uint32_t cpu);

/* List the cores that have any hardware thread of a set, in ascending order. list: room for all cores, which is borrowed. */
struct rk_pair_cores rk_core_list_of_cpus(const struct rk_machine *m, rk_has_cpu has, const void *set, uint32_t *list);

#endif

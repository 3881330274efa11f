/* SPDX-License-Identifier: BSD-3-Clause */
/* device_mem.h: share device memory of rank_alloc between the ranks of a team. */
#ifndef RK_WORLD_DEVICE_MEM_H
#define RK_WORLD_DEVICE_MEM_H

#include "lib/mem/kind.h"
#include "lib/rma/rma.h"

/*
 * Complete mem, with an own part of that kind: map the parts of the node's ranks, where the kind can, and prepare
 * accesses by the owners to all others. Collective. Takes ownership of part. On error rk_mem_destroy frees all.
 */
rank_status_t rk_device_mem_share(struct rank_mem *mem, const struct rk_kind *kind, void *part);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * direct.h: move large messages of a node straight from other ranks' buffers.
 *
 * A rank posts the places of its buffers in its cell of the call's first chunk number (shm/slices.h), and raises "in".
 * The others read its memory: through a mapping (rank_alloc, registered memory), or by process_vm_readv. No rank writes to
 * memory of another one. A rank that is read leaves the call when its readers have raised "out".
 *
 * The posts decide, for all ranks alike, whether a call runs so. It does if all members can read each other's memory, and if
 * the buffers are mapped or the blocks are long. Otherwise slices move it.
 */
#ifndef RK_COLLECTIVES_SHM_DIRECT_H
#define RK_COLLECTIVES_SHM_DIRECT_H

#include "collectives/shm/arena.h"
#include "lib/core/describe.h"

/* The step's function: advance without blocking. True: the step is complete. */
bool rk_direct_advance(void *direct);
/* Name the members that a step of rk_direct_advance waits for. */
void rk_direct_describe(const void *direct, struct rk_wait_for *out);

#endif

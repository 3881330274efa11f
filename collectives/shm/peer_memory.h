/* SPDX-License-Identifier: BSD-3-Clause */
/* peer_memory.h: name own buffers for members of an arena, and read theirs. */
#ifndef RK_COLLECTIVES_SHM_PEER_MEMORY_H
#define RK_COLLECTIVES_SHM_PEER_MEMORY_H

#include "collectives/shm/arena.h"

/* Where a buffer lies. */
struct rk_place {
    uint64_t address;     /* at its owner; 0: it is not read */
    uint64_t segment, at; /* if others can map it (lib/mem/segment.h); segment 0: private memory */
};

/* bytes 0: not read. */
struct rk_place rk_place_of(const struct rk_arena *a, const void *p, size_t bytes);
RK_INLINE bool rk_place_is_private(const struct rk_place *place)
{
    return place->address && !place->segment;
}

/* Can this rank read all memory of all members (RANK_CMA)? Makes a system call for each. */
bool rk_peers_readable(const struct rk_arena *a);
/* Own mapping of bytes of a place of member r from an offset on; NULL: read it. */
const char *rk_peer_mapped(const struct rk_arena *a, const struct rk_place *place, size_t from, size_t bytes);
/* Copy from a place of member r: by a mapping or CMA. RANK_ERR_PEER_DEAD, or RANK_ERR_CHANNEL. */
rank_status_t rk_peer_read(struct rk_arena *a, int r, const struct rk_place *place, size_t from, void *to, size_t bytes);

#endif

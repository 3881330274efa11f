/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * allocator.h: allocate ranges of an address space, without touching its memory.
 *
 * First fit: callers that allocate and free the same in the same order get the same places. Freeing cannot fail.
 */
#ifndef RK_MEM_ALLOCATOR_H
#define RK_MEM_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>

struct rk_hole {
    size_t at, bytes;
};

struct rk_space {
    struct rk_hole *holes; /* free extents by position; no two touch */
    size_t nholes, cap;
    size_t npieces;        /* allocated ranges */
};

/* Returns false if out of memory. */
bool rk_space_create(struct rk_space *space, size_t bytes);
void rk_space_destroy(struct rk_space *space);

/*
 * align: a power of two. Returns false if no extent is large enough, or out of memory (never on the first call).
 */
bool rk_space_take(struct rk_space *space, size_t bytes, size_t align, size_t *at);
/* Free a whole range. */
void rk_space_give(struct rk_space *space, size_t at, size_t bytes);

#endif

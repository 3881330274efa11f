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

struct rk_extent {
    size_t at, bytes;
};

struct rk_allocator {
    struct rk_extent *holes; /* free extents by position; no two touch */
    size_t nholes, cap;
    size_t npieces;        /* allocated ranges */
};

/* Returns false if out of memory. */
bool rk_allocator_create(struct rk_allocator *space, size_t bytes);
void rk_allocator_destroy(struct rk_allocator *space);

/*
 * align: a power of two. Returns false if no extent is large enough, or out of memory (never on the first call).
 */
bool rk_allocator_alloc(struct rk_allocator *space, size_t bytes, size_t align, size_t *at);
/* Free a whole range. */
void rk_allocator_free(struct rk_allocator *space, size_t at, size_t bytes);

#endif

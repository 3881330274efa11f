/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * allocator.h: which bytes of a range are taken. No memory of the range itself is touched.
 *
 * First fit, so that all who take and give the same in the same order have the
 * same places. Giving back cannot fail.
 */
#ifndef RK_MEM_ALLOCATOR_H
#define RK_MEM_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>

struct rk_hole {
    size_t at, bytes;
};

struct rk_space {
    struct rk_hole *holes; /* by place; no two touch */
    size_t nholes, cap;
    size_t npieces;        /* taken and not given back */
};

/* False: out of memory. */
bool rk_space_create(struct rk_space *space, size_t bytes);
void rk_space_destroy(struct rk_space *space);

/* align: a power of two. False: no hole is large enough, or out of memory. The first never fails for the latter. */
bool rk_space_take(struct rk_space *space, size_t bytes, size_t align, size_t *at);
/* What was taken, whole. */
void rk_space_give(struct rk_space *space, size_t at, size_t bytes);

#endif

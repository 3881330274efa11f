/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sym_heap.h: a segment that many small allocations of one team share.
 *
 * Its parts, the ways to those that are not mapped, their keys and its name on the wire are one
 * object, made once; an allocation is a range of it, at the same place in every
 * rank's part. All ranks take and give in the same order (rank_alloc and rank_free are collective), so they have the
 * same places; rank_alloc makes sure of that. One that is empty is given back to the system.
 */
#ifndef RK_RMA_SYM_HEAP_H
#define RK_RMA_SYM_HEAP_H

#include "lib/mem/allocator.h"
#include "lib/rma/rma.h"

struct rk_heap {
    struct rk_link link;    /* in the context's list, the oldest first */
    struct rank_mem *whole; /* not a handle of anybody's */
    uint64_t team_id;
    int64_t serial;         /* of the team's heaps */
    struct rk_space space;
    size_t backed;          /* bytes of my part, from its beginning, that have memory */
    size_t used;            /* and that have been somebody's: no longer zero */
};

/* whole is taken over, but not when there is no memory (NULL). */
struct rk_heap *rk_heap_create(struct rank_mem *whole, int64_t serial);
/* With the memory, if there is any yet. NULL is fine. */
void rk_heap_destroy(struct rk_heap *heap);
/* No place of it is given out any more, but its memory stays to the end. */
void rk_heap_retire(struct rk_heap *heap);
/* The team's oldest; NULL: none. */
struct rk_heap *rk_heap_first(const struct rank_team *team);
struct rk_heap *rk_heap_next(const struct rk_heap *heap, const struct rank_team *team);

/* A range for mem, whose size is known; its parts are then set. False: there is no room. */
bool rk_heap_take(struct rk_heap *heap, struct rank_mem *mem);
/* Memory behind mem's range of my part, and zeros in it. */
rank_status_t rk_heap_prepare(struct rank_mem *mem);
/* mem is without a range again; the heap stays. */
void rk_heap_give(struct rank_mem *mem);

/* What an allocation takes of an heap. */
size_t rk_heap_need(size_t bytes);

#endif

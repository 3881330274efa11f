/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sym_heap.h: share one segment between small allocations of a team.
 *
 * The parts, access paths, keys and id of the segment form one object. An allocation is a range of it, at the same
 * offset in every rank. All ranks allocate and free in the same order (rank_alloc and rank_free are collective),
 * so offsets agree; rank_alloc verifies that. An empty heap is returned to the system.
 */
#ifndef RK_RMA_SYM_HEAP_H
#define RK_RMA_SYM_HEAP_H

#include "lib/mem/allocator.h"
#include "lib/rma/rma.h"

struct rk_heap {
    struct rk_link link;    /* in the context's list, oldest first */
    struct rank_mem *whole; /* no user's handle */
    uint64_t team_id;
    int64_t serial;         /* among the team's heaps */
    struct rk_allocator space;
    size_t backed;          /* bytes of the own part backed by memory, from its start */
    size_t used;            /* and bytes used before: no longer zero */
};

/* Takes ownership of whole, unless it returns NULL (out of memory). */
struct rk_heap *rk_heap_create(struct rank_mem *whole, int64_t serial);
/* Free the heap, and return its memory for rk_mem_destroy. */
struct rank_mem *rk_heap_dissolve(struct rk_heap *heap);
/* Allocate no more ranges; the memory stays to the end. */
void rk_heap_retire(struct rk_heap *heap);
/* The team's oldest heap; NULL: none. */
struct rk_heap *rk_heap_first(const struct rank_team *team);
struct rk_heap *rk_heap_next(const struct rk_heap *heap, const struct rank_team *team);

/* Allocate a range for mem, with its size set; sets its parts. Returns false if there is no room. */
bool rk_heap_take(struct rk_heap *heap, struct rank_mem *mem);
/* Back mem's range of the own part, and zero it. */
rank_status_t rk_heap_prepare(struct rank_mem *mem);
/* Free mem's range; the heap stays. */
void rk_heap_give(struct rank_mem *mem);

/* Bytes of a heap that an allocation takes. */
size_t rk_heap_need(size_t bytes);

#endif

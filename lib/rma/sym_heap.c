/* SPDX-License-Identifier: BSD-3-Clause */
/* sym_heap.c: allocate ranges of a shared segment. */
#include "lib/rma/sym_heap.h"
#include "lib/rma/rma_internal.h"

#include <stdlib.h>
#include <string.h>

/* LINE: allocations do not share what a core prefetches. */
enum { LINE = 128, PAGE = 4096 };

size_t rk_heap_need(size_t bytes)
{
    return rk_round_up(bytes ? bytes : 1, LINE);
}

struct rk_heap *rk_heap_create(struct rank_mem *whole, int64_t serial)
{
    struct rk_heap *heap = calloc(1, sizeof(*heap));

    if (!heap || !rk_allocator_create(&heap->space, whole->bytes)) {
        free(heap);
        return NULL;
    }
    heap->whole = whole;
    heap->team_id = whole->team->id;
    heap->serial = serial;
    rk_list_remove(&whole->link); /* freed with its last range */
    rk_list_append(&whole->ctx->rma->heaps, &heap->link);
    return heap;
}

struct rank_mem *rk_heap_dissolve(struct rk_heap *heap)
{
    struct rank_mem *whole = heap->whole;

    rk_list_remove(&heap->link);
    rk_allocator_destroy(&heap->space);
    free(heap);
    return whole;
}

void rk_heap_retire(struct rk_heap *heap)
{
    struct rank_mem *whole = rk_heap_dissolve(heap);

    rk_list_append(&whole->ctx->rma->mems, &whole->link);
    rk_mem_retire(whole);
}

static struct rk_heap *from(struct rk_link *l, const struct rank_team *team)
{
    struct rk_link *end = &team->ctx->rma->heaps;

    for (; l != end; l = l->next) {
        struct rk_heap *heap = rk_list_entry(l, struct rk_heap, link);
        if (heap->whole->team == team && heap->team_id == team->id)
            return heap;
    }
    return NULL;
}

struct rk_heap *rk_heap_first(const struct rank_team *team)
{
    return from(team->ctx->rma->heaps.next, team);
}

struct rk_heap *rk_heap_next(const struct rk_heap *heap, const struct rank_team *team)
{
    return from(heap->link.next, team);
}

bool rk_heap_take(struct rk_heap *heap, struct rank_mem *mem)
{
    const struct rank_mem *whole = heap->whole;
    size_t need = rk_heap_need(mem->bytes);

    if (!rk_allocator_alloc(&heap->space, need, mem->bytes >= PAGE ? PAGE : LINE, &mem->shift))
        return false;
    mem->heap = heap;
    for (int r = 0; r < mem->team->size; r++)
        mem->part[r] = whole->part[r] ? whole->part[r] + mem->shift : NULL;
    mem->paths = whole->paths;
    mem->channel = whole->channel;
    mem->channel_mem = whole->channel_mem;
    return true;
}

rank_status_t rk_heap_prepare(struct rank_mem *mem)
{
    struct rk_heap *heap = mem->heap;
    struct rank_mem *whole = heap->whole;
    char *part = whole->part[whole->team->rank];
    size_t end = mem->shift + rk_heap_need(mem->bytes), back;
    rank_status_t st;

    if (end > heap->backed) {
        back = rk_round_up(end, whole->bytes >= RK_SEGMENT_HUGE ? RK_SEGMENT_HUGE : PAGE);
        if (back > whole->bytes)
            back = whole->bytes;
        st = rk_segment_back(whole->segment,
                             (size_t)(part - whole->segment->base) + heap->backed,
                             back - heap->backed);
        if (st)
            return st;
        heap->backed = back;
    }
    if (mem->shift < heap->used)
        memset(part + mem->shift, 0, (end < heap->used ? end : heap->used) - mem->shift);
    if (end > heap->used)
        heap->used = end;
    return RANK_OK;
}

void rk_heap_give(struct rank_mem *mem)
{
    rk_allocator_free(&mem->heap->space, mem->shift, rk_heap_need(mem->bytes));
    mem->heap = NULL;
    mem->shift = 0;
    mem->paths = NULL;
    mem->channel = NULL;
    mem->channel_mem = NULL;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* mem_close.c: end what uses a memory, and free it. */
#include "lib/rma/rma_internal.h"
#include "lib/rma/sym_heap.h"
#include "lib/rma/xfer.h"

#include <stdlib.h>

/* Of another kind than host memory. */
static void mem_free_device(struct rank_mem *mem)
{
    rk_mem_unmap_peers(mem);
    rk_stores_end(mem->ctx);
    if (mem->mine) {
        rk_engine_memory_freed(mem->ctx, mem->mine, mem->bytes);
        mem->kind->free(mem->mine);
    }
}

void rk_mem_destroy(struct rank_mem *mem)
{
    struct rk_heap *heap;
    struct rk_ctx *ctx;

    if (!mem)
        return;
    heap = mem->heap;
    ctx = mem->ctx;
    rk_list_remove(&mem->link);
    if (rk_mem_has_lists(mem))
        rk_xfers_mem_over(mem);
    while (!rk_list_empty(&mem->requests)) { /* they end without this object */
        struct rank_request *req = rk_list_entry(mem->requests.next, struct rank_request, link);
        rk_list_remove(&req->link);
        req->flags &= (uint8_t)~RK_REQ_LISTED;
    }
    rk_secret_id_drop(&ctx->rma->mem_ids, &mem->by_id);
    rk_hash_remove(&ctx->rma->opened, &mem->by_nonce);
    rk_key_record_free(mem);
    if (heap)
        rk_heap_give(mem);
    if (mem->channel_mem)
        mem->channel->mem_close(rk_engine_state(ctx, mem->channel), mem->channel_mem);
    rk_segment_close(mem->segment);
    if (mem->kind)
        mem_free_device(mem);
    free(mem->part);
    free(mem->paths);
    mem->part = NULL;
    mem->paths = NULL;
    rk_mem_free(mem);
    if (heap && heap->space.npieces == 0)
        rk_mem_destroy(rk_heap_dissolve(heap));
}

void rk_mem_close_opened(const struct rank_team *team)
{
    struct rk_link *l, *next;

    if (!team->ctx->rma)
        return;
    rk_xfers_team_over(team->ctx, team);
    rk_list_for_each_safe(l, next, &team->ctx->rma->mems)
    {
        struct rank_mem *mem = rk_list_entry(l, struct rank_mem, link);
        if (mem->team == team && mem->sort == RK_MEM_OPENED)
            rk_mem_destroy(mem);
    }
}

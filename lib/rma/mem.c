/*
 * mem.c: the objects behind rank_mem_t.
 *
 * A handle outlives what it names, in users' hands: a freed object's memory
 * stays, its magic spoilt, until another takes it.
 */
#include "lib/rma/rma.h"

#include <stdlib.h>
#include <string.h>

struct rk_rma {
    struct rk_link mems;
};

static struct rank_mem *freed; /* the process's, as handles outlive the context; by link.next */

rank_status_t rk_rma_open(struct rk_ctx *ctx)
{
    ctx->rma = malloc(sizeof(*ctx->rma));
    if (!ctx->rma)
        return RANK_ERR_NO_MEMORY;
    rk_list_init(&ctx->rma->mems);
    return RANK_OK;
}

void rk_rma_close(struct rk_ctx *ctx)
{
    if (!ctx->rma)
        return;
    while (!rk_list_empty(&ctx->rma->mems))
        rk_mem_destroy(rk_list_entry(ctx->rma->mems.next, struct rank_mem, link));
    free(ctx->rma);
    ctx->rma = NULL;
}

static void give_memory(struct rank_mem *mem)
{
    mem->magic = 0;
    mem->link.next = (struct rk_link *)(void *)freed;
    freed = mem;
}

struct rank_mem *rk_mem_new(struct rank_team *team, size_t bytes)
{
    struct rank_mem *mem = freed;

    if (mem)
        freed = (struct rank_mem *)(void *)mem->link.next;
    else if (!(mem = malloc(sizeof(*mem))))
        return NULL;
    memset(mem, 0, sizeof(*mem));
    mem->team = team;
    mem->bytes = bytes;
    mem->part = calloc((size_t)team->size, sizeof(*mem->part));
    if (!mem->part) {
        give_memory(mem);
        return NULL;
    }
    mem->magic = RK_MEM_MAGIC;
    rk_list_append(&team->ctx->rma->mems, &mem->link);
    return mem;
}

void rk_mem_destroy(struct rank_mem *mem)
{
    if (!mem)
        return;
    rk_list_remove(&mem->link);
    if (mem->channel_mem)
        mem->channel->mem_close(rk_engine_state(mem->team->ctx, mem->channel), mem->channel_mem);
    rk_segment_close(mem->segment);
    free(mem->part);
    mem->part = NULL;
    give_memory(mem);
}

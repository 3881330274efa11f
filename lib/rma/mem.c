/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mem.c: keep the room's state and the objects behind rank_mem_t.
 */
#include "lib/base/log.h"
#include "lib/base/retired.h"
#include "lib/node/xpmem.h"
#include "lib/rma/sym_heap.h"
#include "lib/rma/rma_internal.h"
#include "lib/rma/xfer.h"

#include <stdlib.h>
#include <string.h>

static struct rk_retired retired = RK_RETIRED_INIT(64);

/* End the waits for a peer. */
static void mem_end_waits(struct rk_rma *rma, struct rk_peer *peer)
{
    struct rk_origin_op *job;
    uint32_t i;

    rk_handles_for_each(i, job, &rma->job_ids)
    {
        if (job->peer == peer)
            rk_origin_fail(job, rk_peer_lost(peer));
    }
    rk_xfers_peer_lost(peer);
}

static void mem_on_death(struct rk_ctx *ctx, struct rk_peer *peer)
{
    struct rk_rma *rma = ctx->rma;
    struct rk_link *l;

    if (!rma)
        return;
    rma->deaths++;
    rk_list_for_each(l, &rma->mems) /* their next calls check */
        __atomic_store_n(&rk_list_entry(l, struct rank_mem, link)->until_check, 0, __ATOMIC_RELAXED);
    mem_end_waits(rma, peer);
}

static void mem_on_drop(struct rk_ctx *ctx, struct rk_peer *peer)
{
    struct rk_rma *rma = ctx->rma;

    if (!rma)
        return;
    mem_end_waits(rma, peer);
    if (peer->number < rma->npeers && rma->peers[peer->number])
        *rma->peers[peer->number] = (struct rk_rma_peer){.owed = RANK_OK};
}

void rk_mem_end_lists(struct rank_team *team)
{
    if (team->ctx->rma)
        rk_xfers_team_over(team->ctx, team);
}

static rank_status_t rma_open(struct rk_ctx *ctx)
{
    struct rk_rma *rma = calloc(1, sizeof(*rma));

    if (!rma)
        return RANK_ERR_NO_MEMORY;
    if (!rk_secret_ids_open(&rma->mem_ids)) {
        free(rma);
        return RANK_ERR_SYSTEM;
    }
    ctx->rma = rma;
    rk_list_init(&rma->mems);
    rk_list_init(&rma->heaps);
    rk_xfers_open(rma);
    rk_bounce_pool_init(&rma->bounces);
    rma->jobs = (struct rk_slab)RK_SLAB_INIT(sizeof(struct rk_origin_op), 16);
    rk_handles_open(&rma->job_ids);
    return RANK_OK;
}

static void rma_close(struct rk_ctx *ctx)
{
    struct rk_rma *rma = ctx->rma;
    struct rk_origin_op *job;
    struct rk_link *l;
    uint32_t k;

    if (!rma)
        return;
    rk_list_for_each(l, &rma->heaps)
        rk_list_entry(l, struct rk_heap, link)->whole->segment = NULL;
    while (!rk_list_empty(&rma->mems)) {
        struct rank_mem *mem = rk_list_entry(rma->mems.next, struct rank_mem, link);
        /* Unmapped when the channels are closed: a rank that does not know of a death may still write there. */
        mem->segment = NULL;
        rk_mem_destroy(mem);
    }
    rk_xfers_close(rma);
    rk_target_drop(ctx);
    rk_origin_drop(ctx);
    rk_handles_for_each(k, job, &rma->job_ids)
        rk_origin_fail(job, RANK_ERR_STATE);
    rk_xfers_free(ctx);
    rk_bounce_pool_close(&rma->bounces);
    rk_slab_close(&rma->jobs);
    rk_rma_peers_destroy(rma);
    rk_hash_close(&rma->opened);
    rk_secret_ids_close(&rma->mem_ids);
    rk_handles_close(&rma->job_ids);
    if (rma->bad_frames)
        rk_warn("%llu broken frames of one-sided calls came", (unsigned long long)rma->bad_frames);
    ctx->rma = NULL; /* later frames are ignored */
    free(rma);
}

static void rma_spoil(struct rk_ctx *ctx)
{
    struct rk_link *l;

    if (!ctx->rma)
        return;
    rk_list_for_each(l, &ctx->rma->mems)
        rk_list_entry(l, struct rank_mem, link)->magic = 0;
}

static void mem_give_memory(struct rank_mem *mem)
{
    mem->magic = 0;
    rk_retired_put(&retired, &mem->link);
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

struct rank_mem *rk_mem_new(struct rank_team *team, size_t bytes)
{
    struct rk_link *link = rk_retired_take(&retired);
    struct rank_mem *mem = link ? rk_list_entry(link, struct rank_mem, link) : malloc(sizeof(*mem));

    if (!mem)
        return NULL;
    memset(mem, 0, sizeof(*mem));
    mem->ctx = team->ctx;
    mem->team = team;
    mem->deaths_reported = mem->flush_reported = team->ndead; /* earlier deaths are not reported */
    mem->bytes = bytes;
    rk_list_init(&mem->requests);
    mem->part = calloc((size_t)team->size, sizeof(*mem->part));
    if (!mem->part) {
        mem_give_memory(mem);
        return NULL;
    }
    mem->magic = rk_nkinds ? RK_MEM_KINDS_MAGIC : RK_MEM_MAGIC;
    rk_list_append(&team->ctx->rma->mems, &mem->link);
    return mem;
}

void rk_mem_retire(struct rank_mem *mem)
{
    mem->magic = 0; /* its id stays valid for frames of peers */
}

void rk_mem_unmap_peers(struct rank_mem *mem)
{
    for (int r = 0; mem->kind && r < mem->nways; r++) {
        if (mem->part[r] && mem->part[r] != mem->mine)
            mem->kind->free(mem->part[r]);
        if (mem->part[r] != mem->mine)
            mem->part[r] = NULL;
    }
}

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
    for (int r = 0; mem->sort == RK_MEM_OPENED && r < mem->nways; r++)
        rk_xpmem_close(mem->ways[r].attached);
    free(mem->part);
    free(mem->ways);
    mem->part = NULL;
    mem->ways = NULL;
    mem_give_memory(mem);
    if (heap && heap->space.npieces == 0)
        rk_heap_destroy(heap);
}

rank_status_t rk_mem_enter(struct rank_mem *mem)
{
    const struct rank_team *team = mem->team;

    mem->partner = team->size == 2 && mem->sort == RK_MEM_SYMMETRIC ? rk_team_world_rank(team, 1 - team->rank) : -1;
    if (!rk_secret_id_put(&team->ctx->rma->mem_ids, &mem->by_id, &mem->id)) {
        mem->mine = NULL;
        return RANK_ERR_NO_MEMORY;
    }
    return RANK_OK;
}

rank_status_t rk_mem_add_accesses(struct rank_mem *mem)
{
    mem->ways = calloc((size_t)mem->team->size, sizeof(*mem->ways));
    if (!mem->ways)
        return RANK_ERR_NO_MEMORY;
    mem->nways = mem->team->size;
    return RANK_OK;
}

RK_COLD rank_status_t rk_mem_is_denied(unsigned what)
{
    return rk_arg_error(RANK_ERR_ARG, "one-sided call",
                        "the memory cannot be %s: its owner has registered it without %s, or from protected pages (mprotect)",
                        what & RK_NO_WRITES ? "written" : "read", what & RK_NO_WRITES ? "RANK_ACCESS_WRITE" : "RANK_ACCESS_READ");
}

RK_COLD rank_status_t rk_mem_word_is_unaligned(int64_t offset, size_t width)
{
    return rk_arg_error(RANK_ERR_ARG, "one-sided call",
                        "the word of %zu bytes at offset %lld does not lie on a multiple of %zu: register memory for atomics and signals from such "
                        "an address on", width, (long long)offset, width);
}

bool rk_rma_moves(struct rk_ctx *ctx, const struct rk_channel *channel)
{
    return channel->mem_expose && (!channel->one_sided || channel->one_sided(rk_engine_state(ctx, channel)));
}

const struct rk_channel *rk_rma_channel(struct rk_ctx *ctx)
{
    for (int i = 0; i < ctx->engine->nopen; i++) {
        if (rk_rma_moves(ctx, ctx->engine->open[i].ops))
            return ctx->engine->open[i].ops;
    }
    return NULL;
}

const struct rk_room rk_room_rma = {
    .name = "rma",
    .open = rma_open,
    .close = rma_close,
    .progress = rk_xfers_progress,
    .progress_on_demand = true,
    .peer_died = mem_on_death,
    .peer_dropped = mem_on_drop,
    .team_close = rk_mem_end_lists,
    .spoil = rma_spoil,
    .requests = 1 << RK_REQ_RMA,
    .describe = rk_rma_describe,
    .memory_at = rk_target_memory_at,
    .frames = {{RK_KIND_RMA_REQ, rk_target_handle}, {RK_KIND_RMA_REP, rk_origin_replied}},
};

/* SPDX-License-Identifier: BSD-3-Clause */
/* rma_room.c: open and close the room, and end what depends on a peer or a team. */
#include "lib/base/log.h"
#include "lib/rma/rma_internal.h"
#include "lib/rma/sym_heap.h"
#include "lib/rma/xfer.h"

#include <stdlib.h>

/* End the waits for a peer. */
static void mem_end_waits(struct rk_rma *rma, struct rk_peer *peer)
{
    struct rk_origin_op *op;
    uint32_t i;

    rk_handles_for_each(i, op, &rma->op_ids)
    {
        if (op->peer == peer)
            rk_origin_fail(op, rk_peer_lost(peer));
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
    rma->ops = (struct rk_slab)RK_SLAB_INIT(sizeof(struct rk_origin_op), 16);
    rk_handles_open(&rma->op_ids);
    return RANK_OK;
}

static void rma_close(struct rk_ctx *ctx)
{
    struct rk_rma *rma = ctx->rma;
    struct rk_origin_op *op;
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
    rk_handles_for_each(k, op, &rma->op_ids)
        rk_origin_fail(op, RANK_ERR_STATE);
    rk_xfers_free(ctx);
    rk_bounce_pool_close(&rma->bounces);
    rk_slab_close(&rma->ops);
    rk_rma_peers_destroy(rma);
    rk_hash_close(&rma->opened);
    rk_secret_ids_close(&rma->mem_ids);
    rk_handles_close(&rma->op_ids);
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

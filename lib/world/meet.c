/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meet.c: set up what ranks of a job share: segment of the node and network.
 *
 * The lowest local rank creates the segment, and the others attach it. The network opens before the one commit if it is
 * needed: the job spans nodes, an attach failed, or the user excluded shm. A fence follows.
 */
#include "collectives/coll.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/boot/boot.h"
#include "lib/channel/shm/shm_region.h"
#include "lib/conn/network.h"
#include "lib/core/card.h"
#include "lib/core/engine.h"
#include "lib/core/threads.h"
#include "lib/mem/kind.h"
#include "lib/mem/segment.h"
#include "lib/node/node.h"
#include "lib/world/world.h"

#include <string.h>

static bool shm_wanted(void)
{
    return (rk_conf.channels & RK_CONF_SHM) != 0;
}

/* Create a segment for a rank that shares with no other process. */
static rank_status_t node_alone(struct rk_ctx *ctx)
{
    size_t regions[RK_REGION_COUNT] = {[RK_REGION_FIFOS] = rk_shm_region_bytes(1),
                                       [RK_REGION_ARENAS] = rk_coll_region_bytes(1)};
    struct rk_memfd_card card;
    rank_status_t st = rk_node_create(1, regions, &ctx->node, &card);

    return st ? st : rk_node_join(ctx->node, 0, ctx->boot->rank);
}

/* The lowest local rank: create the segment and publish its card. */
static rank_status_t node_make(struct rk_ctx *ctx)
{
    int n = ctx->boot->nlocal;
    size_t regions[RK_REGION_COUNT] = {[RK_REGION_FIFOS] = rk_shm_region_bytes(n),
                                       [RK_REGION_ARENAS] = rk_coll_region_bytes(n),
                                       [RK_REGION_CELLS] = rk_coll_cells_bytes(n),
                                       [RK_REGION_EXPORTS] = rk_shm_exports_bytes(n)};
    struct rk_memfd_card card = {0};
    rank_status_t st = rk_node_create(n, regions, &ctx->node, &card), put;

    if (!st)
        rk_coll_node_made(ctx->node, ctx->boot->size);
    if (st)
        memset(&card, 0, sizeof(card)); /* the others must learn that there is none */
    put = ctx->boot->ops->put(ctx->boot, "rank.node", &card, sizeof(card));
    if (st || put)
        return st ? st : put;
    return rk_node_join(ctx->node, 0, ctx->boot->rank);
}

/* The other ranks: RANK_ERR_UNREACHABLE if the memory cannot be shared. */
static rank_status_t node_attach(struct rk_ctx *ctx)
{
    struct rk_memfd_card card;
    size_t len = sizeof(card);
    rank_status_t st = ctx->boot->ops->get(ctx->boot, ctx->boot->local[0], "rank.node", &card, &len);

    if (!st && (len != sizeof(card) || card.bytes == 0))
        st = RANK_ERR_NO_MEMORY; /* its creator has reported why */
    if (!st)
        st = rk_node_attach(&card, ctx->boot->nlocal, &ctx->node);
    return st ? st : rk_node_join(ctx->node, ctx->boot->local_index, ctx->boot->rank);
}

static rank_status_t publish_network(struct rk_ctx *ctx)
{
    rank_status_t st = rk_network_open(ctx);

    return st ? st : ctx->boot->ops->put(ctx->boot, RK_CARD_KEY, ctx->engine->card, ctx->engine->card_len);
}

rank_status_t rk_world_meet(struct rk_ctx *ctx)
{
    struct rk_boot *boot = ctx->boot;
    bool alone = boot->size == 1, shared = true, early, network = false;
    rank_status_t st;
    size_t none = 0;

    if (alone)
        st = node_alone(ctx);
    else if (boot->local_index == 0)
        st = node_make(ctx);
    else
        st = RANK_OK;
    if (st)
        return st;

    /*
     * The creator commits before the others attach; in a job of one node without forced network its card is all
     * that it publishes.
     */
    early = !alone && (boot->nlocal < boot->size || !shm_wanted());
    early = early || boot->parent; /* no shared memory with the parents */
    /*
     * After a first context, wait for the creator's commit in a fence: libpmix leaks at each request that comes
     * before it.
     */
    if (!alone && boot->before) {
        st = boot->local_index == 0 ? boot->ops->commit(boot) : RANK_OK;
        if (!st)
            st = boot->ops->fence(boot);
        if (st)
            return st;
    }
    if (!alone && boot->local_index > 0) {
        st = node_attach(ctx);
        if (st == RANK_ERR_UNREACHABLE) {
            rk_info("cannot share memory with rank %d of this host", boot->local[0]);
            shared = false;
            st = node_alone(ctx);
        }
        if (st)
            return st;
    }
    if (rk_device_kind)
        atomic_store(&ctx->node->head->has_kinds, 1);
    st = rk_engine_open(ctx);
    if (!st && (ctx->level == RANK_THREAD_MULTIPLE || ctx->has_progress_thread))
        st = rk_threads_open(ctx);
    if (!st)
        st = rk_segments_open(ctx);
    if (!st)
        st = rk_engine_open_channel(ctx, &rk_channel_self, NULL, &none);
    if (!st && shared && shm_wanted() && boot->nlocal > 1)
        st = rk_engine_open_channel(ctx, &rk_channel_shm, NULL, &none);
    if (!st && (early || !shared)) {
        st = publish_network(ctx);
        network = true;
    }
    if (st || alone)
        return st;
    st = boot->ops->commit(boot);
    if (!st)
        st = boot->ops->fence(boot);
    if (st || early)
        return st;
    /*
     * A rank of this node could not attach: then all need the network, and fence again. That rank sees too few
     * attached ranks in its own segment, too.
     */
    if ((int)atomic_load(&ctx->node->head->attached) < boot->nlocal) {
        if (!network) {
            st = publish_network(ctx);
            if (!st)
                st = boot->ops->commit(boot);
        }
        if (!st)
            st = boot->ops->fence(boot);
    }
    return st;
}

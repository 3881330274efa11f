/* SPDX-License-Identifier: BSD-3-Clause */
/* shm_pair.c: provide the channel of connections within this host. */
#include "lib/channel/shm/export_table.h"
#include "lib/channel/shm/shm.h"
#include "lib/channel/shm/shm_pair.h"
#include "lib/channel/shm/shm_region.h"

#include <stdlib.h>
#include <unistd.h>

struct pairs {
    struct rk_proto_table protos;
    struct rk_shm *of[RK_PAIRS_MAX];
    int n;
    bool armed; /* peers ring, from the next frame on */
};

/* --------------------------------------------------------------------- a segment of two */

bool rk_pair_may_share(struct rk_ctx *ctx, uint32_t pid, uint32_t uid)
{
    const struct pairs *p = rk_engine_state(ctx, &rk_channel_pair);

    return (!p || p->n < RK_PAIRS_MAX) && uid == geteuid() && rk_is_own_process((int)pid);
}

static rank_status_t pair_join(struct rk_ctx *ctx, struct rk_node **node, int index)
{
    rank_status_t st = rk_node_join_pair(*node, index, ctx->node);

    if (st) {
        rk_node_close(*node);
        *node = NULL;
    }
    return st;
}

rank_status_t rk_pair_create(struct rk_ctx *ctx, struct rk_node **out, struct rk_memfd_card *card)
{
    const size_t regions[RK_REGION_COUNT] = {[RK_REGION_FIFOS] = rk_shm_region_bytes(2),
                                             [RK_REGION_EXPORTS] = rk_shm_exports_bytes(2)};
    rank_status_t st = rk_node_create(2, regions, out, card);

    return st ? st : pair_join(ctx, out, 0);
}

rank_status_t rk_pair_attach(struct rk_ctx *ctx, const struct rk_memfd_card *card, struct rk_node **out)
{
    rank_status_t st = rk_node_attach(card, 2, out);

    return st ? st : pair_join(ctx, out, 1);
}

void rk_pair_drop(struct rk_node *node)
{
    rk_node_close(node);
}

bool rk_pair_is_attached(const struct rk_node *node)
{
    return atomic_load(&node->head->attached) == 2;
}

/* --------------------------------------------------------------------------- the channel */

static rank_status_t pair_open(struct rk_ctx *ctx, void **state, void *card, size_t *len)
{
    struct pairs *p = calloc(1, sizeof(*p));

    (void)ctx;
    (void)card;
    *len = 0;
    if (!p)
        return RANK_ERR_NO_MEMORY;
    free(rk_proto_table_load(&p->protos, false));
    *state = p;
    return RANK_OK;
}

static void pair_end(struct pairs *p, int i)
{
    struct rk_shm *shm = p->of[i];
    struct rk_node *node = shm->node;

    p->of[i] = p->of[--p->n];
    shm->only->node = NULL;
    shm->only->slot = -1;
    rk_shm_free(shm);
    rk_node_close(node);
}

static void pair_close(struct rk_ctx *ctx, void *state)
{
    struct pairs *p = state;

    (void)ctx;
    while (p->n > 0)
        pair_end(p, p->n - 1);
    free(p);
}

static int pair_of(const struct pairs *p, const struct rk_peer *peer)
{
    for (int i = 0; i < p->n; i++) {
        if (p->of[i]->only == peer)
            return i;
    }
    return -1;
}

static rank_status_t pair_connect(struct rk_ctx *ctx, void *state, struct rk_peer *peer)
{
    const struct pairs *p = state;
    int i = pair_of(p, peer);
    rank_status_t st;

    (void)ctx;
    if (i < 0)
        return RANK_ERR_UNREACHABLE;
    st = rk_shm_connect(p->of[i], peer);
    if (!st && (st = rk_shm_back_ring(p->of[i], peer->ep)) != RANK_OK)
        rk_shm_disconnect(p->of[i], peer);
    return st;
}

static void count_messages(const struct rk_shm *shm)
{
    const struct rk_shm_ep *ep = shm->only->ep;

    if (ep)
        shm->counts->sent = ep->out.messages;
    shm->counts->received = shm->in[shm->only->slot].messages;
}

void rk_pair_count(const struct rk_peer *peer)
{
    const struct pairs *p = rk_engine_state(peer->ctx, &rk_channel_pair);
    int i = p ? pair_of(p, peer) : -1;

    if (i >= 0)
        count_messages(p->of[i]);
}

static void pair_drain(void *state, struct rk_peer *peer)
{
    const struct pairs *p = state;

    rk_shm_drain(p->of[pair_of(p, peer)], peer);
}

static void pair_disconnect(void *state, struct rk_peer *peer)
{
    struct pairs *p = state;
    int i = pair_of(p, peer);

    count_messages(p->of[i]);
    rk_shm_disconnect(p->of[i], peer);
    pair_end(p, i);
}

/* Of a rank of another job, which is disconnected. A connection is ended before. */
static void pair_forget(void *state, struct rk_peer *peer, bool disconnected)
{
    (void)disconnected;
    if (pair_of(state, peer) >= 0)
        pair_disconnect(state, peer);
}

rank_status_t rk_pair_connect(struct rk_node *node, struct rk_peer *peer, struct rk_pair_counts *counts)
{
    struct rk_ctx *ctx = peer->ctx;
    struct pairs *p = rk_engine_state(ctx, &rk_channel_pair);
    rank_status_t st = RANK_OK;
    size_t none = 0;

    if (!p) {
        st = rk_engine_open_channel(ctx, &rk_channel_pair, NULL, &none);
        p = rk_engine_state(ctx, &rk_channel_pair);
    }
    if (st || p->n == RK_PAIRS_MAX)
        return st ? st : RANK_ERR_UNREACHABLE;
    rk_node_settle(node);
    st = rk_shm_make(ctx, node, peer, &p->protos, &p->of[p->n]);
    if (st)
        return st;
    p->of[p->n]->counts = counts;
    peer->node = node;
    peer->slot = 1 - node->index;
    p->n++;
    st = rk_peer_try_connect(peer);
    if (st) {
        p->n--;
        rk_shm_free(p->of[p->n]);
        peer->node = NULL;
        peer->slot = -1;
        return st;
    }
    rk_node_drop_fd(node);
    if (node->oversubscribed)
        rk_engine_set_oversubscribed(ctx);
    return RANK_OK;
}

/* The context is awake: peers need not ring. */
static RK_COLD void disarm(struct pairs *p)
{
    p->armed = false;
    for (int i = 0; i < p->n; i++)
        rk_node_sleep_end(p->of[i]->node);
}

static int pair_progress(struct rk_ctx *ctx, void *state)
{
    struct pairs *p = state;
    int n = 0;

    if (rk_unlikely(p->armed) && atomic_load_explicit(&ctx->node->mine->sleeping, memory_order_relaxed) == RK_AWAKE)
        disarm(p);
    for (int i = 0; i < p->n; i++)
        n += rk_shm_progress(p->of[i]);
    return n;
}

/* They ring the doorbell of the context, by its pipe. */
static rank_status_t pair_arm(void *state)
{
    struct pairs *p = state;

    for (int i = 0; i < p->n; i++)
        atomic_store(&p->of[i]->node->mine->sleeping, RK_ASLEEP_FD);
    p->armed = true;
    if (p->n) /* its barrier is one for all */
        rk_node_sleep_begin(p->of[p->n - 1]->node, RK_ASLEEP_FD);
    for (int i = 0; i < p->n; i++) {
        if (rk_shm_has_frames(p->of[i]))
            return RK_AGAIN;
    }
    return RANK_OK;
}

static void pair_idle(void *state, uint64_t now)
{
    const struct pairs *p = state;

    for (int i = 0; i < p->n; i++)
        rk_shm_idle(p->of[i], now);
}

static void pair_freed(void *state, const void *ptr, size_t bytes)
{
    const struct pairs *p = state;

    for (int i = 0; i < p->n; i++)
        rk_exports_drop(p->of[i], ptr, bytes);
}

static rank_status_t pair_drained(void *state)
{
    const struct pairs *p = state;

    for (int i = 0; i < p->n; i++) {
        if (p->of[i]->nassisted > 0)
            return RK_AGAIN;
    }
    return RANK_OK;
}

const struct rk_channel rk_channel_pair = {
    .name = "shm",
    .shares_memory = true,
    .open = pair_open,
    .close = pair_close,
    .connect = pair_connect,
    .drain = pair_drain,
    .disconnect = pair_disconnect,
    .forget = pair_forget,
    RK_SHM_FRAMES,
    .progress = pair_progress,
    .arm = pair_arm,
    .idle = pair_idle,
    .freed = pair_freed,
    .drained = pair_drained,
};

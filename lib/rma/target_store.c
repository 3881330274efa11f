/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target_store.c: copy data of puts to own device memory, many frames at a time.
 *
 * Frames of a long put follow each other. Their data is collected in a bounce buffer, and one copy moves it while the
 * next frames arrive. Any other request waits for these copies first, as it may show that the data is there: a flush, a
 * signal, a get, a put behind a fence. Copies to one memory are in order.
 */
#include "lib/rma/rma_internal.h"

#include <sched.h>
#include <string.h>

/* As a posted request: the peer's next flush reports the error. */
static void store_failed(struct rk_ctx *ctx, int number, rank_status_t st)
{
    struct rk_rma_peer *state = number < ctx->rma->npeers ? ctx->rma->peers[number] : NULL;

    if (st && state && !state->owed)
        state->owed = st;
}

/* Drop the oldest copies that are complete; wait for the oldest one if wait. */
static void stores_reap(struct rk_ctx *ctx, bool wait)
{
    struct rk_stores *s = &ctx->rma->stores;

    while (s->begun > 0) {
        struct rk_store oldest = s->of[0];
        rank_status_t st = RANK_OK;

        while (!rk_kind_over(&oldest.buffer->copies, &st)) {
            if (!wait)
                return;
            sched_yield();
        }
        wait = false;
        store_failed(ctx, oldest.peer, st);
        rk_bounce_put(&ctx->rma->bounces, oldest.buffer);
        s->begun--;
        memmove(s->of, s->of + 1, sizeof(s->of) - sizeof(s->of[0]));
    }
}

/* Begin the copy of what has been collected. No-op without any. */
static void store_collected(struct rk_ctx *ctx)
{
    struct rk_stores *s = &ctx->rma->stores;
    struct rk_store *now = &s->of[s->begun];

    if (!s->collects)
        return;
    s->collects = false;
    s->begun++;
    store_failed(ctx, now->peer, rk_kind_begin(true, now->to, now->buffer->data, now->kind, now->buffer->bytes, &now->buffer->copies));
}

void rk_stores_end(struct rk_ctx *ctx)
{
    store_collected(ctx);
    while (ctx->rma->stores.begun > 0)
        stores_reap(ctx, true);
}

rank_status_t rk_store(struct rk_peer *peer, struct rk_id mem, char *to, const struct rk_kind *kind, const void *data, size_t bytes)
{
    struct rk_ctx *ctx = peer->ctx;
    struct rk_stores *s = &ctx->rma->stores;
    struct rk_store *now = &s->of[s->begun];

    if (rk_stores_pending(ctx->rma) && rk_id_pack(s->mem) != rk_id_pack(mem))
        rk_stores_end(ctx);
    else if (s->collects && (now->peer != peer->number || now->to + now->buffer->bytes != to || now->buffer->bytes + bytes > RK_BOUNCE_BYTES))
        store_collected(ctx);
    if (!s->collects) {
        stores_reap(ctx, s->begun == RK_STORES_MAX);
        now = &s->of[s->begun];
        *now = (struct rk_store){rk_bounce_take(&ctx->rma->bounces, kind, false), peer->number, to, kind};
        if (!now->buffer) {
            rk_stores_end(ctx);
            return rk_kind_copy(to, kind, data, NULL, bytes);
        }
        now->buffer->bytes = 0;
        s->mem = mem;
        s->collects = true;
    }
    memcpy(now->buffer->data + now->buffer->bytes, data, bytes);
    now->buffer->bytes += bytes;
    return RANK_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* txq.c: queue frames that wait for room, by peer, and retry them in progress. */
#include "lib/base/log.h"
#include "lib/rma/rma_internal.h"

#include <stdlib.h>
#include <string.h>

static bool txq_grow(struct rk_rma *rma, int n)
{
    struct rk_txq **lines = realloc(rma->lines, (size_t)n * sizeof(*lines));

    if (!lines)
        return false;
    memset(lines + rma->nlines, 0, (size_t)(n - rma->nlines) * sizeof(*lines));
    rma->lines = lines;
    rma->nlines = n;
    return true;
}

struct rk_txq *rk_txq_of(struct rk_ctx *ctx, struct rk_peer *peer)
{
    struct rk_rma *rma = ctx->rma;
    struct rk_txq *line = NULL;

    if (rk_likely(peer->number < rma->nlines))
        line = rma->lines[peer->number];
    if (rk_likely(line != NULL))
        return line;
    if (peer->number < rma->nlines || txq_grow(rma, ctx->engine->npeers))
        line = calloc(1, sizeof(*line));
    if (!line) {
        rk_error("out of memory for one-sided calls");
        return NULL;
    }
    rk_list_init(&line->jobs);
    rk_list_init(&line->answers);
    rk_list_init(&line->on_busy);
    rma->lines[peer->number] = line;
    return line;
}

void rk_txqs_destroy(struct rk_rma *rma)
{
    for (int i = 0; i < rma->nlines; i++)
        free(rma->lines[i]);
    free(rma->lines);
    rma->lines = NULL;
    rma->nlines = 0;
}

/* Returns true if nothing waits any more. Replies first: peers wait for them. */
static bool txq_retry(struct rk_ctx *ctx, struct rk_peer *peer, struct rk_txq *line)
{
    if (!rk_target_retry(peer, line))
        return false;
    while (!rk_list_empty(&line->jobs)) {
        if (!rk_origin_push(rk_list_entry(line->jobs.next, struct rk_origin_op, link)))
            return false;
    }
    (void)ctx;
    return true;
}

int rk_txq_progress(struct rk_ctx *ctx)
{
    struct rk_rma *rma = ctx->rma;
    uint32_t before = ctx->engine->unsent;

    if (rk_likely(!rma || rk_list_empty(&rma->busy)))
        return 0;
    for (int i = 0; i < rma->nlines; i++) {
        struct rk_txq *line = rma->lines[i];
        if (line && !rk_list_empty(&line->on_busy) && txq_retry(ctx, ctx->engine->peers[i], line))
            rk_list_remove(&line->on_busy);
    }
    return ctx->engine->unsent != before;
}

void rk_txq_mark_busy(struct rk_ctx *ctx, struct rk_txq *line)
{
    struct rk_rma *rma = ctx->rma;

    if (!rma->hooked) {
        rk_room_start_progress(ctx, &rk_room_rma);
        rma->hooked = true;
    }
    if (rk_list_empty(&line->on_busy))
        rk_list_append(&rma->busy, &line->on_busy);
}

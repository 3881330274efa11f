/* SPDX-License-Identifier: BSD-3-Clause */
/* rma_peer.c: keep what the room counts for each peer. */
#include "lib/base/arg_error.h"
#include "lib/rma/rma_internal.h"

#include <stdlib.h>
#include <string.h>

static bool rma_peers_grow(struct rk_rma *rma, int n)
{
    struct rk_rma_peer **peers = realloc(rma->peers, (size_t)n * sizeof(*peers));

    if (!peers)
        return false;
    memset(peers + rma->npeers, 0, (size_t)(n - rma->npeers) * sizeof(*peers));
    rma->peers = peers;
    rma->npeers = n;
    return true;
}

struct rk_rma_peer *rk_rma_peer_of(struct rk_ctx *ctx, struct rk_peer *peer)
{
    struct rk_rma *rma = ctx->rma;
    struct rk_rma_peer *state = NULL;

    if (rk_likely(peer->number < rma->npeers))
        state = rma->peers[peer->number];
    if (rk_likely(state != NULL))
        return state;
    if (peer->number < rma->npeers || rma_peers_grow(rma, ctx->engine->npeers))
        state = calloc(1, sizeof(*state));
    if (!state) {
        rk_fail(RANK_ERR_NO_MEMORY, "out of memory for one-sided calls");
        return NULL;
    }
    rma->peers[peer->number] = state;
    return state;
}

void rk_rma_count(struct rk_ctx *ctx, const struct rk_peer *peer, struct rk_rma_counts *out)
{
    const struct rk_rma *rma = ctx->rma;
    const struct rk_rma_peer *state = rma && peer->number < rma->npeers ? rma->peers[peer->number] : NULL;

    *out = state ? state->counts : (struct rk_rma_counts){0, 0, 0};
}

void rk_rma_peers_destroy(struct rk_rma *rma)
{
    for (int i = 0; i < rma->npeers; i++)
        free(rma->peers[i]);
    free(rma->peers);
    rma->peers = NULL;
    rma->npeers = 0;
}

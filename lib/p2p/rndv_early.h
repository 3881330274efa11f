/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rndv_early.h: fetch announced, unexpected messages into buffers.
 *
 * Ranks that all send a large message before they receive would otherwise wait for each other forever. When a wait
 * is stalled and such a message has been here for a while, it is fetched. It keeps its place among the unexpected
 * messages: a matching receive copies the buffer, or waits for the rest of the fetch.
 *
 * RANK_RNDV_UNEXPECTED_MAX limits the buffers. Synchronous sends and collectives are not fetched: the first end only when
 * matched, the second are awaited by all. A receive that is posted in time pays nothing.
 *
 * A rank that was stalled in a send will probably be again. Until it receives a stored message, announced messages
 * are fetched at the first check, so that a series of sends on both sides pays the delay once.
 */
#ifndef RK_P2P_RNDV_EARLY_H
#define RK_P2P_RNDV_EARLY_H

#include "lib/core/engine.h"
#include "lib/p2p/match.h"

struct rk_p2p;

/* An unexpected message that is being or has been fetched. Never on a wire. */
enum { RK_KIND_EARLY = RK_KIND_CHANNEL_FIRST - 2 };

struct rk_early_state {
    struct rk_link announced; /* fetchable messages, by arrival */
    struct rk_link no_room;   /* those that found no room */
    struct rk_link fetching;  /* struct rk_early */
    int64_t bytes;            /* memory of the messages that were or are being fetched */
    bool sending; /* a send was stalled, and no receive has taken a stored message since */
};

void rk_early_init(struct rk_early_state *s);
/* Fetches in progress go on until the channels close. */
void rk_early_close(struct rk_ctx *ctx);

/* An announced message is stored. flags: of its header. */
void rk_early_add(struct rk_p2p *p2p, struct rk_unexpected *u, uint8_t flags);

/* A receive has matched such a message, and has its envelope. Frees u, now or after the fetch. */
void rk_early_receive(struct rk_p2p *p2p, struct rank_request *req, struct rk_unexpected *u);
/* Discard it. Frees u as above. */
void rk_early_drop(struct rk_p2p *p2p, struct rk_unexpected *u);
/* Free it at the end, if no receive has taken it. */
void rk_early_free(struct rk_p2p *p2p, struct rk_unexpected *u);

#endif

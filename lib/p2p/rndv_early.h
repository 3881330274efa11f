/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rndv_early.h: announced messages that nobody has asked for, fetched into memory of this rank's so that their senders go on.
 *
 * Two ranks that both send a large message before they receive would wait for each other for ever, and so would a ring of
 * them. So when a wait stands still, and such a message has been here for a while, it is fetched. It keeps its place
 * among the messages that wait: a receive that comes gets the copy, or waits for the rest of the fetch.
 *
 * What bounds it is RANK_AHEAD_MAX. Synchronous sends and collectives are left alone: the first end when they are matched,
 * the second are waited for by all. A receive that comes in time pays nothing.
 *
 * Who has once been found to stand still in a send is likely to do so in the next one: until it receives something
 * that was kept, what is announced is fetched at the first look, so that a long series of sends on both sides costs the
 * while once, and not for each of them.
 */
#ifndef RK_P2P_RNDV_EARLY_H
#define RK_P2P_RNDV_EARLY_H

#include "lib/core/engine.h"
#include "lib/p2p/match.h"

struct rk_p2p;

/* In a kept message: it is being fetched, or has been. Never on a wire. */
enum { RK_KIND_AHEAD = RK_KIND_CHANNEL_FIRST - 2 };

struct rk_ahead_state {
    struct rk_link announced; /* messages that may be fetched, by arrival */
    struct rk_link no_room;   /* those for which there was none */
    struct rk_link fetching;  /* struct rk_ahead */
    int64_t bytes;            /* of memory that those take which are fetched, or being so */
    bool sending; /* a wait for a send has stood still; since then no receive has taken a message that was kept */
};

void rk_ahead_init(struct rk_ahead_state *s);
/* Fetches under way go on, for nobody, until the channels close. */
void rk_ahead_close(struct rk_ctx *ctx);

/* A message that was announced is kept. flags: of its header. */
void rk_ahead_add(struct rk_p2p *p2p, struct rk_unexpected *u, uint8_t flags);

/* A receive has got such a message, and has been told of it. Frees u, now or when it has come. */
void rk_ahead_receive(struct rk_p2p *p2p, struct rank_request *req, struct rk_unexpected *u);
/* No receive shall have it. Frees u as above. */
void rk_ahead_drop(struct rk_p2p *p2p, struct rk_unexpected *u);
/* At the end, of one that nobody has received. */
void rk_ahead_free(struct rk_p2p *p2p, struct rk_unexpected *u);

#endif

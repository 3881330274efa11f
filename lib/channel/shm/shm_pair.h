/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_pair.h: give the two processes of a connection a segment of their own.
 *
 * The listener's side makes the segment; the handshake carries its card. The other side attaches it, if both are of one
 * user of one host, and says so. Then frames go through the segment, and the socket only shows the end of the peer.
 */
#ifndef RK_CHANNEL_SHM_SHM_PAIR_H
#define RK_CHANNEL_SHM_SHM_PAIR_H

#include "lib/core/engine.h"
#include "lib/node/node.h"

enum { RK_PAIRS_MAX = 64 /* of a context; further connections use their sockets */ };

/* Messages of a connection. */
struct rk_pair_counts {
    uint64_t sent, received;
};

/*
 * May the context have another one, with that process? It states its user, and may lie: the owner of the process is
 * checked here, that of the segment by rk_pair_attach.
 */
bool rk_pair_may_share(struct rk_ctx *ctx, uint32_t pid, uint32_t uid);
/* Make a segment, as its first process. rk_pair_drop ends it. */
rank_status_t rk_pair_create(struct rk_ctx *ctx, struct rk_node **out, struct rk_memfd_card *card);
/* Attach it as its second process. RANK_ERR_UNREACHABLE: it is not of this host and user. */
rank_status_t rk_pair_attach(struct rk_ctx *ctx, const struct rk_memfd_card *card, struct rk_node **out);
/* Has the second process attached it? */
bool rk_pair_is_attached(const struct rk_node *node);
/* No-op if NULL. */
void rk_pair_drop(struct rk_node *node);
/* Both have: connect the peer by it. Takes the node, unless it fails. counts: filled in by rk_pair_count, and at the end. */
rank_status_t rk_pair_connect(struct rk_node *node, struct rk_peer *peer, struct rk_pair_counts *counts);
/* No-op if the peer has no segment, or none any more. */
void rk_pair_count(const struct rk_peer *peer);

#endif

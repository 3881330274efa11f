/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_memory.h: limit the memory that peers of connections make a context keep.
 *
 * Counted are messages without a receive, and replies and control frames that wait for room. RANK_CONN_MEMORY limits
 * all connections together. Above it, a peer that keeps more than its share is disconnected: the limit, divided by the
 * peers that keep anything. So one peer cannot displace the others, and all of them keep at most about twice the limit.
 *
 * No-ops for ranks of jobs: their launcher vouches for them.
 */
#ifndef RK_CORE_CONN_MEMORY_H
#define RK_CORE_CONN_MEMORY_H

#include "lib/core/engine.h"

/* May more be kept for the peer? If not, it is condemned. */
RK_COLD bool rk_peer_memory_fits(struct rk_peer *peer);
RK_INLINE bool rk_peer_may_keep(struct rk_peer *peer)
{
    return rk_likely(!peer->by_conn) || rk_peer_memory_fits(peer);
}

/* Count bytes that are kept for it; negative: that are freed. */
RK_COLD void rk_peer_memory_count(struct rk_peer *peer, int64_t bytes);
RK_INLINE void rk_peer_keeps(struct rk_peer *peer, int64_t bytes)
{
    if (rk_unlikely(peer->by_conn))
        rk_peer_memory_count(peer, bytes);
}

#endif

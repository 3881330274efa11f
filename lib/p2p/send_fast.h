/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * send_fast.h: account for a message's credit and send it at once, inline.
 */
#ifndef RK_P2P_SEND_FAST_H
#define RK_P2P_SEND_FAST_H

#include "lib/p2p/p2p_internal.h"

/*
 * Credit of a message. Counted before it is sent: from this process to itself, the credit returns during the send.
 */
RK_INLINE int64_t rk_send_cost(uint64_t bytes)
{
    return (int64_t)bytes + RK_UNEXPECTED_COST;
}

RK_INLINE rank_status_t rk_send_counted(struct rk_peer *peer, const struct rk_hdr *hdr, const void *payload)
{
    rank_status_t st;

    peer->eager_out += rk_send_cost(hdr->len);
    st = peer->channel->send(peer, hdr, payload);
    if (rk_unlikely(st))
        peer->eager_out -= rk_send_cost(hdr->len);
    return st;
}

RK_INLINE bool rk_send_has_credit(const struct rk_peer *peer, uint64_t bytes)
{
    return peer->eager_out + rk_send_cost(bytes) <= peer->window;
}

/* Without a request, if the channel takes it now. */
RK_INLINE rank_status_t rk_send_now(struct rank_team *team, const void *buf, size_t bytes, int dest,
                                 uint64_t tag)
{
    struct rk_peer *peer = rk_team_peer(team, dest);

    if (rk_unlikely(!peer || peer->state != RK_PEER_UP || rk_sendq_has(&peer->sendq, RK_SEND_DATA) ||
                    bytes > peer->eager_limit || !rk_send_has_credit(peer, bytes)))
        return RK_AGAIN;
    if (rk_likely(bytes < peer->channel->small_below)) {
        rank_status_t st;

        peer->eager_out += rk_send_cost(bytes);
        st = peer->channel->send_small(peer, team->id, (uint32_t)team->rank, tag, buf, (uint32_t)bytes);
        if (rk_unlikely(st))
            peer->eager_out -= rk_send_cost(bytes);
        return st;
    }
    struct rk_hdr hdr = {.kind = RK_KIND_MSG,
                         .epoch = peer->epoch,
                         .src = (uint32_t)team->rank,
                         .len = (uint32_t)bytes,
                         .team = team->id,
                         .tag = tag};
    return rk_send_counted(peer, &hdr, buf);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer.h: describe a process that this one communicates with.
 *
 * A peer is identified by a process id, so that processes of other worlds can appear at run time; locally it has a
 * number (procs.h). The object belongs to the number: rk_procs_add_job resets it for the number's next process, with
 * the id and epoch of that. Its endpoint belongs to the one channel that carries frames to it.
 */
#ifndef RK_CORE_PEER_H
#define RK_CORE_PEER_H

#include "lib/core/sendq.h"

struct rk_ctx;
struct rk_channel;
struct rk_node;

struct rk_procid {
    uint64_t job; /* hash of the job's name, or the id that rank_spawn chose */
    uint32_t rank;
};

/* Never 0. */
RK_INLINE uint64_t rk_procid_hash(struct rk_procid id)
{
    return (id.job ^ ((uint64_t)id.rank + 1) * 0x9e3779b97f4a7c15u) | 1;
}

enum rk_peer_state { RK_PEER_NEW, RK_PEER_UP, RK_PEER_DEAD };

struct rk_peer {
    struct rk_ctx *ctx;
    const struct rk_channel *channel; /* NULL until first contact */
    void *ep;                         /* the channel's */
    struct rk_procid id;
    int number;     /* local number; its rank in the own job */
    int local;      /* slot in the segment of the context's node, or -1 */
    uint16_t epoch; /* of its job's introduction, the same there: set with the id. Frames with another one are late */
    uint8_t state;  /* enum rk_peer_state */
    uint8_t left;   /* it has finalized */
    uint8_t closed; /* it has closed the connection: RANK_ERR_CLOSED instead of RANK_ERR_PEER_DEAD */
    uint8_t suspect; /* unreachable and not yet reported dead (suspect_until: time limit) */
    uint8_t watched; /* a long wait has connected to it (peer_death.c) */
    uint8_t explained; /* a channel has reported why it does not reach it */
    uint8_t tried;   /* p2p's: connection tried, where only receives would gain by it */
    uint8_t condemned; /* rk_peer_condemn: channels drop its further frames */
    uint8_t by_conn; /* of a connection: no launcher vouches for it */
    size_t eager_limit; /* maximum bytes of an eager message */
    /* p2p flow control: eager bytes sent and not known to be consumed; consumed here and not yet acknowledged */
    int64_t eager_out, eager_in;
    int64_t kept;           /* p2p's: bytes of its unexpected messages here, without credit returned */
    int64_t announced;      /* p2p's: of these, the bytes of envelopes */
    int64_t window;         /* eager bytes that each side lets the other have; of a connection the smaller of both sides' */
    int64_t keeps;          /* conn_memory.h */
    struct rk_sendq sendq;  /* what waits for room */
    uint64_t suspect_until; /* end of the wait for a report of its death; or 0 */
    struct rk_node *node;   /* the segment that it shares with this process: the context's or a connection's; or NULL */
    int slot;               /* its slot there */
};

/* Is it a status of operations with a peer that is dead? */
RK_INLINE bool rk_is_lost(rank_status_t status)
{
    return status == RANK_ERR_PEER_DEAD || status == RANK_ERR_CLOSED;
}

/* Status of operations with a peer that is dead. */
RK_INLINE rank_status_t rk_peer_lost(const struct rk_peer *peer)
{
    return peer->closed ? RANK_ERR_CLOSED : RANK_ERR_PEER_DEAD;
}

#endif

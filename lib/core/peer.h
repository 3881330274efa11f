/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer.h: a process that we talk to.
 *
 * A peer is named by a process id, not by a world index, so that processes of
 * other worlds or of none can appear at run time; here it has a number (see
 * procs.h). Its endpoint belongs to the one channel that carries frames to it.
 */
#ifndef RK_CORE_PEER_H
#define RK_CORE_PEER_H

#include "lib/base/list.h"
#include "lib/rank.h"

struct rk_ctx;
struct rk_channel;

struct rk_procid {
    uint64_t job; /* hash of the job's name, or what rank_spawn called it */
    uint32_t rank;
};

enum rk_peer_state { RK_PEER_NEW, RK_PEER_UP, RK_PEER_DEAD };

struct rk_peer {
    struct rk_ctx *ctx;
    const struct rk_channel *channel; /* NULL until first contact */
    void *ep;                         /* the channel's */
    struct rk_procid id;
    int number;     /* mine for it: in my own job its rank */
    int local;      /* slot in the node segment, or -1 */
    uint16_t epoch;
    uint8_t state;  /* enum rk_peer_state */
    uint8_t left;   /* it has finalized */
    uint8_t queued; /* 1 while pending is not empty: on the engine's list */
    uint8_t doubted; /* it was not reached, and no news came (until doubt_until: has come yet) that it is gone */
    uint8_t tried;   /* p2p's: contact, where only receives would gain by it */
    uint8_t refused; /* p2p's: it has sent more than it may, and that has been said */
    size_t eager_limit; /* most bytes of a message that travels whole in a frame */
    /* p2p flow control: bytes sent eagerly and not known to be consumed; consumed here and not
     * yet told */
    int64_t eager_out, eager_in;
    int64_t kept;           /* p2p's: bytes here of its messages that no receive waits for and that it has not been given the room back for */
    struct rk_link pending; /* sends that wait for room, in order */
    struct rk_link busy;    /* in the engine's list of peers with pending sends */
    uint64_t doubt_until;   /* the news may still come; or 0 */
};

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frame.h: describe the header of a frame and the handlers of received frames.
 */
#ifndef RK_CORE_FRAME_H
#define RK_CORE_FRAME_H

#include "lib/base/handle.h"
#include "lib/data/view.h"
#include "lib/rank.h"

struct rk_ctx;
struct rk_peer;

/* 32 bytes, little-endian on the wire. */
struct rk_hdr {
    uint32_t turn; /* the channel's: sequence or flag of a slot */
    uint8_t kind;  /* RK_KIND_* */
    uint8_t flags; /* meaning depends on kind */
    uint16_t epoch; /* the peer's; frames of another epoch are dropped */
    uint32_t src;  /* rank of the sender in the team */
    uint32_t len;  /* payload bytes in this frame */
    uint64_t team; /* team id; RK_TEAM_COLL marks the space of collectives */
    uint64_t tag;
};
_Static_assert(sizeof(struct rk_hdr) == 32, "a header and 32 bytes of payload fill a line");

enum rk_frame_kind {
    RK_KIND_NONE = 0,
    RK_KIND_MSG,    /* p2p: a whole message */
    RK_KIND_SMSG,   /* p2p: a whole message; its sender waits for the match; payload begins with struct rk_id */
    RK_KIND_MATCHED, /* p2p: answer to SMSG; payload is the struct rk_id */
    RK_KIND_CREDIT, /* p2p: tag = eager bytes consumed since the last one */
    RK_KIND_RNDV,   /* a channel's rendezvous announcement; delivered as struct rk_rndv */
    RK_KIND_RMA_REQ, RK_KIND_RMA_REP, /* lib/rma: a request that the memory's owner executes, and its reply */
    RK_KIND_COLL_FAILED, /* collectives: a collective of a team has failed at the sender (coll_failure.h) */
    RK_KIND_COLL_CALL, /* collectives: the call of a rank that waits (call_query.h) */
    RK_KIND_CHANNEL_FIRST = 16,       /* 16-31: private to a channel, never delivered */
    RK_KIND_COUNT = 256               /* all that a byte holds */
};

/* Does a frame of this kind begin a message? */
RK_INLINE bool rk_frame_is_message(uint8_t kind)
{
    return kind == RK_KIND_MSG || kind == RK_KIND_SMSG || kind == RK_KIND_RNDV;
}

/* Of RNDV: the sender waits for the match. */
enum { RK_FLAG_SYNC = 1 };

/* A large message that has been announced and waits to be fetched or dropped. */
struct rk_rndv {
    struct rk_peer *peer;
    uint64_t total;   /* payload bytes */
    uint64_t priv[5]; /* the channel's */
};

/*
 * Handle a frame. payload is valid until the handler returns. For RK_KIND_RNDV payload is NULL and rndv describes
 * the payload at the sender. A handler may queue sends, never wait.
 */
typedef void (*rk_handler_fn)(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr,
                              const void *payload, const struct rk_rndv *rndv);

/* As rk_handler_fn, for a whole message (RK_KIND_MSG) of at most 64 bytes; avoids building a header. */
typedef void (*rk_small_fn)(struct rk_peer *peer, uint64_t team, uint32_t src, uint64_t tag, const void *payload,
                            uint32_t bytes);

#endif

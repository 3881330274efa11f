/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frame.h: what every frame between two peers begins with, and how it is handed up.
 */
#ifndef RK_CORE_FRAME_H
#define RK_CORE_FRAME_H

#include "lib/base/compiler.h"
#include "lib/data/view.h"
#include "lib/rank.h"

struct rk_ctx;
struct rk_peer;

/* 32 bytes, little-endian on the wire as on every machine that this runs on. */
struct rk_hdr {
    uint32_t turn; /* the channel's own: a ring's flag, a network sequence */
    uint8_t kind;  /* RK_KIND_* */
    uint8_t flags; /* of the kind */
    uint16_t epoch; /* of the peer; frames of another epoch are dropped */
    uint32_t src;  /* sender's rank in the team */
    uint32_t len;  /* payload bytes that follow in this frame */
    uint64_t team; /* team id; RK_TEAM_COLL marks the collectives' own space */
    uint64_t tag;
};
_Static_assert(sizeof(struct rk_hdr) == 32, "a header and 32 bytes of payload fill a line");

enum rk_kind {
    RK_KIND_NONE = 0,
    RK_KIND_MSG,    /* p2p: a whole message */
    RK_KIND_SMSG,   /* p2p: a whole message whose sender waits for the match: payload begins
                       with struct rk_id */
    RK_KIND_MATCHED, /* p2p: answer to SMSG: payload is the struct rk_id */
    RK_KIND_CREDIT, /* p2p: tag = eager bytes consumed since the last one */
    RK_KIND_RNDV,   /* a channel's rendezvous envelope; handed up as struct rk_rndv */
    RK_KIND_RMA_REQ, RK_KIND_RMA_REP, /* lib/rma: what the memory's owner does itself, and its answer */
    RK_KIND_CHANNEL_FIRST = 16,       /* 16-31: private to a channel, never handed up */
    RK_KIND_USER_FIRST = 64,          /* 64-255: for registration at run time */
    RK_KIND_COUNT = 256
};

/* Of RNDV: the sender waits for the match. */
enum { RK_FLAG_SYNC = 1 };

/* What crosses a wire in place of a pointer: an index and its generation. */
struct rk_id {
    uint32_t index, gen;
};

/* The generation of an index's next holder: never 0, so that no name is all zeros, which stands for none. */
RK_INLINE uint32_t rk_next_gen(uint32_t gen)
{
    return gen == UINT32_MAX ? 1 : gen + 1;
}

/* A large message that has been announced and is to be fetched, or dropped. */
struct rk_rndv {
    struct rk_peer *peer;
    uint64_t total;   /* payload bytes */
    uint64_t priv[5]; /* the channel's */
};

/*
 * A frame has arrived. payload lives until the handler returns. For
 * RK_KIND_RNDV, rndv describes the payload that waits at the sender and
 * payload is NULL. A handler may queue sends, never wait.
 */
typedef void (*rk_handler_fn)(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr,
                              const void *payload, const struct rk_rndv *rndv);

/* The same of a whole message (RK_KIND_MSG) of up to 64 bytes, whose header came in so few words that it need not be put
 * together. */
typedef void (*rk_small_fn)(struct rk_peer *peer, uint64_t team, uint32_t src, uint64_t tag, const void *payload,
                            uint32_t bytes);

#endif

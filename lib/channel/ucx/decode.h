/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * decode.h: what stands on the wire between two ucx channels, and the one
 * place where bytes from outside become a packet that may be trusted.
 *
 * A packet is one UCP active message. Its header is a struct rk_ucx_head,
 * followed by a struct rk_ucx_hello while the receiver may not know the
 * sender yet. Its data is the payload of the first frame, and behind that
 * (each at a multiple of 8) further frames: a struct rk_hdr and its payload.
 * The turn of the first frame numbers the packet; the turns of the others are 0.
 *
 * No UCX here, no state: the fuzzer and the unit tests drive it as it is.
 */
#ifndef RK_CHANNEL_UCX_DECODE_H
#define RK_CHANNEL_UCX_DECODE_H

#include "lib/core/frame.h"

#include <stdbool.h>
#include <stddef.h>

/* The channel's own frames; never handed up. Payloads are the structs below. */
enum rk_ucx_kind {
    RK_UCX_ANNOUNCE = RK_KIND_CHANNEL_FIRST, /* a message that the receiver is to pull */
    RK_UCX_PULL,                             /* receiver -> sender: send it */
    RK_UCX_DATA,                             /* sender -> receiver: here it is */
    RK_UCX_LONG,                             /* as DATA, by UCP's rendezvous; tag: the receiver's id */
    RK_UCX_DROP,                             /* receiver -> sender: keep it */
    RK_UCX_BYE,                              /* nothing comes after this; I leave in peace */
    RK_UCX_KIND_END
};

/* Of BYE: it does not wait for the others to leave, too, as it knows of a death. */
enum { RK_UCX_ALONE = 1 };

struct rk_ucx_head {
    struct rk_id to;     /* the receiver's name for the link to the sender, or RK_UCX_NOBODY */
    struct rk_hdr first;
};
_Static_assert(sizeof(struct rk_ucx_head) == 40, "as on the wire");

#define RK_UCX_NOBODY UINT32_MAX
#define RK_UCX_MAGIC 0x324b5252u

struct rk_ucx_hello {
    uint32_t magic;
    uint32_t rank;     /* the sender, with job: its process id */
    uint64_t job;
    struct rk_id from; /* the sender's name for the link: put it in head.to */
};
_Static_assert(sizeof(struct rk_ucx_hello) == 24, "as on the wire");

enum { RK_UCX_HEAD_MAX = sizeof(struct rk_ucx_head) + sizeof(struct rk_ucx_hello) };

struct rk_ucx_announce {
    struct rk_id sender;
    uint64_t total;
};

struct rk_ucx_pull {
    struct rk_id sender, receiver;
    uint64_t want;
};

/* DATA begins with the receiver's struct rk_id, DROP is the sender's. */

struct rk_ucx_packet {
    struct rk_id to;
    bool has_hello;
    struct rk_ucx_hello hello;
    struct rk_hdr first;
    const unsigned char *data; /* what the first frame's payload begins */
    size_t len;
    size_t at;                 /* of the next frame behind it; rk_ucx_next's */
};

enum { RK_UCX_DOORS_MAX = 16 };
#define RK_UCX_CARD_MAGIC 0x334b5252u

/* Where UCX listens, on one device. */
struct rk_ucx_door {
    uint8_t address[16]; /* of the Internet, version 6; one of version 4 as ::ffff:a.b.c.d */
    uint16_t port;
    uint16_t zero[3];
};
_Static_assert(sizeof(struct rk_ucx_door) == 24, "as peers read it");

/* What a rank's card begins with, as far as it has doors; behind them stands the address of UCX's worker. */
struct rk_ucx_card {
    uint32_t magic;
    uint32_t ucx; /* major << 16 | minor */
    uint32_t ndoors, zero;
    struct rk_ucx_door doors[RK_UCX_DOORS_MAX];
};
_Static_assert(offsetof(struct rk_ucx_card, doors) == 16, "as peers read it");

RK_INLINE size_t rk_ucx_card_len(const struct rk_ucx_card *card)
{
    return offsetof(struct rk_ucx_card, doors) + card->ndoors * sizeof(struct rk_ucx_door);
}

/* The card of a peer, as a launcher gave it. False: it is none of this version. */
bool rk_ucx_card_decode(const void *bytes, size_t len, struct rk_ucx_card *card, const void **address);

/*
 * Check a packet from end to end: lengths, kinds, the chain of frames. rndv:
 * the data waits at the sender and is not looked at; there is one frame then,
 * of RK_KIND_RNDV or RK_UCX_LONG. False: broken, *p is not to be used. p points into data.
 */
bool rk_ucx_decode(const void *head, size_t head_len, const void *data, size_t len, bool rndv,
                   struct rk_ucx_packet *p);

/* The frames of a packet that rk_ucx_decode found good, one by one; false after the last. */
bool rk_ucx_next(struct rk_ucx_packet *p, struct rk_hdr *hdr, const void **payload);

/* Where the next frame starts behind a payload that ends at end. */
RK_INLINE size_t rk_ucx_pad(size_t end)
{
    return (end + 7) & ~(size_t)7;
}

#endif

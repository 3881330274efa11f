/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * decode.h: define the wire format of ucx channels, and validate received packets.
 *
 * A packet is one UCP active message:
 *
 * - header: struct rk_ucx_head, followed by struct rk_ucx_hello until the receiver has identified the sender, and on links of
 *   connections always;
 * - data: the payload of the first frame, then more frames, each at a multiple of 8: struct rk_hdr and payload.
 *
 * The turn of the first frame numbers the packet; the turns of the others are 0. Data from outside is trusted only
 * after rk_ucx_decode. No UCX calls and no state here: the fuzzer and the unit tests call it directly.
 */
#ifndef RK_CHANNEL_UCX_DECODE_H
#define RK_CHANNEL_UCX_DECODE_H

#include "lib/core/frame.h"

#include <stdbool.h>
#include <stddef.h>

/* Private frame of the channel; never delivered. */
enum rk_ucx_kind {
    RK_UCX_BYE = RK_KIND_CHANNEL_FIRST, /* last frame: the sender leaves in an orderly way */
    RK_UCX_KIND_END
};

/* Of BYE. ALONE: leaves without the collective barrier, since a rank is dead. DISCONNECTED: both jobs have agreed. */
enum { RK_UCX_ALONE = 1, RK_UCX_DISCONNECTED = 2 };
/* Of RNDV: an int32_t follows the payload; if it is not 0, the sender could not read its payload. */
enum { RK_UCX_STATUS = 128 };

struct rk_ucx_head {
    struct rk_id to; /* the receiver's id of the link to the sender, or RK_UCX_NO_LINK */
    struct rk_hdr first;
};
_Static_assert(sizeof(struct rk_ucx_head) == 40, "as on the wire");

#define RK_UCX_NO_LINK UINT32_MAX
#define RK_UCX_MAGIC 0x324b5252u

struct rk_ucx_hello {
    uint32_t magic;
    uint32_t rank;     /* process id of the sender, with job */
    uint64_t job;
    struct rk_id from; /* the sender's id of the link, for head.to */
};
_Static_assert(sizeof(struct rk_ucx_hello) == 24, "as on the wire");

enum { RK_UCX_HEAD_MAX = sizeof(struct rk_ucx_head) + sizeof(struct rk_ucx_hello) };

struct rk_ucx_packet {
    struct rk_id to;
    bool has_hello;
    struct rk_ucx_hello hello;
    struct rk_hdr first;
    const unsigned char *data; /* starts with the payload of the first frame */
    size_t len;
    size_t at;                 /* position of the next frame; for rk_ucx_next */
};

#define RK_UCX_CARD_MAGIC 0x344b5252u

/* Start of a rank's address blob. The UCX worker address follows. */
struct rk_ucx_card {
    uint32_t magic;
    uint32_t ucx; /* major << 16 | minor */
};

/* Decode a peer's address blob. Returns false if it is not of this version. */
bool rk_ucx_card_decode(const void *bytes, size_t len, struct rk_ucx_card *card, const void **address);

/*
 * Validate a packet: lengths, kinds, the chain of frames. rndv: the data stays at the sender and is not read;
 * there is one frame then, RK_KIND_RNDV. Returns false if malformed; *p is unusable then. p points
 * into data.
 */
bool rk_ucx_decode(const void *head, size_t head_len, const void *data, size_t len, bool rndv,
                   struct rk_ucx_packet *p);

/* Iterate over the frames of a valid packet; returns false after the last. */
bool rk_ucx_next(struct rk_ucx_packet *p, struct rk_hdr *hdr, const void **payload);

/* Start of the next frame behind a payload that ends at end. */
RK_INLINE size_t rk_ucx_pad(size_t end)
{
    return (end + 7) & ~(size_t)7;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * channel.h: how frames get to a peer. Three of them: self, shm, ucx.
 *
 * A channel moves whole frames in order; matching, credits and requests are
 * p2p's. It also moves large payloads its own way (rendezvous) and does put,
 * get and atomics. Const structs in a static table, no plugin framework; ucx
 * lives in a module that is opened when needed.
 */
#ifndef RK_CORE_CHANNEL_H
#define RK_CORE_CHANNEL_H

#include "lib/core/frame.h"
#include "lib/core/peer.h"

#include <stdbool.h>
#include <stdio.h>

struct rank_request;
struct rk_channel_mem; /* a channel's view of one symmetric allocation */

/* send could not be done now; try again after progress. Not a public status. */
#define RK_AGAIN ((rank_status_t)1)

/* What take found: nothing yet, a frame that is for others to handle, the message. */
enum rk_taken { RK_TAKEN_NONE, RK_TAKEN_OTHER, RK_TAKEN };

struct rk_took {
    uint64_t tag, bytes; /* bytes: as sent */
};

struct rk_channel {
    const char *name;

    /* Prepare; may add to the card that is about to be committed (*len in: room, out: used).
     * state is the channel's own, handed back in every call through rk_engine_state. */
    rank_status_t (*open)(struct rk_ctx *ctx, void **state, void *card, size_t *len);
    void (*close)(struct rk_ctx *ctx, void *state);

    /* First contact: set peer->ep. RANK_ERR_UNREACHABLE: another channel may try. */
    rank_status_t (*connect)(struct rk_ctx *ctx, void *state, struct rk_peer *peer);
    /* Drop the endpoint; the peer may be dead. Requests of the channel that depend on it are
     * completed with RANK_ERR_PEER_DEAD first. */
    void (*disconnect)(void *state, struct rk_peer *peer);

    /* Most payload bytes that send takes for this peer. */
    size_t (*frame_max)(const struct rk_peer *peer);

    /* One frame; payload is copied before it returns. RK_AGAIN when there is no room: nothing was
     * sent, and frames of one peer must be offered in order. */
    rank_status_t (*send)(struct rk_peer *peer, const struct rk_hdr *hdr, const void *payload);
    /* As send, with a second piece of payload behind the first. hdr->len is the sum. */
    rank_status_t (*send2)(struct rk_peer *peer, const struct rk_hdr *hdr, const void *first,
                           size_t first_len, const void *second);

    /* As send, of a whole message (RK_KIND_MSG) of fewer than small_below bytes, whose header is not put together to be taken
     * apart again. NULL, and 0: there is no such way. */
    rank_status_t (*send_small)(struct rk_peer *peer, uint64_t team, uint32_t src, uint64_t tag, const void *payload,
                                uint32_t bytes);
    uint32_t small_below;

    /* As send, of payload that is not in one piece, packed where it is copied to. NULL: the caller packs. */
    rank_status_t (*send_view)(struct rk_peer *peer, const struct rk_hdr *hdr, const struct rk_view *view);

    /* The shortest way for a receive that is the first in line: if the peer's next frame has come and is
     * the message of (team, src, tag), copy up to cap bytes of it and take it. tag may be RK_TAG_ANY.
     * NULL: the channel has no such way. take_is_progress: to look takes a few passes of this channel's progress,
     * and what comes from others goes up. */
    enum rk_taken (*take)(struct rk_peer *peer, uint64_t team, uint32_t src, uint64_t tag, void *buf,
                          size_t cap, struct rk_took *out);
    bool take_is_progress;

    /* Announce a large message; in order with frames. The channel completes req
     * (rk_req_complete) when the buffer may be reused, which implies that the receiver matched.
     * RK_AGAIN as for send. Any size is allowed, also 0. */
    rank_status_t (*rndv_send)(struct rk_peer *peer, const struct rk_hdr *hdr,
                               const struct rk_view *view, struct rank_request *req);
    /* Fetch an announced message into view (up to view->bytes of rndv->total; the rest is
     * dropped), then complete req and let the sender complete. */
    void (*rndv_recv)(const struct rk_rndv *rndv, const struct rk_view *view, struct rank_request *req);
    /* Fetch nothing; let the sender complete. */
    void (*rndv_drop)(const struct rk_rndv *rndv);

    /* Move on; returns the number of frames and completions handled. NULL: nothing to poll. */
    int (*progress)(struct rk_ctx *ctx, void *state);

    /* Before sleeping: an fd to wait on (epoll), or -1 if the node's doorbell covers it. arm
     * returns RK_AGAIN if something came meanwhile. */
    int (*fd)(void *state);
    rank_status_t (*arm)(void *state);

    /* One-sided; NULL where peers map the memory (shm, self). mem is what expose/attach made. Atomics,
     * and what else the owner does itself, are frames of lib/rma. bytes 0: memory of nobody here, to attach
     * peers' to; key is NULL then. one_sided: does it have them in this process? NULL: always. */
    bool (*one_sided)(void *state);
    rank_status_t (*mem_expose)(struct rk_ctx *ctx, void *state, void *base, size_t bytes,
                                struct rk_channel_mem **mem, void *key, size_t *keylen);
    void (*mem_close)(void *state, struct rk_channel_mem *mem);
    /* A peer's key for its part. base: the peer's address of it. */
    rank_status_t (*mem_attach)(struct rk_channel_mem *mem, struct rk_peer *peer, int index,
                                const void *key, size_t keylen, uint64_t base);
    rank_status_t (*put)(struct rk_channel_mem *mem, struct rk_peer *peer, int index,
                         const void *src, size_t bytes, size_t offset);
    rank_status_t (*get)(struct rk_channel_mem *mem, struct rk_peer *peer, int index, void *dst,
                         size_t bytes, size_t offset);
    /* The same without waiting: the channel completes req, unless it returns an error. */
    rank_status_t (*iput)(struct rk_channel_mem *mem, struct rk_peer *peer, int index,
                          const void *src, size_t bytes, size_t offset, struct rank_request *req);
    rank_status_t (*iget)(struct rk_channel_mem *mem, struct rk_peer *peer, int index, void *dst,
                          size_t bytes, size_t offset, struct rank_request *req);
    /* Puts to peer (NULL: to all) are visible there. */
    rank_status_t (*flush)(struct rk_channel_mem *mem, struct rk_peer *peer);

    /* Everything sent has left this process's buffers (finalize). RK_AGAIN: not yet. */
    rank_status_t (*drained)(void *state);

    /* Lines for people: the devices by which it would reach other hosts. Needs no open. NULL: there are none. */
    rank_status_t (*rails)(FILE *out);
};

extern const struct rk_channel rk_channel_self;
extern const struct rk_channel rk_channel_shm;

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * channel.h: define the interface of the channels self, shm, tcp and ucx.
 *
 * A channel moves whole frames in order; matching, credits and requests belong to p2p. It also moves large
 * payloads (rendezvous) and does put, get and atomics. The channels are const structs in a static table; ucx lives
 * in a module that is opened on demand.
 */
#ifndef RK_CORE_CHANNEL_H
#define RK_CORE_CHANNEL_H

#include "lib/core/frame.h"
#include "lib/core/peer.h"

#include <stdbool.h>
#include <stdio.h>

struct rank_request;
struct rk_peer_device_ops; /* peer_device.h */
struct rk_channel_mem; /* a channel's view of one symmetric allocation */

/* The send cannot be done now; try again after progress. Not a public status. */
#define RK_AGAIN ((rank_status_t)1)

/* Result of take: nothing, a frame for the other handlers, the message. */
enum rk_taken { RK_TAKEN_NONE, RK_TAKEN_OTHER, RK_TAKEN };

struct rk_took {
    uint64_t tag, bytes; /* bytes: of the message as sent */
};

/*
 * Links to processes that no launcher introduces: lib/conn exchanges the cards. The peer gets its number after both sides
 * have prepared the link.
 */
struct rk_channel_links {
    /*
     * Make a link by the card of a process that has proved itself, in the context with the id remote.
     * RANK_ERR_UNREACHABLE: it cannot lead there, or another link does; why gets the reason. warn: the program should see it.
     */
    rank_status_t (*prepare)(void *state, uint64_t remote, const void *card, size_t len, char *why, size_t size, bool *warn,
                             void **link);
    /* End a link that has no peer. */
    void (*unprepare)(void *state, void *link);
    /* The link is the peer's, and this process has the id self there. connect succeeds then. Frames wait until admit. */
    rank_status_t (*adopt)(void *link, struct rk_peer *peer, struct rk_procid self);
    /* The other side has adopted its link. Callable anywhere. */
    void (*admit)(struct rk_peer *peer);
    /* RANK_OK: neither side of the link moves data that this side has sent or asked for. RK_AGAIN: not yet. */
    rank_status_t (*settled)(struct rk_peer *peer);
};

struct rk_channel {
    const char *name;
    bool shares_memory; /* the peers that it reaches can map each other's memory */
    bool within_node;   /* and they are ranks of the context's node */

    /*
     * Prepare; may append to the address blob of this process (*len in: space left, out: bytes written). *state is
     * passed back in every call, through rk_engine_state.
     */
    rank_status_t (*open)(struct rk_ctx *ctx, void **state, void *card, size_t *len);
    void (*close)(struct rk_ctx *ctx, void *state); /* NULL: no state */

    /* Connect on first contact: set peer->ep. RANK_ERR_UNREACHABLE: another channel may try. */
    rank_status_t (*connect)(struct rk_ctx *ctx, void *state, struct rk_peer *peer);
    /*
     * Drop the endpoint; the peer may be dead. First completes the channel's requests that depend on the peer with
     * RANK_ERR_PEER_DEAD. NULL: there is no endpoint.
     */
    void (*disconnect)(void *state, struct rk_peer *peer);
    /*
     * Deliver the frames that a peer has sent before it died, and continue nothing else. NULL: a limited number of calls
     * of progress does that.
     */
    void (*drain)(void *state, struct rk_peer *peer);

    /*
     * Disconnect if connected, and drop all that is the peer's: its number goes to another process. disconnected: the
     * peer does not take that for a death. NULL: no peer of another job.
     */
    void (*forget)(void *state, struct rk_peer *peer, bool disconnected);

    /* Maximum payload bytes of a frame to this peer. */
    size_t (*frame_max)(const struct rk_peer *peer);

    /*
     * Send one frame. The payload is copied before it returns. RK_AGAIN: no room, nothing was sent; the caller
     * keeps the frames of a peer in order.
     */
    rank_status_t (*send)(struct rk_peer *peer, const struct rk_hdr *hdr, const void *payload);
    /* As send, with the payload in two parts. hdr->len is the sum. */
    rank_status_t (*send2)(struct rk_peer *peer, const struct rk_hdr *hdr, const void *first,
                           size_t first_len, const void *second);

    /*
     * As send, for a whole message (RK_KIND_MSG) below small_below bytes; avoids building a header. NULL and 0 if
     * the channel has none.
     */
    rank_status_t (*send_small)(struct rk_peer *peer, uint64_t team, uint32_t src, uint64_t tag, const void *payload,
                                uint32_t bytes);
    uint32_t small_below;

    /* As send, for a noncontiguous payload, packed where it is copied to. NULL: the caller packs. */
    rank_status_t (*send_view)(struct rk_peer *peer, const struct rk_hdr *hdr, const struct rk_view *view);

    /*
     * Receive in place, for a receive that is first in line: if the next frame of the peer is the message of
     * (team, src, tag), copy at most cap bytes and consume it. tag may be RK_TAG_ANY. NULL: not supported.
     * take_is_progress: the call polls the whole channel, and frames of other peers are delivered.
     */
    enum rk_taken (*take)(struct rk_peer *peer, uint64_t team, uint32_t src, uint64_t tag, void *buf,
                          size_t cap, struct rk_took *out);
    bool take_is_progress;

    /*
     * Announce a large message, in order with frames. The channel completes req (rk_req_complete) when the buffer
     * may be reused, which implies a match. RK_AGAIN as for send. Any size, 0 included.
     */
    rank_status_t (*rndv_send)(struct rk_peer *peer, const struct rk_hdr *hdr,
                               const struct rk_view *view, struct rank_request *req);
    /*
     * Fetch an announced message into view: at most view->bytes of rndv->total, the rest is dropped. Then complete
     * req and the sender's request.
     */
    void (*rndv_recv)(const struct rk_rndv *rndv, const struct rk_view *view, struct rank_request *req);
    /* Fetch nothing; complete the sender's request. */
    void (*rndv_drop)(const struct rk_rndv *rndv);
    uint32_t announced_bytes; /* that the receiver's channel keeps for each announced message */
    /*
     * Can the peer fetch payload that is no contiguous host memory (view->ops) by one copy of a device? Then it is
     * announced, whatever its size. NULL: no.
     */
    bool (*fetches)(const struct rk_peer *peer, const struct rk_view *view);

    /* Make progress; returns the number of frames and completions handled. NULL: nothing to poll. */
    int (*progress)(struct rk_ctx *ctx, void *state);

    /*
     * Before sleeping: the fd to wait on (epoll), or -1 if the node's doorbell covers it. arm returns RK_AGAIN if
     * something has arrived meanwhile.
     */
    int (*fd)(void *state);
    rank_status_t (*arm)(void *state);

    /*
     * One-sided operations; NULL where peers map the memory (shm, self). mem results from expose and attach.
     * Atomics and other operations that the owner executes are frames of lib/rma. bytes 0: no local memory, attach
     * only; key is NULL then. one_sided: are they available in this process? NULL: always.
     */
    bool (*one_sided)(void *state);
    rank_status_t (*mem_expose)(struct rk_ctx *ctx, void *state, void *base, size_t bytes,
                                struct rk_channel_mem **mem, void *key, size_t *keylen);
    void (*mem_close)(void *state, struct rk_channel_mem *mem);
    /* Attach a peer's part by its key. base: the address at the peer. */
    rank_status_t (*mem_attach)(struct rk_channel_mem *mem, struct rk_peer *peer, int index,
                                const void *key, size_t keylen, uint64_t base);
    /* Start a put or a get: the channel completes req, at once or later, unless it returns an error. */
    rank_status_t (*iput)(struct rk_channel_mem *mem, struct rk_peer *peer, int index,
                          const void *src, size_t bytes, size_t offset, struct rank_request *req);
    rank_status_t (*iget)(struct rk_channel_mem *mem, struct rk_peer *peer, int index, void *dst,
                          size_t bytes, size_t offset, struct rank_request *req);
    /* Returns when puts to peer (NULL: to all peers) are visible there. */
    rank_status_t (*flush)(struct rk_channel_mem *mem, struct rk_peer *peer);
    /* Start that for all puts to the peer: req is completed when they are visible. As iput. */
    rank_status_t (*iflush)(struct rk_peer *peer, struct rank_request *req);

    /*
     * Write to or read from memory of the peer that its process finds by an id of lib/rma, and checks: from and to the
     * user's memory, in no order with frames. The channel completes req when the data is in place. RK_AGAIN: too many are
     * pending; try again after progress. NULL: not supported, frames of lib/rma take its place.
     */
    rank_status_t (*stream)(struct rk_peer *peer, bool put, void *local, size_t bytes, struct rk_id mem, uint64_t offset,
                            struct rank_request *req);

    /* About every 125 ms of waits and progress: release what is unused. now: rk_clock_ns. NULL: nothing. */
    void (*idle)(void *state, uint64_t now);

    /* Own memory of a kind is about to be freed, and peers must not keep it mapped. NULL: they never do. */
    void (*freed)(void *state, const void *ptr, size_t bytes);

    /* All sent data has left this process's buffers (finalize). RK_AGAIN: not yet. */
    rank_status_t (*drained)(void *state);

    /* Print the devices by which it reaches other hosts, for people. Works before open. NULL: none. */
    rank_status_t (*rails)(FILE *out);

    /* Read device memory of its peers. NULL: it cannot. */
    const struct rk_peer_device_ops *device;

    /* NULL: only peers that a launcher introduces. */
    const struct rk_channel_links *links;
};

extern const struct rk_channel rk_channel_self;
extern const struct rk_channel rk_channel_shm;  /* ranks of the node */
extern const struct rk_channel rk_channel_pair; /* connections to processes of this host */

#endif

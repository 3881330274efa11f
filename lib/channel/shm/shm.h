/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm.h: the channel between ranks of one node: what shm.c and rndv.c share.
 */
#ifndef RK_CHANNEL_SHM_SHM_H
#define RK_CHANNEL_SHM_SHM_H

#include "lib/core/engine.h"
#include "lib/channel/shm/fifo.h"
#include "lib/channel/shm/proto_table.h"
#include "lib/node/xpmem.h"

/* The channel's own frames; never handed up. */
enum rk_shm_kind {
    RK_SHM_FETCH = RK_KIND_CHANNEL_FIRST, /* receiver -> sender: stream it to me */
    RK_SHM_DATA,                          /* sender -> receiver: a piece of the stream */
    RK_SHM_DONE,                          /* receiver -> sender: fetched or dropped */
    RK_SHM_ASSIST,                        /* receiver -> sender: copy your share */
    RK_SHM_OFFER                          /* receiver -> sender: stream it if you do so now */
};

/* An end to a peer: the box to it, the box from it, what waits for room. */
struct rk_shm_ep {
    struct rk_shm *shm;
    struct rk_peer *peer;
    struct rk_box_out out;
    int pid;
    bool cma;             /* its memory can be read and written */
    bool far_asked;       /* what is attached of its memory; NULL: not asked for yet, or not possible */
    struct rk_xpmem *far;
    bool bytes_backed;    /* the byte ring of out, as far as it is used */
    uint32_t full;        /* how often it was too shallow, since it got deeper; */
    uint64_t full_at;     /* last, where */
    struct rk_link control; /* control frames that found no room */
    struct rk_link busy;    /* in state->busy while control or streams wait */
    struct rk_link streams; /* sends being streamed (RK_SHM_FETCH), by request link */
    struct rank_request *assisted; /* a receive whose sender was asked to copy a share */
    uint32_t assist_gen;
};

struct rk_shm {
    struct rk_ctx *ctx;
    struct rk_box_shape shape;
    struct rk_paths paths; /* how large messages go */
    uint32_t streamed_from;
    bool by_bits; /* many ranks: senders say in a bitmap that they have something */
    int nlocal, me;
    uint32_t opened_seen;
    struct rk_shm_ep **ep;  /* [nlocal] what I send to */
    struct rk_box_in *in;   /* [nlocal] what I receive from; box NULL: not opened yet */
    struct rk_peer **from;  /* [nlocal] */
    int *open_in;           /* the opened ones, in order of opening */
    int nopen_in;
    uint64_t *again;        /* bitmap: boxes that a pass left unfinished */
    struct rk_link busy;
    struct rk_link receiving; /* receives under way, by request link */
    struct rk_link sending;   /* announced and not yet done */
    int nassisted;            /* receives whose sender copies a share */
    uint64_t bad_frames;
    size_t deepened; /* bytes by which rings of mine are deeper than they were */
};

/* One frame to a peer, or RK_AGAIN. */
rank_status_t rk_shm_put(struct rk_shm *shm, struct rk_shm_ep *ep, const struct rk_hdr *hdr,
                         const void *first, uint32_t first_len, const void *second);

/* A control frame of up to 32 bytes: put now or queued, never refused but for lack of memory. */
void rk_shm_control(struct rk_shm *shm, struct rk_shm_ep *ep, uint8_t kind, uint64_t tag,
                    const void *payload, uint32_t len);

/* The end to a local rank that has sent something; made if need be. NULL when out of memory: it is parted with, as it would wait
 * for an answer; or when it is dead. */
struct rk_shm_ep *rk_shm_ep_of(struct rk_shm *shm, struct rk_peer *peer);

/* The kernel has not copied from or to the peer's memory. That may be that memory's fault, a device's say, and then it is this message's
 * alone: else it is not tried any more. */
void rk_shm_cma_failed(struct rk_shm_ep *ep);

/* rndv.c */
rank_status_t rk_shm_rndv_send(struct rk_peer *peer, const struct rk_hdr *hdr,
                               const struct rk_view *view, struct rank_request *req);
void rk_shm_rndv_recv(const struct rk_rndv *rndv, const struct rk_view *view,
                      struct rank_request *req);
void rk_shm_rndv_drop(const struct rk_rndv *rndv);
/* An announcement has come: hand it up. */
void rk_shm_rndv_arrived(struct rk_shm *shm, struct rk_peer *peer, const struct rk_hdr *hdr,
                         const void *payload);
/* A frame of the channel's own kinds. */
void rk_shm_rndv_frame(struct rk_shm *shm, struct rk_peer *peer, const struct rk_hdr *hdr,
                       const void *payload);
/* Push streams on; returns what was moved. */
int rk_shm_rndv_stream(struct rk_shm *shm, struct rk_shm_ep *ep);
/* Has the sender finished its share? Completes the receive. */
int rk_shm_rndv_poll(struct rk_shm *shm);
/* What is attached of its memory, or NULL. */
struct rk_xpmem *rk_shm_far(struct rk_shm_ep *ep);
/* The peer is gone: complete what depends on it. */
void rk_shm_rndv_peer_gone(struct rk_shm *shm, struct rk_peer *peer);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm.h: share declarations between shm.c and the code of large messages.
 */
#ifndef RK_CHANNEL_SHM_SHM_H
#define RK_CHANNEL_SHM_SHM_H

#include "lib/core/engine.h"
#include "lib/channel/shm/fifo.h"
#include "lib/channel/shm/proto_table.h"

/* Private frames of the channel; never delivered. */
enum rk_shm_kind {
    RK_SHM_FETCH = RK_KIND_CHANNEL_FIRST, /* receiver -> sender: stream the payload */
    RK_SHM_DATA,                          /* sender -> receiver: part of the stream */
    RK_SHM_DONE,                          /* receiver -> sender: fetched or dropped */
    RK_SHM_ASSIST,                        /* receiver -> sender: copy a share */
    RK_SHM_OFFER,                         /* receiver -> sender: stream it if that is possible at once */
    RK_SHM_PUSH,                          /* receiver -> sender: copy into device memory */
    RK_SHM_PUSHED                         /* sender -> receiver: done; tag: status */
};

/* Endpoint: fifos to and from a peer, and streams that wait for room. */
struct rk_shm_ep {
    struct rk_shm *shm;
    struct rk_peer *peer;
    struct rk_fifo_out out;
    int pid;
    bool cma;             /* the peer's memory is accessible by CMA */
    bool bytes_backed;    /* the byte ring of out is backed, as far as it is used */
    uint32_t full;        /* times that the ring was full at its present size; */
    uint64_t full_at;     /* position of the last time */
    struct rk_link busy;    /* in state->busy while streams wait */
    struct rk_link streams; /* streamed sends (RK_SHM_FETCH), by request link */
    struct rank_request *assisted; /* a receive with the sender's assist */
    uint32_t assist_gen;
    bool no_push; /* the peer cannot map device memory of this rank */
    bool staged;  /* and it fetches such memory through host memory */
};

/* The channel on one node: the context's own, or that of a connection (shm_pair.c). */
struct rk_shm {
    struct rk_ctx *ctx;
    struct rk_node *node;
    struct rk_fifo_shape shape;
    uint32_t nt_from;
    bool by_bits; /* many ranks: senders set bits in a bitmap */
    bool checks;  /* of a connection: frames of a condemned peer, and messages on teams that it is not in, are refused */
    int nlocal, me;
    uint32_t opened_seen;
    struct rk_shm_ep **ep; /* [nlocal] send endpoints */
    struct rk_fifo_in *in; /* [nlocal] receive fifos; box NULL: not opened */
    struct rk_peer **from; /* [nlocal] */
    int *open_in;          /* the opened ones, in order of opening */
    int nopen_in;
    uint64_t *again;        /* bitmap: fifos left unfinished by a pass */
    struct rk_link busy;
    struct rk_link receiving; /* receives in progress, by request link */
    struct rk_link sending;   /* announced and unfinished */
    int nassisted;            /* receives with the sender's assist */
    int nsteps;               /* and those in steps */
    uint64_t bad_frames;
    size_t deepened; /* bytes by which own rings have grown */
    struct rk_proto_table protos;
    struct rk_exports *exports; /* export_table.h; NULL until used */
    struct rk_imports *imports;
    struct rk_peer *only;     /* of a connection: the other process; NULL: those of the job */
    struct rk_pair_counts *counts; /* of a connection; NULL */
    struct rk_link steps;     /* of a connection: receives that are copied in steps (shm_steps.c) */
};

/* shm_contact.c */
/* only: see above. protos: NULL: from the file of this machine. */
rank_status_t rk_shm_make(struct rk_ctx *ctx, struct rk_node *node, struct rk_peer *only, const struct rk_proto_table *protos,
                          struct rk_shm **out);
/* No-op if NULL. */
void rk_shm_free(struct rk_shm *shm);
rank_status_t rk_shm_connect(struct rk_shm *shm, struct rk_peer *peer);
void rk_shm_disconnect(struct rk_shm *shm, struct rk_peer *peer);
/* Open the fifos of senders that are new. */
void rk_shm_accept_boxes(struct rk_shm *shm);
/* Place of a fifo in the region, and bitmap of a receiver's senders. */
size_t rk_shm_box_at(const struct rk_shm *shm, int to, int from);
_Atomic uint64_t *rk_shm_bits_of(const struct rk_shm *shm, int to);

/* shm.c: as the functions of rk_channel. */
size_t rk_shm_frame_max(const struct rk_peer *peer);
rank_status_t rk_shm_send(struct rk_peer *peer, const struct rk_hdr *hdr, const void *payload);
rank_status_t rk_shm_send2(struct rk_peer *peer, const struct rk_hdr *hdr, const void *first, size_t first_len,
                           const void *second);
rank_status_t rk_shm_send_small(struct rk_peer *peer, uint64_t team, uint32_t src, uint64_t tag, const void *payload,
                                uint32_t bytes);
enum rk_taken rk_shm_take(struct rk_peer *peer, uint64_t team, uint32_t src, uint64_t tag, void *buf, size_t cap,
                          struct rk_took *out);
bool rk_shm_fetches(const struct rk_peer *peer, const struct rk_view *view);
int rk_shm_progress(struct rk_shm *shm);
/* As rk_channel.drain. */
void rk_shm_drain(struct rk_shm *shm, struct rk_peer *peer);
/* Would progress find a frame? Not for many ranks (by_bits). */
bool rk_shm_has_frames(const struct rk_shm *shm);
/* Back the byte ring of a peer. */
rank_status_t rk_shm_back_ring(struct rk_shm *shm, struct rk_shm_ep *ep);
void rk_shm_idle(struct rk_shm *shm, uint64_t now);

/* What all nodes have in common in a rk_channel. */
#define RK_SHM_FRAMES                                                                                                  \
    .frame_max = rk_shm_frame_max, .send = rk_shm_send, .send2 = rk_shm_send2, .send_small = rk_shm_send_small,        \
    .small_below = RK_COMPACT_MAX + 1, .take = rk_shm_take, .rndv_send = rk_shm_rndv_send,                             \
    .rndv_recv = rk_shm_rndv_recv, .rndv_drop = rk_shm_rndv_drop, .fetches = rk_shm_fetches

/* Send one frame to a peer, or return RK_AGAIN. */
rank_status_t rk_shm_put(struct rk_shm *shm, struct rk_shm_ep *ep, const struct rk_hdr *hdr,
                         const void *first, uint32_t first_len, const void *second);

/*
 * Endpoint to a local rank that has sent something; created on demand. NULL if the rank is dead, or if out of
 * memory: then it is disconnected, since it would wait for an answer.
 */
struct rk_shm_ep *rk_shm_ep_of(struct rk_peer *peer);

/*
 * CMA has failed for the peer's memory. If that memory is the cause (a device's, say), only this message is
 * affected; else CMA is not tried again.
 */
void rk_shm_cma_failed(struct rk_shm_ep *ep);

/* shm_rndv.c, shm_assist.c, shm_stream.c */
rank_status_t rk_shm_rndv_send(struct rk_peer *peer, const struct rk_hdr *hdr,
                               const struct rk_view *view, struct rank_request *req);
void rk_shm_rndv_recv(const struct rk_rndv *rndv, const struct rk_view *view,
                      struct rank_request *req);
void rk_shm_rndv_drop(const struct rk_rndv *rndv);
/* Deliver an announcement. */
void rk_shm_rndv_arrived(struct rk_shm *shm, struct rk_peer *peer, const struct rk_hdr *hdr,
                         const void *payload);
/* Handle a private frame of the channel. */
void rk_shm_rndv_frame(struct rk_shm *shm, struct rk_peer *peer, const struct rk_hdr *hdr,
                       const void *payload);
/* Continue streams; returns what was moved. */
int rk_shm_rndv_stream(struct rk_shm *shm, struct rk_shm_ep *ep);
/* Complete receives when the sender has finished its share. */
int rk_shm_rndv_poll(struct rk_shm *shm);
/* device_ops.c */
extern const struct rk_peer_device_ops rk_shm_device_ops;

/* Complete everything that depends on a dead peer. */
void rk_shm_rndv_peer_gone(struct rk_shm *shm, struct rk_peer *peer);

#endif

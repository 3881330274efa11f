/* SPDX-License-Identifier: BSD-3-Clause */
/* shm_rndv.h: share frames and steps of large messages with the protocols. */
#ifndef RK_CHANNEL_SHM_SHM_RNDV_H
#define RK_CHANNEL_SHM_SHM_RNDV_H

#include "lib/channel/shm/proto.h"
#include "lib/channel/shm/shm.h"

struct rk_shm_fetch { /* RK_SHM_FETCH */
    struct rk_id sender, receiver;
    uint64_t want;
};

struct rk_shm_offer { /* RK_SHM_OFFER */
    struct rk_shm_fetch fetch;
    uint32_t gen, pad;
};

/* RK_SHM_ASSIST; to and the frame's tag: as in struct rk_shm_recv. */
struct rk_shm_assist {
    struct rk_id sender;
    uint64_t to, bytes;
    uint32_t gen, chunk; /* chunk in KiB */
};

/* Private words of a receive in progress. BAD: the status of its first copy that failed. */
enum { RK_SHM_R_SENDER, RK_SHM_R_WANT, RK_SHM_R_GOT, RK_SHM_R_BAD };

/* Complete a request that is in a list. */
void rk_shm_complete_linked(struct rank_request *req, rank_status_t st);
/* Complete a receive that is in no list, and the send by a DONE frame. */
void rk_shm_recv_finish(const struct rk_shm_recv *r, rank_status_t st);

/* shm_assist.c */

/* Copy with the sender's share. here: own mapping of the payload, or NULL. */
void rk_shm_copy_together(struct rk_shm_recv *r, const char *here);
/* At the sender: copy a share of a message that the receiver copies. segment: the frame's tag. */
void rk_shm_assist_serve(struct rk_shm *shm, struct rk_shm_ep *ep, uint64_t segment, const struct rk_shm_assist *a);
/* End a receive without its dead sender, which must not claim more chunks. */
void rk_shm_assist_abort(struct rk_shm *shm, struct rk_shm_ep *ep);

/* shm_steps.c */

enum { RK_SHM_STEP = 1 << 20 /* bytes that one progress call copies of a connection's message */ };
/* Copy the message in steps, if it is one of a connection, long and accessible. Else returns false. */
bool rk_shm_steps_begin(const struct rk_shm_recv *r);
/* Copy the next step. There must be one. */
int rk_shm_steps_progress(struct rk_shm *shm);
/* End all, without the dead peer. */
void rk_shm_steps_abort(struct rk_shm *shm);

/* shm_stream.c */

/* Request the payload through the ring. Returns true. */
bool rk_shm_stream_request(struct rk_shm_recv *r);
/* Does the sender, which may compute, accept to stream the message at once? It is done then. */
bool rk_shm_stream_offer(struct rk_shm_recv *r);
/* At the sender: handle a FETCH frame, */
void rk_shm_stream_start(struct rk_shm *shm, struct rk_shm_ep *ep, const struct rk_shm_fetch *f);
/* and an OFFER frame. */
void rk_shm_stream_consider(struct rk_shm *shm, struct rk_shm_ep *ep, const struct rk_shm_offer *o);
/* At the receiver: handle a DATA frame. */
void rk_shm_stream_arrived(struct rk_shm *shm, struct rk_peer *peer, const struct rk_hdr *hdr, const char *payload);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* p2p_internal.h: what the files of this room share. */
#ifndef RK_P2P_P2P_INTERNAL_H
#define RK_P2P_P2P_INTERNAL_H

#include "lib/base/conf.h"
#include "lib/p2p/rndv_early.h"
#include "lib/p2p/match.h"
#include "lib/p2p/p2p.h"

/* What a frame costs the receiver that keeps it, over its payload. */
enum { RK_KEEP_COST = 128 };

struct rk_p2p {
    struct rk_match match;
    struct rk_link teams;            /* all of the context */
    struct rk_unexpected *free_kept; /* chained through bucket.next */
    struct rk_kept_slab *kept_slabs;
    struct rk_link probed;           /* messages that rank_mprobe took out, by order */
    int64_t kept;                    /* bytes of kept messages whose senders were given credit again, */
    int64_t kept_max;                /* and how much of the others there may be of each peer */
    struct rk_ahead_state ahead;     /* announced ones that are fetched before they are asked for */
    uint32_t takes;                  /* blocking receives since all channels had their turn, */
    uint64_t took_ns;                /* and when that was, as far as one asked for it */
    bool deaths;                     /* has any peer died? */
    struct rank_team *last_claimed;  /* validate.c */
    struct rk_freed *freed;          /* stale_teams.c; NULL: no team has been */
    uint64_t bad_frames;             /* refused: broken, or not what their sender may say */
};

/* send.c */

/* Offer the request to its channel once: RANK_OK (done or under way), RK_AGAIN, or an error (not
 * completed). */
rank_status_t rk_send_offer(struct rank_request *req);
void rk_send_flush_pending(struct rk_ctx *ctx, struct rk_peer *peer);
void rk_send_peer_died(struct rk_peer *peer);
/* MATCHED and its like: sent at once or queued. */
void rk_send_reply(struct rk_peer *peer, uint8_t kind, struct rk_id id);

/* recv.c */
void rk_recv_on_frame(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr,
                      const void *payload, const struct rk_rndv *rndv);
void rk_recv_on_small(struct rk_peer *peer, uint64_t team, uint32_t src, uint64_t tag, const void *payload,
                      uint32_t bytes);
void rk_recv_peer_died(struct rk_ctx *ctx, struct rk_peer *peer);
/* A message that no receive shall have: its sender goes on. */
void rk_recv_drop_kept(struct rk_p2p *p2p, struct rk_unexpected *u);

/* team.c: NULL if there is none here. */
struct rank_team *rk_team_by_id(struct rk_p2p *p2p, uint64_t id);

/* validate.c. Counts what it refuses. */
bool rk_claims_hold(struct rk_ctx *ctx, const struct rk_peer *peer, const struct rk_hdr *hdr);
/* The team is new: what came for it before is looked at now. */
void rk_claims_check_kept(struct rk_p2p *p2p, const struct rank_team *team);

/* stale_teams.c. Where p2p->freed is there: is such a message for a team that has been freed here? */
bool rk_freed_has(struct rk_p2p *p2p, uint64_t team);
/* A team of this id is made. */
void rk_freed_comes_again(struct rk_p2p *p2p, uint64_t id);

/* A message for such a receive, taken out of the queues; NULL if there is none. It is rk_p2p_mrecv's
 * then, or freed at the end. */
struct rk_unexpected *rk_p2p_take(struct rank_team *team, int source, uint64_t tag);
void rk_message_envelope(const struct rk_unexpected *u, rank_envelope_t *envelope);
/* Receive it; frees u. As rk_p2p_irecv. */
void rk_p2p_mrecv(struct rk_unexpected *u, void *buf, size_t bytes, struct rank_request *req);

/* unexpected.c: messages that no receive waits for. */
struct rk_unexpected *rk_kept_alloc(struct rk_p2p *p2p);
/* With its payload. */
void rk_kept_free(struct rk_p2p *p2p, struct rk_unexpected *u);
/* All of its fields are there: put it into the tables. */
void rk_kept_add(struct rk_p2p *p2p, struct rk_unexpected *u);
/* From now on more may be kept (ahead.sending): what is here already no longer counts against its senders' windows. */
void rk_kept_open_windows(struct rk_p2p *p2p);
/* One that came whole has been received, or dropped. */
void rk_kept_over(struct rk_p2p *p2p, const struct rk_unexpected *u);
/* Too much of this peer's is kept, more than one sends that keeps to its window: what comes is refused and counted, and the peer
 * given up. */
bool rk_kept_refuses(struct rk_p2p *p2p, struct rk_peer *peer);

/* What an announced message takes here. */
enum { RK_KEPT_ENVELOPE = sizeof(struct rk_unexpected) };
/* One has been received, or dropped, or is being fetched. */
RK_INLINE void rk_kept_envelope_over(const struct rk_unexpected *u)
{
    u->peer->kept -= RK_KEPT_ENVELOPE;
}
void rk_kept_free_all(struct rk_p2p *p2p);

RK_INLINE bool rk_kept_on_heap(const struct rk_unexpected *u)
{
    return u->kind <= RK_KIND_SMSG && u->bytes > RK_UNEXPECTED_INLINE;
}

/* api.c, api_test.c: what their calls wait for. */
struct rk_probe {
    struct rank_team *team;
    int source;
    uint64_t tag;
    rank_envelope_t *envelope;
    int ndead;                   /* of the team, when it began: a death is said once, but to all who wait then */
    bool dead;
    bool take;                   /* out of the queues, to: */
    struct rk_unexpected *taken;
};
bool rk_probe_over(void *probe);

struct rk_any {
    int n, found;
    rank_request_t *reqs;
    bool among; /* it is waited for, among threads: some may be of lanes */
};
bool rk_any_done(void *any);

/* tell.c: what a wait of this room is for. */
bool rk_p2p_tell(struct rk_ctx *ctx, bool (*cond)(void *), void *arg, struct rk_wait_for *out);

/* Bytes of a message have left the unexpected queue or never entered it: tell the sender now and
 * then, so that it may go on sending eagerly. */
void rk_send_credit(struct rk_peer *peer);

/* Counts them; is it time to tell? */
RK_INLINE bool rk_recv_counted(struct rk_peer *peer, uint64_t bytes)
{
    peer->eager_in += (int64_t)bytes + RK_KEEP_COST;
    return rk_unlikely(2 * peer->eager_in >= rk_conf.eager_window);
}

RK_INLINE void rk_recv_consumed(struct rk_peer *peer, uint64_t bytes)
{
    if (rk_recv_counted(peer, bytes))
        rk_send_credit(peer);
}

#endif

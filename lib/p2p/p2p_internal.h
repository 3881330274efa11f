/* SPDX-License-Identifier: BSD-3-Clause */
/* p2p_internal.h: share declarations between the files of lib/p2p. */
#ifndef RK_P2P_P2P_INTERNAL_H
#define RK_P2P_P2P_INTERNAL_H

#include "lib/base/conf.h"
#include "lib/base/slab.h"
#include "lib/p2p/rndv_early.h"
#include "lib/p2p/match.h"
#include "lib/p2p/p2p.h"
#include "lib/p2p/team_table.h"

/* Memory of a stored frame beyond its payload. */
enum { RK_UNEXPECTED_COST = 128 };

struct rk_p2p {
    struct rk_match match;
    struct rk_link teams;            /* all teams of the context, */
    struct rk_team_table by_id;      /* and the same by their ids */
    uint32_t nfreed;                 /* teams that wait for pending operations */
    struct rk_slab kept_slab;        /* of struct rk_unexpected, chained through bucket */
    struct rk_link probed;            /* messages taken by rank_mprobe, by order */
    int64_t kept;                     /* bytes of unexpected messages with their credit returned, */
    int64_t kept_max;                 /* and the maximum of the others for each peer */
    struct rk_early_state ahead;      /* early rendezvous fetches */
    uint32_t takes;                   /* blocking receives since the last full progress, */
    uint64_t took_ns;                 /* and its time, when the clock was last read */
    bool deaths;                      /* has any peer died? */
    bool deaths_due;                  /* of ranks that teams watch: on_death.c */
    int nwatches;                     /* teams that do */
    struct rank_team *last_validated; /* validate.c */
    struct rk_stale *freed;           /* stale_teams.c; NULL: no team was freed */
    uint64_t bad_frames;              /* rejected: malformed or forged */
    struct rk_unexpected null_message; /* what a matched probe of RANK_PROC_NULL gives */
};

/* recv.c */
void rk_recv_on_frame(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr,
                      const void *payload, const struct rk_rndv *rndv);
void rk_recv_on_small(struct rk_peer *peer, uint64_t team, uint32_t src, uint64_t tag, const void *payload,
                      uint32_t bytes);
void rk_recv_peer_died(struct rk_ctx *ctx, struct rk_peer *peer);
/* Report that a message was longer than the receive; returns RANK_ERR_TRUNCATED. */
RK_COLD rank_status_t rk_recv_truncated(int source, uint64_t tag, uint64_t sent, uint64_t got);
void rk_message_explain(const struct rank_request *req);
/* Discard a message that no receive may get; its sender completes. */
void rk_recv_drop_unexpected(struct rk_p2p *p2p, struct rk_unexpected *u);

/* validate.c. Counts rejected frames. */
bool rk_validate_header(struct rk_ctx *ctx, const struct rk_peer *peer, const struct rk_hdr *hdr);
/* Validate the messages that arrived before the team was created. */
void rk_validate_unexpected(struct rk_p2p *p2p, const struct rank_team *team);

/* stale_teams.c; requires p2p->freed: is the message for a team that was freed here? */
bool rk_stale_has(struct rk_p2p *p2p, uint64_t team);
/* A team with this id is created again. */
void rk_stale_remove(struct rk_p2p *p2p, uint64_t id);

/*
 * Take a message for such a receive out of the queues; NULL if none. Pass it to rk_p2p_mrecv, or it is freed at
 * the end.
 */
struct rk_unexpected *rk_p2p_take(struct rank_team *team, int source, uint64_t tag);
void rk_message_envelope(const struct rk_unexpected *u, rank_envelope_t *envelope);
/* Receive it as rk_p2p_irecv; frees u. */
void rk_p2p_mrecv(struct rk_unexpected *u, struct rk_view view, struct rank_request *req);

/* unexpected.c: store messages that no receive waits for. */
struct rk_unexpected *rk_unexpected_alloc(struct rk_p2p *p2p);
/* Frees the payload, too. */
void rk_unexpected_free(struct rk_p2p *p2p, struct rk_unexpected *u);
/* Give memory of messages that were freed back. */
void rk_unexpected_trim(struct rk_p2p *p2p);
/* Add it to the tables; all fields are set. */
void rk_unexpected_add(struct rk_p2p *p2p, struct rk_unexpected *u);
/* Allow more from now on (ahead.sending): stored messages no longer count against their senders' windows. */
void rk_unexpected_open_windows(struct rk_p2p *p2p);
/* A message that came whole has been received or dropped. */
void rk_unexpected_done(struct rk_p2p *p2p, const struct rk_unexpected *u);
/* The peer has exceeded any legal window: reject and count the message, and disconnect the peer. */
bool rk_unexpected_exceeds(struct rk_p2p *p2p, struct rk_peer *peer);

/* Memory of an announced message. */
enum { RK_UNEXPECTED_ENVELOPE = sizeof(struct rk_unexpected) };
/* An announced message has been received or dropped, or is being fetched. */
RK_INLINE void rk_unexpected_envelope_done(const struct rk_unexpected *u)
{
    u->peer->kept -= RK_UNEXPECTED_ENVELOPE;
    u->peer->announced -= RK_UNEXPECTED_ENVELOPE;
}
void rk_unexpected_free_all(struct rk_p2p *p2p);

RK_INLINE bool rk_unexpected_on_heap(const struct rk_unexpected *u)
{
    return u->kind <= RK_KIND_SMSG && u->bytes > RK_UNEXPECTED_INLINE;
}

/* mprobe.c: a probe, and its wait. */
struct rk_probe {
    struct rk_wait wait;
    struct rank_team *team;
    int source;
    uint64_t tag;
    rank_envelope_t *envelope;
    /* of the team, at the start: a death is reported once, but to all present waits */
    int ndead;
    bool over, dead, late;
    const rank_message_t *message; /* not NULL: take the message into: */
    struct rk_unexpected *taken;
};

/* api_some.c: a wait for one of several requests. */
struct rk_any_wait {
    struct rk_wait wait;
    int64_t n, found;
    const rank_request_t *reqs;
};

/* Call what is due (callback.c); returns the number of calls. */
int rk_callbacks_progress(struct rk_ctx *ctx);
/* on_death.c: make the calls that are due. */
int rk_deaths_progress(struct rk_ctx *ctx);

/* describe_p2p.c: describe waits of this room. */
void rk_message_describe(const struct rank_request *req, struct rk_wait_for *out);
void rk_any_describe(const struct rk_wait *w, struct rk_wait_for *out);
void rk_probe_describe(const struct rk_wait *w, struct rk_wait_for *out);

/* Return credit for bytes of a message that has left the unexpected queue or never entered it; sent in batches. */
void rk_send_credit(struct rk_peer *peer);

/* Is a credit frame due? Before the peer's window is full, or it would wait for it for ever. */
RK_INLINE bool rk_credit_is_due(const struct rk_peer *peer)
{
    return 2 * peer->eager_in >= peer->window;
}

/* Count them; is a credit frame due? */
RK_INLINE bool rk_recv_counted(struct rk_peer *peer, uint64_t bytes)
{
    peer->eager_in += (int64_t)bytes + RK_UNEXPECTED_COST;
    return rk_unlikely(rk_credit_is_due(peer));
}

RK_INLINE void rk_recv_consumed(struct rk_peer *peer, uint64_t bytes)
{
    if (rk_recv_counted(peer, bytes))
        rk_send_credit(peer);
}

#endif

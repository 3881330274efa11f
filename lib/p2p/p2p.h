/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p2p.h: sending and receiving inside the library, below the argument checks of rank.h.
 */
#ifndef RK_P2P_P2P_H
#define RK_P2P_P2P_H

#include "lib/core/request.h"
#include "lib/p2p/team.h"

rank_status_t rk_p2p_open(struct rk_ctx *ctx);
void rk_p2p_close(struct rk_ctx *ctx);

/*
 * Start a send or receive of bytes with the caller's storage for the request,
 * which must stay until it is done. space: 0 for users, RK_TEAM_COLL for the
 * collectives' own tags. Never fails: errors complete the request.
 * Afterwards poll req->done, or set on_done/arg with rk_req_init before (the
 * callback may run inside the start call).
 */
void rk_p2p_isend(struct rank_team *team, const void *buf, size_t bytes, int dest, uint64_t tag,
                  uint64_t space, struct rank_request *req);
void rk_p2p_irecv(struct rank_team *team, void *buf, size_t bytes, int source, uint64_t tag,
                  uint64_t space, struct rank_request *req);

/* Is there a receive that waits for a message of its own to be written there? For builds that look for it
 * (RK_CHECK_OVERLAP). */
bool rk_p2p_awaits(struct rank_team *team, void *buf, size_t bytes);
bool rk_p2p_awaits_view(struct rank_team *team, const struct rk_view *view);

/* A message that leaves at once, without a request; RK_AGAIN if it cannot. */
rank_status_t rk_p2p_send_now(struct rank_team *team, const void *buf, size_t bytes, int dest,
                              uint64_t tag);

/* The same with payload that is not in one piece. The view's base, and what it points to, must stay
 * until the request is done. */
void rk_p2p_isend_view(struct rank_team *team, const struct rk_view *view, int dest, uint64_t tag,
                       struct rank_request *req);
void rk_p2p_irecv_view(struct rank_team *team, const struct rk_view *view, int source, uint64_t tag,
                       struct rank_request *req);

/* The blocking send of users: no request at all when the channel takes the message at once. */
rank_status_t rk_p2p_send(struct rank_team *team, const void *buf, size_t bytes, int dest,
                          uint64_t tag);

/* The blocking receive of users; envelope may be NULL. elem: bytes of an element. */
rank_status_t rk_p2p_recv(struct rank_team *team, void *buf, size_t bytes, int source, uint64_t tag,
                          uint32_t elem, rank_envelope_t *envelope);
/* The same by the general way. */
rank_status_t rk_p2p_recv_by_request(struct rank_team *team, void *buf, size_t bytes, int source,
                                     uint64_t tag, uint32_t elem, rank_envelope_t *envelope);

/* Would a send of so many bytes, which fits in a frame, go as an announcement for want of credit? */
bool rk_p2p_lacks_credit(struct rank_team *team, int dest, size_t bytes);

/* Is there a message for such a receive? Does not make progress. envelope may be NULL. */
bool rk_p2p_probe(struct rank_team *team, int source, uint64_t tag, rank_envelope_t *envelope);

/* Nothing can come from there any more (consumes a team's one error for ANY_SOURCE). */
bool rk_p2p_cannot_come(struct rank_team *team, int source);

/* Zero what a start call expects to find; on_done may be NULL. */
RK_INLINE void rk_req_init(struct rank_request *req, void (*on_done)(struct rank_request *, void *),
                           void *arg)
{
    req->flags = 0;
    req->elem = 1;
    req->on_done = on_done;
    req->arg = arg;
}

/* Take back a receive that has not matched; completes it with status. A send or a matched receive
 * is left alone and false is returned. */
bool rk_p2p_cancel_recv(struct rank_request *req, rank_status_t status);
/* Take back a send that the channel has not been given yet; as above. */
bool rk_p2p_cancel_send(struct rank_request *req, rank_status_t status);

#endif

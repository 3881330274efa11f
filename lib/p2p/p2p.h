/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p2p.h: send and receive inside the library, below the argument checks of rank.h.
 *
 * Room: point-to-point messages: matching, flow control, requests, probes, callbacks.
 * Callers: the program, lib/rma, collectives, lib/world.
 * Never: depends on a channel; waits inside a frame handler.
 * Tests: tests/unit/match_test.c, tests/unit/rndv_early_test.c, tests/mp/p2p_*, tests/mp/threads.
 */
#ifndef RK_P2P_P2P_H
#define RK_P2P_P2P_H

#include "lib/core/request.h"
#include "lib/p2p/team.h"

extern const struct rk_room rk_room_p2p;

/*
 * Start a send or receive of bytes. The caller stores the request until it is complete. space: 0 for users,
 * RK_TEAM_COLL for collectives. Never fails: errors complete the request. Then poll req->done, or set on_done/arg
 * with rk_req_init before; the callback may run inside the start call.
 */
void rk_p2p_isend(struct rank_team *team, const void *buf, size_t bytes, int dest, uint64_t tag,
                  uint64_t space, struct rank_request *req);
void rk_p2p_irecv(struct rank_team *team, void *buf, size_t bytes, int source, uint64_t tag,
                  uint64_t space, struct rank_request *req);

/* Is a posted receive waiting to write there? For builds with RK_CHECK_OVERLAP. */
bool rk_p2p_awaits(struct rank_team *team, void *buf, size_t bytes);
bool rk_p2p_awaits_view(struct rank_team *team, const struct rk_view *view);

/* The same with payload of any shape and kind. The view's base and its target must stay until the request is complete. */
void rk_p2p_isend_view(struct rank_team *team, const struct rk_view *view, int dest, uint64_t tag,
                       struct rank_request *req);
void rk_p2p_irecv_view(struct rank_team *team, const struct rk_view *view, int source, uint64_t tag,
                       struct rank_request *req);

/* Blocking send of users: without a request if the channel takes the message at once. */
rank_status_t rk_p2p_send(struct rank_team *team, const void *buf, size_t bytes, int dest,
                          uint64_t tag);

/* Blocking receive of users; envelope may be NULL. elem: element size. */
rank_status_t rk_p2p_recv(struct rank_team *team, void *buf, size_t bytes, int source, uint64_t tag,
                          uint32_t elem, rank_envelope_t *envelope);
/* The same by the general path, for payload of any shape and kind. */
rank_status_t rk_p2p_recv_view(struct rank_team *team, const struct rk_view *view, int source, uint64_t tag, uint32_t elem,
                               rank_envelope_t *envelope);

/* Would a send of bytes, which fits in a frame, be announced for lack of credit? */
bool rk_p2p_lacks_credit(struct rank_team *team, int dest, size_t bytes);

/* Is there a message for such a receive? Makes no progress. envelope may be NULL. */
bool rk_p2p_probe(struct rank_team *team, int source, uint64_t tag, rank_envelope_t *envelope);

/* No further message can come from source. For ANY_SOURCE this consumes the team's one error. */
bool rk_p2p_cannot_come(struct rank_team *team, int source);

/* Initialize a request for a start call; on_done may be NULL. */
RK_INLINE void rk_req_init(struct rank_request *req, void (*on_done)(struct rank_request *, void *),
                           void *arg)
{
    req->flags = 0;
    req->elem = 1;
    req->on_done = on_done;
    req->arg = arg;
}

/* Cancel a posted receive that has not matched and complete it with status. Otherwise returns false. */
bool rk_p2p_cancel_recv(struct rank_request *req, rank_status_t status);
/* Cancel a send that the channel has not taken; as above. */
bool rk_p2p_cancel_send(struct rank_request *req, rank_status_t status);

#endif

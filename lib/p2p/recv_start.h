/* SPDX-License-Identifier: BSD-3-Clause */
/* recv_start.h: start a receive, inline. */
#ifndef RK_P2P_RECV_START_H
#define RK_P2P_RECV_START_H

#include "lib/p2p/p2p_internal.h"

/* recv.c: if messages wait or a peer has died. */
void rk_receive_else(struct rank_team *team, struct rank_request *req);

RK_INLINE struct rk_peer *rk_receive_peer(struct rank_team *team, int source)
{
    return rk_likely(source != RANK_ANY_SOURCE) ? rk_team_peer(team, source) : NULL;
}

/* peer is NULL for any source. The result is written later. */
RK_INLINE void rk_receive_start(struct rank_team *team, struct rk_view view, struct rk_peer *peer, int source, uint64_t tag,
                                uint64_t space, struct rank_request *req)
{
    struct rk_match *match = &team->ctx->p2p->match;

    req->magic = RK_REQ_MAGIC;
    req->type = RK_REQ_RECV;
    req->done = false;
    req->ctx = team->ctx;
    req->peer = peer;
    req->view = view;
    req->team = team->id | space;
    req->tag = tag;
    req->src = (uint32_t)source;
    if (rk_unlikely(match->nwaiting || team->ndead || (!peer && source != RANK_ANY_SOURCE)))
        rk_receive_else(team, req);
    else
        rk_match_post(match, req);
}

#endif

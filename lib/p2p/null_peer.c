/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * null_peer.c: complete operations with RANK_PROC_NULL.
 *
 * The checks of arguments return RK_PEER_NULL for it, in the branch that a valid peer does not take.
 */
#include "lib/p2p/api_check.h"
#include "lib/p2p/api_request.h"

void rk_null_end(struct rank_request *req)
{
    req->env_src = (uint32_t)RANK_PROC_NULL;
    req->env_tag = RK_TAG_ANY;
    req->got = req->sent = 0;
    rk_req_end(req, RANK_OK);
}

rank_status_t rk_null_receive(rank_status_t checked, rank_envelope_t *envelope)
{
    if (checked == RK_PEER_NULL)
        rk_null_envelope(envelope, RANK_PROC_NULL);
    return rk_peer_null_ok(checked);
}

rank_status_t rk_null_start(const char *call, struct rk_ctx *ctx, enum rk_req_type type, rank_request_t *out)
{
    struct rank_request *req;

    if (!out)
        return rk_arg_null(call, "req");
    req = rk_req_alloc(ctx);
    if (!req)
        return RANK_ERR_NO_MEMORY;
    req->type = type;
    req->elem = 1;
    rk_null_end(req);
    *out = req;
    return RANK_OK;
}

rank_status_t rk_null_probe(rank_status_t checked, rank_team_t team, rank_message_t *message, rank_envelope_t *envelope)
{
    struct rk_unexpected *u;

    if (checked == RK_PEER_NULL && message) {
        u = &team->ctx->p2p->null_message;
        u->magic = RK_MESSAGE_MAGIC;
        u->peer = rk_team_peer(team, team->rank);
        if (!u->peer)
            return RANK_ERR_NO_MEMORY;
        *message = (rank_message_t)(void *)u;
    }
    return rk_null_receive(checked, envelope);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* xfer.c: implement rank_xfer and its persistent form. */
#include "lib/core/request_pool.h"
#include "lib/rma/xfer.h"

/* Plan a transfer and its request. */
static rank_status_t xfer_create(const char *call, rank_xfer_op_t op, const rank_block_t *blocks, int64_t n, int peer,
                                 struct rank_team *team, const rank_notice_t *notice, const rank_request_t *out,
                                 struct rk_xfer **x, struct rank_request **req)
{
    rank_status_t st;

    if (!out)
        return rk_arg_null(call, "req");
    st = rk_xfer_plan(call, op, blocks, n, peer, team, notice, x);
    if (st)
        return st;
    *req = rk_req_alloc(team->ctx);
    if (!*req) {
        rk_xfer_free(*x);
        return RANK_ERR_NO_MEMORY;
    }
    (*req)->elem = 1;
    rk_room_start_progress(team->ctx, &rk_room_rma);
    return RANK_OK;
}

rank_status_t rank_xfer(rank_xfer_op_t op, const rank_block_t *blocks, int64_t n, int peer, rank_team_t team,
                        const rank_notice_t *notice, rank_request_t *out)
{
    RK_ENTER_TEAM(team);
    struct rank_request *req;
    struct rk_xfer *x;
    rank_status_t st = xfer_create(__func__, op, blocks, n, peer, team, notice, out, &x, &req);

    if (st)
        return st;
    rk_xfer_begin(x, req);
    *out = req;
    return RANK_OK;
}

/* ------------------------------------------------------------------------ persistent */

static struct rk_xfer *persistent_xfer(const struct rank_request *req)
{
    return (struct rk_xfer *)(uintptr_t)req->priv[0];
}

static rank_status_t xfer_restart(struct rank_request *req)
{
    struct rk_xfer *x = persistent_xfer(req);

    if (x->stale)
        return rk_arg_error(RANK_ERR_HANDLE, "rank_start", "a memory of the list has been closed; make a new list");
    rk_xfer_begin(x, req);
    return RANK_OK;
}

static void xfer_release(struct rank_request *req)
{
    struct rk_xfer *x = persistent_xfer(req);

    rk_list_remove(&x->link);
    rk_xfer_free(x);
}

static const struct rk_persistent_ops persistent_list = {.start = xfer_restart, .release = xfer_release};

rank_status_t rank_xfer_init(rank_xfer_op_t op, const rank_block_t *blocks, int64_t n, int peer, rank_team_t team,
                             const rank_notice_t *notice, rank_request_t *out)
{
    RK_ENTER_TEAM(team);
    struct rank_request *req;
    struct rk_xfer *x;
    rank_status_t st = xfer_create(__func__, op, blocks, n, peer, team, notice, out, &x, &req);

    if (st)
        return st;
    x->persistent = true;
    rk_list_append(&team->ctx->rma->xfers.idle, &x->link);
    req->type = RK_REQ_RMA;
    req->kind = RK_REQ_LIST;
    req->hold |= RK_HOLD_PERSISTENT;
    req->persistent = &persistent_list;
    req->on = team;
    req->team = team->id;
    req->peer = x->peer;
    req->priv[0] = (uintptr_t)x;
    req->status = RANK_OK;
    req->done = true;
    *out = req;
    return RANK_OK;
}

RK_PUBLIC(rank_xfer); RK_PUBLIC(rank_xfer_init);

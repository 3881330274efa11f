/* SPDX-License-Identifier: BSD-3-Clause */
/* xfer.c: implement rank_xfer and its persistent form. */
#include "lib/core/request_pool.h"
#include "lib/rma/xfer.h"

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

static void make_persistent(struct rk_xfer *x, struct rank_request *req)
{
    x->persistent = true;
    rk_list_append(&x->ctx->rma->xfers.idle, &x->link);
    req->hold |= RK_HOLD_PERSISTENT;
    req->persistent = &persistent_list;
    req->on = x->team;
    req->team = x->team->id;
    req->priv[0] = (uintptr_t)x;
    req->status = RANK_OK;
    req->done = true;
}

/* ----------------------------------------------------------------------------- calls */

/* Plan a transfer and its request, and start it unless it is persistent. */
static rank_status_t xfer_create(const char *call, bool persistent, rank_xfer_op_t op, const rank_block_t *blocks, int64_t n,
                                 int peer, struct rank_team *team, const rank_notice_t *notice, rank_request_t *out)
{
    RK_ENTER_TEAM(team);
    struct rank_request *req;
    struct rk_xfer *x;
    rank_status_t st = out ? rk_xfer_plan(call, op, blocks, n, peer, team, notice, &x) : rk_arg_null(call, "req");

    if (st)
        return st;
    req = rk_req_alloc(team->ctx);
    if (!req) {
        rk_xfer_free(x);
        return RANK_ERR_NO_MEMORY;
    }
    rk_room_start_progress(team->ctx, &rk_room_rma);
    req->type = RK_REQ_RMA;
    req->kind = RK_REQ_LIST;
    req->elem = 1;
    req->peer = x->peer;
    req->view = (struct rk_view){NULL, (size_t)x->bytes, NULL};
    if (persistent)
        make_persistent(x, req);
    else
        rk_xfer_begin(x, req);
    *out = req;
    return RANK_OK;
}

rank_status_t rank_xfer(rank_xfer_op_t op, const rank_block_t *blocks, int64_t n, int peer, rank_team_t team,
                        const rank_notice_t *notice, rank_request_t *req)
{
    return xfer_create(__func__, false, op, blocks, n, peer, team, notice, req);
}

rank_status_t rank_xfer_init(rank_xfer_op_t op, const rank_block_t *blocks, int64_t n, int peer, rank_team_t team,
                             const rank_notice_t *notice, rank_request_t *req)
{
    return xfer_create(__func__, true, op, blocks, n, peer, team, notice, req);
}

RK_PUBLIC(rank_xfer); RK_PUBLIC(rank_xfer_init);

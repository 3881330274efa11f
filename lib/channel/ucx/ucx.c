/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx.c: provide the channel over UCX: operations, progress, sleeping, draining.
 */
#include "lib/channel/ucx/ucx.h"

#include <stdlib.h>

static void ucx_close(struct rk_ctx *ctx, void *state)
{
    struct rk_ucx *ucx = state;

    (void)ctx;
    if (!ucx)
        return;
    if (rk_ucx_links_close(ucx))
        rk_ucx_teardown(ucx); /* UCP may call back for its requests */
    else
        rk_ucx_abandon(ucx);
    if (ucx->bad_frames)
        rk_warn("%llu broken frames came through ucx", (unsigned long long)ucx->bad_frames);
    if (ucx->late_frames)
        rk_debug("%llu frames came too late", (unsigned long long)ucx->late_frames);
    rk_ucx_links_destroy(ucx);
    rk_ucx_ops_destroy(ucx);
    rk_ucx_bufs_destroy(ucx);
    free(ucx);
}

static rank_status_t ucx_open(struct rk_ctx *ctx, void **state, void *card, size_t *len)
{
    struct rk_ucx *ucx = calloc(1, sizeof(*ucx));
    struct rk_peer *self;
    rank_status_t st;

    if (!ucx)
        return RANK_ERR_NO_MEMORY;
    rk_list_init(&ucx->open);
    rk_list_init(&ucx->failed);
    rk_list_init(&ucx->todo);
    rk_list_init(&ucx->closing);
    rk_list_init(&ucx->prepared);
    rk_ucx_bufs_init(ucx);
    rk_ucx_ops_init(ucx);
    /* A packet for an earlier process at this address must not match a link of this one. */
    st = rk_secret_ids_open(&ucx->links) ? RANK_OK : RANK_ERR_SYSTEM;
    ucx->ctx = ctx;
    ucx->fd = -1;
    ucx->me = (uint32_t)ctx->boot->rank;
    self = st ? NULL : rk_engine_peer(ctx, ctx->boot->rank);
    if (!self) {
        ucx_close(ctx, ucx);
        return st ? st : RANK_ERR_NO_MEMORY;
    }
    ucx->job = self->id.job;
    st = rk_ucx_setup(ucx, card, len);
    if (st) {
        ucx_close(ctx, ucx);
        return st;
    }
    *state = ucx;
    return RANK_OK;
}

static size_t ucx_frame_max(const struct rk_peer *peer)
{
    (void)peer;
    return RK_UCX_FRAME_MAX;
}

static rank_status_t ucx_send(struct rk_peer *peer, const struct rk_hdr *hdr, const void *payload)
{
    return rk_ucx_put(peer->ep, hdr, NULL, 0, payload, NULL);
}

static rank_status_t ucx_send2(struct rk_peer *peer, const struct rk_hdr *hdr, const void *first,
                               size_t first_len, const void *second)
{
    return rk_ucx_put(peer->ep, hdr, first, first_len, second, NULL);
}

static rank_status_t ucx_send_view(struct rk_peer *peer, const struct rk_hdr *hdr,
                                   const struct rk_view *view)
{
    return rk_ucx_put(peer->ep, hdr, NULL, 0, NULL, view);
}

int rk_ucx_poll(struct rk_ucx *ucx)
{
    int moved;

    ucx->handled = 0;
    ucx->tick++;
    rk_ucx_send_progress(ucx);
    ucx->inside = true;
    moved = (int)ucp_worker_progress(ucx->worker);
    ucx->inside = false;
    moved += rk_ucx_todo(ucx);
    if (rk_unlikely(!rk_list_empty(&ucx->failed)))
        rk_ucx_links_failed(ucx);
    /* Frames that handlers sent must not wait for the next library call. */
    rk_ucx_send_progress(ucx);
    return moved + ucx->handled;
}

static int ucx_progress(struct rk_ctx *ctx, void *state)
{
    struct rk_ucx *ucx = state;

    (void)ctx;
    return rk_unlikely(ucx->inside) ? 0 : rk_ucx_poll(ucx); /* called by a handler: progress runs already */
}

static int ucx_fd(void *state)
{
    return ((struct rk_ucx *)state)->fd;
}

static rank_status_t ucx_arm(void *state)
{
    struct rk_ucx *ucx = state;

    rk_ucx_send_progress(ucx);
    if (!rk_list_empty(&ucx->failed))
        return RK_AGAIN;
    return ucp_worker_arm(ucx->worker) == UCS_OK ? RANK_OK : RK_AGAIN;
}

/* Has all data of this link been sent? Starts a flush unless one has covered it. */
static bool link_drained(struct rk_ucx *ucx, struct rk_ucx_link *l)
{
    ucp_request_param_t param = {0};
    ucs_status_ptr_t p;

    if (!l->ep || l->failed || l->bye)
        return true;
    if (l->open || l->unsent)
        return false;
    if (!l->flushing) {
        if (l->flushed_at == ucx->sent)
            return true;
        l->flushed_at = ucx->sent;
        p = ucp_ep_flush_nbx(l->ep, &param);
        if (!UCS_PTR_IS_PTR(p))
            return true; /* done, or the endpoint is broken, which its callback reports */
        l->flushing = p;
    }
    if (ucp_request_check_status(l->flushing) == UCS_INPROGRESS)
        return false;
    ucp_request_free(l->flushing);
    l->flushing = NULL;
    return true;
}

rank_status_t rk_ucx_link_drained(struct rk_ucx_link *l)
{
    rk_ucx_send_progress(l->ucx);
    return link_drained(l->ucx, l) ? RANK_OK : RK_AGAIN;
}

static rank_status_t ucx_drained(void *state)
{
    struct rk_ucx *ucx = state;
    struct rk_ucx_link *l;
    bool drained = true;
    int i;

    rk_ucx_send_progress(ucx);
    rk_ucx_each_link(i, l, ucx)
        drained &= link_drained(ucx, l);
    return drained ? RANK_OK : RK_AGAIN;
}

const struct rk_channel rk_channel_ucx = {
    .name = "ucx",
    .open = ucx_open,
    .close = ucx_close,
    .connect = rk_ucx_connect,
    .disconnect = rk_ucx_disconnect,
    .forget = rk_ucx_forget,
    .frame_max = ucx_frame_max,
    .send = ucx_send,
    .send2 = ucx_send2,
    .send_view = ucx_send_view,
    .take = rk_ucx_recv_fast,
    .take_is_progress = true,
    .rndv_send = rk_ucx_rndv_send,
    .rndv_recv = rk_ucx_rndv_recv,
    .rndv_drop = rk_ucx_rndv_drop,
    .announced_bytes = 8192, /* a segment */
    .progress = ucx_progress,
    .fd = ucx_fd,
    .arm = ucx_arm,
    .one_sided = rk_ucx_one_sided,
    .mem_expose = rk_ucx_mem_expose,
    .mem_close = rk_ucx_mem_close,
    .mem_attach = rk_ucx_mem_attach,
    .iput = rk_ucx_iput_mem,
    .iget = rk_ucx_iget_mem,
    .flush = rk_ucx_flush_mem,
    .iflush = rk_ucx_iflush,
    .idle = rk_ucx_idle,
    .drained = ucx_drained,
    .rails = rk_ucx_rails,
    .links = &rk_ucx_conn_links,
};

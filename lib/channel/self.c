/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * self.c: send to this process: deliver at once, copy large messages once.
 */
#include "lib/boot/boot.h"
#include "lib/core/threads.h"

#include <string.h>

static rank_status_t self_open(struct rk_ctx *ctx, void **state, void *card, size_t *len)
{
    (void)ctx;
    (void)card;
    *state = NULL;
    *len = 0;
    return RANK_OK;
}

static rank_status_t self_connect(struct rk_ctx *ctx, void *state, struct rk_peer *peer)
{
    (void)state;
    return peer->number == ctx->boot->rank ? RANK_OK : RANK_ERR_UNREACHABLE;
}

static size_t self_frame_max(const struct rk_peer *peer)
{
    (void)peer;
    return 1 << 20;
}

static rank_status_t self_send(struct rk_peer *peer, const struct rk_hdr *hdr, const void *payload)
{
    rk_handler_fn handler = peer->ctx->engine->handler[hdr->kind];

    if (rk_unlikely(!handler))
        return RANK_ERR_NOT_SUPPORTED; /* a kind without owner */
    handler(peer->ctx, peer, hdr, payload, NULL);
    rk_threads_notify_user(peer->ctx);
    return RANK_OK;
}

static rank_status_t self_send2(struct rk_peer *peer, const struct rk_hdr *hdr, const void *first,
                                size_t first_len, const void *second)
{
    char joined[256];
    size_t rest = hdr->len - first_len;

    /* Only small messages wait for a match in a frame; see p2p. */
    if (hdr->len > sizeof(joined))
        return RANK_ERR_INTERNAL;
    memcpy(joined, first, first_len);
    if (rest)
        memcpy(joined + first_len, second, rest);
    return self_send(peer, hdr, joined);
}

/* priv[0]: the sender's id. */
static rank_status_t self_rndv_send(struct rk_peer *peer, const struct rk_hdr *hdr,
                                    const struct rk_view *view, struct rank_request *req)
{
    struct rk_rndv rndv = {.peer = peer, .total = view->bytes};
    rank_status_t st = rk_req_name(req);

    if (st)
        return st;
    req->view = *view;
    rndv.priv[0] = rk_id_pack(req->id);
    peer->ctx->engine->handler[RK_KIND_RNDV](peer->ctx, peer, hdr, NULL, &rndv);
    rk_threads_notify_user(peer->ctx);
    return RANK_OK;
}

static struct rank_request *sender_of(const struct rk_rndv *rndv)
{
    return rk_req_find(rndv->peer->ctx, rk_id_unpack(rndv->priv[0]));
}

static void self_rndv_recv(const struct rk_rndv *rndv, const struct rk_view *view,
                           struct rank_request *req)
{
    struct rank_request *sender = sender_of(rndv);
    rank_status_t st;
    size_t n = view->bytes < rndv->total ? view->bytes : rndv->total;

    if (!sender) {
        rk_req_complete(req, RANK_ERR_INTERNAL);
        return;
    }
    st = rk_view_copy(view, &sender->view, n);
    rk_req_complete(sender, st);
    rk_req_complete(req, st);
    rk_threads_notify_user(rndv->peer->ctx);
}

static void self_rndv_drop(const struct rk_rndv *rndv)
{
    struct rank_request *sender = sender_of(rndv);

    if (sender)
        rk_req_complete(sender, RANK_OK);
}

const struct rk_channel rk_channel_self = {
    .name = "self",
    .open = self_open,
    .connect = self_connect,
    .frame_max = self_frame_max,
    .send = self_send,
    .send2 = self_send2,
    .rndv_send = self_rndv_send,
    .rndv_recv = self_rndv_recv,
    .rndv_drop = self_rndv_drop,
};

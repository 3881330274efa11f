/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_rndv.c: announce large messages and move their data on the match. */
#include "lib/channel/tcp/tcp_channel.h"

#include <stddef.h>
#include <string.h>

enum { OP_LINK = offsetof(struct rk_tcp_op, link) };
/* Private words of a struct rk_rndv: the id of the sender's op. */
enum { P_THEIRS };

struct rk_tcp_op *rk_tcp_op_new(struct rk_tcp_link *l, enum rk_tcp_op_type type, struct rank_request *req)
{
    struct rk_tcp_op *op = rk_slab_alloc(&l->tcp->ops, OP_LINK);

    if (!op)
        return NULL;
    *op = (struct rk_tcp_op){.type = (uint8_t)type, .of = l, .req = req};
    if (!rk_handle_put(&l->tcp->op_ids, op, &op->id)) {
        rk_slab_free(&l->tcp->ops, op, OP_LINK);
        return NULL;
    }
    rk_list_init(&op->link);
    rk_list_append(&l->ops, &op->link);
    l->nstreams += type == RK_TCP_READING || type == RK_TCP_WRITING;
    l->nserved += type == RK_TCP_SERVING || type == RK_TCP_ANSWERING;
    return op;
}

void rk_tcp_op_free(struct rk_tcp_op *op)
{
    struct rk_tcp_link *l = op->of;

    l->nstreams -= op->type == RK_TCP_READING || op->type == RK_TCP_WRITING;
    l->nserved -= op->type == RK_TCP_SERVING || op->type == RK_TCP_ANSWERING;
    rk_list_remove(&op->link);
    rk_handle_drop(&l->tcp->op_ids, op->id);
    rk_slab_free(&l->tcp->ops, op, OP_LINK);
}

void rk_tcp_ops_trim(struct rk_tcp *tcp)
{
    rk_slab_trim(&tcp->ops, OP_LINK);
}

void rk_tcp_op_end(struct rk_tcp_op *op, rank_status_t st)
{
    struct rank_request *req = op->req;

    if (rk_tcp_stages(&op->view)) {
        rk_tcp_stage_end(op);
        st = st ? st : op->copied;
    }
    if (op->of->into == op)
        op->of->into = NULL;
    if (op->of->sending == op)
        op->of->sending = NULL;
    rk_tcp_op_free(op);
    if (req)
        rk_req_complete(req, st);
}

struct rk_tcp_op *rk_tcp_op_find(struct rk_tcp_link *l, struct rk_id id, enum rk_tcp_op_type type)
{
    struct rk_tcp_op *op = rk_handle_get(&l->tcp->op_ids, id);

    return op && op->of == l && op->type == type ? op : NULL;
}

void rk_tcp_fail_ops(struct rk_tcp_link *l, rank_status_t st)
{
    while (!rk_list_empty(&l->ops))
        rk_tcp_op_end(rk_list_entry(l->ops.next, struct rk_tcp_op, link), st);
    while (!rk_list_empty(&l->jobs))
        rk_tcp_op_end(rk_list_entry(l->jobs.next, struct rk_tcp_op, link), st);
}

/* ------------------------------------------------------------------------ sender */

rank_status_t rk_tcp_rndv_send(struct rk_peer *peer, const struct rk_hdr *hdr, const struct rk_view *view,
                               struct rank_request *req)
{
    struct rk_tcp_link *l = peer->ep;
    struct rk_tcp_announce announce = {.total = view->bytes};
    struct rk_hdr h = *hdr;
    struct rk_tcp_op *op;
    rank_status_t st;

    if (!l || l->failed)
        return RANK_ERR_PEER_DEAD;
    op = rk_tcp_op_new(l, RK_TCP_OFFERED, req);
    if (!op)
        return RANK_ERR_NO_MEMORY;
    op->view = *view;
    announce.op = op->id;
    h.kind = RK_TCP_ANNOUNCE;
    h.len = sizeof(announce);
    st = rk_tcp_put(l, &h, &announce, sizeof(announce), NULL, NULL);
    if (st)
        rk_tcp_op_free(op); /* the request stays with the caller */
    return st;
}

static bool tcp_pulled(struct rk_tcp_link *l, const struct rk_tcp_pull *pull)
{
    struct rk_tcp_op *op = rk_tcp_op_find(l, pull->op, RK_TCP_OFFERED);

    if (!op || pull->want > op->view.bytes)
        return false;
    if (pull->want == 0) {
        rk_tcp_op_end(op, RANK_OK);
        return true;
    }
    op->type = RK_TCP_SENDING;
    op->theirs = pull->to;
    op->bytes = pull->want;
    rk_list_remove(&op->link);
    rk_list_append(&l->jobs, &op->link);
    rk_tcp_flush_later(l);
    return true;
}

static bool dropped(struct rk_tcp_link *l, uint64_t id)
{
    struct rk_tcp_op *op = rk_tcp_op_find(l, rk_id_unpack(id), RK_TCP_OFFERED);

    if (op)
        rk_tcp_op_end(op, RANK_OK);
    return op != NULL;
}

/* ---------------------------------------------------------------------- receiver */

static bool announced(struct rk_tcp_link *l, const struct rk_hdr *hdr, const struct rk_tcp_announce *a)
{
    struct rk_ctx *ctx = l->tcp->ctx;
    struct rk_hdr h = *hdr;
    struct rk_rndv rndv = {.peer = l->peer, .total = a->total};

    if (a->total > INT64_MAX)
        return false;
    h.kind = RK_KIND_RNDV;
    h.len = 0;
    if (ctx->engine->is_valid && !ctx->engine->is_valid(ctx, l->peer, &h))
        return true;
    rndv.priv[P_THEIRS] = rk_id_pack(a->op);
    ctx->engine->handler[RK_KIND_RNDV](ctx, l->peer, &h, NULL, &rndv);
    return true;
}

void rk_tcp_rndv_recv(const struct rk_rndv *rndv, const struct rk_view *view, struct rank_request *req)
{
    struct rk_tcp_link *l = rndv->peer->ep;
    struct rk_tcp_pull pull = {.op = rk_id_unpack(rndv->priv[P_THEIRS])};
    struct rk_tcp_op *op;

    if (!l || l->failed) {
        rk_req_complete(req, RANK_ERR_PEER_DEAD);
        return;
    }
    pull.want = view->bytes < rndv->total ? view->bytes : rndv->total;
    if (pull.want == 0) {
        rk_send_control(rndv->peer, RK_TCP_PULL, 0, &pull, sizeof(pull));
        rk_req_complete(req, RANK_OK);
        return;
    }
    op = rk_tcp_op_new(l, RK_TCP_RECEIVING, req);
    if (!op) {
        rk_tcp_rndv_drop(rndv);
        rk_req_complete(req, RANK_ERR_NO_MEMORY);
        return;
    }
    op->view = *view;
    op->bytes = pull.want;
    pull.to = op->id;
    rk_send_control(rndv->peer, RK_TCP_PULL, 0, &pull, sizeof(pull));
}

void rk_tcp_rndv_drop(const struct rk_rndv *rndv)
{
    rk_send_control(rndv->peer, RK_TCP_DROP, rndv->priv[P_THEIRS], NULL, 0);
}

bool rk_tcp_chunk_begins(struct rk_tcp_link *l, const struct rk_hdr *hdr, struct rk_tcp_op **into)
{
    struct rk_tcp_op *op = rk_tcp_op_find(l, rk_id_unpack(hdr->tag), RK_TCP_RECEIVING);

    *into = NULL;
    if (!op)
        op = rk_tcp_op_find(l, rk_id_unpack(hdr->tag), RK_TCP_READING);
    if (!op || hdr->len > op->bytes - op->done)
        return false;
    if (op->type == RK_TCP_READING && hdr->flags & RK_TCP_END) {
        if (!hdr->src && op->done < op->bytes)
            return false;
        rk_tcp_op_end(op, (rank_status_t)(int32_t)hdr->src);
        return true;
    }
    if (hdr->flags & RK_TCP_END)
        return false;
    if (hdr->flags & RK_TCP_UNREAD)
        rk_tcp_op_end(op, RANK_ERR_DEVICE);
    else
        *into = op;
    return true;
}

void rk_tcp_chunk_moved(struct rk_tcp_op *op, uint64_t bytes)
{
    op->done += bytes;
    if (op->done == op->bytes && op->type == RK_TCP_RECEIVING)
        rk_tcp_op_end(op, op->copied);
}

bool rk_tcp_rndv_frame(struct rk_tcp_link *l, const struct rk_hdr *hdr, const void *payload)
{
    struct rk_tcp_announce announce;
    struct rk_tcp_pull pull;

    switch (hdr->kind) {
    case RK_TCP_ANNOUNCE:
        memcpy(&announce, payload, sizeof(announce));
        return announced(l, hdr, &announce);
    case RK_TCP_PULL:
        memcpy(&pull, payload, sizeof(pull));
        return tcp_pulled(l, &pull);
    case RK_TCP_READ:
    case RK_TCP_WRITTEN:
        return rk_tcp_stream_frame(l, hdr, payload);
    default:
        return dropped(l, hdr->tag);
    }
}

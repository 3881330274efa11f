/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * origin.c: run the origin side of one-sided calls: send frames, match replies.
 *
 * Long pieces travel in frames of their own, straight from the caller's buffer; short ones are packed. A get
 * requests a window of frames, and more with every reply.
 */
#include "lib/base/arg_error.h"
#include "lib/p2p/p2p.h"
#include "lib/rma/rma_internal.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Longer pieces have frames of their own; a frame of many pieces is at most this long. */
enum { PACK_PIECE_MAX = 4096, PACK_FRAME_MAX = 16384 };
enum { OP_LINK = offsetof(struct rk_origin_op, item.link) };
#define PACKED UINT64_MAX /* in: the frame holds whole pieces */

void rk_origin_init(struct rk_origin_op *op, struct rk_peer *peer, enum rk_rma_op kind, struct rk_id mem)
{
    memset(op, 0, offsetof(struct rk_origin_op, requested));
    op->ctx = peer->ctx;
    op->peer = peer;
    op->head.op = (uint8_t)kind;
    op->head.mem = mem;
}

void rk_origin_add(struct rk_origin_op *op, const void *extra, uint32_t len)
{
    memcpy(op->extra, extra, len);
    op->extra_len = len;
}

void rk_origin_move(struct rk_origin_op *op, void *local, size_t bytes, size_t offset)
{
    op->one = (rank_piece_t){local, (int64_t)bytes, (int64_t)offset};
    op->pieces = &op->one;
    op->npieces = 1;
}

struct rk_origin_op *rk_origin_new(struct rk_peer *peer, enum rk_rma_op kind, struct rk_id mem)
{
    struct rk_origin_op *op = rk_slab_alloc(&peer->ctx->rma->ops, OP_LINK);

    if (!op) {
        rk_fail(RANK_ERR_NO_MEMORY, "out of memory for one-sided calls");
        return NULL;
    }
    rk_origin_init(op, peer, kind, mem);
    op->pooled = true;
    return op;
}

static void origin_free(struct rk_origin_op *op)
{
    rk_slab_free(&op->ctx->rma->ops, op, OP_LINK);
}

/* ---------------------------------------------------------------------- completion */

static void unqueue(struct rk_origin_op *op)
{
    if (!op->queued)
        return;
    op->queued = false;
    rk_sendq_remove(op->peer, &op->item);
}

static void origin_complete(struct rk_origin_op *op)
{
    struct rank_request *req = op->req;
    rank_status_t st = op->status;

    unqueue(op);
    if (op->state)
        op->state->pending -= op->inflight;
    op->inflight = 0;
    if (op->named)
        rk_handle_drop(&op->ctx->rma->op_ids, op->head.origin);
    op->named = false;
    if (op->pooled)
        origin_free(op);
    if (req)
        rk_req_complete(req, st);
}

/* All requests that a flush covers are settled. */
static void flushed(struct rk_origin_op *op)
{
    if (op->covers > op->state->done)
        op->state->done = op->covers;
}

/* The owner reports errors of posted frames once: complete all present flushes with it, of any thread. */
static RK_COLD void fail_flushes(const struct rk_origin_op *failed, rank_status_t status)
{
    struct rk_origin_op *op;
    uint32_t i;

    rk_handles_for_each(i, op, &failed->ctx->rma->op_ids)
    {
        if (op->head.op == RK_RMA_FLUSH && op->peer == failed->peer && !op->status)
            op->status = status;
    }
}

void rk_origin_fail(struct rk_origin_op *op, rank_status_t status)
{
    if (rk_is_lost(status) && op->state)
        flushed(op); /* reported once */
    op->status = status;
    op->sent = true;
    origin_complete(op);
}

void rk_origin_stop(struct rk_origin_op *op, rank_status_t status)
{
    if (!op->status)
        op->status = status;
    unqueue(op);
    op->sent = true;
    if (op->inflight == 0)
        origin_complete(op);
}

/* ----------------------------------------------------------------------- frames */

static bool origin_gets(const struct rk_origin_op *op)
{
    return op->head.op == RK_RMA_GET;
}

/* A put of a list: the owner replies to its last frame, and to one that fails. */
static bool puts_list(const struct rk_origin_op *op)
{
    return op->ids && !origin_gets(op);
}

/* in of a put of a list: of a frame before the last one, and of the last one. */
enum { LIST_FRAME, LIST_LAST };

/* Set the head of a frame of a list. n: pieces of it that the frame ends. */
static void set_list_head(const struct rk_origin_op *op, struct rk_rma_request_head *head, int64_t n)
{
    head->mem = op->ids[op->next];
    if (origin_gets(op))
        return;
    head->at = 0;
    head->in = LIST_FRAME;
    if (op->next + n < op->npieces)
        return;
    head->in = LIST_LAST;
    head->flags = RK_RMA_WANTS_REPLY;
}

size_t rk_origin_frame_max(const struct rk_peer *peer)
{
    size_t max = peer->channel->frame_max(peer);

    return max < PACK_FRAME_MAX ? max : PACK_FRAME_MAX;
}

/* Record a request of a get. There is room: at most RK_ORIGIN_WINDOW are pending. */
static void origin_remember(struct rk_origin_op *op, uint64_t at, uint64_t in, size_t bytes)
{
    uint32_t i = (uint32_t)__builtin_ctz(~op->open);

    op->open |= 1u << i;
    op->requested[i].at = at;
    op->requested[i].in = in;
    op->requested[i].bytes = bytes;
}

/* Is it the first reply to one of them? Then clear that one. */
static bool was_requested(struct rk_origin_op *op, const struct rk_rma_reply *a, size_t bytes)
{
    if (!origin_gets(op))
        return bytes == 0 && (!op->ids || (a->in == LIST_FRAME ? a->status != 0 : op->inflight > 0));
    for (uint32_t i = 0; i < RK_ORIGIN_WINDOW; i++) {
        if ((op->open >> i & 1) && op->requested[i].at == a->at && op->requested[i].in == a->in) {
            if (bytes != (a->status ? 0 : op->requested[i].bytes))
                return false;
            op->open &= ~(1u << i);
            return true;
        }
    }
    return false;
}

static rank_status_t send_frame(struct rk_origin_op *op, const void *head, size_t head_len,
                                const void *data, size_t bytes)
{
    struct rk_hdr hdr = {.kind = RK_KIND_RMA_REQ, .epoch = op->peer->epoch,
                         .len = (uint32_t)(head_len + bytes)};

    return op->peer->channel->send2(op->peer, &hdr, head, head_len, data);
}

/* Send the next bytes of one piece. */
static rank_status_t send_piece(struct rk_origin_op *op, const rank_piece_t *p)
{
    struct {
        struct rk_rma_request_head head;
        unsigned char extra[RK_RMA_EXTRA_MAX];
    } frame = {.head = op->head};
    size_t left = (size_t)p->bytes - op->in, room, n;
    struct rk_rma_piece want;
    rank_status_t st;

    frame.head.offset = (uint64_t)p->offset + op->shift + op->in;
    frame.head.at = (uint64_t)op->next;
    frame.head.in = op->in;
    memcpy(frame.extra, op->extra, op->extra_len);
    room = rk_origin_frame_max(op->peer) - (origin_gets(op) ? sizeof(struct rk_rma_reply)
                                        : sizeof(frame.head) + op->extra_len);
    n = left < room ? left : room;
    if (op->ids)
        set_list_head(op, &frame.head, n == left);
    if (origin_gets(op)) {
        want = (struct rk_rma_piece){frame.head.offset, n};
        frame.head.n = 1;
        memcpy(frame.extra, &want, sizeof(want));
        st = send_frame(op, &frame, sizeof(frame.head) + sizeof(want), NULL, 0);
    } else {
        st = send_frame(op, &frame, sizeof(frame.head) + op->extra_len, (char *)p->local + op->in,
                        n);
    }
    if (st)
        return st;
    if (origin_gets(op))
        origin_remember(op, frame.head.at, frame.head.in, n);
    op->in += n;
    op->moved += n;
    if (op->in == (size_t)p->bytes) {
        op->next++;
        op->in = 0;
    }
    return RANK_OK;
}

/* Send as many short pieces as fit. */
static rank_status_t send_pack(struct rk_origin_op *op)
{
    unsigned char frame[PACK_FRAME_MAX] __attribute__((aligned(8)));
    union {
        struct rk_rma_piece piece[RK_RMA_BLOCKS_MAX];
        struct rk_rma_block block[RK_RMA_BLOCKS_MAX];
    } table;
    size_t entry = op->ids ? sizeof(table.block[0]) : sizeof(table.piece[0]);
    struct rk_rma_request_head *request = (struct rk_rma_request_head *)(void *)frame;
    bool get = origin_gets(op);
    size_t room = rk_origin_frame_max(op->peer), head = get ? sizeof(struct rk_rma_reply) : sizeof(*request), data = 0,
           at;
    uint32_t n = 0;
    rank_status_t st;

    for (; n < RK_RMA_BLOCKS_MAX && op->next + n < op->npieces; n++) {
        const rank_piece_t *p = &op->pieces[op->next + n];
        size_t each = (size_t)p->bytes + (get ? 0 : entry);

        if (p->bytes > PACK_PIECE_MAX || head + data + each > room)
            break;
        if (get && sizeof(*request) + (n + 1) * entry > room)
            break;
        if (op->ids)
            table.block[n] = (struct rk_rma_block){op->ids[op->next + n], (uint64_t)p->offset + op->shift, (uint64_t)p->bytes};
        else
            table.piece[n] = (struct rk_rma_piece){(uint64_t)p->offset + op->shift, (uint64_t)p->bytes};
        data += (size_t)p->bytes;
        head += each - (size_t)p->bytes;
    }
    if (n == 0) /* the channel's frames are small */
        return send_piece(op, &op->pieces[op->next]);
    *request = op->head;
    request->n = n;
    request->at = (uint64_t)op->next;
    request->in = PACKED;
    if (op->ids) {
        set_list_head(op, request, n);
        request->flags |= RK_RMA_HAS_MEMS;
    }
    at = sizeof(*request);
    memcpy(frame + at, &table, n * entry);
    at += n * entry;
    for (uint32_t i = 0; !get && i < n; i++) {
        const rank_piece_t *p = &op->pieces[op->next + i];
        if (p->bytes)
            memcpy(frame + at, p->local, (size_t)p->bytes);
        at += (size_t)p->bytes;
    }
    st = send_frame(op, frame, at, NULL, 0);
    if (st)
        return st;
    if (get)
        origin_remember(op, request->at, request->in, data);
    op->next += n;
    op->moved += data;
    return RANK_OK;
}

/* Send one frame. */
static rank_status_t send_next(struct rk_origin_op *op)
{
    const rank_piece_t *p;

    if (op->npieces == 0)
        return send_frame(op, &op->head, sizeof(op->head), op->extra, op->extra_len);
    p = &op->pieces[op->next];
    if (op->npieces == 1 || op->in || p->bytes > PACK_PIECE_MAX)
        return send_piece(op, p);
    return send_pack(op);
}

/* Send more of it, as there is room. Returns true if the queue may go on with the next. */
static bool origin_push(struct rk_origin_op *op)
{
    bool replies = op->head.flags & RK_RMA_WANTS_REPLY;

    while (!op->sent) {
        rank_status_t st;

        if (origin_gets(op) && op->inflight >= RK_ORIGIN_WINDOW) {
            unqueue(op); /* a reply continues it */
            return true;
        }
        if (rk_origin_pauses(op)) {
            unqueue(op);
            return true;
        }
        if ((replies || op->ids) && op->state->pending >= RK_REQUESTS_MAX)
            return false;
        st = send_next(op);
        if (st == RK_AGAIN)
            return false;
        if (st) {
            rk_origin_fail(op, st);
            return true;
        }
        op->sent = op->next >= op->npieces;
        if (replies || (op->ids && op->sent)) {
            op->inflight++;
            op->state->pending++;
        }
    }
    if (op->inflight == 0)
        origin_complete(op);
    else
        unqueue(op);
    return true;
}

static rank_status_t origin_send(struct rk_send_item *item, struct rk_peer *peer)
{
    (void)peer;
    return origin_push(rk_container_of(item, struct rk_origin_op, item)) ? RANK_OK : RK_AGAIN;
}

static void origin_fail_queued(struct rk_send_item *item, struct rk_peer *peer, rank_status_t status)
{
    (void)peer;
    rk_origin_fail(rk_container_of(item, struct rk_origin_op, item), status);
}

static const struct rk_send_ops origin_ops = {origin_send, origin_fail_queued};

static void origin_enqueue(struct rk_origin_op *op)
{
    op->queued = true;
    rk_sendq_append(op->peer, RK_SEND_RMA, &op->item, &origin_ops);
}

void rk_origin_resume(struct rk_origin_op *op, uint64_t more)
{
    op->limit = op->moved + more;
    if (rk_sendq_has(&op->peer->sendq, RK_SEND_RMA) || !origin_push(op))
        origin_enqueue(op);
}

void rk_origin_drop(struct rk_ctx *ctx)
{
    rk_sendq_fail_ops(ctx, &origin_ops, RANK_ERR_STATE);
}

rank_status_t rk_origin_start(struct rk_origin_op *op)
{
    struct rk_rma_peer *state = rk_rma_peer_of(op->ctx, op->peer);
    rank_status_t st = state ? rk_peer_connect(op->peer) : RANK_ERR_NO_MEMORY;

    if (!st && op->head.flags) {
        op->named = rk_handle_put(&op->ctx->rma->op_ids, op, &op->head.origin);
        st = op->named ? RANK_OK : RANK_ERR_NO_MEMORY;
    }
    if (st) {
        if (op->pooled)
            origin_free(op);
        return st;
    }
    op->state = state;
    if (!op->head.flags)
        state->posted++;
    else if (op->head.op == RK_RMA_FLUSH)
        op->covers = state->posted;
    if (rk_sendq_has(&op->peer->sendq, RK_SEND_RMA) || !origin_push(op))
        origin_enqueue(op);
    return RANK_OK;
}

rank_status_t rk_origin_run(struct rk_origin_op *op, uint8_t kind)
{
    struct rank_request req;
    rank_status_t st;

    rk_req_init(&req, NULL, NULL);
    req.ctx = op->ctx;
    req.done = false;
    req.type = RK_REQ_RMA;
    req.kind = kind;
    req.peer = op->peer;
    req.view.bytes = 0;
    op->req = &req;
    st = rk_origin_start(op);
    return st ? st : rk_req_wait(&req);
}

/* ---------------------------------------------------------------------- replies */

/* Copy a reply to a get into its pieces. */
static void scatter(struct rk_origin_op *op, const struct rk_rma_reply *a, const char *data, size_t bytes)
{
    const rank_piece_t *p = &op->pieces[a->at];

    if (a->in != PACKED) {
        memcpy((char *)p->local + a->in, data, bytes);
        return;
    }
    for (; bytes; p++) {
        if (p->bytes)
            memcpy(p->local, data, (size_t)p->bytes);
        data += p->bytes;
        bytes -= (size_t)p->bytes;
    }
}

void rk_origin_replied(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr,
                       const void *payload, const struct rk_rndv *rndv)
{
    struct rk_rma_reply a;
    struct rk_origin_op *op;
    const void *data;
    size_t bytes;

    (void)rndv;
    if (!ctx->rma)
        return;
    if (!rk_rma_decode_reply(payload, hdr->len, &a, &data, &bytes)) {
        rk_engine_refused(ctx, &ctx->rma->bad_frames);
        return;
    }
    op = rk_handle_get(&ctx->rma->op_ids, a.origin);
    if (!op && a.in == LIST_FRAME && a.status && rk_handle_was_dropped(&ctx->rma->op_ids, a.origin))
        return; /* a put of a list that has ended */
    if (!op || op->peer != peer || (op->inflight == 0 && !puts_list(op)) ||
        !was_requested(op, &a, bytes)) {
        rk_engine_refused(ctx, &ctx->rma->bad_frames);
        return;
    }
    if (bytes)
        scatter(op, &a, data, bytes);
    if (puts_list(op) && a.in == LIST_FRAME) {
        rk_origin_stop(op, (rank_status_t)a.status);
        return;
    }
    op->inflight--;
    op->state->pending--;
    op->before = a.before;
    flushed(op);
    if (a.status && op->head.op == RK_RMA_FLUSH)
        fail_flushes(op, (rank_status_t)a.status);
    if (a.status && op->ids) {
        rk_origin_stop(op, (rank_status_t)a.status);
        return;
    }
    if (a.status) {
        op->status = (rank_status_t)a.status;
        if (!op->queued) /* the rest is not requested any more */
            op->sent = true;
    }
    if (op->sent && op->inflight == 0) {
        origin_complete(op);
        return;
    }
    if (op->sent || op->queued)
        return;
    if (!origin_push(op))
        origin_enqueue(op);
}

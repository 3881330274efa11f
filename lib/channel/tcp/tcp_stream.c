/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_stream.c: write and read registered memory of the peer in place.
 *
 * A chunk of a WRITE names the memory and the offset. Its receiver asks lib/rma for the address before each piece that it
 * receives, as the memory may be deregistered meanwhile. A READ is answered by chunks of data and one that ends it, for
 * the same reason: a status that is known when all has been sent.
 */
#include "lib/channel/tcp/tcp_channel.h"

#include <stdlib.h>
#include <string.h>

/* Let chunks of it be sent. */
static void stream_queue(struct rk_tcp_op *op)
{
    rk_list_remove(&op->link);
    rk_list_append(&op->of->jobs, &op->link);
}

/* ------------------------------------------------------------------------ asking */

static rank_status_t stream_read(struct rk_tcp_link *l, struct rk_tcp_op *op)
{
    struct rk_tcp_read read = {.to = op->id, .mem = op->mem, .offset = op->offset, .bytes = op->bytes};
    struct rk_hdr hdr = {.kind = RK_TCP_READ, .epoch = l->peer->epoch, .len = sizeof(read)};
    rank_status_t st = rk_tcp_put(l, &hdr, &read, sizeof(read), NULL, NULL);

    if (st)
        rk_tcp_op_free(op); /* the request stays with the caller */
    return st;
}

rank_status_t rk_tcp_stream(struct rk_peer *peer, bool put, void *local, size_t bytes, struct rk_id mem, uint64_t offset,
                            struct rank_request *req)
{
    struct rk_tcp_link *l = peer->ep;
    bool waits = l && rk_tcp_waits(l);
    struct rk_tcp_op *op;

    if (!l || l->failed || l->bye_sent)
        return RANK_ERR_PEER_DEAD;
    if (l->nstreams >= RK_TCP_STREAMS_MAX)
        return RK_AGAIN;
    op = rk_tcp_op_new(l, put ? RK_TCP_WRITING : RK_TCP_READING, req);
    if (!op)
        return RANK_ERR_NO_MEMORY;
    op->view = (struct rk_view){local, bytes, NULL};
    op->bytes = bytes;
    op->mem = mem;
    op->offset = offset;
    if (!put)
        return stream_read(l, op);
    stream_queue(op);
    if (!waits)
        rk_tcp_flush(l);
    return RANK_OK;
}

static bool stream_written(struct rk_tcp_link *l, const struct rk_tcp_written *a)
{
    struct rk_tcp_op *op = rk_tcp_op_find(l, a->op, RK_TCP_WRITING);

    if (!rk_tcp_is_status(a->status))
        return false;
    if (!op) /* an earlier answer has ended it */
        return true;
    if (!a->status && (op->done < op->bytes || l->sending == op))
        return false;
    if (l->sending == op)
        op->copied = (rank_status_t)a->status; /* when the chunk has been sent */
    else
        rk_tcp_op_end(op, (rank_status_t)a->status);
    return true;
}

/* ----------------------------------------------------------------------- serving */

static bool stream_serve(struct rk_tcp_link *l, const struct rk_tcp_read *read)
{
    struct rk_tcp_op *op;
    void *at;

    if (read->bytes == 0 || l->nserved >= RK_TCP_SERVED_MAX)
        return false;
    op = rk_tcp_op_new(l, RK_TCP_SERVING, NULL);
    if (!op)
        return false;
    op->theirs = read->to;
    op->mem = read->mem;
    op->offset = read->offset;
    op->bytes = read->bytes;
    op->copied = l->tcp->ctx->engine->memory_at(l->tcp->ctx, l->peer, op->mem, op->offset, op->bytes, false, &at);
    stream_queue(op);
    rk_tcp_flush_later(l);
    return true;
}

bool rk_tcp_stream_frame(struct rk_tcp_link *l, const struct rk_hdr *hdr, const void *payload)
{
    struct rk_tcp_written written;
    struct rk_tcp_read read;

    if (hdr->kind == RK_TCP_WRITTEN) {
        memcpy(&written, payload, sizeof(written));
        return stream_written(l, &written);
    }
    memcpy(&read, payload, sizeof(read));
    return stream_serve(l, &read);
}

void rk_tcp_stream_chunk(struct rk_tcp_link *l, struct rk_tcp_op *op)
{
    uint64_t left = op->bytes - op->done;
    bool last = left <= RK_TCP_CHUNK_MAX;

    l->chunk = (struct rk_hdr){.epoch = l->peer->epoch, .len = last ? (uint32_t)left : (uint32_t)RK_TCP_CHUNK_MAX};
    if (op->type == RK_TCP_ANSWERING) {
        l->chunk.kind = RK_TCP_WRITTEN;
        return;
    }
    if (op->type == RK_TCP_WRITING) {
        l->chunk.kind = RK_TCP_WRITE;
        l->chunk.tag = rk_id_pack(op->mem);
        l->chunk.team = op->offset + op->done;
        l->chunk.src = op->id.index;
        l->chunk.turn = op->id.gen;
        l->chunk.flags = last ? RK_TCP_END : 0;
        return;
    }
    l->chunk.kind = RK_TCP_DATA;
    l->chunk.tag = rk_id_pack(op->theirs);
    if (op->copied || left == 0) {
        l->chunk.len = 0;
        l->chunk.flags = RK_TCP_END;
        l->chunk.src = (uint32_t)op->copied;
    }
}

const char *rk_tcp_serve_from(struct rk_tcp_link *l, struct rk_tcp_op *op)
{
    struct rk_ctx *ctx = l->tcp->ctx;
    void *at = NULL;

    if (l->chunk.len == 0)
        return "";
    if (!op->copied)
        op->copied = ctx->engine->memory_at(ctx, l->peer, op->mem, op->offset + op->done, l->chunk.len, false, &at);
    if (!op->copied)
        return at;
    free(l->packed); /* the rest of the chunk: the end that follows tells that it is none */
    l->packed = calloc(1, RK_TCP_CHUNK_MAX);
    return (const char *)l->packed;
}

void rk_tcp_stream_sent(struct rk_tcp_link *l, struct rk_tcp_op *op)
{
    op->done += l->chunk.len;
    if (op->type == RK_TCP_ANSWERING) {
        rk_tcp_op_end(op, RANK_OK);
    } else if (op->type == RK_TCP_SERVING) {
        if (l->chunk.flags & RK_TCP_END)
            rk_tcp_op_end(op, RANK_OK);
    } else if (op->copied) {
        rk_tcp_op_end(op, op->copied);
    } else if (op->done == op->bytes) {
        rk_list_remove(&op->link);
        rk_list_append(&l->ops, &op->link);
    }
}

/* ------------------------------------------------------------------ being written */

/* Does this side still serve the peer? */
static bool link_serves(const struct rk_tcp_link *l)
{
    return !l->tcp->leaving && !l->bye_sent && l->peer->state != RK_PEER_DEAD;
}

void rk_tcp_write_begins(struct rk_tcp_link *l, const struct rk_hdr *hdr)
{
    l->sink = (struct rk_tcp_sink){.on = true, .last = hdr->flags & RK_TCP_END, .mem = rk_id_unpack(hdr->tag),
                                   .writer = {hdr->src, hdr->turn}, .offset = hdr->team};
    l->into = NULL;
    atomic_thread_fence(memory_order_release); /* ordered after earlier frames */
}

char *rk_tcp_sink_at(struct rk_tcp_link *l)
{
    struct rk_ctx *ctx = l->tcp->ctx;
    struct rk_tcp_sink *s = &l->sink;
    void *at = NULL;

    if (!link_serves(l) || s->status)
        return NULL;
    s->status = ctx->engine->memory_at(ctx, l->peer, s->mem, s->offset, l->into_left, true, &at);
    return s->status ? NULL : at;
}

/* Keep an answer until there is room. A peer that does not receive its answers is disconnected. */
static void keep_answer(struct rk_tcp_link *l, const struct rk_tcp_written *answer)
{
    struct rk_tcp_op *op = l->nserved < RK_TCP_SERVED_MAX ? rk_tcp_op_new(l, RK_TCP_ANSWERING, NULL) : NULL;

    if (!op) {
        rk_tcp_link_failed(l, "too many answers wait for it");
        return;
    }
    op->answer = *answer;
    op->bytes = sizeof(op->answer);
    op->view = (struct rk_view){&op->answer, sizeof(op->answer), NULL};
    stream_queue(op);
    rk_tcp_flush_later(l);
}

void rk_tcp_write_ends(struct rk_tcp_link *l)
{
    const struct rk_tcp_written answer = {.op = l->sink.writer, .status = l->sink.status};
    const struct rk_hdr hdr = {.kind = RK_TCP_WRITTEN, .epoch = l->peer->epoch, .len = sizeof(answer)};

    l->sink.on = false;
    if ((l->sink.last || answer.status) && link_serves(l) &&
        rk_tcp_put(l, &hdr, &answer, sizeof(answer), NULL, NULL) == RK_AGAIN)
        keep_answer(l, &answer);
}

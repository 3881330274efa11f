/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * origin.c: run the origin side of one-sided calls: send frames, match answers.
 *
 * Long pieces travel in frames of their own, straight from the caller's buffer; short ones are packed. A get
 * requests a window of frames, and more with every answer.
 */
#include "lib/base/arg_error.h"
#include "lib/p2p/p2p.h"
#include "lib/rma/rma_internal.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Longer pieces have frames of their own; a frame of many pieces is at most this long. */
enum { PACK_PIECE_MAX = 4096, PACK_FRAME_MAX = 16384 };
enum { JOB_LINK = offsetof(struct rk_origin_op, item.link) };
#define PACKED UINT64_MAX /* in: the frame holds whole pieces */

void rk_origin_init(struct rk_origin_op *job, struct rk_peer *peer, enum rk_rma_op op, struct rk_id mem)
{
    memset(job, 0, offsetof(struct rk_origin_op, asked));
    job->ctx = peer->ctx;
    job->peer = peer;
    job->ask.op = (uint8_t)op;
    job->ask.mem = mem;
}

void rk_origin_add(struct rk_origin_op *job, const void *extra, uint32_t len)
{
    memcpy(job->extra, extra, len);
    job->extra_len = len;
}

void rk_origin_move(struct rk_origin_op *job, void *local, size_t bytes, size_t offset)
{
    job->one = (rank_piece_t){local, (int64_t)bytes, (int64_t)offset};
    job->pieces = &job->one;
    job->npieces = 1;
}

struct rk_origin_op *rk_origin_new(struct rk_peer *peer, enum rk_rma_op op, struct rk_id mem)
{
    struct rk_origin_op *job = rk_slab_alloc(&peer->ctx->rma->jobs, JOB_LINK);

    if (!job) {
        rk_fail(RANK_ERR_NO_MEMORY, "out of memory for one-sided calls");
        return NULL;
    }
    rk_origin_init(job, peer, op, mem);
    job->pooled = true;
    return job;
}

static void origin_free(struct rk_origin_op *job)
{
    rk_slab_free(&job->ctx->rma->jobs, job, JOB_LINK);
}

/* ---------------------------------------------------------------------- completion */

static void unqueue(struct rk_origin_op *job)
{
    if (!job->queued)
        return;
    job->queued = false;
    rk_sendq_remove(job->peer, &job->item);
}

static void origin_complete(struct rk_origin_op *job)
{
    struct rank_request *req = job->req;
    rank_status_t st = job->status;

    unqueue(job);
    if (job->state)
        job->state->asked -= job->inflight;
    job->inflight = 0;
    if (job->named)
        rk_handle_drop(&job->ctx->rma->job_ids, job->ask.asker);
    job->named = false;
    if (job->pooled)
        origin_free(job);
    if (req)
        rk_req_complete(req, st);
}

/* All requests that a flush covers are settled. */
static void flushed(struct rk_origin_op *job)
{
    if (job->covers > job->state->done)
        job->state->done = job->covers;
}

/* The owner reports errors of posted frames once: complete all present flushes with it, of any thread. */
static RK_COLD void fail_flushes(const struct rk_origin_op *failed, rank_status_t status)
{
    struct rk_origin_op *job;
    uint32_t i;

    rk_handles_for_each(i, job, &failed->ctx->rma->job_ids)
    {
        if (job->ask.op == RK_RMA_FLUSH && job->peer == failed->peer && !job->status)
            job->status = status;
    }
}

void rk_origin_fail(struct rk_origin_op *job, rank_status_t status)
{
    if (rk_is_lost(status) && job->state)
        flushed(job); /* reported once */
    job->status = status;
    job->sent = true;
    origin_complete(job);
}

void rk_origin_stop(struct rk_origin_op *job, rank_status_t status)
{
    if (!job->status)
        job->status = status;
    unqueue(job);
    job->sent = true;
    if (job->inflight == 0)
        origin_complete(job);
}

/* ----------------------------------------------------------------------- frames */

static bool origin_gets(const struct rk_origin_op *job)
{
    return job->ask.op == RK_RMA_GET;
}

/* A put of a list: the owner replies to its last frame, and to one that fails. */
static bool puts_list(const struct rk_origin_op *job)
{
    return job->ids && !origin_gets(job);
}

/* in of a put of a list: of a frame before the last one, and of the last one. */
enum { LIST_FRAME, LIST_LAST };

/* Set the head of a frame of a list. n: pieces of it that the frame ends. */
static void set_list_head(const struct rk_origin_op *job, struct rk_rma_request_head *head, int64_t n)
{
    head->mem = job->ids[job->next];
    if (origin_gets(job))
        return;
    head->at = 0;
    head->in = LIST_FRAME;
    if (job->next + n < job->npieces)
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
static void origin_remember(struct rk_origin_op *job, uint64_t at, uint64_t in, size_t bytes)
{
    uint32_t i = (uint32_t)__builtin_ctz(~job->open);

    job->open |= 1u << i;
    job->asked[i].at = at;
    job->asked[i].in = in;
    job->asked[i].bytes = bytes;
}

/* Is it the first answer to one of them? Then clear that one. */
static bool was_requested(struct rk_origin_op *job, const struct rk_rma_reply *a, size_t bytes)
{
    if (!origin_gets(job))
        return bytes == 0 && (!job->ids || (a->in == LIST_FRAME ? a->status != 0 : job->inflight > 0));
    for (uint32_t i = 0; i < RK_ORIGIN_WINDOW; i++) {
        if ((job->open >> i & 1) && job->asked[i].at == a->at && job->asked[i].in == a->in) {
            if (bytes != (a->status ? 0 : job->asked[i].bytes))
                return false;
            job->open &= ~(1u << i);
            return true;
        }
    }
    return false;
}

static rank_status_t send_frame(struct rk_origin_op *job, const void *head, size_t head_len,
                                const void *data, size_t bytes)
{
    struct rk_hdr hdr = {.kind = RK_KIND_RMA_REQ, .epoch = job->peer->epoch,
                         .len = (uint32_t)(head_len + bytes)};

    return job->peer->channel->send2(job->peer, &hdr, head, head_len, data);
}

/* Send the next bytes of one piece. */
static rank_status_t send_piece(struct rk_origin_op *job, const rank_piece_t *p)
{
    struct {
        struct rk_rma_request_head ask;
        unsigned char extra[RK_RMA_EXTRA_MAX];
    } head = {.ask = job->ask};
    size_t left = (size_t)p->bytes - job->in, room, n;
    struct rk_rma_piece want;
    rank_status_t st;

    head.ask.offset = (uint64_t)p->offset + job->shift + job->in;
    head.ask.at = (uint64_t)job->next;
    head.ask.in = job->in;
    memcpy(head.extra, job->extra, job->extra_len);
    room = rk_origin_frame_max(job->peer) - (origin_gets(job) ? sizeof(struct rk_rma_reply)
                                        : sizeof(head.ask) + job->extra_len);
    n = left < room ? left : room;
    if (job->ids)
        set_list_head(job, &head.ask, n == left);
    if (origin_gets(job)) {
        want = (struct rk_rma_piece){head.ask.offset, n};
        head.ask.n = 1;
        memcpy(head.extra, &want, sizeof(want));
        st = send_frame(job, &head, sizeof(head.ask) + sizeof(want), NULL, 0);
    } else {
        st = send_frame(job, &head, sizeof(head.ask) + job->extra_len, (char *)p->local + job->in,
                        n);
    }
    if (st)
        return st;
    if (origin_gets(job))
        origin_remember(job, head.ask.at, head.ask.in, n);
    job->in += n;
    job->moved += n;
    if (job->in == (size_t)p->bytes) {
        job->next++;
        job->in = 0;
    }
    return RANK_OK;
}

/* Send as many short pieces as fit. */
static rank_status_t send_pack(struct rk_origin_op *job)
{
    unsigned char frame[PACK_FRAME_MAX] __attribute__((aligned(8)));
    union {
        struct rk_rma_piece piece[RK_RMA_BLOCKS_MAX];
        struct rk_rma_block block[RK_RMA_BLOCKS_MAX];
    } table;
    size_t entry = job->ids ? sizeof(table.block[0]) : sizeof(table.piece[0]);
    struct rk_rma_request_head *ask = (struct rk_rma_request_head *)(void *)frame;
    bool get = origin_gets(job);
    size_t room = rk_origin_frame_max(job->peer), head = get ? sizeof(struct rk_rma_reply) : sizeof(*ask), data = 0,
           at;
    uint32_t n = 0;
    rank_status_t st;

    for (; n < RK_RMA_BLOCKS_MAX && job->next + n < job->npieces; n++) {
        const rank_piece_t *p = &job->pieces[job->next + n];
        size_t each = (size_t)p->bytes + (get ? 0 : entry);

        if (p->bytes > PACK_PIECE_MAX || head + data + each > room)
            break;
        if (get && sizeof(*ask) + (n + 1) * entry > room)
            break;
        if (job->ids)
            table.block[n] = (struct rk_rma_block){job->ids[job->next + n], (uint64_t)p->offset + job->shift, (uint64_t)p->bytes};
        else
            table.piece[n] = (struct rk_rma_piece){(uint64_t)p->offset + job->shift, (uint64_t)p->bytes};
        data += (size_t)p->bytes;
        head += each - (size_t)p->bytes;
    }
    if (n == 0) /* the channel's frames are small */
        return send_piece(job, &job->pieces[job->next]);
    *ask = job->ask;
    ask->n = n;
    ask->at = (uint64_t)job->next;
    ask->in = PACKED;
    if (job->ids) {
        set_list_head(job, ask, n);
        ask->flags |= RK_RMA_HAS_MEMS;
    }
    at = sizeof(*ask);
    memcpy(frame + at, &table, n * entry);
    at += n * entry;
    for (uint32_t i = 0; !get && i < n; i++) {
        const rank_piece_t *p = &job->pieces[job->next + i];
        if (p->bytes)
            memcpy(frame + at, p->local, (size_t)p->bytes);
        at += (size_t)p->bytes;
    }
    st = send_frame(job, frame, at, NULL, 0);
    if (st)
        return st;
    if (get)
        origin_remember(job, ask->at, ask->in, data);
    job->next += n;
    job->moved += data;
    return RANK_OK;
}

/* Send one frame. */
static rank_status_t send_next(struct rk_origin_op *job)
{
    const rank_piece_t *p;

    if (job->npieces == 0)
        return send_frame(job, &job->ask, sizeof(job->ask), job->extra, job->extra_len);
    p = &job->pieces[job->next];
    if (job->npieces == 1 || job->in || p->bytes > PACK_PIECE_MAX)
        return send_piece(job, p);
    return send_pack(job);
}

/* Send more of it, as there is room. Returns true if the queue may go on with the next. */
static bool origin_push(struct rk_origin_op *job)
{
    bool answers = job->ask.flags & RK_RMA_WANTS_REPLY;

    while (!job->sent) {
        rank_status_t st;

        if (origin_gets(job) && job->inflight >= RK_ORIGIN_WINDOW) {
            unqueue(job); /* an answer continues it */
            return true;
        }
        if (rk_origin_pauses(job)) {
            unqueue(job);
            return true;
        }
        if ((answers || job->ids) && job->state->asked >= RK_REQUESTS_MAX)
            return false;
        st = send_next(job);
        if (st == RK_AGAIN)
            return false;
        if (st) {
            rk_origin_fail(job, st);
            return true;
        }
        job->sent = job->next >= job->npieces;
        if (answers || (job->ids && job->sent)) {
            job->inflight++;
            job->state->asked++;
        }
    }
    if (job->inflight == 0)
        origin_complete(job);
    else
        unqueue(job);
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

static void origin_enqueue(struct rk_origin_op *job)
{
    job->queued = true;
    rk_sendq_append(job->peer, RK_SEND_RMA, &job->item, &origin_ops);
}

void rk_origin_resume(struct rk_origin_op *job, uint64_t more)
{
    job->limit = job->moved + more;
    if (rk_sendq_has(&job->peer->sendq, RK_SEND_RMA) || !origin_push(job))
        origin_enqueue(job);
}

void rk_origin_drop(struct rk_ctx *ctx)
{
    rk_sendq_fail_ops(ctx, &origin_ops, RANK_ERR_STATE);
}

rank_status_t rk_origin_start(struct rk_origin_op *job)
{
    struct rk_rma_peer *state = rk_rma_peer_of(job->ctx, job->peer);
    rank_status_t st = state ? rk_peer_connect(job->peer) : RANK_ERR_NO_MEMORY;

    if (!st && job->ask.flags) {
        job->named = rk_handle_put(&job->ctx->rma->job_ids, job, &job->ask.asker);
        st = job->named ? RANK_OK : RANK_ERR_NO_MEMORY;
    }
    if (st) {
        if (job->pooled)
            origin_free(job);
        return st;
    }
    job->state = state;
    if (!job->ask.flags)
        state->posted++;
    else if (job->ask.op == RK_RMA_FLUSH)
        job->covers = state->posted;
    if (rk_sendq_has(&job->peer->sendq, RK_SEND_RMA) || !origin_push(job))
        origin_enqueue(job);
    return RANK_OK;
}

rank_status_t rk_origin_run(struct rk_origin_op *job, uint8_t kind)
{
    struct rank_request req;
    rank_status_t st;

    rk_req_init(&req, NULL, NULL);
    req.ctx = job->ctx;
    req.done = false;
    req.type = RK_REQ_RMA;
    req.kind = kind;
    req.peer = job->peer;
    req.view.bytes = 0;
    job->req = &req;
    st = rk_origin_start(job);
    return st ? st : rk_req_wait(&req);
}

/* ---------------------------------------------------------------------- answers */

/* Copy an answer of a get into its pieces. */
static void scatter(struct rk_origin_op *job, const struct rk_rma_reply *a, const char *data, size_t bytes)
{
    const rank_piece_t *p = &job->pieces[a->at];

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
    struct rk_origin_op *job;
    const void *data;
    size_t bytes;

    (void)rndv;
    if (!ctx->rma)
        return;
    if (!rk_rma_decode_reply(payload, hdr->len, &a, &data, &bytes)) {
        rk_engine_refused(ctx, &ctx->rma->bad_frames);
        return;
    }
    job = rk_handle_get(&ctx->rma->job_ids, a.asker);
    if (!job && a.in == LIST_FRAME && a.status && rk_handle_was_dropped(&ctx->rma->job_ids, a.asker))
        return; /* a put of a list that has ended */
    if (!job || job->peer != peer || (job->inflight == 0 && !puts_list(job)) ||
        !was_requested(job, &a, bytes)) {
        rk_engine_refused(ctx, &ctx->rma->bad_frames);
        return;
    }
    if (bytes)
        scatter(job, &a, data, bytes);
    if (puts_list(job) && a.in == LIST_FRAME) {
        rk_origin_stop(job, (rank_status_t)a.status);
        return;
    }
    job->inflight--;
    job->state->asked--;
    job->before = a.before;
    flushed(job);
    if (a.status && job->ask.op == RK_RMA_FLUSH)
        fail_flushes(job, (rank_status_t)a.status);
    if (a.status && job->ids) {
        rk_origin_stop(job, (rank_status_t)a.status);
        return;
    }
    if (a.status) {
        job->status = (rank_status_t)a.status;
        if (!job->queued) /* the rest is not requested any more */
            job->sent = true;
    }
    if (job->sent && job->inflight == 0) {
        origin_complete(job);
        return;
    }
    if (job->sent || job->queued)
        return;
    if (!origin_push(job))
        origin_enqueue(job);
}

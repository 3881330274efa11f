/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_stage.c: move messages from and to device memory in pieces.
 *
 * The sender copies a piece to a bounce buffer and sends it by UCP's rendezvous (RK_UCX_LONG with RK_UCX_PIECE), while
 * the next pieces are being copied. The receiver lets UCP write a piece into a bounce buffer and copies it on, while the
 * next ones arrive. A side in host memory needs no buffers: UCP accesses it. Pieces of a message leave in order.
 *
 * Each piece in UCP is an op; its parent is the message's. A sender's buffers wait for the receiver's, so each side has
 * a pool for either direction. Copies under way end before the request completes, also after a death.
 */
#include "lib/base/clock.h"
#include "lib/channel/ucx/ucx.h"

#include <sched.h>
#include <stdlib.h>

enum { CLOSE_COPIES_NS = 1000 * 1000 * 1000 }; /* how long the end waits for copies */

static struct rk_ucx_stage *stage_create(struct rk_ucx_op *op, bool sends)
{
    struct rk_ucx_stage *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->op = op;
    s->sends = sends;
    rk_list_init(&s->link);
    rk_list_init(&s->copying);
    rk_list_init(&s->arrived);
    op->stage = s;
    op->of->staged += sends;
    return s;
}

void rk_ucx_stage_free(struct rk_ucx_op *op)
{
    struct rk_ucx_stage *s = op->stage;

    rk_engine_release(op->ucx->ctx, &s->link);
    op->of->staged -= s->sends;
    op->stage = NULL;
    free(s);
}

/* Let progress poll it. */
static void stage_poll(struct rk_ucx_op *op)
{
    rk_engine_defer(op->ucx->ctx, &op->ucx->staging, &op->stage->link);
}

static void stage_fail(struct rk_ucx_stage *s, rank_status_t st)
{
    if (!s->st)
        s->st = st;
    s->ended = s->ended || s->sends;
}

static struct rk_bounce_pool *pool_of(const struct rk_ucx_stage *s)
{
    return s->sends ? &s->op->ucx->sends : &s->op->ucx->receives;
}

/*
 * NULL: try again later, unless that is an error of the stage now. A peer that stops, or a dead peer with which UCP keeps its
 * pieces, does not take the buffers of all peers.
 */
static struct rk_bounce *take_bounce(struct rk_ucx_stage *s)
{
    const struct rk_view *view = &s->op->view;
    struct rk_bounce_pool *pool = pool_of(s);
    int *of_link = &s->op->of->buffers[s->sends];
    struct rk_bounce *b = s->buffers < RK_BOUNCES_EACH ? rk_bounce_take(pool, view->ops->kind, *of_link < RK_BOUNCES_LINK) : NULL;

    if (!b && pool->n == 0)
        stage_fail(s, RANK_ERR_NO_MEMORY);
    s->buffers += b != NULL;
    *of_link += b != NULL;
    return b;
}

void rk_ucx_put_bounce(struct rk_ucx_stage *s, struct rk_bounce *b)
{
    s->buffers--;
    s->op->of->buffers[s->sends]--;
    rk_bounce_put(pool_of(s), b);
}

/* Begin the copy of a piece between a bounce buffer and the view. */
static void begin_copy(struct rk_ucx_stage *s, struct rk_bounce *b, uint64_t offset, size_t bytes, bool overlaps)
{
    const struct rk_view *view = &s->op->view;
    rank_status_t st;

    b->offset = offset;
    b->bytes = bytes;
    rk_list_append(&s->copying, &b->link);
    if (view->ops->begin)
        st = view->ops->begin(view, !s->sends, offset, b->data, bytes, &b->copies);
    else
        st = s->sends ? rk_copy_out(b->data, view, offset, bytes) : rk_copy_in(view, offset, b->data, bytes);
    if (st)
        stage_fail(s, st);
    s->op->ucx->pieces++;
    s->op->ucx->overlapped += overlaps;
}

/* The first buffer, in order, if its copies are complete; NULL: none. */
static struct rk_bounce *next_copied(struct rk_ucx_stage *s)
{
    struct rk_bounce *b = rk_list_empty(&s->copying) ? NULL : rk_list_entry(s->copying.next, struct rk_bounce, link);
    rank_status_t st = RANK_OK;

    if (!b || !rk_kind_over(&b->copies, &st))
        return NULL;
    if (st)
        stage_fail(s, st);
    rk_list_remove(&b->link);
    return b;
}

/* ---------------------------------------------------------------------------- sender */

bool rk_ucx_stages(const struct rk_ucx_op *op)
{
    return op->want > RK_UCX_FRAME_MAX && (op->in_pieces || rk_ucx_copies(op->ucx, &op->view));
}

/* b NULL: from host memory. */
static void send_staged_piece(struct rk_ucx_op *op, struct rk_bounce *b, uint64_t offset, size_t bytes)
{
    struct rk_hdr hdr = {.kind = RK_UCX_LONG,
                         .flags = RK_UCX_PIECE,
                         .epoch = op->of->peer->epoch,
                         .team = offset,
                         .tag = rk_id_pack(op->theirs)};
    struct rk_ucx_op *piece = rk_ucx_op_new(op->of, RK_UCX_OP_UCP);
    rank_status_t st;

    if (!piece) {
        if (b)
            rk_ucx_put_bounce(op->stage, b);
        stage_fail(op->stage, RANK_ERR_NO_MEMORY);
        return;
    }
    piece->parent = op;
    piece->bounce = b;
    piece->announced = true;
    op->of->announced++;
    op->stage->npieces++;
    if (b) {
        piece->view = (struct rk_view){b->data, bytes, NULL};
    } else if (op->view.ops) {
        piece->view = op->view;
        piece->at = offset;
    } else {
        piece->view = (struct rk_view){(char *)op->view.base + offset, bytes, NULL};
    }
    st = rk_ucx_send_by_ucp(piece, &hdr, bytes);
    if (st) {
        rk_ucx_op_free(piece);
        stage_fail(op->stage, st);
    }
}

static size_t next_bytes(const struct rk_ucx_op *op)
{
    uint64_t left = op->want - op->stage->next;

    return left < RK_BOUNCE_BYTES ? (size_t)left : RK_BOUNCE_BYTES;
}

static bool may_begin(const struct rk_ucx_op *op)
{
    const struct rk_ucx_stage *s = op->stage;

    return s->sends && !s->ended && s->next < op->want && s->npieces < RK_BOUNCES_EACH && s->buffers < RK_BOUNCES_EACH;
}

static int step_send(struct rk_ucx_op *op)
{
    bool copies = rk_view_may_fail(&op->view);
    struct rk_ucx_stage *s = op->stage;
    struct rk_bounce *b;
    int n = 0;

    for (; (b = next_copied(s)) != NULL; n++) {
        if (s->ended)
            rk_ucx_put_bounce(s, b);
        else
            send_staged_piece(op, b, b->offset, b->bytes);
    }
    for (; may_begin(op); n++) {
        size_t bytes = next_bytes(op);
        uint64_t at = s->next;

        if (copies && !(b = take_bounce(s)))
            break;
        s->next += bytes;
        if (copies)
            begin_copy(s, b, at, bytes, s->npieces > 0);
        else
            send_staged_piece(op, NULL, at, bytes);
    }
    return n;
}

rank_status_t rk_ucx_stage_send(struct rk_ucx_op *op)
{
    if (!stage_create(op, true))
        return RANK_ERR_NO_MEMORY;
    op->type = RK_UCX_OP_STAGED;
    rk_list_remove(&op->link);
    rk_list_append(&op->of->ops, &op->link);
    stage_poll(op);
    return RANK_OK;
}

/* -------------------------------------------------------------------------- receiver */

bool rk_ucx_piece_arrived(struct rk_ucx_op *op, const struct rk_hdr *hdr, void *desc, uint64_t total)
{
    uint64_t at = hdr->team, left = op->want - (op->stage ? op->stage->next : 0);
    struct rk_ucx *ucx = op->ucx;
    struct rk_ucx_op *piece;

    if (total > RK_BOUNCE_BYTES || total > left || at > op->want || total > op->want - at || (op->stage && op->stage->ended)) {
        rk_engine_refused(ucx->ctx, &ucx->bad_frames);
        return false;
    }
    piece = op->stage || stage_create(op, false) ? rk_ucx_op_new(op->of, RK_UCX_OP_HERE) : NULL;
    if (!piece) {
        rk_ucx_link_broken(op->of); /* data is lost */
        return false;
    }
    piece->parent = op;
    piece->desc = desc;
    piece->total = total;
    piece->at = at;
    op->stage->npieces++;
    op->stage->next += total;
    rk_list_append(&op->stage->arrived, &piece->todo);
    stage_poll(op);
    return true;
}

bool rk_ucx_stage_whole(struct rk_ucx_op *announced, const struct rk_view *view, uint64_t want, struct rank_request *req)
{
    struct rk_ucx_op *op = rk_ucx_op_new(announced->of, RK_UCX_OP_STAGED);

    if (!op)
        return false;
    if (!stage_create(op, false)) {
        rk_ucx_op_free(op);
        return false;
    }
    op->req = req;
    op->view = *view;
    op->want = op->stage->next = want;
    op->stage->npieces = 1;
    announced->parent = op;
    announced->wanted = true;
    rk_list_append(&op->stage->arrived, &announced->todo);
    stage_poll(op);
    return true;
}

/* Start the receive of a piece. Returns false without a bounce buffer. */
static bool receive_piece(struct rk_ucx_op *op, struct rk_ucx_op *piece)
{
    struct rk_bounce *b;

    if (rk_view_may_fail(&op->view)) {
        b = take_bounce(op->stage);
        if (!b)
            return false;
        piece->bounce = b;
        piece->view = (struct rk_view){b->data, piece->total, NULL};
    } else if (op->view.ops) {
        piece->view = op->view;
    } else {
        piece->view = (struct rk_view){(char *)op->view.base + piece->at, piece->total, NULL};
    }
    rk_list_remove(&piece->todo);
    rk_ucx_start_receive(piece);
    return true;
}

static int step_receive(struct rk_ucx_op *op)
{
    struct rk_ucx_stage *s = op->stage;
    struct rk_bounce *b;
    int n = 0;

    if (op->desc) { /* the sender has begun: what UCP announced is not needed */
        ucp_am_data_release(op->ucx->worker, op->desc);
        op->desc = NULL;
    }
    for (; (b = next_copied(s)) != NULL; n++)
        rk_ucx_put_bounce(s, b);
    for (; !rk_list_empty(&s->arrived); n++) {
        struct rk_ucx_op *piece = rk_list_entry(s->arrived.next, struct rk_ucx_op, todo);

        if (s->st)
            rk_ucx_drop_desc(piece);
        else if (!receive_piece(op, piece) && !s->st)
            break;
    }
    return n;
}

/* -------------------------------------------------------------------------------- both */

void rk_ucx_piece_done(struct rk_ucx_op *piece, rank_status_t st)
{
    struct rk_ucx_op *op = piece->parent;
    struct rk_ucx_stage *s = op->stage;
    struct rk_bounce *b = piece->bounce;

    if (st) { /* of UCP, which moves no further pieces */
        stage_fail(s, st);
        s->ended = true;
    } else if (b && !s->sends && !s->st) {
        uint64_t left = op->want - piece->at;

        piece->bounce = NULL;
        begin_copy(s, b, piece->at, piece->total < left ? piece->total : left, s->npieces > 1 || s->next < op->want);
    }
    rk_ucx_op_free(piece);
    stage_poll(op);
    rk_ucx_stage_check(op);
}

void rk_ucx_stage_check(struct rk_ucx_op *op)
{
    struct rk_ucx_stage *s = op->stage;
    struct rank_request *req = op->req;

    if (s->busy || !(s->ended || s->next == op->want) || !rk_list_empty(&s->copying))
        return;
    if (s->npieces) {
        if (s->abandoned && req) { /* the op stays until UCP gives them back */
            op->req = NULL;
            rk_req_complete(req, s->st);
        }
        return;
    }
    if (s->sends && s->st && !s->abandoned && rk_ucx_send_unread(op) == RK_AGAIN) { /* abandoned: its peer may be freed */
        stage_poll(op);
        return;
    }
    if (op->desc)
        ucp_am_data_release(op->ucx->worker, op->desc);
    rk_ucx_finish(op, s->st);
}

void rk_ucx_stage_end(struct rk_ucx_op *op, rank_status_t st, bool orphan)
{
    stage_fail(op->stage, st);
    op->stage->ended = true;
    op->stage->abandoned |= orphan;
    stage_poll(op);
    rk_ucx_stage_check(op);
}

int rk_ucx_stage_progress(struct rk_ucx *ucx)
{
    struct rk_link all;
    int n = 0;

    rk_list_insert_before(&ucx->staging, &all); /* move the links, */
    rk_list_remove(&ucx->staging);              /* and leave an empty list */
    while (all.next != &all) {
        struct rk_ucx_stage *s = rk_list_entry(all.next, struct rk_ucx_stage, link);
        struct rk_ucx_op *op = s->op;

        rk_engine_release(ucx->ctx, &s->link);
        s->busy = true;
        n += s->sends ? step_send(op) : step_receive(op);
        s->busy = false;
        if (!rk_list_empty(&s->copying) || !rk_list_empty(&s->arrived) || may_begin(op))
            stage_poll(op);
        rk_ucx_stage_check(op);
    }
    return n;
}

void rk_ucx_stages_close(struct rk_ucx *ucx)
{
    uint64_t until = rk_clock_ns() + CLOSE_COPIES_NS;

    while (!rk_list_empty(&ucx->staging) && rk_clock_ns() < until) {
        if (rk_ucx_stage_progress(ucx) == 0)
            sched_yield();
    }
    if (ucx->pieces)
        rk_info("%llu pieces of device memory were copied for messages of ucx, %llu of them while others moved",
                (unsigned long long)ucx->pieces, (unsigned long long)ucx->overlapped);
}

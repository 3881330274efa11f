/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xfer_step.c: move lists of blocks, step by step, and complete them.
 *
 * A running transfer has something to do in the next step. A waiting one waits for the channel or for the owner. Frames
 * and the channel begin before copies, so that they go on meanwhile. Only steps finish a transfer, or code that ends it
 * while no step runs: completions of the channel are no place to start operations.
 */
#include "lib/core/request_pool.h"
#include "lib/rma/xfer.h"

#include <stdlib.h>
#include <string.h>

/* Puts and gets of the channel in flight for one transfer. */
enum { CHANNEL_WINDOW = 32 };

/* ------------------------------------------------------------------------ lists */

static void xfer_wake(struct rk_xfer *x)
{
    struct rk_rma *rma = x->ctx->rma;

    if (x->running || !rma)
        return;
    rk_list_remove(&x->link);
    rk_engine_defer(x->ctx, &rma->xfers.running, &x->link);
    rma->xfers.nrunning++;
    x->running = true;
}

/* Take it out of its list. */
static void xfer_unlink(struct rk_xfer *x)
{
    if (!x->running) {
        rk_list_remove(&x->link);
        return;
    }
    rk_engine_release(x->ctx, &x->link);
    x->ctx->rma->xfers.nrunning--;
    x->running = false;
}

void rk_xfer_sleep(struct rk_xfer *x)
{
    xfer_unlink(x);
    rk_list_append(&x->ctx->rma->xfers.waiting, &x->link);
}

/* ----------------------------------------------------------------------- notice */

struct notice {
    struct rk_link link; /* first: struct rk_engine.leavings */
    struct rank_request req;
    bool over, kept;
    unsigned char data[];
};

static void notice_over(struct rank_request *req, void *arg)
{
    struct notice *n = arg;

    (void)req;
    n->over = true;
    if (!n->kept)
        return;
    rk_list_remove(&n->link);
    free(n);
}

/* It is a message of its own: the transfer does not wait until it is received. */
static rank_status_t notice_send(const struct rk_xfer *x)
{
    size_t bytes = (size_t)x->notice.bytes;
    struct notice *n = calloc(1, sizeof(*n) + bytes);
    rank_status_t st;

    if (!n)
        return RANK_ERR_NO_MEMORY;
    rk_list_init(&n->link);
    if (bytes)
        memcpy(n->data, x->notice.data, bytes);
    rk_req_init(&n->req, notice_over, n);
    rk_p2p_isend(x->team, n->data, bytes, x->rank, (uint64_t)x->notice.tag, 0, &n->req);
    if (n->over) {
        st = n->req.status;
        free(n);
        return st;
    }
    n->kept = true;
    rk_list_append(&x->ctx->rma->xfers.notices, &n->link);
    return RANK_OK;
}

/* ------------------------------------------------------------------------- ends */

static bool groups_are_moved(const struct rk_xfer *x)
{
    for (int g = 0; g < RK_ROUTE_FRAMES; g++) {
        if (x->group[g].next < x->group[g].end)
            return false;
    }
    return x->op_done;
}

static bool xfer_is_over(const struct rk_xfer *x)
{
    return x->inflight == 0 && (x->status || (groups_are_moved(x) && x->visible));
}

/* Complete the request. A one-time transfer is freed, and a persistent one if its request was freed meanwhile. */
static void xfer_finish(struct rk_xfer *x)
{
    struct rank_request *req = x->req;
    rank_status_t st = x->status;

    if (!st && x->put)
        __atomic_thread_fence(__ATOMIC_SEQ_CST); /* stores to mapped parts */
    if (!st && x->has_notice && x->peer)
        st = notice_send(x);
    xfer_unlink(x);
    x->active = false;
    x->req = NULL;
    if (x->persistent && (req->flags & RK_REQ_POOLED))
        rk_list_append(&x->ctx->rma->xfers.idle, &x->link);
    else
        rk_xfer_free(x);
    rk_req_complete(req, st);
}

/* End it with an error. What is in flight is awaited, since it accesses local memory. */
static void xfer_fail(struct rk_xfer *x, rank_status_t status)
{
    if (!x->active)
        return;
    if (!x->status)
        x->status = status;
    if (x->posted && !x->op_done && !x->op.sent)
        rk_origin_stop(&x->op, status);
    xfer_wake(x);
}

void rk_xfer_abort(struct rk_xfer *x, rank_status_t status)
{
    xfer_fail(x, status);
    if (!x->ctx->rma->xfers.moving && xfer_is_over(x))
        xfer_finish(x);
}

/* ------------------------------------------------------------------------ frames */

static void frames_done(struct rank_request *req, void *arg)
{
    struct rk_xfer *x = arg;

    x->inflight--;
    x->op_done = true;
    if (req->status)
        xfer_fail(x, req->status);
    xfer_wake(x);
}

static rank_status_t frames_post(struct rk_xfer *x, uint64_t limit)
{
    const struct rk_xfer_group *g = &x->group[RK_ROUTE_FRAMES];
    rank_status_t st;

    rk_origin_init(&x->op, x->peer, x->put ? RK_RMA_PUT : RK_RMA_GET, x->ids[g->first]);
    x->op.head.flags = x->put ? RK_RMA_WANTS_ERROR : RK_RMA_WANTS_REPLY;
    x->op.pieces = x->pieces + g->first;
    x->op.ids = x->ids + g->first;
    x->op.npieces = g->end - g->first;
    x->op.limit = x->put ? limit : 0;
    x->op_req = (struct rank_request){.ctx = x->ctx, .peer = x->peer, .type = RK_REQ_RMA, .kind = RK_REQ_LIST, .elem = 1,
                                       .on_done = frames_done, .arg = x};
    x->op.req = &x->op_req;
    x->posted = true;
    x->inflight++;
    st = rk_origin_start(&x->op);
    if (st) {
        x->inflight--;
        x->op_done = true;
    }
    return st;
}

/* Copies of puts into frames count. */
static rank_status_t frames_move(struct rk_xfer *x, size_t *budget)
{
    uint64_t before = x->posted ? x->op.moved : 0, moved;
    rank_status_t st = RANK_OK;

    if (x->op_done)
        return RANK_OK;
    if (!x->posted)
        st = frames_post(x, *budget);
    else if (x->put && rk_origin_pauses(&x->op) && !x->op.queued && !rk_sendq_has(&x->peer->sendq, RK_SEND_RMA))
        rk_origin_resume(&x->op, *budget);
    moved = x->put && !st ? x->op.moved - before : 0;
    *budget -= moved < *budget ? (size_t)moved : *budget;
    return st;
}

/* ----------------------------------------------------------------------- channel */

static void channel_done(struct rank_request *req, void *arg)
{
    struct rk_xfer *x = arg;
    rank_status_t st = req->status;

    rk_req_free(req);
    x->inflight--;
    if (!x->ctx->rma) /* it belongs to the engine now */
        return;
    if (st)
        xfer_fail(x, st);
    xfer_wake(x);
}

static struct rank_request *channel_request(struct rk_xfer *x)
{
    struct rank_request *req = rk_req_alloc(x->ctx);

    if (!req)
        return NULL;
    req->type = RK_REQ_RMA;
    req->kind = RK_REQ_LIST;
    req->peer = x->peer;
    req->view = (struct rk_view){NULL, 0, NULL};
    req->on_done = channel_done;
    req->arg = x;
    x->inflight++;
    return req;
}

static rank_status_t channel_started(struct rk_xfer *x, struct rank_request *req, rank_status_t st)
{
    if (!st)
        return RANK_OK;
    rk_req_free(req);
    x->inflight--;
    return st;
}

static rank_status_t channel_move(struct rk_xfer *x, size_t *budget)
{
    struct rk_xfer_group *g = &x->group[RK_ROUTE_CHANNEL];
    rank_status_t st = RANK_OK;

    while (!st && g->next < g->end && *budget && x->inflight < CHANNEL_WINDOW) {
        const rank_piece_t *p = &x->pieces[g->next];
        const struct rk_xfer_mem *m = &x->mems[x->which[g->next]];
        size_t left = (size_t)(p->bytes - g->in), bytes = left < *budget ? left : *budget;
        struct rank_request *req = channel_request(x);

        if (!req)
            return RANK_ERR_NO_MEMORY;
        st = channel_started(x, req, rk_path_start(x->put, (char *)p->local + g->in, bytes, x->peer, m->mem, &m->mem->paths[m->rank],
                                                   (size_t)(p->offset + g->in), req));
        if (st == RK_AGAIN)
            return RANK_OK;
        *budget -= bytes;
        g->in += (int64_t)bytes;
        if (bytes == left) {
            g->next++;
            g->in = 0;
        }
    }
    return st;
}

/* Make the channel's puts visible. */
static rank_status_t channel_flush(struct rk_xfer *x)
{
    const struct rk_xfer_group *g = &x->group[RK_ROUTE_CHANNEL];
    struct rank_request *req;

    if (x->visible || x->inflight || g->next < g->end)
        return RANK_OK;
    x->visible = true;
    if (!x->peer->channel->iflush) /* what it streams is visible on completion */
        return RANK_OK;
    req = channel_request(x);
    return req ? channel_started(x, req, x->peer->channel->iflush(x->peer, req)) : RANK_ERR_NO_MEMORY;
}

/* ------------------------------------------------------------------------ copies */

/* Pieces at addresses of this process, or of the peer's. */
static rank_status_t copy_batch(struct rk_xfer *x, enum rk_route route, const rank_piece_t *pieces, int64_t n)
{
    const struct rk_xfer_mem *m = &x->mems[x->which[x->group[route].next]];
    const struct rk_path *path;
    struct rk_peer *peer;
    rank_status_t st;

    if (route == RK_ROUTE_MAPPED) {
        rk_copy_mapped(x->put, pieces, n, 0);
        return RANK_OK;
    }
    st = rk_path_reach(m->mem, m->rank, x->put ? RK_NO_WRITES : RK_NO_READS, &peer, &path);
    return st ? st : rk_copy_by_cma(x->put, pieces, n, path->pid, 0);
}

/* Copy whole pieces, or the next bytes of one. */
static rank_status_t copies_move(struct rk_xfer *x, enum rk_route route, size_t *budget)
{
    struct rk_xfer_group *g = &x->group[route];
    rank_status_t st = RANK_OK;

    while (!st && g->next < g->end && *budget) {
        const rank_piece_t *p = &x->pieces[g->next];
        rank_piece_t rest = {(char *)p->local + g->in, p->bytes - g->in, p->offset + g->in};
        bool whole = (size_t)rest.bytes <= *budget;
        int64_t n = 1;
        size_t bytes;

        if (!whole)
            rest.bytes = (int64_t)*budget;
        bytes = (size_t)rest.bytes;
        for (; whole && g->in == 0 && n < RK_PIECE_BATCH && g->next + n < g->end && (size_t)p[n].bytes <= *budget - bytes; n++)
            bytes += (size_t)p[n].bytes;
        st = copy_batch(x, route, n > 1 ? p : &rest, n);
        *budget -= bytes;
        g->next += whole ? n : 0;
        g->in = whole ? 0 : g->in + rest.bytes;
    }
    return st;
}

/* ------------------------------------------------------------------------- steps */

static bool group_is_empty(const struct rk_xfer *x, int g)
{
    return x->group[g].first == x->group[g].end;
}

/* It moves nothing while a connection is made. */
static rank_status_t step_move(struct rk_xfer *x, size_t *budget)
{
    rank_status_t st = RANK_OK;

    if (rk_unlikely(x->peer->state == RK_PEER_DEAD))
        return rk_peer_lost(x->peer);
    if (rk_unlikely(x->peer->state == RK_PEER_NEW) && !(group_is_empty(x, RK_ROUTE_CHANNEL) && group_is_empty(x, RK_ROUTE_FRAMES))) {
        st = rk_peer_try_connect(x->peer); /* a wait here would hold up the steps of all lists */
        if (st)
            return st == RK_AGAIN ? RANK_OK : st;
    }
    st = frames_move(x, budget);
    if (!st && x->group[RK_ROUTE_CHANNEL].next < x->group[RK_ROUTE_CHANNEL].end)
        st = channel_move(x, budget);
    if (!st)
        st = copies_move(x, RK_ROUTE_MAPPED, budget);
    if (!st)
        st = copies_move(x, RK_ROUTE_CMA, budget);
    return st ? st : channel_flush(x);
}

/* Is there something to do in the next step, without a completion before? */
static bool has_work(const struct rk_xfer *x)
{
    const struct rk_xfer_group *c = &x->group[RK_ROUTE_CHANNEL];

    return x->group[RK_ROUTE_MAPPED].next < x->group[RK_ROUTE_MAPPED].end || x->group[RK_ROUTE_CMA].next < x->group[RK_ROUTE_CMA].end ||
           (c->next < c->end && x->inflight < CHANNEL_WINDOW) || (!x->op_done && !x->posted) ||
           (x->put && !x->op_done && !x->op.sent);
}

/* Returns true if it moved something. It may be freed. */
static bool xfer_step(struct rk_xfer *x, size_t *budget, bool in_call)
{
    size_t before = *budget;
    uint32_t inflight = x->inflight;
    rank_status_t st = x->status ? RANK_OK : step_move(x, budget);
    bool moved;

    if (st)
        xfer_fail(x, st);
    if (in_call && !x->status && xfer_is_over(x) && x->group[RK_ROUTE_MAPPED].first < x->group[RK_ROUTE_CMA].end) {
        const struct rk_xfer_mem *m = &x->mems[x->which[0]];

        rk_mem_moved(m->mem, x->bytes);
        st = rk_mem_check_death(m->mem, m->rank);
        if (st)
            xfer_fail(x, st);
    }
    moved = *budget != before || x->inflight != inflight;
    if (xfer_is_over(x)) {
        xfer_finish(x);
        return true;
    }
    if (x->status || !has_work(x))
        rk_xfer_sleep(x);
    return moved;
}

int rk_xfers_progress(struct rk_ctx *ctx)
{
    struct rk_xfers *all = ctx->rma ? &ctx->rma->xfers : NULL;
    size_t budget = RK_XFER_STEP;
    int n = 0;

    if (!all || all->moving || rk_list_empty(&all->running))
        return 0;
    all->moving = true;
    for (int turns = all->nrunning; turns > 0 && budget && !rk_list_empty(&all->running); turns--) {
        struct rk_xfer *x = rk_list_entry(all->running.next, struct rk_xfer, link);

        rk_engine_defer(ctx, &all->running, &x->link); /* the others come first in the next step */
        n += xfer_step(x, &budget, false);
    }
    all->moving = false;
    return n;
}

void rk_xfer_begin(struct rk_xfer *x, struct rank_request *req)
{
    struct rk_xfers *all = &x->ctx->rma->xfers;
    size_t budget = RK_XFER_STEP;
    struct rk_rma_peer *state;

    req->status = RANK_OK;
    req->done = false;
    x->req = req;
    x->active = true;
    x->status = RANK_OK;
    x->posted = false;
    x->op_done = group_is_empty(x, RK_ROUTE_FRAMES);
    x->visible = !x->put || group_is_empty(x, RK_ROUTE_CHANNEL);
    for (int g = 0; g < RK_ROUTES; g++) {
        x->group[g].next = x->group[g].first;
        x->group[g].in = 0;
    }
    xfer_wake(x);
    if (!x->peer) {
        xfer_finish(x);
        return;
    }
    if ((state = rk_rma_peer_of(x->ctx, x->peer)) != NULL) {
        state->counts.transfers++;
        state->counts.blocks += (uint64_t)x->nblocks;
    }
    if (all->moving) /* a completion within a step starts it */
        return;
    all->moving = true;
    xfer_step(x, &budget, true);
    all->moving = false;
}

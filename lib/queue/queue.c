/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue.c: begin the starts that streams have reached, and let the streams go on.
 *
 * A hook of progress reads the words of all queues, so whichever thread makes progress begins a start. The progress
 * thread does so when no other waits. A start ends deep inside a channel, which only stores to a word.
 */
#include "lib/base/clock.h"
#include "lib/base/retired.h"
#include "lib/p2p/team.h"
#include "lib/queue/queue_state.h"

#include <stdlib.h>

/* Between two checks whether the driver has failed: time, and polls between two reads of the clock. */
enum { CHECK_NS = 20 * 1000 * 1000, POLLS_PER_CLOCK = 64 };
enum { FIRST_START = 2, LAST_START = 3 }; /* in priv of a request with RK_HOLD_QUEUED */

static struct rk_retired retired = RK_RETIRED_INIT(8);

/* -------------------------------------------------------------- starts of a request */

static struct rk_start *first_start(const struct rank_request *req)
{
    return (struct rk_start *)(uintptr_t)req->priv[FIRST_START];
}

static void list_start(struct rank_request *req, struct rk_start *s)
{
    struct rk_start *last = (struct rk_start *)(uintptr_t)req->priv[LAST_START];

    s->next = NULL;
    if (first_start(req))
        last->next = s;
    else
        req->priv[FIRST_START] = (uintptr_t)s;
    req->priv[LAST_START] = (uintptr_t)s;
}

static void unlist_start(struct rank_request *req, const struct rk_start *s)
{
    struct rk_start *before = NULL, *at = first_start(req);

    for (; at != s; at = at->next)
        before = at;
    if (before)
        before->next = s->next;
    else
        req->priv[FIRST_START] = (uintptr_t)s->next;
    if (!s->next)
        req->priv[LAST_START] = (uintptr_t)before;
}

/* The result of a receive is that of the last start; the status is that of the first that failed. */
static void end_for_request(const struct rk_start *s, rank_status_t status)
{
    struct rank_request *req = s->req;
    const struct rank_request *op = &s->op;

    unlist_start(req, s);
    if (!req->status)
        req->status = status;
    if (req->type == RK_REQ_RECV) {
        req->env_src = op->env_src;
        req->env_tag = op->env_tag;
        req->got = op->got;
        req->sent = op->sent;
    }
    if (!first_start(req))
        rk_req_end(req, req->status);
}

/* ----------------------------------------------------------------- starts of a queue */

static struct rk_start *start_at(const struct rank_queue *q, uint64_t number)
{
    return &q->starts[number % q->depth];
}

/* The first start has ended. */
static void pop_start(struct rank_queue *q)
{
    q->ctx->engine->stream_starts--;
    q->ops->raise(q->stream, q->first++);
}

static void end_start(struct rk_start *s, rank_status_t status)
{
    struct rank_queue *q = s->queue;

    if (status && !q->status)
        q->status = status;
    pop_start(q);
    end_for_request(s, status);
}

static void operation_ended(struct rank_request *op, void *arg)
{
    end_start(arg, op->status);
}

static void begin_start(struct rk_start *s)
{
    struct rank_request *op = &s->op;
    rank_status_t st;

    s->begun = true;
    *op = *s->req;
    op->flags &= (uint8_t)~RK_REQ_POOLED;
    op->done = false;
    op->on_done = operation_ended;
    op->arg = s;
    if (rk_team_check(NULL, op->on) || op->on->id != (op->team & ~RK_TEAM_COLL)) /* freed meanwhile */
        st = RANK_ERR_HANDLE;
    else
        st = op->persistent->start(op);
    if (st)
        end_start(s, st);
}

static void fail_start(struct rk_start *s, rank_status_t status)
{
    struct rank_request *req = s->req;

    if (req->persistent->fail && rk_team_check(NULL, req->on) == RANK_OK && req->on->id == (req->team & ~RK_TEAM_COLL))
        req->persistent->fail(req, status);
    end_start(s, status);
}

static bool is_reached(const struct rank_queue *q)
{
    return (int64_t)(atomic_load_explicit(q->stream->reached, memory_order_acquire) - q->first) >= 0;
}

static void check_stream(struct rank_queue *q)
{
    uint64_t now = rk_clock_ns();

    if (now < q->next_check_ns)
        return;
    q->next_check_ns = now + CHECK_NS;
    q->broken = q->ops->check(q->stream);
}

/* Returns the number of starts that it has begun or ended. */
static int queue_progress(struct rank_queue *q)
{
    int n = q->appended;

    q->appended = false;
    while (!rk_queue_is_idle(q)) {
        struct rk_start *s = start_at(q, q->first);

        if (s->begun)
            break;
        if (!s->req) {
            pop_start(q);
            continue;
        }
        if (first_start(s->req) != s)
            break;
        if (q->broken)
            fail_start(s, q->broken);
        else if (is_reached(q))
            begin_start(s);
        else
            break;
        n++;
    }
    if (!rk_queue_is_idle(q) && !q->broken && ++q->polls % POLLS_PER_CLOCK == 0)
        check_stream(q);
    return n;
}

static int queues_progress(struct rk_ctx *ctx)
{
    struct rk_queues *queues = ctx->queues;
    struct rk_link *l;
    int n = 0;

    if (queues->running) /* a start makes progress */
        return 0;
    queues->running = true;
    rk_list_for_each(l, &queues->open)
        n += queue_progress(rk_list_entry(l, struct rank_queue, link));
    queues->running = false;
    return n;
}

rank_status_t rk_queue_add(struct rank_queue *q, struct rank_request *req, uint64_t *number, bool *was_idle)
{
    struct rk_start *s = start_at(q, q->next);

    if (q->next - q->first == q->depth)
        return RANK_ERR_AGAIN;
    *was_idle = !(req->hold & RK_HOLD_ACTIVE);
    if (*was_idle) {
        req->hold |= RK_HOLD_ACTIVE | RK_HOLD_QUEUED;
        req->priv[FIRST_START] = req->priv[LAST_START] = 0;
        req->status = RANK_OK;
        req->peer = NULL;
        req->on_done = NULL;
    }
    req->done = false;
    s->queue = q;
    s->req = req;
    s->begun = false;
    list_start(req, s);
    *number = q->next++;
    q->appended = true;
    q->ctx->engine->stream_starts++;
    return RANK_OK;
}

void rk_queue_withdraw(struct rank_queue *q, uint64_t number, bool was_idle, rank_status_t status)
{
    struct rk_start *s = start_at(q, number);
    struct rank_request *req = s->req;

    if (number < q->first || s->begun) { /* the stream has reached it, but does not wait for its end */
        q->broken = status;
        if (number >= q->first && !req->status)
            req->status = status;
        return;
    }
    s->req = NULL;
    unlist_start(req, s);
    if (first_start(req))
        return;
    if (was_idle)
        req->hold &= (uint8_t)~RK_HOLD_ACTIVE;
    rk_req_end(req, req->status);
}

/* ------------------------------------------------------------------------ the room */

struct rank_queue *rk_queue_alloc(uint32_t depth)
{
    struct rk_link *link = rk_retired_take(&retired);
    struct rank_queue *q = link ? rk_list_entry(link, struct rank_queue, link) : malloc(sizeof(*q));

    if (!q)
        return NULL;
    *q = (struct rank_queue){.depth = depth, .starts = calloc(depth, sizeof(*q->starts))};
    if (!q->starts) {
        rk_retired_put(&retired, &q->link);
        return NULL;
    }
    pthread_mutex_init(&q->append, NULL);
    return q;
}

void rk_queue_free_memory(struct rank_queue *q)
{
    free(q->starts);
    q->starts = NULL;
    pthread_mutex_destroy(&q->append);
    rk_retired_put(&retired, &q->link);
}

void rk_queue_open(struct rank_queue *q)
{
    q->first = q->next = q->stream->last + 1;
    rk_list_append(&q->ctx->queues->open, &q->link);
    rk_room_start_progress(q->ctx, &rk_room_queue);
    q->magic = RK_QUEUE_MAGIC;
}

void rk_queue_unlist(struct rank_queue *q)
{
    rk_list_remove(&q->link);
    q->magic = 0;
}

static rank_status_t queues_open(struct rk_ctx *ctx)
{
    struct rk_queues *queues = calloc(1, sizeof(*queues));

    if (!queues)
        return RANK_ERR_NO_MEMORY;
    rk_list_init(&queues->open);
    rk_list_init(&queues->closed);
    ctx->queues = queues;
    return RANK_OK;
}

/* The streams of queues that are not freed go on, without what they have started. */
static void queues_close(struct rk_ctx *ctx)
{
    struct rk_queues *queues = ctx->queues;

    while (queues && !rk_list_empty(&queues->open)) {
        struct rank_queue *q = rk_list_entry(queues->open.next, struct rank_queue, link);

        rk_queue_unlist(q);
        for (; !rk_queue_is_idle(q); pop_start(q))
            start_at(q, q->first)->op.on_done = NULL;
        q->ops->close(q->stream);
        rk_list_append(&queues->closed, &q->link);
    }
}

static void queues_release(struct rk_ctx *ctx)
{
    struct rk_queues *queues = ctx->queues;

    while (queues && !rk_list_empty(&queues->closed)) {
        struct rank_queue *q = rk_list_entry(queues->closed.next, struct rank_queue, link);

        rk_list_remove(&q->link);
        rk_queue_free_memory(q);
    }
    free(queues);
    ctx->queues = NULL;
}

static void queues_spoil(struct rk_ctx *ctx)
{
    struct rk_link *l;

    if (!ctx->queues)
        return;
    rk_list_for_each(l, &ctx->queues->open)
        rk_list_entry(l, struct rank_queue, link)->magic = 0;
}

const struct rk_room rk_room_queue = {
    .name = "queue",
    .open = queues_open,
    .close = queues_close,
    .release = queues_release,
    .progress = queues_progress,
    .progress_on_demand = true,
    .spoil = queues_spoil,
};

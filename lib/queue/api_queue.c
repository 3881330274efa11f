/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_queue.c: create and free queues, and start requests on them.
 *
 * The driver's calls run without the context's lock: they may block until a stream goes on, which takes the lock.
 */
#include "lib/core/describe.h"
#include "lib/core/root.h"
#include "lib/mem/kind.h"
#include "lib/p2p/api_request.h"
#include "lib/queue/queue_state.h"

enum { DEPTH_DEFAULT = 256, DEPTH_MAX = 65536 };

/* -------------------------------------------------------------------------- create */

static rank_status_t queue_check_opts(rank_team_t team, const rank_queue_opts_t *opts)
{
    const char *call = "rank_queue_create";

    if (!opts)
        return rk_arg_null(call, "opts");
    if (opts->size < sizeof(*opts))
        return rk_arg_error(RANK_ERR_ARG, call, "opts->size %zu is too small; begin with RANK_QUEUE_OPTS_INIT", opts->size);
    if (opts->depth < 0 || opts->depth > DEPTH_MAX)
        return rk_arg_error(RANK_ERR_COUNT, call, "opts->depth %d is not from 0 to %d", (int)opts->depth, DEPTH_MAX);
    if (team != RANK_TEAM_NULL)
        return rk_arg_error(RANK_ERR_NOT_SUPPORTED, call, "a queue of a team is not supported; pass RANK_TEAM_NULL");
    if (opts->threads != 0)
        return rk_arg_error(RANK_ERR_NOT_SUPPORTED, call, "opts->threads %d is not supported; the progress thread runs operations: pass 0",
                            (int)opts->threads);
    if (!opts->stream)
        return rk_arg_error(RANK_ERR_NOT_SUPPORTED, call, "a queue without a stream, or with the default one, is not supported; "
                                                          "set opts->stream to a CUDA stream that is created");
    return RANK_OK;
}

static rank_status_t queue_open_stream(struct rank_queue *q, void *stream)
{
    char why[512] = "the driver failed";
    rank_status_t st = q->ops->open(stream, &q->stream, why, sizeof(why));

    return st ? rk_arg_error(st, "rank_queue_create", "%s", why) : RANK_OK;
}

rank_status_t rank_queue_create(rank_team_t team, const rank_queue_opts_t *opts, rank_queue_t *out)
{
    const struct rk_stream_ops *ops = rk_device_kind ? rk_device_kind->streams : NULL;
    struct rank_queue *q;
    struct rk_ctx *ctx;
    rank_status_t st = rk_root_find(__func__, RANK_CTX_NULL, &ctx);

    if (!st)
        st = queue_check_opts(team, opts);
    if (st)
        return st;
    if (!out)
        return rk_arg_null("rank_queue_create", "queue");
    if (!ops)
        return rk_arg_error(RANK_ERR_NOT_SUPPORTED, "rank_queue_create", "this process uses no device that has streams; RANK_CUDA=on asks for it");
    if (!ctx->engine->threads)
        return rk_arg_error(RANK_ERR_STATE, "rank_queue_create",
                            "a thread of the library runs the operations: pass RANK_THREAD_MULTIPLE to rank_init, or set RANK_PROGRESS_THREAD");
    q = rk_queue_alloc(opts->depth ? (uint32_t)opts->depth : DEPTH_DEFAULT);
    if (!q)
        return RANK_ERR_NO_MEMORY;
    q->ctx = ctx;
    q->ops = ops;
    st = queue_open_stream(q, opts->stream);
    if (!st) {
        RK_ENTER(ctx);
        st = rk_progress_thread_start(ctx);
        if (!st)
            rk_queue_open(q);
    }
    if (st) {
        if (q->stream)
            ops->close(q->stream);
        rk_queue_free_memory(q);
        return st;
    }
    *out = q;
    return RANK_OK;
}

/* --------------------------------------------------------------------------- start */

static rank_status_t check_queue(const char *call, const struct rank_queue *q)
{
    return q && q->magic == RK_QUEUE_MAGIC ? RANK_OK : rk_arg_handle(call, "queue", q);
}

static rank_status_t add_start(struct rank_queue *q, struct rank_request *req, uint64_t *number, bool *was_idle)
{
    RK_ENTER(q->ctx);
    rank_status_t st = rk_check_start("rank_start_on", req, true);

    if (!st && req->ctx != q->ctx)
        st = rk_arg_error(RANK_ERR_HANDLE, "rank_start_on", "the request is not of the queue's world");
    if (!st && q->broken)
        st = q->broken;
    if (!st)
        st = rk_queue_add(q, req, number, was_idle);
    if (!st && rk_threads_sleeps(q->ctx->engine->threads))
        rk_threads_kick(q->ctx->engine->threads);
    return st;
}

static void withdraw_start(struct rank_queue *q, uint64_t number, bool was_idle, rank_status_t status)
{
    RK_ENTER(q->ctx);

    rk_queue_withdraw(q, number, was_idle, status);
}

rank_status_t rank_start_on(rank_request_t *req, rank_queue_t queue)
{
    rank_status_t st = check_queue(__func__, queue);
    char why[512];
    uint64_t number;
    bool was_idle;

    if (!req)
        return rk_arg_null(__func__, "req");
    if (st)
        return st;
    if (!rk_may_wait(queue->ctx)) /* the driver may wait until a stream goes on */
        return rk_arg_in_callback(__func__);
    pthread_mutex_lock(&queue->append);
    st = add_start(queue, *req, &number, &was_idle);
    if (!st) {
        snprintf(why, sizeof(why), "the driver failed");
        st = queue->ops->start(queue->stream, number, why, sizeof(why));
        if (st) {
            withdraw_start(queue, number, was_idle, st);
            st = rk_arg_error(st, __func__, "%s", why);
        }
    }
    pthread_mutex_unlock(&queue->append);
    return st;
}

/* ---------------------------------------------------------------------------- free */

struct queue_wait {
    struct rk_wait wait;
    const struct rank_queue *queue;
};

static bool queue_is_idle(struct rk_wait *w)
{
    const struct rank_queue *q = ((struct queue_wait *)w)->queue;

    return rk_queue_is_idle(q) && !q->ctx->queues->running;
}

static void describe_queue(const struct rk_wait *w, struct rk_wait_for *out)
{
    (void)w;
    rk_describe_call(out, "starts of a queue");
}

static rank_status_t queue_end(struct rank_queue *q)
{
    RK_ENTER(q->ctx);
    struct queue_wait w = {.wait = {.describe = describe_queue}, .queue = q};

    rk_wait(q->ctx, &w.wait, queue_is_idle);
    rk_queue_unlist(q);
    return q->status;
}

rank_status_t rank_queue_free(rank_queue_t *queue)
{
    struct rank_queue *q = queue ? *queue : NULL;
    rank_status_t st;

    if (!queue)
        return rk_arg_null(__func__, "queue");
    if ((st = check_queue(__func__, q)) != RANK_OK)
        return st;
    if (!rk_may_wait(q->ctx))
        return rk_arg_in_callback(__func__);
    st = queue_end(q);
    q->ops->close(q->stream);
    rk_queue_free_memory(q);
    *queue = RANK_QUEUE_NULL;
    return rk_call_end(__func__, st);
}

RK_PUBLIC(rank_queue_create); RK_PUBLIC(rank_queue_free); RK_PUBLIC(rank_start_on);

/* SPDX-License-Identifier: BSD-3-Clause */
/* api_ctx.c: open and close contexts, make progress in them. */
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/timing.h"
#include "lib/conn/conns.h"
#include "lib/core/event_fd.h"
#include "lib/core/root.h"
#include "lib/core/threads.h"
#include "lib/rma/rma.h"
#include "lib/world/process.h"
#include "lib/world/world.h"

#include <stdlib.h>
#include <string.h>

static rank_status_t read_ctx_opts(const rank_ctx_opts_t *given, rank_ctx_opts_t *out)
{
    static const char call[] = "rank_ctx_open";

    *out = (rank_ctx_opts_t)RANK_CTX_OPTS_INIT;
    if (given && (given->size < sizeof(given->size) || given->size > sizeof(*out) || given->size % sizeof(given->size)))
        return rk_arg_error(RANK_ERR_ARG, call, "opts->size is %zu: use RANK_CTX_OPTS_INIT", given->size);
    if (given) /* fields beyond its size keep their defaults */
        memcpy(out, given, given->size);
    if (out->thread_level < RANK_THREAD_SINGLE || out->thread_level > RANK_THREAD_MULTIPLE)
        return rk_arg_error(RANK_ERR_ARG, call, "thread level %d is not defined", out->thread_level);
    if (out->name && strlen(out->name) >= RK_SHAKE_NAME)
        return rk_arg_error(RANK_ERR_ARG, call, "the name has more than %d bytes", RK_SHAKE_NAME - 1);
    if (out->net_devices && !*out->net_devices)
        return rk_arg_error(RANK_ERR_ARG, call, "opts->net_devices is empty: name a device as mlx5_0, or leave it NULL");
    if (out->quiet != 0 && out->quiet != 1)
        return rk_arg_error(RANK_ERR_ARG, call, "opts->quiet %lld is neither 0 nor 1", (long long)out->quiet);
    if (out->quiet)
        rk_errors_quiet();
    return RANK_OK;
}

rank_status_t rank_ctx_open(const rank_ctx_opts_t *given, rank_ctx_t *out)
{
    rank_ctx_opts_t opts;
    struct rk_ctx *ctx = NULL;
    rank_status_t st = out ? read_ctx_opts(given, &opts) : rk_arg_null(__func__, "ctx");

    if (st)
        return st;
    st = rk_process_enter();
    if (!st)
        st = rk_world_open(opts.thread_level, opts.progress_thread != 0, false, &ctx);
    if (!st && ((opts.name && !(ctx->name = strdup(opts.name))) ||
                (opts.net_devices && !(ctx->net_devices = strdup(opts.net_devices)))))
        st = RANK_ERR_NO_MEMORY;
    if (st) {
        if (ctx)
            rk_world_abandon(ctx);
        rk_process_leave();
        return rk_call_returns(__func__, st);
    }
    ctx->connects = true;
    ctx->magic = RK_CTX_MAGIC;
    atomic_fetch_add(&rk_contexts, 1);
    *out = (rank_ctx_t)ctx;
    return RANK_OK;
}

/* End connections and all waits of other threads. ended: these threads have left. They have timeout_ns and 1 s. */
static rank_status_t end_calls(struct rk_ctx *ctx, int64_t timeout_ns, bool *ended)
{
    RK_ENTER(ctx);
    struct rk_threads *t = ctx->engine->threads;
    rank_status_t st;

    ctx->closing = true;
    ctx->close_by = timeout_ns < 0 ? UINT64_MAX : rk_clock_ns() + (uint64_t)timeout_ns + RK_CLOSE_NS;
    st = rk_conns_close(ctx, timeout_ns);
    *ended = !t || rk_threads_await_calls(t, &ctx->unlocked, ctx->close_by);
    if (*ended) {
        rk_conns_free(ctx);
        rk_room_rma.spoil(ctx); /* later calls on its memory are rejected before the lock is released */
    }
    return st;
}

rank_status_t rank_ctx_close(rank_ctx_t *handle, int64_t timeout_ns)
{
    uint32_t magic = RK_CTX_MAGIC;
    struct rk_ctx *ctx;
    rank_status_t st;
    bool ended;

    if (!handle || !*handle)
        return rk_arg_null(__func__, "ctx");
    st = rk_root_find(__func__, *handle, &ctx);
    if (st)
        return st;
    if (rk_in_callback(ctx))
        return rk_arg_in_callback(__func__);
    if (!atomic_compare_exchange_strong(&ctx->magic, &magic, 0)) /* by another thread */
        return rk_arg_handle(__func__, "context", ctx);
    *handle = RANK_CTX_NULL;
    atomic_fetch_sub(&rk_contexts, 1);
    st = end_calls(ctx, timeout_ns, &ended);
    if (!ended) { /* it stays in the list of the process */
        rk_warn("rank_ctx_close: another thread is still in a call; the memory of the context is not freed");
        return RANK_ERR_TIMED_OUT;
    }
    rk_world_close(ctx);
    rk_process_leave();
    return st;
}

/* ------------------------------------------------------------------------ progress */

static rank_status_t ctx_progress(const char *call, rank_ctx_t handle)
{
    struct rk_ctx *ctx;
    rank_status_t st = rk_root_find(call, handle, &ctx);

    if (st)
        return st;
    RK_ENTER(ctx);
    if (ctx->closing)
        return RANK_ERR_CLOSED;
    rk_event_fd_end(ctx);
    rk_progress_once(ctx);
    return RANK_OK;
}

static rank_status_t ctx_progress_fd(const char *call, rank_ctx_t handle, int *fd)
{
    struct rk_ctx *ctx;
    rank_status_t st = rk_root_find(call, handle, &ctx);

    if (st)
        return st;
    if (!fd)
        return rk_arg_null(call, "fd");
    RK_ENTER(ctx);
    return ctx->closing ? RANK_ERR_CLOSED : rk_event_fd_get(ctx, fd);
}

static rank_status_t ctx_progress_arm(const char *call, rank_ctx_t handle)
{
    struct rk_ctx *ctx;
    rank_status_t st = rk_root_find(call, handle, &ctx);

    if (st)
        return st;
    RK_ENTER(ctx);
    return ctx->closing ? RANK_ERR_CLOSED : rk_event_fd_arm(ctx);
}

rank_status_t rank_progress(void)
{
    return ctx_progress(__func__, RANK_CTX_NULL);
}

rank_status_t rank_ctx_progress(rank_ctx_t ctx)
{
    return ctx_progress(__func__, ctx);
}

rank_status_t rank_progress_fd(int *fd)
{
    return ctx_progress_fd(__func__, RANK_CTX_NULL, fd);
}

rank_status_t rank_ctx_progress_fd(rank_ctx_t ctx, int *fd)
{
    return ctx_progress_fd(__func__, ctx, fd);
}

rank_status_t rank_progress_arm(void)
{
    return ctx_progress_arm(__func__, RANK_CTX_NULL);
}

rank_status_t rank_ctx_progress_arm(rank_ctx_t ctx)
{
    return ctx_progress_arm(__func__, ctx);
}

RK_PUBLIC(rank_ctx_open); RK_PUBLIC(rank_ctx_close); RK_PUBLIC(rank_progress); RK_PUBLIC(rank_ctx_progress);
RK_PUBLIC(rank_progress_fd); RK_PUBLIC(rank_ctx_progress_fd); RK_PUBLIC(rank_progress_arm); RK_PUBLIC(rank_ctx_progress_arm);

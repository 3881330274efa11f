/* SPDX-License-Identifier: BSD-3-Clause */
/* api_ctx.c: open and close contexts, make progress in them, register memory. */
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/retired.h"
#include "lib/conn/conns.h"
#include "lib/core/event_fd.h"
#include "lib/core/threads.h"
#include "lib/rma/rma.h"
#include "lib/world/process.h"
#include "lib/world/world.h"

#include <stdlib.h>
#include <string.h>

#define RK_CTX_MAGIC 0x63747821u

struct rank_ctx {
    _Atomic uint32_t magic;
    struct rk_ctx *ctx;
    struct rk_link link; /* in retired */
    char name[RK_SHAKE_NAME];
    char *net_devices;
    struct rank_ctx *next_kept;
};

static struct rk_retired retired = RK_RETIRED_INIT(16);

rank_status_t rk_world_ctx_of(const char *call, rank_ctx_t handle, struct rk_ctx **out)
{
    *out = handle ? handle->ctx : rk_world_ctx();
    if (handle && handle->magic != RK_CTX_MAGIC)
        return rk_arg_handle(call, "context", handle);
    if (handle && handle->ctx->forked)
        return rk_arg_error(RANK_ERR_STATE, call, "the context is the parent's; open one in this process");
    return handle || rank_initialized() ? RANK_OK : rk_arg_not_in(call);
}

static rank_status_t read_ctx_opts(const rank_ctx_opts_t *given, rank_ctx_opts_t *out)
{
    static const char call[] = "rank_ctx_open";

    *out = (rank_ctx_opts_t)RANK_CTX_OPTS_INIT;
    if (given && (given->size < sizeof(given->size) || given->size > sizeof(*out) || given->size % sizeof(given->size)))
        return rk_arg_error(RANK_ERR_ARG, call, "opts->size is %zu: use RANK_CTX_OPTS_INIT", given->size);
    if (given) /* fields beyond its size keep their defaults */
        memcpy(out, given, given->size);
    if (out->thread_level < RANK_THREAD_SINGLE || out->thread_level > RANK_THREAD_MULTIPLE)
        return rk_arg_error(RANK_ERR_ARG, call, "thread level %d is none", out->thread_level);
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
    struct rk_link *link;
    rank_ctx_opts_t opts;
    rank_ctx_t handle;
    rank_status_t st = out ? read_ctx_opts(given, &opts) : rk_arg_null(__func__, "ctx");

    if (st)
        return st;
    link = rk_retired_take(&retired);
    handle = link ? memset(rk_list_entry(link, struct rank_ctx, link), 0, sizeof(*handle)) : calloc(1, sizeof(*handle));
    if (!handle)
        return RANK_ERR_NO_MEMORY;
    st = rk_process_enter();
    if (!st && opts.net_devices && !(handle->net_devices = strdup(opts.net_devices)))
        st = RANK_ERR_NO_MEMORY;
    if (!st)
        st = rk_world_open_alone(opts.thread_level, opts.progress_thread != 0, &handle->ctx);
    if (st) {
        if (handle->ctx)
            rk_world_abandon(handle->ctx);
        rk_process_leave();
        free(handle->net_devices);
        rk_retired_put(&retired, &handle->link);
        return rk_call_returns(__func__, st);
    }
    if (opts.name) {
        snprintf(handle->name, sizeof(handle->name), "%s", opts.name);
        handle->ctx->name = handle->name;
    }
    handle->ctx->net_devices = handle->net_devices;
    handle->ctx->connects = true;
    handle->magic = RK_CTX_MAGIC;
    atomic_fetch_add(&rk_contexts, 1);
    *out = handle;
    return RANK_OK;
}

/* Closed while a thread was in a call: their memory stays. */
static struct rank_ctx *_Atomic kept;

/* End connections and all waits of other threads. ended: these threads have left. They have timeout_ns and 1 s. */
static rank_status_t end_calls(struct rk_ctx *ctx, int64_t timeout_ns, bool *ended)
{
    RK_ENTER(ctx);
    struct rk_threads *t = ctx->engine->threads;
    rank_status_t st;

    ctx->closing = true;
    ctx->close_by = timeout_ns < 0 ? UINT64_MAX : rk_clock_ns() + (uint64_t)timeout_ns + RK_CLOSE_NS;
    st = rk_world_close_conns(ctx, timeout_ns);
    *ended = !t || rk_threads_await_calls(t, &ctx->unlocked, ctx->close_by);
    if (*ended) {
        rk_world_free_conns(ctx);
        rk_room_rma.spoil(ctx); /* later calls on its memory are rejected before the lock is released */
    }
    return st;
}

rank_status_t rank_ctx_close(rank_ctx_t *handle, int64_t timeout_ns)
{
    uint32_t magic = RK_CTX_MAGIC;
    rank_status_t st;
    rank_ctx_t h;
    bool ended;

    if (!handle || !*handle)
        return rk_arg_null(__func__, "ctx");
    h = *handle;
    if (h->magic != RK_CTX_MAGIC)
        return rk_arg_handle(__func__, "context", h);
    if (h->ctx->forked)
        return rk_arg_error(RANK_ERR_STATE, __func__, "the context is the parent's");
    if (rk_in_callback(h->ctx))
        return rk_arg_in_callback(__func__);
    if (!atomic_compare_exchange_strong(&h->magic, &magic, 0)) /* by another thread */
        return rk_arg_handle(__func__, "context", h);
    *handle = RANK_CTX_NULL;
    atomic_fetch_sub(&rk_contexts, 1);
    st = end_calls(h->ctx, timeout_ns, &ended);
    if (!ended) {
        h->next_kept = atomic_load(&kept);
        while (!atomic_compare_exchange_weak(&kept, &h->next_kept, h))
            ;
        rk_warn("rank_ctx_close: another thread is still in a call; the memory of the context is not freed");
        return RANK_ERR_TIMED_OUT;
    }
    rk_world_close(h->ctx);
    rk_process_leave();
    free(h->net_devices);
    rk_retired_put(&retired, &h->link);
    return st;
}

rank_status_t rank_ctx_progress(rank_ctx_t handle)
{
    struct rk_ctx *ctx;
    rank_status_t st = rk_world_ctx_of(__func__, handle, &ctx);

    if (st)
        return st;
    RK_ENTER(ctx);
    if (ctx->closing)
        return RANK_ERR_CLOSED;
    rk_event_fd_end(ctx);
    rk_progress_once(ctx);
    return RANK_OK;
}

rank_status_t rank_ctx_progress_fd(rank_ctx_t handle, int *fd)
{
    struct rk_ctx *ctx;
    rank_status_t st = rk_world_ctx_of(__func__, handle, &ctx);

    if (st)
        return st;
    if (!fd)
        return rk_arg_null(__func__, "fd");
    RK_ENTER(ctx);
    return ctx->closing ? RANK_ERR_CLOSED : rk_event_fd_get(ctx, fd);
}

rank_status_t rank_ctx_progress_arm(rank_ctx_t handle)
{
    struct rk_ctx *ctx;
    rank_status_t st = rk_world_ctx_of(__func__, handle, &ctx);

    if (st)
        return st;
    RK_ENTER(ctx);
    return ctx->closing ? RANK_ERR_CLOSED : rk_event_fd_arm(ctx);
}

static rank_status_t check_rights(const char *call, rank_mem_kind_t kind, unsigned access)
{
    if (kind == RANK_MEM_CUDA)
        return rk_arg_error(RANK_ERR_NOT_SUPPORTED, call, "device memory cannot be registered; copy it to host memory");
    if (kind != RANK_MEM_HOST)
        return rk_arg_error(RANK_ERR_ARG, call, "kind %d is none", (int)kind);
    if (access == 0 || access & ~(unsigned)(RANK_ACCESS_READ | RANK_ACCESS_WRITE))
        return rk_arg_error(RANK_ERR_ARG, call, "access %#x is none: give RANK_ACCESS_READ, RANK_ACCESS_WRITE or both", access);
    return RANK_OK;
}

rank_status_t rank_ctx_reg(rank_ctx_t handle, rank_mem_kind_t kind, void *ptr, int64_t bytes, unsigned access, rank_mem_t *mem)
{
    struct rk_ctx *ctx;
    rank_status_t st = rk_world_ctx_of(__func__, handle, &ctx);

    if (!st)
        st = check_rights(__func__, kind, access);
    return st ? st : rk_world_register(__func__, ctx->world, ptr, bytes, access, mem);
}

rank_status_t rank_ctx_alloc(rank_ctx_t handle, rank_mem_kind_t kind, int64_t bytes, unsigned access, void **ptr, rank_mem_t *mem)
{
    struct rk_ctx *ctx;
    rank_status_t st = rk_world_ctx_of(__func__, handle, &ctx);

    if (!st)
        st = check_rights(__func__, kind, access);
    if (st)
        return st;
    if (!ptr || !mem)
        return rk_arg_null(__func__, !ptr ? "ptr" : "mem");
    if (bytes < 0)
        return rk_arg_error(RANK_ERR_COUNT, __func__, "bytes %lld is negative", (long long)bytes);
    RK_ENTER(ctx);
    if (ctx->closing)
        return RANK_ERR_CLOSED;
    st = rk_mem_register(ctx->world, NULL, (size_t)bytes, access, mem);
    if (!st)
        *ptr = (*mem)->mine;
    return st;
}

RK_PUBLIC(rank_ctx_open); RK_PUBLIC(rank_ctx_close); RK_PUBLIC(rank_ctx_progress); RK_PUBLIC(rank_ctx_progress_fd);
RK_PUBLIC(rank_ctx_progress_arm); RK_PUBLIC(rank_ctx_reg); RK_PUBLIC(rank_ctx_alloc);

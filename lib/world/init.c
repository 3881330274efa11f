/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * init.c: join the world and leave it: rank_init, rank_finalize.
 *
 * Steps of joining: configuration; PMIx; segment, network and fence (meet.c); the rooms above.
 */
#include "collectives/coll.h"
#include "lib/base/arg_error.h"
#include "lib/base/status_page.h"
#include "lib/base/clock.h"
#include "lib/base/conf.h"
#include "lib/base/crash_stack.h"
#include "lib/base/kept_fds.h"
#include "lib/base/log.h"
#include "lib/base/retired.h"
#include "lib/base/timing.h"
#include "lib/boot/boot.h"
#include "lib/channel/module.h"
#include "lib/conn/conns.h"
#include "lib/core/describe.h"
#include "lib/core/root.h"
#include "lib/core/threads.h"
#include "lib/dpm/connected.h"
#include "lib/node/node.h"
#include "lib/mem/kind.h"
#include "lib/mem/segment.h"
#include "lib/p2p/p2p.h"
#include "lib/queue/queue.h"
#include "lib/rma/rma.h"
#include "lib/world/process.h"
#include "lib/world/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * In the order of opening. rma before p2p: a death ends its waits before it fails requests. queue last: the others end its
 * operations.
 */
static const struct rk_room *const rooms[] = {&rk_room_rma, &rk_room_p2p, &rk_room_coll, &rk_room_queue};
_Static_assert(RK_ARRAY_LEN(rooms) <= RK_ROOMS_MAX, "the engine has space for them");

/* Memory of closed contexts: handles of rank_ctx_open point to it. */
static struct rk_retired retired = RK_RETIRED_INIT(16);

int rank_initialized(void)
{
    return atomic_load(&rk_life) == RK_LIFE_IN;
}

rank_team_t rank_world(void)
{
    return atomic_load(&rk_life) == RK_LIFE_IN ? rk_root->world : RANK_TEAM_NULL;
}

int rank_thread_level(void)
{
    return atomic_load(&rk_life) == RK_LIFE_IN ? rk_root->level : (int)RANK_ERR_STATE;
}

/* ---------------------------------------------------------------------- joining */

/* Does the caller's struct have the field? */
#define HAS_FIELD(opts, field) ((opts) && (opts)->size >= offsetof(rank_init_opts_t, field) + sizeof((opts)->field))

static rank_status_t check_opts(const rank_init_opts_t *opts, int *level, bool *progress_thread)
{
    *level = RANK_THREAD_SERIALIZED;
    *progress_thread = rk_conf.progress_thread;
    if (HAS_FIELD(opts, thread_level))
        *level = opts->thread_level;
    else if (opts && opts->size < sizeof(opts->size))
        return rk_arg_error(RANK_ERR_ARG, "rank_init", "opts->size %u is too small", (unsigned)opts->size);
    if (HAS_FIELD(opts, progress_thread) && opts->progress_thread) {
        if (opts->progress_thread != 1)
            return rk_arg_error(RANK_ERR_ARG, "rank_init", "opts->progress_thread %d is neither 0 nor 1", opts->progress_thread);
        *progress_thread = true;
    }
    if (HAS_FIELD(opts, quiet) && opts->quiet != 0 && opts->quiet != 1)
        return rk_arg_error(RANK_ERR_ARG, "rank_init", "opts->quiet %d is neither 0 nor 1", opts->quiet);
    if (*level < RANK_THREAD_SINGLE || *level > RANK_THREAD_MULTIPLE)
        return rk_arg_error(RANK_ERR_ARG, "rank_init", "thread level %d is not defined", *level);
    return RANK_OK;
}

static bool number_unused; /* the context failed: the next one takes its number, as in the other ranks */

/* Number of a context among those of this rank, its earlier programs included where there is a board. */
static uint32_t contexts_before(struct rk_board *board)
{
    static uint32_t number, next;

    if (number_unused)
        return number;
    number = board ? rk_board_join(board) : 0;
    number = number > next ? number : next;
    next = number + 1;
    number_unused = true;
    return number;
}

static rank_status_t init_join(struct rk_ctx *ctx, bool launched)
{
    rank_status_t st;

    rk_node_prepare(); /* before PMIx starts its thread */
    if (ctx->board)
        rk_board_write(ctx->board, RK_BOARD_JOINING, rk_clock_ns(), NULL);
    st = launched ? rk_boot_open(&ctx->boot) : rk_boot_open_alone(&ctx->boot);
    if (st)
        return st;
    if (!ctx->boot->alone)
        ctx->boot->before = contexts_before(ctx->board);
    if (ctx == rk_root) {
        rk_log_identity("librank", ctx->boot->rank, ctx->boot->host);
        rk_crash_stack_open();
    }
    st = rk_module_open_cuda(rk_conf.cuda);
    if (!st)
        st = rk_world_meet(ctx);
    if (st)
        return st;
    RK_ENTER(ctx);
    rk_node_settle(ctx->node);
    st = rk_engine_settle(ctx);
    for (size_t i = 0; i < RK_ARRAY_LEN(rooms) && !st; i++)
        st = rk_room_open(ctx, rooms[i]);
    if (!st)
        st = rk_team_create(ctx, 0, ctx->boot->rank, ctx->boot->size, NULL, &ctx->world);
    if (st)
        return st;
    rk_team_settle(ctx->world);
    st = rk_rooms_team_open(ctx, ctx->world);
    if (!st && ctx->boot->parent)
        st = rk_connected_join(ctx);
    if (!ctx->boot->alone) /* others open in any thread */
        number_unused = number_unused && st;
    return st;
}

/* Free what remains for threads that call with a handle of a closed context. */
static void ctx_empty(struct rk_ctx *ctx)
{
    rk_engine_free(ctx);
    free(ctx->conns);
    ctx->conns = NULL;
}

static struct rk_ctx *ctx_new(void)
{
    struct rk_link *oldest = rk_retired_take(&retired);
    struct rk_ctx *ctx = oldest ? rk_list_entry(oldest, struct rk_ctx, retired) : NULL;

    if (!ctx)
        return calloc(1, sizeof(*ctx));
    if (atomic_load(&ctx->unlocked)) { /* a thread resolves a name, and rejects the context later */
        rk_retired_put(&retired, oldest);
        return calloc(1, sizeof(*ctx));
    }
    ctx_empty(ctx);
    return memset(ctx, 0, sizeof(*ctx));
}

/* A thread that calls with a handle of a context that another thread closes takes its lock, before the call is rejected. */
static void ctx_retire(struct rk_ctx *ctx)
{
    if (!ctx->closing)
        ctx_empty(ctx);
    rk_retired_put(&retired, &ctx->retired);
}

rank_status_t rk_world_open(int level, bool progress_thread, bool launched, struct rk_ctx **out)
{
    struct rk_ctx *ctx = *out = ctx_new();
    rank_status_t st;

    if (!ctx)
        return RANK_ERR_NO_MEMORY;
    ctx->level = level;
    ctx->has_progress_thread = progress_thread;
    if (ctx == rk_root && rk_env_is_of_xrun()) /* only one context may have it */
        ctx->board = rk_board_open(rk_env(RK_BOARD_VARIABLE));
    st = init_join(ctx, launched);
    if (!st && progress_thread)
        st = rk_progress_thread_start(ctx);
    if (!st)
        rk_process_add(ctx);
    return st;
}

static void init_leave(struct rk_ctx *ctx)
{
    rk_process_remove(ctx);
    rk_progress_thread_stop(ctx);
    rk_rooms_close(ctx);
    rk_connected_close(ctx);
    rk_ranks_close(ctx);
    if (ctx->boot) /* a spawned job may end at this moment */
        ctx->boot->ops->watch_deaths(ctx->boot, NULL, NULL);
    rk_engine_close(ctx);
    for (size_t i = 0; i < RK_ARRAY_LEN(rooms); i++) {
        if (rooms[i]->release)
            rooms[i]->release(ctx);
    }
    rk_segments_close(ctx);
    rk_boot_close(ctx->boot);
    rk_node_close(ctx->node);
    if (ctx->board)
        rk_board_write(ctx->board, RK_BOARD_LEFT, rk_clock_ns(), NULL);
    rk_board_close(ctx->board);
    free(ctx->devices);
    free(ctx->name);
    free(ctx->net_devices);
    ctx_retire(ctx);
}

/* The process leaves with its context. */
static void init_leave_process(void)
{
    if (rk_root)
        init_leave(rk_root);
    rk_root = NULL;
    rk_crash_stack_close();
    rk_process_leave();
}

rank_status_t rank_init(const rank_init_opts_t *opts)
{
    int before = RK_LIFE_OUT, level;
    bool progress_thread;
    rank_status_t st;

    if (HAS_FIELD(opts, quiet) && opts->quiet == 1)
        rk_errors_quiet();
    if (!atomic_compare_exchange_strong(&rk_life, &before, RK_LIFE_JOINING) &&
        (before != RK_LIFE_LEFT || rk_root || !atomic_compare_exchange_strong(&rk_life, &before, RK_LIFE_JOINING))) {
        return rk_call_error(RANK_ERR_STATE, "rank_init", "%s",
                             before == RK_LIFE_LEFT     ? "this process was no rank any more when it called rank_finalize"
                             : before == RK_LIFE_FORKED ? "this process is a forked child of a rank, and no rank"
                                                        : "the library is initialized already");
    }
    st = rk_process_enter();
    rk_arg_abort = rank_abort;
    if (!st)
        st = check_opts(opts, &level, &progress_thread);
    if (st)
        goto err;
    /* Output before a hang should be visible; xrun passes on whole lines anyway. */
    if (rk_env_is_of_xrun())
        setvbuf(stdout, NULL, _IOLBF, 0);
    st = rk_world_open(level, progress_thread, true, &rk_root);
    if (st)
        goto err;
    if (rk_root->board)
        rk_board_write(rk_root->board, RK_BOARD_IN, rk_clock_ns(), NULL);
    atomic_store(&rk_life, RK_LIFE_IN);
    return RANK_OK;

err:
    init_leave_process();
    atomic_store(&rk_life, RK_LIFE_OUT);
    return rk_call_returns("rank_init", st);
}

/* ---------------------------------------------------------------------- leaving */

struct drain_wait {
    struct rk_wait wait;
    struct rk_engine *engine;
};

static bool drained(struct rk_wait *w)
{
    struct rk_engine *e = ((struct drain_wait *)w)->engine;

    if (!rk_sendq_is_idle(e))
        return false;
    for (int i = 0; i < e->nopen; i++) {
        if (e->open[i].ops->drained && e->open[i].ops->drained(e->open[i].state) == RK_AGAIN)
            return false;
    }
    return true;
}

static void describe_drain(const struct rk_wait *w, struct rk_wait_for *out)
{
    (void)w;
    rk_describe_call(out, "end of its sends");
}

/* Returns when all sent data has left and all ranks are as far. */
static void init_drain(struct rk_ctx *ctx)
{
    RK_ENTER(ctx);
    struct drain_wait w = {.wait = {.describe = describe_drain}, .engine = ctx->engine};

    ctx->engine->finalizing = true;
    rk_wait(ctx, &w.wait, drained);
    ctx->engine->draining = true;
    rk_connected_leave(ctx);
    /*
     * If another program follows in these ranks, the server must not confuse ends of connections of the two. On
     * several hosts deaths are reported until all have arrived.
     */
    if (ctx->world->local && !ctx->boot->alone)
        ctx->boot->ops->leave(ctx->boot);
    /* Close nothing to which another rank still sends. After a death in the world this returns at once. */
    ctx->engine->alone = rank_barrier(ctx->world) != RANK_OK;
    if (ctx->engine->alone && ctx->node)
        rk_node_leave_alone(ctx->node);
    rk_wait(ctx, &w.wait, drained);
}

/*
 * Leave after the program has closed the library's descriptors: the other ranks see it leave; nothing is closed,
 * as the descriptors may be the program's by now.
 */
static void abandon(struct rk_ctx *ctx)
{
    rk_rooms_spoil(ctx);
    rk_node_abandon(ctx->node);
    if (ctx->board)
        rk_board_write(ctx->board, RK_BOARD_LEFT, rk_clock_ns(), NULL);
}

rank_status_t rank_finalize(void)
{
    int in = RK_LIFE_IN;

    if (atomic_load(&rk_life) == RK_LIFE_FORKED) { /* everything else belongs to the parent */
        atomic_store(&rk_life, RK_LIFE_LEFT);
        return RANK_OK;
    }
    if (rank_initialized() && rk_in_callback(rk_root))
        return rk_arg_in_callback(__func__);
    if (!atomic_compare_exchange_strong(&rk_life, &in, RK_LIFE_LEFT))
        return rk_arg_not_in(__func__);
    if (!rk_root->boot->alone && rk_kept_fds_closed(__func__)) {
        abandon(rk_root);
        return RANK_ERR_SYSTEM;
    }
    if (rk_root->board)
        rk_root->board->inside = "rank_finalize";
    rk_death_watches_end(rk_root);
    rk_conns_close(rk_root, RK_CLOSE_NS);
    init_drain(rk_root);
    init_leave_process();
    return RANK_OK;
}

void rk_world_close(struct rk_ctx *ctx)
{
    init_drain(ctx);
    init_leave(ctx);
}

void rk_world_abandon(struct rk_ctx *ctx)
{
    init_leave(ctx);
}

void rank_abort(int code, const char *text)
{
    struct rk_ctx *ctx = rk_root;
    bool served = ctx && ctx->boot && !ctx->boot->alone && atomic_load(&rk_life) != RK_LIFE_FORKED;

    code &= 255;
    if (code == 0)
        code = 1;
    /* xrun prints the text; other launchers do not. */
    if (text && !(served && rk_env_is_of_xrun()))
        rk_log_write(RK_LOG_ERROR, "rank_abort: %s", text);
    if (served)
        ctx->boot->ops->abort(ctx->boot, code, text ? text : "rank_abort");
    _exit(code);
}

RK_PUBLIC(rank_initialized); RK_PUBLIC(rank_world); RK_PUBLIC(rank_thread_level);
RK_PUBLIC(rank_init); RK_PUBLIC(rank_finalize);
__attribute__((noreturn)) RK_PUBLIC(rank_abort);

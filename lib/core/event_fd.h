/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event_fd.h: provide a descriptor for the user's event loop (rank_progress_fd).
 *
 * It is an epoll of its own, beside that of the library's sleeps (wait.c), with the same descriptors and a timer
 * that only it holds. Two things make it readable:
 *
 *   the doorbell  is shared. A sleeping library thread drains it and then signals the user; otherwise the user's thread
 *                 drains it.
 *   the timer     is the user's. Only the thread that armed it empties it, by rank_progress or by arming again; so the
 *                 signal persists until then.
 *
 * Progress by another thread is signalled, and so is a message of this process to itself (rk_threads_notify_user).
 */
#ifndef RK_CORE_EVENT_FD_H
#define RK_CORE_EVENT_FD_H

#include "lib/core/engine.h"

rank_status_t rk_event_fd_get(struct rk_ctx *ctx, int *fd);
/* RANK_OK: the descriptor becomes readable when something comes. RANK_ERR_AGAIN: something has come. */
rank_status_t rk_event_fd_arm(struct rk_ctx *ctx);
void rk_event_fd_close(struct rk_ctx *ctx);

/* Armed, and not yet signalled. */
RK_INLINE bool rk_event_fd_is_armed(const struct rk_engine *e)
{
    return e->watch.state == RK_EVENT_FD_ASLEEP;
}

/* Signal the user, if armed: another thread has made progress, or has drained the doorbell. */
void rk_event_fd_signal(struct rk_ctx *ctx);
/* A sleep has ended because its epoll became readable: drain the doorbell. */
void rk_event_fd_rung(struct rk_ctx *ctx);

void rk_event_fd_end_slow(struct rk_ctx *ctx);

/* The user is awake: senders need not ring. Optional; without it the next sender rings once more. */
RK_INLINE void rk_event_fd_end(struct rk_ctx *ctx)
{
    if (rk_unlikely(ctx->engine->watch.state != RK_EVENT_FD_OFF))
        rk_event_fd_end_slow(ctx);
}

/*
 * wait.c: the descriptor with all open channels; -1: a futex suffices, or none can be made. anyway: also where a
 * futex suffices.
 */
int rk_wait_epoll(struct rk_ctx *ctx, struct rk_epoll *epoll, bool anyway);
/* May the caller sleep until the doorbell rings? */
enum rk_armed {
    RK_ARMED_NOT,     /* no: there is something to do */
    RK_ARMED_SHORTLY, /* briefly: something waits for room, which rings no doorbell */
    RK_ARMED
};
enum rk_armed rk_wait_arm(struct rk_engine *e);

#endif

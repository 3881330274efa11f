/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event_fd.h: waiting done by the user: a descriptor for his own event loop (rank_progress_fd).
 *
 * It is an epoll of its own, beside that of our naps (wait.c), with the same descriptors in it and a timer that is in no other.
 * What wakes the user is one of two things:
 *
 *   the doorbell  is everybody's. Its bytes are taken out by the thread that naps, while there is one, and that tells the
 *                 user; else by the user's thread.
 *   the timer     is the user's. Nobody empties it but the thread that watches, by rank_progress or by arming again; so who
 *                 has been told stays told until he is back, whoever naps or makes progress meanwhile.
 *
 * Whatever a thread does in the user's place is told: all progress that brings something, and what a thread of this process
 * sends to itself (rk_threads_news).
 */
#ifndef RK_CORE_EVENT_FD_H
#define RK_CORE_EVENT_FD_H

#include "lib/core/engine.h"

rank_status_t rk_watch_fd(struct rk_ctx *ctx, int *fd);
/* RANK_OK: the descriptor will become readable when something comes. RANK_ERR_AGAIN: something has. */
rank_status_t rk_watch_arm(struct rk_ctx *ctx);
void rk_watch_close(struct rk_ctx *ctx);

/* The user sleeps on the descriptor, as far as we know, and has not been told of anything. */
RK_INLINE bool rk_watch_is_on(const struct rk_engine *e)
{
    return e->watch.state == RK_WATCH_ASLEEP;
}

/* If he does: wake him, another thread has done what he watches for, or has taken a ring that was meant for him. */
void rk_watch_tell(struct rk_ctx *ctx);
/* A nap has ended because something in its epoll had become readable: takes the ring. */
void rk_watch_rung(struct rk_ctx *ctx);

void rk_watch_end_slow(struct rk_ctx *ctx);

/* The user is back: nobody has to ring for him. Without it the next who sends rings once, for nothing. */
RK_INLINE void rk_watch_end(struct rk_ctx *ctx)
{
    if (rk_unlikely(ctx->engine->watch.state != RK_WATCH_OFF))
        rk_watch_end_slow(ctx);
}

/* wait.c: the descriptor, with all channels that are open now; -1: a futex is enough, or none can be made. anyway: also
 * where a futex would do. */
int rk_wait_epoll(struct rk_ctx *ctx, struct rk_epoll *epoll, bool anyway);
/* May we sleep until somebody rings? */
enum rk_armed {
    RK_ARMED_NOT,     /* there is something to do */
    RK_ARMED_SHORTLY, /* what comes rings, but something waits for room, and nobody rings for that */
    RK_ARMED
};
enum rk_armed rk_wait_arm(struct rk_engine *e);

#endif

/* watch.h: waiting done by the user: a descriptor for his own event loop (rank_progress_fd). */
#ifndef RK_CHANNEL_WATCH_H
#define RK_CHANNEL_WATCH_H

#include "lib/channel/engine.h"

rank_status_t rk_watch_fd(struct rk_ctx *ctx, int *fd);
/* RANK_OK: the descriptor will become readable when something comes. RANK_ERR_AGAIN: something has. */
rank_status_t rk_watch_arm(struct rk_ctx *ctx);

/* Empty the doorbell and the timer. True: somebody had rung. */
bool rk_watch_drain(struct rk_ctx *ctx);

void rk_watch_end_slow(struct rk_ctx *ctx);

/* Wake the user: another thread has done what it watches for, or may have taken the ring that was meant for it. */
void rk_watch_tell(struct rk_ctx *ctx);

/* The user is back: nobody has to ring for him. Without it the next who sends rings once, for nothing. */
RK_INLINE void rk_watch_end(struct rk_ctx *ctx)
{
    if (rk_unlikely(ctx->engine->watched))
        rk_watch_end_slow(ctx);
}

/* wait.c: the descriptor that holds the doorbell and the channels' own; -1: a futex is enough, or
 * none can be made. anyway: also where a futex would do. */
int rk_wait_epoll(struct rk_ctx *ctx, bool anyway);
/* May we sleep until somebody rings? */
enum rk_armed {
    RK_ARMED_NOT,     /* there is something to do */
    RK_ARMED_SHORTLY, /* what comes rings, but something waits for room, and nobody rings for that */
    RK_ARMED
};
enum rk_armed rk_wait_arm(struct rk_engine *e);

#endif

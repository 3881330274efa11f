/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * describe.h: tell the launcher what a wait that has become long is for.
 *
 * rk_wait knows a condition and its argument only. Each room lends the engine a
 * function that recognizes the room's own conditions; the wait asks them when it
 * is long, and writes what they say on the status board (lib/base/status_page.h).
 */
#ifndef RK_CORE_DESCRIBE_H
#define RK_CORE_DESCRIBE_H

#include "lib/base/status_page.h"
#include "lib/core/engine.h"

/* Waits shorter than this are not told, and one that goes on is told again after it. */
enum { RK_TELL_NS = 100 * 1000 * 1000 };

/* Called by a wait that is long, now. */
void rk_tell(struct rk_ctx *ctx, struct rk_waiter *w, bool (*cond)(void *), void *arg,
             uint64_t now);

/* For the rooms' functions, which fill out and return true if the condition is one of theirs. */
RK_INLINE void rk_tell_peer(struct rk_wait_for *out, int world_rank)
{
    if (out->npeers < RK_BOARD_PEERS)
        out->peers[out->npeers] = world_rank;
    out->npeers++;
}
void rk_tell_call(struct rk_wait_for *out, const char *fmt, ...) RK_PRINTF(2, 3);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * describe.h: report to the launcher what a long wait waits for.
 *
 * rk_wait has only a condition and its argument. Each room registers a function that recognizes its own
 * conditions. A long wait calls these functions and writes the result to the status board
 * (lib/base/status_page.h).
 */
#ifndef RK_CORE_DESCRIBE_H
#define RK_CORE_DESCRIBE_H

#include "lib/base/status_page.h"
#include "lib/core/engine.h"

/* Shorter waits are not reported; longer ones are reported again after this interval. */
enum { RK_DESCRIBE_NS = 100 * 1000 * 1000 };

/* Called by a wait that has become long. */
void rk_describe_wait(struct rk_ctx *ctx, struct rk_waiter *w, bool (*cond)(void *), void *arg,
                      uint64_t now);

/* For the rooms' functions, which return true if the condition is theirs. */
RK_INLINE void rk_describe_peer(struct rk_wait_for *out, int world_rank)
{
    if (out->npeers < RK_BOARD_PEERS)
        out->peers[out->npeers] = world_rank;
    out->npeers++;
}
void rk_describe_call(struct rk_wait_for *out, const char *fmt, ...) RK_PRINTF(2, 3);

#endif

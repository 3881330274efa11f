/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * describe.h: report to the launcher what a long wait waits for.
 *
 * A wait that has become long calls its function describe and writes the result to the status board
 * (lib/base/status_page.h).
 */
#ifndef RK_CORE_DESCRIBE_H
#define RK_CORE_DESCRIBE_H

#include "lib/base/status_page.h"
#include "lib/core/engine.h"

/*
 * Called by a wait that has become long. The progress thread's reports a request with a callback: nothing else of this
 * process waits in the library then.
 */
void rk_describe_wait(struct rk_ctx *ctx, struct rk_wait *w, uint64_t now);
/* What it waits for; out is zero before. */
void rk_describe(const struct rk_wait *w, struct rk_wait_for *out);

/* For the waits' functions. One that names no peer gets that of the wait. */
RK_INLINE void rk_describe_peer(struct rk_wait_for *out, int world_rank)
{
    if (out->npeers < RK_BOARD_PEERS)
        out->peers[out->npeers] = world_rank;
    out->npeers++;
}
void rk_describe_call(struct rk_wait_for *out, const char *fmt, ...) RK_PRINTF(2, 3);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* describe.c: report on the status board what a long wait waits for. */
#include "lib/core/describe.h"
#include "lib/base/clock.h"
#include "lib/boot/boot.h"
#include "lib/core/procs.h"

#include <stdarg.h>
#include <stdio.h>

void rk_describe_call(struct rk_wait_for *out, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(out->call, sizeof(out->call), fmt, ap);
    va_end(ap);
}

void rk_describe(const struct rk_wait *w, struct rk_wait_for *out)
{
    if (w->describe)
        w->describe(w, out);
    if (w->peer && out->npeers == 0)
        rk_describe_peer(out, w->peer->number);
}

RK_COLD void rk_describe_wait(struct rk_ctx *ctx, struct rk_wait *w, uint64_t now)
{
    struct rk_board *b = ctx->board;
    struct rk_wait_for what = {.flags = 0};

    if (!b || now - b->written_ns < RK_DESCRIBE_NS)
        return;
    b->written_ns = now;
    rk_describe(w, &what);
    if (!what.call[0]) /* a channel's own wait: nothing to add */
        rk_describe_call(&what, "a put, get or atomic");
    /* peers are numbers of this process */
    for (uint32_t i = 0; i < what.npeers && i < RK_BOARD_PEERS; i++) {
        if (what.peers[i] >= ctx->boot->size)
            what.peers[i] = RK_BOARD_OTHER_JOB((int32_t)rk_procs_id(ctx, what.peers[i]).rank);
    }
    if (b->inside) {
        rk_describe_call(&what, "%s", b->inside);
        what.flags = 0;
        what.number = 0;
    }
    b->begun_ns = w->begun;
    rk_board_write(b, RK_BOARD_WAITING, w->since, &what);
    w->reported = true;
}

RK_COLD void rk_wait_over(struct rk_ctx *ctx)
{
    rk_board_write(ctx->board, RK_BOARD_IN, rk_clock_ns(), NULL);
}

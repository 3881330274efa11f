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

RK_COLD void rk_describe_wait(struct rk_ctx *ctx, struct rk_waiter *w, bool (*cond)(void *), void *arg,
                              uint64_t now)
{
    struct rk_engine *e = ctx->engine;
    struct rk_board *b = ctx->board;
    struct rk_wait_for what = {.flags = 0};
    bool known = false;

    if (!b || now - b->written_ns < RK_DESCRIBE_NS)
        return;
    b->written_ns = now;
    for (int i = 0; i < e->ndescribers && !known; i++)
        known = e->describers[i](ctx, cond, arg, &what);
    if (!known) /* a channel's own condition: nothing to add */
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
    w->reported = 1;
}

RK_COLD void rk_wait_over(struct rk_ctx *ctx)
{
    rk_board_write(ctx->board, RK_BOARD_IN, rk_clock_ns(), NULL);
}

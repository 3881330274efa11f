/* SPDX-License-Identifier: BSD-3-Clause */
/* describe.c: report on the status board what a long wait waits for. */
#include "lib/core/describe.h"
#include "lib/base/clock.h"
#include "lib/base/timing.h"
#include "lib/boot/boot.h"
#include "lib/core/procs.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

/* The slices of a wait of this thread (rank_wait_slices), when the last one ended. */
static _Thread_local struct {
    bool on, reported;
    uint64_t begun, since;
} slices;

void rank_wait_slices(int on)
{
    memset(&slices, 0, sizeof(slices));
    slices.on = on != 0;
}

RK_COLD void rk_wait_resume(struct rk_wait *w)
{
    if (!slices.on)
        return;
    w->begun = slices.begun;
    w->since = slices.since;
    w->reported = slices.reported;
}

/* Returns false if nothing is known. */
static bool describe_background(struct rk_ctx *ctx, struct rk_wait *w, struct rk_wait_for *out)
{
    struct rk_engine *e = ctx->engine;
    const struct rank_request *req = rk_req_with_callback(ctx);

    if (!req || !e->describe[req->type])
        return false;
    e->describe[req->type](req, out);
    if (ctx->board->called != e->called) { /* the program has gone on meanwhile */
        ctx->board->called = e->called;
        w->begun = w->since;
    }
    return true;
}

RK_COLD void rk_describe_wait(struct rk_ctx *ctx, struct rk_wait *w, uint64_t now)
{
    struct rk_board *b = ctx->board;
    struct rk_wait_for what = {.flags = 0};

    if (!b || now - b->written_ns < RK_DESCRIBE_NS)
        return;
    b->written_ns = now;
    b->until_ns = 0;
    if (w->background) {
        if (!describe_background(ctx, w, &what))
            return;
        b->until_ns = now + RK_DESCRIBE_VALID_NS;
    } else {
        rk_describe(w, &what);
        if (w->deadline && slices.on)
            b->until_ns = w->deadline + RK_DESCRIBE_VALID_NS;
    }
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
    w->reported = !w->background;
}

RK_COLD void rk_wait_over(struct rk_ctx *ctx, struct rk_wait *w)
{
    if (w->late && slices.on) { /* the next slice goes on */
        slices.begun = w->begun;
        slices.since = w->since;
        slices.reported = w->reported;
    } else if (w->reported) {
        rk_board_write(ctx->board, RK_BOARD_IN, rk_clock_ns(), NULL);
    }
}

RK_PUBLIC(rank_wait_slices);

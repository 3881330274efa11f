/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_late_connect.c: disconnect a rank while another one connects.
 *
 * Ranks are pairs: the odd one sends a frame, makes progress a few times, once in a turn, and stops;
 * the even one, without notice of it, makes progress between these and closes its channel. Each pair stops at another
 * turn. In one of them UCP's request for a connection has come, and its answer cannot leave before the caller goes on:
 * there UCX 1.13 aborted. The caller gets the end when it goes on: at once, or, if it is in the last meeting
 * itself, later, as an absent rank may have left in order.
 */
#include "lib/base/clock.h"
#include "lib/channel/ucx/ucx.h"
#include "lib/node/node.h"
#include "tests/ucx/ucx_fixture.h"

#include <time.h>

enum { BOUT_NS = 3 * 1000 * 1000, PAUSE_NS = 100 * 1000, GONE = 1000 };
#define TIMEOUT_NS 30000000000ull
#define PEACE_NS 2000000000ull /* less than the channel's */

static void on_frame(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr, const void *payload,
                     const struct rk_rndv *rndv)
{
    (void)ctx;
    (void)peer;
    (void)hdr;
    (void)payload;
    (void)rndv;
}

static void await_word(const _Atomic uint64_t *word, uint64_t value)
{
    const struct timespec pause = {0, PAUSE_NS};
    uint64_t since = rk_clock_ns();

    while (atomic_load(word) < value) {
        if (rk_clock_ns() - since > TIMEOUT_NS)
            _exit(1); /* the other one has failed, and printed the reason */
        nanosleep(&pause, NULL);
    }
}

static bool is_dead(void *peer)
{
    return ((struct rk_peer *)peer)->state == RK_PEER_DEAD;
}

static void call(struct rig *r, _Atomic uint64_t *word, uint64_t turns)
{
    const struct rk_hdr hdr = {.kind = RK_KIND_MSG};
    struct rk_peer *peer = rig_peer(r, r->me - 1);
    bool draining = turns % 2 == 0;
    struct rk_ucx_link *l;
    uint64_t since;

    RIG_CHECK(rig_send(r, r->me - 1, &hdr, NULL) == RANK_OK);

    for (uint64_t t = 0; t < turns; t++) {
        await_word(word, 2 * t);
        rk_progress(r->ctx);
        atomic_store(word, 2 * t + 1);
    }
    await_word(word, GONE);
    l = peer->ep;
    RIG_CHECK(l && !l->failed);
    r->ctx->engine->finalizing = r->ctx->engine->draining = draining;
    since = rk_clock_ns();
    while (!l->failed && rk_clock_ns() - since < TIMEOUT_NS)
        rk_progress(r->ctx);
    RIG_CHECK(l->failed && (l->lost_ns != 0) == draining);
    rig_wait(r, is_dead, peer);
    RIG_CHECK(!draining || rk_clock_ns() - since >= PEACE_NS);
    rk_engine_close(r->ctx);
}

static void leave(struct rig *r, _Atomic uint64_t *word, uint64_t turns)
{
    r->ctx->engine->handler[RK_KIND_MSG] = on_frame;
    for (uint64_t t = 0; t < turns; t++) {
        uint64_t since;
        await_word(word, 2 * t + 1);
        since = rk_clock_ns();
        while (rk_clock_ns() - since < BOUT_NS)
            rk_progress(r->ctx);
        atomic_store(word, 2 * t + 2);
    }
    rk_engine_close(r->ctx);
    atomic_store(word, GONE);
    rk_node_close(r->ctx->node);
    _exit(0); /* what UCX keeps then, with pointers in memory that no leak check reads, would be taken for lost */
}

void late_body(struct rig *r)
{
    _Atomic uint64_t *word = &r->shared->word[r->me / 2];
    uint64_t turns = (uint64_t)r->me / 2 + 1;

    if (turns > 1) /* those before it have come to where they stop: they are not to keep this one from its core */
        await_word(word - 1, 2 * (turns - 1));
    if (r->me % 2)
        call(r, word, turns);
    else
        leave(r, word, turns);
    rk_node_close(r->ctx->node);
    exit(0);
}

/* One of two connections breaks in the last meeting, and what the peer sent last comes over the other. */
void goodbye_body(struct rig *r)
{
    const struct rk_hdr hdr = {.kind = RK_KIND_MSG};
    struct rk_peer *peer = rig_peer(r, !r->me);
    struct rk_ucx_link *l;

    r->ctx->engine->handler[RK_KIND_MSG] = on_frame;
    RIG_CHECK(rig_send(r, !r->me, &hdr, NULL) == RANK_OK);
    rig_meet(r, 2);
    r->ctx->engine->finalizing = r->ctx->engine->draining = true;
    if (r->me == 0) {
        l = peer->ep;
        l->failed = true; /* as rk_ucx_link_ended has it */
        l->lost_ns = rk_clock_ns();
        rig_meet(r, 2);
        for (uint64_t since = rk_clock_ns(); !l->bye && rk_clock_ns() - since < TIMEOUT_NS;)
            rk_progress(r->ctx);
        RIG_CHECK(l->bye && l->lost_ns == 0 && peer->state == RK_PEER_UP);
    } else {
        rig_meet(r, 2);
    }
    rk_engine_close(r->ctx);
    rk_node_close(r->ctx->node);
    exit(0);
}

/*
 * late.c: a rank that leaves while another one connects.
 *
 * Ranks are pairs: the odd one sends a frame, makes progress a few times, once in a turn, and stands still;
 * the even one, who knows nothing of it, makes progress between these and closes its channel. Each pair stops at another
 * turn. In one of them UCP's request for a connection has come, and its answer cannot leave before the caller goes on:
 * there UCX 1.13 aborted. The caller hears of the end when it goes on: at once, or, if it is in the last meeting
 * itself, later, for who has gone may have left in peace.
 */
#include "lib/base/clock.h"
#include "lib/mem/node.h"
#include "tests/ucx/rig.h"

#include <time.h>

enum { BOUT_NS = 3 * 1000 * 1000, PAUSE_NS = 100 * 1000, GONE = 1000 };
#define PATIENCE_NS 30000000000ull
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
        if (rk_clock_ns() - since > PATIENCE_NS)
            _exit(1); /* the other one has failed, and said why */
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
    uint64_t since;

    RIG_CHECK(rig_send(r, r->me - 1, &hdr, NULL) == RANK_OK);

    for (uint64_t t = 0; t < turns; t++) {
        await_word(word, 2 * t);
        rk_progress(r->ctx);
        atomic_store(word, 2 * t + 1);
    }
    await_word(word, GONE);
    r->ctx->engine->finalizing = r->ctx->engine->parting = turns % 2 == 0;
    since = rk_clock_ns();
    rk_wait(r->ctx, is_dead, peer);
    RIG_CHECK(turns % 2 || rk_clock_ns() - since >= PEACE_NS);
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

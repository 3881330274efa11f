/*
 * watch.c: see watch.h.
 *
 * The descriptor is the epoll that our own naps use: the doorbell, what the
 * channels have, and a timer. Arming is the beginning of a nap that the user
 * takes in our place: the slot says asleep, so that whoever sends rings. It
 * stays so until the next rank_progress or arm, or until somebody has rung. A
 * byte in the doorbell is taken out before arming, never after, so none is lost:
 * what came between is found by the look that follows.
 *
 * Not every death is rung for (under launchers that report none), and our own
 * naps end after a tenth of a second for that. The timer does it here; nor does anybody ring for room, for which
 * a send waits: the timer runs out after a millisecond then.
 */
#include "lib/channel/watch.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/channel/threads.h"
#include "lib/mem/node.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* SHORT: a send waits for room. */
enum { LOOK_NS = 125 * 1000 * 1000, SHORT_LOOK_NS = 1000 * 1000 };

rank_status_t rk_watch_fd(struct rk_ctx *ctx, int *fd)
{
    struct rk_engine *e = ctx->engine;
    struct epoll_event ev = {.events = EPOLLIN};
    int epoll = rk_wait_epoll(ctx, true);

    if (epoll < 0) {
        rk_error("rank_progress_fd: no descriptor could be made (%m); look at ulimit -n");
        return RANK_ERR_SYSTEM;
    }
    if (e->watch_timer < 0) {
        int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        ev.data.fd = timer;
        if (timer < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &ev) < 0) {
            rk_error("rank_progress_fd: no timer could be made (%m); look at ulimit -n");
            if (timer >= 0)
                close(timer);
            return RANK_ERR_SYSTEM;
        }
        e->watch_timer = timer;
    }
    *fd = epoll;
    if (rk_threads_naps(e->threads)) /* perhaps on the futex, and from now on rings go to the descriptor */
        rk_threads_stir(e->threads);
    return RANK_OK;
}

bool rk_watch_drain(struct rk_ctx *ctx)
{
    int bell = ctx->node->bell_rd;
    char drain[64];
    bool rung = false;
    ssize_t n;

    while (bell >= 0 && (n = read(bell, drain, sizeof(drain))) > 0) {
        rung = true;
        if (n < (ssize_t)sizeof(drain))
            break;
    }
    if (ctx->engine->watch_timer >= 0 &&
        read(ctx->engine->watch_timer, drain, sizeof(uint64_t)) < 0)
        return rung; /* it has not run out */
    return rung;
}

/* Empties the doorbell beside a thread that may nap on it, and that the ring was perhaps meant for. */
static void drain_for_all(struct rk_ctx *ctx)
{
    if (rk_watch_drain(ctx) && rk_threads_naps(ctx->engine->threads))
        rk_threads_stir(ctx->engine->threads);
}

/* Nobody has to ring for the user; but a thread that naps needs it still, and ends it itself. */
static void end_sleep(struct rk_ctx *ctx)
{
    if (!rk_threads_naps(ctx->engine->threads))
        rk_node_sleep_end(ctx->node);
}

static void set_timer(struct rk_engine *e, long ns)
{
    struct itimerspec t = {.it_value = {.tv_nsec = ns}};

    timerfd_settime(e->watch_timer, 0, &t, NULL);
}

void rk_watch_end_slow(struct rk_ctx *ctx)
{
    struct rk_engine *e = ctx->engine;

    e->watched = false;
    end_sleep(ctx);
    set_timer(e, 0);
    drain_for_all(ctx);
}

void rk_watch_tell(struct rk_ctx *ctx)
{
    char byte = 1;

    ctx->engine->watched = false;
    end_sleep(ctx);
    if (write(ctx->node->bell_wr, &byte, 1) < 0)
        return; /* full, and so readable */
}

rank_status_t rk_watch_arm(struct rk_ctx *ctx)
{
    struct rk_engine *e = ctx->engine;
    uint32_t deaths = e->deaths_seen + e->boot_deaths_seen;
    enum rk_armed armed = RK_ARMED_NOT;
    bool busy;
    uint64_t now;

    if (e->watch_timer < 0 || rk_wait_epoll(ctx, true) < 0)
        return RANK_ERR_STATE; /* rank_progress_fd comes first */
    drain_for_all(ctx);
    now = rk_clock_ns();
    if (now >= e->next_check_ns)
        rk_engine_check_lives(ctx, now);
    rk_node_sleep_begin(ctx->node, RK_ASLEEP_FD);
    busy = !rk_list_empty(&e->busy);
    if (rk_progress(ctx) == 0 && busy == !rk_list_empty(&e->busy) &&
        deaths == e->deaths_seen + e->boot_deaths_seen)
        armed = rk_wait_arm(e);
    if (armed == RK_ARMED_NOT) {
        e->watched = false;
        end_sleep(ctx);
        return RANK_ERR_AGAIN;
    }
    e->watched = true;
    set_timer(e, armed == RK_ARMED ? LOOK_NS : SHORT_LOOK_NS);
    return RANK_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event_fd.c: let the user's event loop wait for progress.
 *
 * Arming starts a sleep in the user's event loop: the slot is marked asleep, so that senders ring the doorbell.
 * This ends when the arming thread makes progress or arms again, or when the doorbell rings. The doorbell is
 * drained before arming, never after, so no byte is lost: the check that follows finds what came between.
 *
 * Some events ring no doorbell: deaths under some launchers, and room for a pending send. The timer covers both,
 * with RK_CHECK_NS and RK_SLEEP_SHORT_NS. A timer that expires at once makes the descriptor readable.
 */
#include "lib/core/event_fd.h"
#include "lib/base/clock.h"
#include "lib/base/arg_error.h"
#include "lib/base/timing.h"
#include "lib/core/threads.h"
#include "lib/node/node.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* SHORT: a send waits for room. */
enum { AT_ONCE_NS = 1 };

static rank_status_t event_fd_refuse(const char *what)
{
    return rk_fail(RANK_ERR_SYSTEM, "rank_progress_fd: no %s could be made (%m); look at ulimit -n", what);
}

rank_status_t rk_event_fd_get(struct rk_ctx *ctx, int *fd)
{
    struct rk_engine *e = ctx->engine;
    struct epoll_event ev = {.events = EPOLLIN};
    int epoll = rk_wait_epoll(ctx, &e->watch.epoll, true);

    /* The same doorbell has to wake sleeping threads. */
    if (epoll < 0 || (e->threads && rk_wait_epoll(ctx, &e->sleep_epoll, true) < 0))
        return event_fd_refuse("descriptor");
    if (e->watch.timer < 0) {
        int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        ev.data.fd = timer;
        if (timer < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &ev) < 0) {
            if (timer >= 0)
                close(timer);
            return event_fd_refuse("timer");
        }
        e->watch.timer = timer;
    }
    *fd = epoll;
    if (rk_threads_sleeps(e->threads)) /* it may sleep on the futex; from now on rings go to the descriptor */
        rk_threads_kick(e->threads);
    return RANK_OK;
}

void rk_event_fd_close(struct rk_ctx *ctx)
{
    struct rk_event_fd *w = &ctx->engine->watch;

    if (w->timer >= 0)
        close(w->timer);
    if (w->epoll.fd >= 0)
        close(w->epoll.fd);
}

/* ns 0: never; the descriptor is not readable until then. */
static void event_fd_set_timer(struct rk_engine *e, long ns)
{
    struct itimerspec t = {.it_value = {.tv_nsec = ns}};

    timerfd_settime(e->watch.timer, 0, &t, NULL);
}

static void event_fd_become(struct rk_ctx *ctx, int state)
{
    struct rk_engine *e = ctx->engine;

    e->watch.state = state;
    if (e->threads)
        e->threads->watched = state != RK_EVENT_FD_SIGNALLED;
}

static void event_fd_drain(const struct rk_node *node)
{
    char bytes[64];

    while (node->bell_rd >= 0 && read(node->bell_rd, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes))
        ;
}

/*
 * The user is awake: senders need not ring, and pending rings are drained. A sleeping library thread keeps its
 * ring and marks itself awake.
 */
static void end_sleep(struct rk_ctx *ctx)
{
    if (rk_threads_sleeps(ctx->engine->threads))
        return;
    rk_node_sleep_end(ctx->node);
    event_fd_drain(ctx->node);
}

void rk_event_fd_end_slow(struct rk_ctx *ctx)
{
    if (ctx->engine->threads && ctx->engine->watch.owner != rk_lock_me())
        return; /* that one sleeps on */
    event_fd_become(ctx, RK_EVENT_FD_OFF);
    ctx->engine->watch.missed = false;
    event_fd_set_timer(ctx->engine, 0);
    end_sleep(ctx);
}

void rk_event_fd_signal(struct rk_ctx *ctx)
{
    struct rk_engine *e = ctx->engine;

    if (e->watch.state == RK_EVENT_FD_OFF && e->threads && e->watch.owner != rk_lock_me()) {
        /* the user may have checked already and be about to arm */
        e->watch.missed = true;
        e->threads->watched = false;
    }
    if (!rk_event_fd_is_armed(e))
        return;
    event_fd_become(ctx, RK_EVENT_FD_SIGNALLED);
    event_fd_set_timer(e, AT_ONCE_NS);
}

void rk_event_fd_rung(struct rk_ctx *ctx)
{
    event_fd_drain(ctx->node);
    rk_event_fd_signal(ctx);
}

rank_status_t rk_event_fd_arm(struct rk_ctx *ctx)
{
    struct rk_engine *e = ctx->engine;
    uint32_t deaths = e->deaths_seen + e->boot_deaths_seen;
    enum rk_armed armed = RK_ARMED_NOT;
    bool missed;
    uint64_t now;

    if (e->watch.timer < 0 || rk_wait_epoll(ctx, &e->watch.epoll, true) < 0)
        return RANK_ERR_STATE; /* rank_progress_fd must come first */
    missed = e->threads && (e->watch.missed || e->watch.state == RK_EVENT_FD_SIGNALLED || e->watch.owner != rk_lock_me());
    e->watch.missed = false;
    event_fd_become(ctx, RK_EVENT_FD_OFF);
    e->watch.owner = rk_lock_me();
    event_fd_set_timer(e, 0);
    end_sleep(ctx);
    now = rk_clock_ns();
    if (now >= e->next_check_ns)
        rk_engine_check_deaths(ctx, now);
    rk_node_sleep_begin(ctx->node, RK_ASLEEP_FD);
    if (rk_progress(ctx) == 0 && !missed && deaths == e->deaths_seen + e->boot_deaths_seen)
        armed = rk_wait_arm(e);
    if (armed == RK_ARMED_NOT) {
        end_sleep(ctx);
        return RANK_ERR_AGAIN;
    }
    event_fd_become(ctx, RK_EVENT_FD_ASLEEP);
    event_fd_set_timer(e, armed == RK_ARMED ? RK_CHECK_NS : RK_SLEEP_SHORT_NS);
    return RANK_OK;
}

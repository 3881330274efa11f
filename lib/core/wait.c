/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait.c: wait for a condition: spin, yield, sleep.
 *
 * A wait spins with an occasional yield; yields at once on an oversubscribed node; after RANK_SPIN sleeps until a
 * peer rings the doorbell. The sleep is a futex while shm is the only channel; with a channel that has a
 * descriptor it is an epoll over that and a doorbell pipe. No sleep exceeds 0.1 s, so that a death without a
 * doorbell is detected in time.
 *
 * With threads the rounds are those of the poller (threads.h), which releases the context's lock while it yields
 * or sleeps.
 */
#include "lib/base/clock.h"
#include "lib/base/kept_fds.h"
#include "lib/base/log.h"
#include "lib/base/timing.h"
#include "lib/core/engine.h"
#include "lib/core/describe.h"
#include "lib/core/threads.h"
#include "lib/core/event_fd.h"
#include "lib/node/node.h"

#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

/* Polling time of the progress thread after the last event. */
enum { BACKGROUND_SPIN_NS = 20 * 1000 };
/* While starts of streams are outstanding, for which no doorbell rings: least polling time, and length of a sleep. */
enum { STREAM_SPIN_NS = 1000 * 1000, STREAM_SLEEP_NS = 20 * 1000 };
enum { SPINS_PER_CHECK = 256, YIELDS_PER_CHECK = 16 };
/*
 * Adaptive spin: at most SPIN_RANKS ranks (among more, the awaited peer rarely runs); time of a spin; maximum
 * time without a yield; after how many failures in a row one of 2^that waits spins.
 */
enum { SPIN_RANKS = 8, CHECKS_PER_CLOCK = 16, FAILED_MAX = 6 };
/*
 * Nonblocking tests: fruitless calls before a yield, then between yields; a longer interval means that the program
 * computes.
 */
enum { POLLS_FIRST = 32, POLLS_AGAIN = 4, POLLING_NS = 10 * 1000 };

int rk_wait_epoll(struct rk_ctx *ctx, struct rk_epoll *epoll, bool anyway)
{
    struct rk_engine *e = ctx->engine;
    struct epoll_event ev = {.events = EPOLLIN};
    int fds[RK_CHANNELS_MAX + 1], n = 0;

    if (epoll->fd >= 0 && epoll->channels == e->nopen)
        return epoll->fd;
    for (int i = epoll->channels; i < e->nopen; i++) { /* channels may have been opened since */
        int fd = e->open[i].ops->fd ? e->open[i].ops->fd(e->open[i].state) : -1;
        if (fd >= 0)
            fds[n++] = fd;
    }
    if (epoll->fd < 0) {
        if (n == 0 && !anyway)
            return -1;
        fds[n] = rk_node_bell_fd(ctx->node);
        if (fds[n] < 0)
            return -1;
        n++;
        epoll->fd = epoll_create1(EPOLL_CLOEXEC);
        if (epoll->fd < 0)
            return -1;
    }
    for (int i = 0; i < n; i++) {
        ev.data.fd = fds[i];
        if (epoll_ctl(epoll->fd, EPOLL_CTL_ADD, fds[i], &ev) < 0) {
            rk_debug("cannot wait for a channel's descriptor: %m");
            if (epoll->channels == 0) { /* else the user may hold it */
                close(epoll->fd);
                epoll->fd = -1;
            }
            return -1;
        }
    }
    epoll->channels = e->nopen;
    return epoll->fd;
}

enum rk_armed rk_wait_arm(struct rk_engine *e)
{
    if (!rk_list_empty(&e->calls))
        return RK_ARMED_NOT;
    for (int i = 0; i < e->nopen; i++) {
        if (e->open[i].ops->arm && e->open[i].ops->arm(e->open[i].state) != RANK_OK)
            return RK_ARMED_NOT;
    }
    return rk_sendq_is_idle(e) ? RK_ARMED : RK_ARMED_SHORTLY;
}

uint64_t rk_wait_deadline_in(uint64_t timeout_ns)
{
    uint64_t deadline;

    return __builtin_add_overflow(rk_clock_ns(), timeout_ns, &deadline) ? 0 : deadline;
}

/* Length of a sleep that ends at the deadline of the wait. At least 1. */
static int sleep_until_deadline(const struct rk_wait *w, int ns)
{
    uint64_t now;

    if (!w->deadline)
        return ns;
    now = rk_clock_ns();
    if (now >= w->deadline)
        return 1;
    return w->deadline - now < (uint64_t)ns ? (int)(w->deadline - now) : ns;
}

/* Releases the lock meanwhile, if any. False: another thread has taken this one's place. */
static bool sleep_until_rung(struct rk_ctx *ctx, int epoll, uint32_t bell, int ns)
{
    struct rk_threads *t = ctx->engine->threads;
    struct rk_sleeper sleep = {NULL, 0};
    struct epoll_event ev[4];
    bool rung = false, mine = true;

    if (rk_unlikely(t != NULL))
        sleep = rk_threads_sleep_begin(t, ns == RK_SLEEP_NS); /* a short sleep need not be ended by others */
    if (epoll < 0)
        rk_node_sleep(ctx->node, bell, (uint64_t)ns);
    else if (ns >= 1000000)
        rung = epoll_wait(epoll, ev, 4, ns / 1000000) > 0;
    else
        rung = ppoll(&(struct pollfd){epoll, POLLIN, 0}, 1, &(struct timespec){0, ns}, NULL) > 0;
    if (rk_unlikely(t != NULL))
        mine = rk_threads_sleep_end(t, sleep);
    if (rung)
        rk_event_fd_rung(ctx);
    return mine;
}

static RK_COLD void wait_sleep(struct rk_ctx *ctx, struct rk_wait *w, bool shortly)
{
    struct rk_threads *t = ctx->engine->threads;
    struct rk_node *node = ctx->node;
    int epoll = rk_wait_epoll(ctx, &ctx->engine->sleep_epoll, false);
    uint32_t bell = rk_node_sleep_begin(node, epoll >= 0 ? RK_ASLEEP_FD : RK_ASLEEP_FUTEX);
    bool mine = true;

    if (!w->over(w) && rk_progress(ctx) == 0 && !w->over(w) &&
        (rk_likely(!t) || rk_threads_still_polls(t))) {
        enum rk_armed armed = rk_wait_arm(ctx->engine);
        int ns = armed == RK_ARMED && !w->no_doorbell && !shortly ? RK_SLEEP_NS : RK_SLEEP_SHORT_NS;

        if (rk_unlikely(ctx->engine->stream_starts > 0))
            ns = STREAM_SLEEP_NS;
        ns = sleep_until_deadline(w, ns);
        if (epoll < 0 || armed != RK_ARMED_NOT)
            mine = sleep_until_rung(ctx, epoll, bell, ns);
        else
            rk_event_fd_signal(ctx); /* the ring may have been meant for the user, too */
    }
    if (epoll >= 0 && rk_kept_fds_closed("a wait"))
        rk_engine_lost_channels(ctx);
    /* the user's sleep goes on */
    if (mine && (rk_likely(!t) || (rk_threads_still_polls(t) && !rk_event_fd_is_armed(ctx->engine))))
        rk_node_sleep_end(node);
}

/*
 * Oversubscribed: spin briefly if the awaited peer probably runs on another core; its message then comes sooner
 * than a yield returns, and two ranks that answer each other keep their cores. Try on the first fruitless check;
 * less and less often after failures, and never long without a yield. Traffic of other peers does not count. Only
 * for one message: a collective waits for all ranks.
 */
static bool spin_adaptively(struct rk_ctx *ctx, struct rk_wait *w)
{
    struct rk_engine *e = ctx->engine;
    uint64_t now, until = 0;

    if (e->threads || e->spin_ns == 0 || ctx->node->nlocal > SPIN_RANKS ||
        !(w->kind == RK_FOR_RECV || (w->kind == RK_FOR_SEND && w->peer)))
        return false;
    if (e->spin.skip > 0) {
        e->spin.skip--;
        return false;
    }
    do {
        now = rk_clock_ns();
        if (until == 0)
            until = now + RK_SPIN_NS;
        if (e->spin.since_ns == 0)
            e->spin.since_ns = now;
        if (now - e->spin.since_ns >= RK_STAY_NS)
            return false;
        for (int i = 0; i < CHECKS_PER_CLOCK; i++) {
            rk_progress(ctx);
            if (w->over(w)) {
                e->spin.failed = 0;
                return true;
            }
        }
    } while (now < until);
    if (e->spin.failed < FAILED_MAX)
        e->spin.failed++;
    e->spin.skip = (1u << e->spin.failed) - 1;
    return false;
}

/* False: with threads, another one polls now. */
static bool yield(struct rk_engine *e)
{
    if (rk_unlikely(e->threads != NULL))
        return rk_threads_yield(e->threads);
    sched_yield();
    return true;
}

/*
 * Yield for a program that polls (test, iprobe, progress) on an oversubscribed host, once enough fruitless calls
 * in a row follow each other closely. A program that computes between calls keeps its core.
 */
void rk_wait_polled(struct rk_ctx *ctx)
{
    struct rk_engine *e = ctx->engine;
    uint64_t now;

    if (e->polls.fruitless++ == 0)
        e->polls.since_ns = rk_clock_ns();
    if (e->polls.fruitless < (e->polls.yielded ? POLLS_AGAIN : POLLS_FIRST))
        return;
    now = rk_clock_ns();
    e->polls.yielded = now - e->polls.since_ns < e->polls.fruitless * (uint64_t)POLLING_NS;
    e->polls.fruitless = 0;
    if (!e->polls.yielded || rk_in_callback(ctx))
        return;
    e->spin.since_ns = 0;
    if (e->threads)
        rk_threads_make_way(e->threads);
    else
        sched_yield();
}

void rk_wait_step(struct rk_ctx *ctx, struct rk_wait *w)
{
    if (rk_unlikely(ctx->engine->threads != NULL))
        rk_threads_wait(ctx, w);
    else
        rk_wait_bout(ctx, w);
}

/* Check deadline, deaths and stalls in a wait to which other messages keep coming. */
static RK_COLD void check_while_busy(struct rk_ctx *ctx, struct rk_wait *w)
{
    struct rk_engine *e = ctx->engine;
    uint64_t now = rk_clock_ns();

    if (rk_wait_is_late(w, now) || e->threads)
        return;
    if (w->begun == 0)
        w->begun = now;
    if (e->watches)
        rk_engine_watch_awaited(ctx, w, now);
    if (e->stuck)
        e->stuck(ctx, w, now, 0, now - w->begun);
}

/* Has a rank without threads any periodic check to run in a wait? Few have. */
RK_INLINE bool has_checks(const struct rk_engine *e)
{
    return rk_unlikely(((uintptr_t)e->stuck | e->watches) != 0) && !e->threads;
}

void rk_wait_bout(struct rk_ctx *ctx, struct rk_wait *w)
{
    struct rk_engine *e = ctx->engine;
    bool oversubscribed = ctx->node->oversubscribed, shortly = false;
    uint64_t now, spin;

    if (rk_progress(ctx) > 0) {
        if (oversubscribed && !w->yielded && w->over(w)) /* it arrived while this rank ran */
            e->spin.skip = 0;
        w->rounds = 0;
        w->since = 0;
        if ((has_checks(e) || rk_unlikely(w->deadline != 0)) && ++w->busy % SPINS_PER_CHECK == 0)
            check_while_busy(ctx, w);
        return;
    }
    if (oversubscribed) {
        if (w->rounds == 0 && spin_adaptively(ctx, w))
            return;
        w->yielded = true;
        e->spin.since_ns = 0;
    }
    w->rounds++;
    if (oversubscribed && !yield(e))
        return;
    if (w->rounds % (oversubscribed ? YIELDS_PER_CHECK : SPINS_PER_CHECK))
        return;
    /*
     * The awaited rank or another program may need this core. Not on the first check, so that short waits make no
     * system calls.
     */
    if (!oversubscribed && w->since && !yield(e))
        return;
    now = rk_clock_ns();
    if (w->since == 0)
        w->since = now;
    if (w->begun == 0)
        w->begun = now;
    if (rk_wait_is_late(w, now))
        return;
    if (now >= e->next_check_ns)
        rk_engine_check_deaths(ctx, now);
    if (rk_unlikely(e->watches) && !e->threads)
        rk_engine_watch_awaited(ctx, w, now);
    if (rk_unlikely(e->stuck != NULL))
        shortly = e->threads ? rk_threads_check_stalls(e->threads, now)
                             : e->stuck(ctx, w, now, now - w->since, now - w->begun);
    if (rk_unlikely(now - w->since >= RK_DESCRIBE_NS) && (!w->background || e->callbacks > 0))
        rk_describe_wait(ctx, w, now);
    spin = w->background ? BACKGROUND_SPIN_NS : e->spin_ns;
    if (rk_unlikely(e->stream_starts > 0) && spin < STREAM_SPIN_NS)
        spin = STREAM_SPIN_NS;
    if (now - w->since < spin)
        return;
    if (rk_likely(!e->threads) || rk_threads_may_sleep(e->threads))
        wait_sleep(ctx, w, shortly);
}

void rk_wait_wake(void *ctx)
{
    struct rk_node *node = ((struct rk_ctx *)ctx)->node;

    rk_node_wake(node, node->index);
}

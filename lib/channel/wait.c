/*
 * wait.c: the one way to wait.
 *
 * Spin a while, with a yield now and then; yield at once where the node has
 * more ranks than cores; after RANK_SPIN sleep until a peer rings. While shm is
 * the only channel that is a futex; where a channel has a descriptor, it is
 * epoll over that and a pipe that peers ring. No sleep is longer than a tenth
 * of a second, so that a death that nobody rings for is still seen in time.
 */
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/channel/engine.h"
#include "lib/channel/tell.h"
#include "lib/channel/watch.h"
#include "lib/mem/node.h"

#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { NAP_NS = 100 * 1000 * 1000, SHORT_NAP_NS = 1000 * 1000, SPINS_PER_LOOK = 256, YIELDS_PER_LOOK = 16 };

int rk_wait_epoll(struct rk_ctx *ctx, bool anyway)
{
    struct rk_engine *e = ctx->engine;
    struct epoll_event ev = {.events = EPOLLIN};
    int fds[RK_CHANNELS_MAX + 1], n = 0;

    if (e->epoll >= 0 && e->in_epoll == e->nopen)
        return e->epoll;
    for (int i = e->in_epoll; i < e->nopen; i++) { /* a channel may have been opened since */
        int fd = e->open[i].ops->fd ? e->open[i].ops->fd(e->open[i].state) : -1;
        if (fd >= 0)
            fds[n++] = fd;
    }
    if (e->epoll < 0) {
        if (n == 0 && !anyway)
            return -1;
        fds[n] = rk_node_bell_fd(ctx->node);
        if (fds[n] < 0)
            return -1;
        n++;
        e->epoll = epoll_create1(EPOLL_CLOEXEC);
        if (e->epoll < 0)
            return -1;
    }
    for (int i = 0; i < n; i++) {
        ev.data.fd = fds[i];
        if (epoll_ctl(e->epoll, EPOLL_CTL_ADD, fds[i], &ev) < 0) {
            rk_debug("cannot wait for a channel's descriptor: %m");
            if (e->in_epoll == 0) { /* else the user may have it */
                close(e->epoll);
                e->epoll = -1;
            }
            return -1;
        }
    }
    e->in_epoll = e->nopen;
    return e->epoll;
}

bool rk_wait_all_armed(struct rk_engine *e)
{
    if (!rk_list_empty(&e->busy) || !rk_list_empty(&e->calls) || e->unsent)
        return false;
    for (int i = 0; i < e->nopen; i++) {
        if (e->open[i].ops->arm && e->open[i].ops->arm(e->open[i].state) != RANK_OK)
            return false;
    }
    return true;
}

static void nap_in_epoll(struct rk_ctx *ctx, int epoll, int ms)
{
    struct epoll_event ev[4];

    if (epoll_wait(epoll, ev, 4, ms) > 0)
        rk_watch_drain(ctx);
}

static RK_COLD void nap(struct rk_ctx *ctx, bool unrung, bool (*cond)(void *), void *arg)
{
    struct rk_node *node = ctx->node;
    int epoll = rk_wait_epoll(ctx, false);
    uint32_t bell = rk_node_sleep_begin(node, epoll >= 0 ? RK_ASLEEP_FD : RK_ASLEEP_FUTEX);

    if (!cond(arg) && rk_progress(ctx) == 0 && !cond(arg)) {
        bool armed = rk_wait_all_armed(ctx->engine);
        int ns = armed && !unrung ? NAP_NS : SHORT_NAP_NS;

        if (epoll < 0)
            rk_node_sleep(node, bell, (uint64_t)ns);
        else if (armed)
            nap_in_epoll(ctx, epoll, ns / 1000000);
    }
    rk_node_sleep_end(node);
}

void rk_wait_step(struct rk_ctx *ctx, struct rk_waiter *w, bool (*cond)(void *), void *arg)
{
    struct rk_engine *e = ctx->engine;
    bool oversubscribed = ctx->node->oversubscribed;
    uint64_t now;

    if (rk_progress(ctx) > 0) {
        w->rounds = 0;
        w->since = 0;
        return;
    }
    w->rounds++;
    if (oversubscribed)
        sched_yield();
    if (w->rounds % (oversubscribed ? YIELDS_PER_LOOK : SPINS_PER_LOOK))
        return;
    /* What we wait for may be waiting for this core: another program can run here too. Not at the
     * first look, so that short waits stay free of system calls. */
    if (!oversubscribed && w->since)
        sched_yield();
    now = rk_clock_ns();
    if (w->since == 0)
        w->since = now;
    if (now >= e->next_check_ns)
        rk_engine_check_lives(ctx, now);
    if (rk_unlikely(now - w->since >= RK_TELL_NS))
        rk_tell(ctx, w, cond, arg, now);
    if (now - w->since >= e->spin_ns)
        nap(ctx, w->unrung, cond, arg);
}

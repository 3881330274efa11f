/* SPDX-License-Identifier: BSD-3-Clause */
/* peer_liveness.c: detect dead ranks of other hosts by TCP connections. */
#include "lib/core/peer_liveness.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/boot/boot.h"
#include "lib/core/describe.h"
#include "lib/core/threads.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CARD "rank.life"

enum {
    MAGIC = 0x6c696665,
    ADDRESSES = 8,
    LINES = 64,         /* maximum connections of a rank */
    OTHERS = 32,        /* of those, ranks that no wait names: their deaths matter to the job */
    LISTENERS = 16,     /* of a process: contexts that are watched */
    BACKLOG = 4096,     /* connections that stay unaccepted */
    LOOK_NS = 100 * 1000 * 1000,
    TRY_NS = 1000 * 1000 * 1000, /* for each address of a rank */
    PROBES = 4          /* without an answer: the host is down */
};
#define PEACE_NS 3000000000ull /* at finalize: maximum skew of the ranks */

/* Addresses where a rank listens. */
struct card {
    uint32_t magic;
    uint16_t port, naddresses;
    struct in6_addr at[ADDRESSES]; /* IPv4 mapped */
};

enum line_state { ASKING, CONNECTING, REFUSED, UP, GONE, OVER };

struct line {
    int number;
    enum line_state state;
    struct rk_answer *answer; /* ASKING */
    int fd;                   /* in CONNECTING and UP */
    uint16_t next;            /* next address to try */
    bool refused;             /* by one of the addresses */
    uint64_t since;
    struct card card;
};

struct rk_liveness {
    int listener, index; /* its place among those of the process */
    bool stopped;
    bool let_in; /* some connection succeeded: no firewall refuses on the peers' behalf */
    struct card mine;
    uint64_t looked_ns;
    int nlines;
    struct line line[LINES];
};

/* -------------------------------------------------------------------- listener */

static bool peer_liveness_usable(const struct ifaddrs *i)
{
    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK))
        return false;
    if (i->ifa_addr->sa_family == AF_INET)
        return true;
    return i->ifa_addr->sa_family == AF_INET6 &&
           !IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)(void *)i->ifa_addr)->sin6_addr);
}

static void list_addresses(struct card *c)
{
    struct ifaddrs *all = NULL;

    if (getifaddrs(&all))
        return;
    for (struct ifaddrs *i = all; i && c->naddresses < ADDRESSES; i = i->ifa_next) {
        struct in6_addr *at = &c->at[c->naddresses];
        if (!peer_liveness_usable(i))
            continue;
        if (i->ifa_addr->sa_family == AF_INET6) {
            *at = ((struct sockaddr_in6 *)(void *)i->ifa_addr)->sin6_addr;
        } else {
            memset(at, 0, sizeof(*at));
            at->s6_addr[10] = at->s6_addr[11] = 0xff;
            memcpy(&at->s6_addr[12], &((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr, 4);
        }
        c->naddresses++;
    }
    freeifaddrs(all);
}

/* Without IPv6, plain IPv4. */
static int listen_anywhere(uint16_t *port)
{
    static const int families[] = {AF_INET6, AF_INET};

    for (size_t i = 0; i < 2; i++) {
        struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
        struct sockaddr_in four = {.sin_family = AF_INET};
        struct sockaddr *at = i ? (struct sockaddr *)&four : (struct sockaddr *)&six;
        socklen_t len = i ? sizeof(four) : sizeof(six);
        const int off = 0;
        int fd = socket(families[i], SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0)
            continue;
        if (i == 0)
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
        if (bind(fd, at, len) == 0 && listen(fd, BACKLOG) == 0 && getsockname(fd, at, &len) == 0) {
            *port = ntohs(i ? four.sin_port : six.sin6_port);
            return fd;
        }
        close(fd);
    }
    return -1;
}

/*
 * Maximum ranks of a job that may connect to one rank. The backlog must not overflow: a dropped client would
 * report this rank as dead. Assumes that all hosts have the same limit.
 */
static int most_ranks(void)
{
    FILE *f = fopen("/proc/sys/net/core/somaxconn", "re");
    int allowed = BACKLOG;

    if (f) {
        if (fscanf(f, "%d", &allowed) != 1 || allowed > BACKLOG)
            allowed = BACKLOG;
        fclose(f);
    }
    return allowed / 2;
}

/* Listeners of the contexts of this process plus 1, for forked children; 0: none. */
static _Atomic int listeners[LISTENERS];

/*
 * Close the listeners in a forked child, which would otherwise keep the ports open after this process has died. Runs
 * between fork and exec: system calls only. Connections to other ports do not matter.
 */
static void in_child(void)
{
    for (int i = 0; i < LISTENERS; i++) {
        int fd = atomic_exchange(&listeners[i], 0) - 1;
        if (fd >= 0)
            close(fd);
    }
}

static bool take_listener(struct rk_liveness *v)
{
    for (v->index = 0; v->index < LISTENERS; v->index++) {
        int none = 0;
        if (atomic_compare_exchange_strong(&listeners[v->index], &none, v->listener + 1))
            return true;
    }
    return false;
}

static void close_in_children(void)
{
    if (pthread_atfork(NULL, NULL, in_child))
        rk_info("processes that this rank forks may hide its death from other hosts");
}

void rk_liveness_open(struct rk_ctx *ctx)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct rk_boot *boot = ctx->boot;
    struct rk_liveness *v;

    /* Only xrun provides a status board, and xrun reports every death. */
    if (ctx->engine->liveness || ctx->board || rk_conf.heartbeat == 0 || boot->alone ||
        boot->nlocal >= boot->size)
        return;
    if (boot->size > most_ranks()) {
        rk_debug("too many ranks to watch those of other hosts");
        return;
    }
    v = calloc(1, sizeof(*v));
    if (!v)
        return;
    v->mine.magic = MAGIC;
    v->listener = listen_anywhere(&v->mine.port);
    list_addresses(&v->mine);
    if (v->listener < 0 || !take_listener(v)) {
        rk_info("ranks of other hosts are not watched: there is no port for that");
        if (v->listener >= 0)
            close(v->listener);
        free(v);
        return;
    }
    ctx->engine->liveness = v;
    pthread_once(&once, close_in_children);
    if (ctx->boot->ops->put(ctx->boot, CARD, &v->mine, sizeof(v->mine)))
        rk_liveness_close(ctx);
}

static void end_line(struct rk_ctx *ctx, struct line *l)
{
    if (l->answer)
        ctx->boot->ops->request_end(ctx->boot, l->answer, NULL, 0);
    if (l->fd >= 0)
        close(l->fd);
    l->answer = NULL;
    l->fd = -1;
    l->state = OVER;
}

void rk_liveness_stop(struct rk_ctx *ctx)
{
    if (ctx->engine->liveness)
        ctx->engine->liveness->stopped = true;
}

void rk_liveness_close(struct rk_ctx *ctx)
{
    struct rk_liveness *v = ctx->engine->liveness;

    if (!v)
        return;
    for (int i = 0; i < v->nlines; i++)
        end_line(ctx, &v->line[i]);
    /* A concurrently forked child must not close a reused descriptor; and this may be a child. */
    v->listener = atomic_exchange(&listeners[v->index], 0) - 1;
    if (v->listener >= 0)
        close(v->listener);
    free(v);
    ctx->engine->liveness = NULL;
}

/* ---------------------------------------------------------------------- connections */

static bool is_mine(const struct rk_liveness *v, const struct in6_addr *at)
{
    for (uint16_t i = 0; i < v->mine.naddresses; i++) {
        if (memcmp(&v->mine.at[i], at, sizeof(*at)) == 0)
            return true;
    }
    return false;
}

static int begin_connect(const struct in6_addr *at, uint16_t port)
{
    bool four = IN6_IS_ADDR_V4MAPPED(at);
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_addr = *at, .sin6_port = htons(port)};
    struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(four ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    if (four)
        memcpy(&a4.sin_addr, &at->s6_addr[12], 4);
    if (connect(fd, four ? (struct sockaddr *)&a4 : (struct sockaddr *)&a6, four ? sizeof(a4) : sizeof(a6)) == 0 ||
        errno == EINPROGRESS)
        return fd;
    close(fd);
    return -1;
}

/* Try the next address, if any. Skip addresses of this host: they do not lead to the peer. */
static void try_next(struct rk_liveness *v, struct line *l, uint64_t now)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    l->since = now;
    while (l->fd < 0 && l->next < l->card.naddresses) {
        const struct in6_addr *at = &l->card.at[l->next++];
        if (!is_mine(v, at))
            l->fd = begin_connect(at, l->card.port);
    }
    if (l->fd < 0)
        l->state = l->refused ? REFUSED : OVER;
}

static void keep_alive(int fd)
{
    int s = (int)(rk_conf.heartbeat / 1000000000), on = 1, times = PROBES, ms;

    s = s > 0 ? s : 1;
    ms = s * 1000 * (PROBES + 1);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &s, sizeof(s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &s, sizeof(s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
}

static void finish_connect(struct rk_liveness *v, struct line *l, uint64_t now)
{
    struct pollfd p = {.fd = l->fd, .events = POLLOUT};
    socklen_t len = sizeof(int);
    int error = 0;

    if (poll(&p, 1, 0) <= 0) {
        if (now - l->since > TRY_NS)
            try_next(v, l, now);
        return;
    }
    if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &len))
        error = errno;
    if (error == 0) {
        l->state = UP;
        v->let_in = true;
        rk_debug("rank %d is watched", l->number);
        keep_alive(l->fd);
        return;
    }
    l->refused = l->refused || error == ECONNREFUSED;
    try_next(v, l, now);
}

static void peer_liveness_is_dead(struct rk_ctx *ctx, struct line *l, int error)
{
    rk_info("rank %d is gone: %s", l->number,
            error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH
                ? "its host does not answer any more"
                : "its host has no such process any more");
    end_line(ctx, l);
    rk_engine_report_death(ctx, l->number);
}

/* The process is gone. After the last barrier this is no failure; finalize then ends soon. */
static void is_gone(struct rk_ctx *ctx, struct line *l, int error, uint64_t now)
{
    if (!ctx->engine->finalizing || error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH) {
        peer_liveness_is_dead(ctx, l, error);
        return;
    }
    l->state = GONE;
    l->since = now;
}

static void peer_liveness_check(struct rk_ctx *ctx, struct line *l, uint64_t now)
{
    struct rk_liveness *v = ctx->engine->liveness;
    ssize_t n;
    char c;

    switch (l->state) {
    case ASKING:
        if (!rk_boot_over(l->answer))
            return;
        l->state = ctx->boot->ops->request_end(ctx->boot, l->answer, &l->card, sizeof(l->card)) && l->card.magic == MAGIC &&
                           l->card.naddresses <= ADDRESSES
                       ? CONNECTING
                       : OVER;
        l->answer = NULL;
        if (l->state == CONNECTING)
            try_next(v, l, now);
        return;
    case CONNECTING:
        finish_connect(v, l, now);
        return;
    case REFUSED:
        if (v->let_in)
            is_gone(ctx, l, ECONNREFUSED, now);
        return;
    case UP:
        n = recv(l->fd, &c, 1, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            is_gone(ctx, l, n == 0 ? 0 : errno, now);
        return;
    case GONE:
        if (now - l->since > PEACE_NS)
            peer_liveness_is_dead(ctx, l, ECONNRESET);
        return;
    case OVER:
        return;
    }
}

/* Watch from now on, if a connection is free. */
static void peer_liveness_watch(struct rk_ctx *ctx, int number, int room)
{
    struct rk_liveness *v = ctx->engine->liveness;
    struct line *l;

    if (number < 0 || number >= ctx->boot->size || rk_engine_local_slot(ctx, number) >= 0 || v->nlines >= room)
        return;
    for (int i = 0; i < v->nlines; i++) {
        if (v->line[i].number == number)
            return;
    }
    l = &v->line[v->nlines++];
    *l = (struct line){.number = number, .fd = -1, .state = ASKING, .answer = ctx->boot->ops->request(ctx->boot, number, CARD)};
    if (!l->answer)
        l->state = OVER;
}

static void watch_awaited(struct rk_ctx *ctx, const struct rk_wait *w, uint64_t now)
{
    struct rk_engine *e = ctx->engine;
    struct rk_wait_for what = {.flags = 0};
    int size = ctx->boot->size;

    if (now - w->begun < (uint64_t)rk_conf.heartbeat)
        return;
    rk_describe(w, &what);
    for (uint32_t i = 0; i < what.npeers && i < RK_BOARD_PEERS; i++)
        peer_liveness_watch(ctx, what.peers[i], LINES);
    for (int i = 1; i < size && e->liveness->nlines < OTHERS; i++)
        peer_liveness_watch(ctx, (ctx->boot->rank + i) % size, OTHERS);
}

static bool is_time(struct rk_liveness *v, uint64_t now)
{
    if (v->stopped || now - v->looked_ns < LOOK_NS)
        return false;
    v->looked_ns = now;
    return true;
}

static void peer_liveness_check_all(struct rk_ctx *ctx, uint64_t now)
{
    struct rk_liveness *v = ctx->engine->liveness;

    for (int i = 0; i < v->nlines; i++)
        peer_liveness_check(ctx, &v->line[i], now);
}

void rk_liveness_check(struct rk_ctx *ctx, const struct rk_wait *w, uint64_t now)
{
    if (now - w->begun < (uint64_t)rk_conf.heartbeat || !is_time(ctx->engine->liveness, now))
        return;
    watch_awaited(ctx, w, now);
    peer_liveness_check_all(ctx, now);
}

void rk_liveness_recheck(struct rk_ctx *ctx, uint64_t now)
{
    struct rk_threads *t = ctx->engine->threads;

    if (t ? !is_time(ctx->engine->liveness, now) : ctx->engine->liveness->stopped)
        return; /* without threads, keep the next check of the wait in time */
    if (t)
        rk_threads_each_wait(t, watch_awaited, now);
    peer_liveness_check_all(ctx, now);
}

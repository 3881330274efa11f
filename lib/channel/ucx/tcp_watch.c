/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_watch.c: shut down TCP connections without acknowledgement of their data.
 *
 * When a cable is pulled the kernel retransmits for a quarter of an hour, and UCX waits with it. Once a second,
 * while something is awaited, this file queries the kernel about UCX's connections: one with data
 * unacknowledged for RANK_UNANSWERED is shut down, which UCX reports as the end of the peer. A peer that computes
 * and does not read is not affected: its kernel acknowledges. An idle link that has received nothing for some
 * seconds sends an empty frame.
 *
 * UCX does not reveal its sockets; their addresses identify them. UCX's listeners are those that appear while its
 * worker is created, and one end of each connection is such a listener. The address blob lists a rank's listeners.
 * A port alone identifies nothing: another host uses the same ports.
 */
#include "lib/base/clock.h"
#include "lib/channel/ucx/ucx.h"

#include <dirent.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <sys/socket.h>

enum { LOOK_NS = 1000 * 1000 * 1000, SILENT_CHECKS = 3 };
/*
 * Retransmission time of a connection that was idle before: the kernel's time-out doubles from 0.2 s; with its own
 * device down it retries every half second.
 */
enum { TIMEOUT_US = 3 * 1000 * 1000, TRIES = 8 };

/* Prefix of an IPv4 address in IPv6 form. */
static const uint8_t V4[12] = {[10] = 0xff, [11] = 0xff};

/* Returns false unless it is an Internet address. */
static bool listener_of(const struct sockaddr_storage *a, struct rk_ucx_listener *listener)
{
    const struct sockaddr_in *in = (const void *)a;
    const struct sockaddr_in6 *in6 = (const void *)a;

    *listener = (struct rk_ucx_listener){0};
    if (a->ss_family == AF_INET) {
        memcpy(listener->address, V4, sizeof(V4));
        memcpy(listener->address + sizeof(V4), &in->sin_addr, sizeof(in->sin_addr));
        listener->port = ntohs(in->sin_port);
    } else if (a->ss_family == AF_INET6) {
        memcpy(listener->address, &in6->sin6_addr, sizeof(in6->sin6_addr));
        listener->port = ntohs(in6->sin6_port);
    }
    return listener->port != 0;
}

static bool same_address(const struct rk_ucx_listener *a, const struct rk_ucx_listener *b)
{
    return memcmp(a->address, b->address, sizeof(a->address)) == 0;
}

static bool is_among(const struct rk_ucx_listener *listeners, uint32_t n, const struct rk_ucx_listener *listener)
{
    for (uint32_t i = 0; i < n; i++) {
        if (listeners[i].port == listener->port && same_address(&listeners[i], listener))
            return true;
    }
    return false;
}

/* Call fn for every descriptor of this process. */
static void each_fd(void (*fn)(int fd, void *arg), void *arg)
{
    DIR *dir = opendir("/proc/self/fd");
    const struct dirent *d;

    if (!dir)
        return;
    while ((d = readdir(dir)) != NULL) {
        char *end;
        long fd = strtol(d->d_name, &end, 10);
        if (end != d->d_name && !*end && fd >= 0 && fd <= INT_MAX && fd != dirfd(dir))
            fn((int)fd, arg);
    }
    closedir(dir);
}

/* Returns false unless fd listens. */
static bool listens_at(int fd, struct rk_ucx_listener *listener)
{
    struct sockaddr_storage a = {0};
    socklen_t len = sizeof(a), size = sizeof(int);
    int listens = 0;

    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens &&
           getsockname(fd, (struct sockaddr *)&a, &len) == 0 && listener_of(&a, listener);
}

static void add_listener(int fd, void *arg)
{
    struct rk_ucx_listeners *d = arg;
    struct rk_ucx_listener listener;

    if (!listens_at(fd, &listener) || is_among(d->at, d->n, &listener))
        return;
    if (d->n == d->cap) {
        uint32_t cap = d->cap ? 2 * d->cap : 8;
        struct rk_ucx_listener *at = realloc(d->at, cap * sizeof(struct rk_ucx_listener));
        if (!at) {
            d->incomplete = true;
            return;
        }
        d->at = at;
        d->cap = cap;
    }
    d->at[d->n++] = listener;
}

void rk_ucx_listeners_before(struct rk_ucx_listeners *old)
{
    each_fd(add_listener, old);
}

void rk_ucx_listeners_after(struct rk_ucx *ucx, struct rk_ucx_listeners *old)
{
    struct rk_ucx_listeners now = {0};

    each_fd(add_listener, &now);
    for (uint32_t i = 0; !old->incomplete && i < now.n && ucx->nlisteners < RK_UCX_LISTENERS_MAX; i++) {
        if (!is_among(old->at, old->n, &now.at[i]))
            ucx->listeners[ucx->nlisteners++] = now.at[i];
    }
    free(now.at);
    free(old->at);
    *old = (struct rk_ucx_listeners){0};
}

/* An address that other hosts may have too: of the loopback or a bridge. */
static bool is_here(const struct rk_ucx *ucx, const struct rk_ucx_listener *listener)
{
    bool v4 = memcmp(listener->address, V4, sizeof(V4)) == 0;

    for (uint32_t i = 0; i < ucx->nlisteners; i++) {
        if (same_address(&ucx->listeners[i], listener))
            return true;
    }
    return v4 ? listener->address[sizeof(V4)] == 127 : memcmp(listener->address, &in6addr_loopback, sizeof(listener->address)) == 0;
}

void rk_ucx_listeners_of(struct rk_ucx_link *l, const struct rk_ucx_card *card)
{
    free(l->listeners);
    l->nlisteners = 0;
    l->listeners = malloc((card->nlisteners + 1) * sizeof(struct rk_ucx_listener));
    /* Without memory its connections are not watched. */
    for (uint32_t i = 0; l->listeners && i < card->nlisteners; i++) {
        if (l->peer->local >= 0 || !is_here(l->ucx, &card->listeners[i]))
            l->listeners[l->nlisteners++] = card->listeners[i];
    }
}

/* Is fd a connection of UCX? Sets theirs to the remote end. */
static bool tcp_watch_is_ours(const struct rk_ucx *ucx, int fd, struct rk_ucx_listener *theirs)
{
    struct sockaddr_storage a = {0}, b = {0};
    socklen_t len = sizeof(a), len2 = sizeof(b);
    struct rk_ucx_listener mine;
    const struct rk_ucx_link *l;
    int i;

    if (getsockname(fd, (struct sockaddr *)&a, &len) < 0 || getpeername(fd, (struct sockaddr *)&b, &len2) < 0 ||
        !listener_of(&a, &mine) || !listener_of(&b, theirs))
        return false;
    if (is_among(ucx->listeners, ucx->nlisteners, &mine))
        return true;
    rk_ucx_each_link(i, l, ucx)
    {
        if (is_among(l->listeners, l->nlisteners, theirs))
            return true;
    }
    return false;
}

static void close_listener(int fd, void *arg)
{
    const struct rk_ucx *ucx = arg;
    struct rk_ucx_listener listener;

    if (listens_at(fd, &listener) && is_among(ucx->listeners, ucx->nlisteners, &listener))
        shutdown(fd, SHUT_RDWR);
}

static void tcp_watch_close(int fd, void *arg)
{
    struct rk_ucx_listener theirs;

    if (tcp_watch_is_ours(arg, fd, &theirs))
        shutdown(fd, SHUT_RDWR);
}

void rk_ucx_close_sockets(struct rk_ucx *ucx)
{
    if (ucx->nlisteners == 0)
        return;
    each_fd(close_listener, ucx); /* first: UCX's own thread accepts connections */
    each_fd(tcp_watch_close, ucx);
}

/* Mark the links to this address as unanswered. */
static void mark_unanswered(struct rk_ucx *ucx, const struct rk_ucx_listener *theirs)
{
    struct rk_ucx_link *l;
    int i;

    rk_ucx_each_link(i, l, ucx)
    {
        for (uint32_t k = 0; k < l->nlisteners; k++)
            l->unanswered |= same_address(&l->listeners[k], theirs);
    }
}

static void tcp_watch_check(int fd, void *arg)
{
    struct rk_ucx *ucx = arg;
    socklen_t size = sizeof(struct tcp_info);
    struct rk_ucx_listener theirs;
    struct tcp_info info;
    char text[INET6_ADDRSTRLEN] = "?";
    bool v4;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0 || info.tcpi_unacked == 0 ||
        (info.tcpi_rto < TIMEOUT_US && info.tcpi_retransmits < TRIES) ||
        info.tcpi_last_ack_recv < rk_ucx_conf()->unanswered / 1000000)
        return;
    if (!tcp_watch_is_ours(ucx, fd, &theirs))
        return;
    v4 = memcmp(theirs.address, V4, sizeof(V4)) == 0;
    inet_ntop(v4 ? AF_INET : AF_INET6, theirs.address + (v4 ? sizeof(V4) : 0), text, sizeof(text));
    rk_error("%s has not answered for %u s: the connection is given up (is a cable or a network device down?)",
             text, info.tcpi_last_ack_recv / 1000);
    mark_unanswered(ucx, &theirs);
    shutdown(fd, SHUT_RDWR);
}

/* True if data is under way to the peer, or if it has been silent: then query the kernel. */
static bool waits_for(struct rk_ucx_link *l)
{
    if (!l->ep || l->failed || l->bye || !l->confirmed)
        return l->ep && !l->failed && !l->bye && (l->unsent || !rk_list_empty(&l->ops));
    if (l->in.due != l->due_seen) {
        l->due_seen = l->in.due;
        l->silent = 0;
        l->unanswered = false;
    } else if (++l->silent >= SILENT_CHECKS) {
        l->silent = 0;
        rk_send_control(l->peer, RK_KIND_CREDIT, 0, NULL, 0); /* a credit of 0 */
    }
    return true;
}

void rk_ucx_watch(struct rk_ucx *ucx)
{
    uint64_t now = rk_clock_ns();
    struct rk_ucx_link *l;
    bool any = false;
    int i;

    if (now < ucx->next_check || ucx->inside)
        return;
    ucx->next_check = now + LOOK_NS;
    rk_ucx_each_link(i, l, ucx)
    {
        rk_ucx_check_lost(l, now);
        any |= waits_for(l);
    }
    if (any && ucx->nlisteners && rk_ucx_conf()->unanswered > 0)
        each_fd(tcp_watch_check, ucx);
}

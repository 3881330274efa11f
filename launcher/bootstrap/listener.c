/* SPDX-License-Identifier: BSD-3-Clause */
/* listener.c: see listener.h. */
#include "launcher/bootstrap/listener.h"
#include "launcher/bootstrap/handshake.h"
#include "launcher/job/timeouts.h"
#include "launcher/util/netif.h"
#include "lib/base/clock.h"
#include "lib/base/list.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PENDING_MAX 256 /* connections without a handshake: beyond this the oldest are closed */
#define PENDING_FEW 16
#define BACKLOG 1024
#define AGAIN_US 100000

struct pending_conn {
    struct rk_link link;
    struct xr_listener *listener;
    struct event *ev;
    uint64_t since;
    struct xr_handshake shake;
    uint8_t proof[XR_HANDSHAKE_PROOF];
    size_t len; /* received, of HELLO and PROOF */
};

struct xr_listener {
    struct event_base *base;
    const struct xr_listener_ops *ops;
    void *arg;
    const struct xr_setup *setup; /* the nodes, and the key from which theirs follow */
    int fd;
    struct event *ev, *again;
    struct rk_link pending; /* oldest first */
    uint32_t npending, room, unauthenticated;
};

/* A pending connection keeps the socket readable, so pause for a while. */
static void pause_listening(struct xr_listener *d)
{
    static const struct timeval soon = {0, AGAIN_US};

    event_del(d->ev);
    event_add(d->again, &soon);
}

static void listener_on_again(evutil_socket_t fd, short what, void *arg)
{
    struct xr_listener *d = arg;

    (void)fd;
    (void)what;
    event_add(d->ev, NULL);
}

static int remove_pending(struct pending_conn *g, bool close_it)
{
    int fd = event_get_fd(g->ev);

    rk_list_remove(&g->link);
    g->listener->npending--;
    event_free(g->ev);
    free(g);
    if (close_it)
        close(fd);
    return fd;
}

/* Data of a peer may be unread if xrun itself was stopped. */
static bool has_unread_data(const struct pending_conn *g)
{
    uint8_t byte;

    return recv(event_get_fd(g->ev), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Leave fewer than this many pending connections: the oldest silent ones are closed. */
static bool make_room(struct xr_listener *d, uint32_t many)
{
    uint64_t now = rk_clock_ns();

    for (struct rk_link *l = d->pending.next, *next; d->npending >= many && l != &d->pending; l = next) {
        struct pending_conn *g = rk_list_entry(l, struct pending_conn, link);
        next = l->next;
        if (now - g->since < XR_HANDSHAKE_FAST_MS * 1000000ull)
            break;
        if (has_unread_data(g))
            continue;
        d->unauthenticated++;
        remove_pending(g, true);
    }
    return d->npending < many;
}

static void reject_peer(struct pending_conn *g)
{
    g->listener->unauthenticated++;
    remove_pending(g, true);
}

/* HELLO is complete. Returns false if it names no node that connects here, or ANSWER cannot be sent. */
static bool answer_hello(struct pending_conn *g)
{
    const struct xr_setup *s = g->listener->setup;
    uint32_t node = xr_handshake_node(&g->shake);
    uint8_t answer[XR_HANDSHAKE_ANSWER];

    return node < s->shape.nodes && node != s->secret_node &&
           xr_handshake_key(&s->shape, s->secret_node, s->secret, node, g->shake.key) &&
           xr_handshake_answer(&g->shake, answer) &&
           send(event_get_fd(g->ev), answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(answer);
}

/* PROOF is complete. */
static void check_proof(struct pending_conn *g)
{
    struct xr_listener *d = g->listener;
    uint32_t node = xr_handshake_node(&g->shake);
    char version[XR_HANDSHAKE_VERSION + 1];
    uint8_t accept[XR_HANDSHAKE_ACCEPT];
    struct xr_seals seals;
    int fd;

    if (!xr_handshake_is_proved(&g->shake, g->proof)) {
        reject_peer(g);
    } else if (!xr_handshake_same_version(&g->shake, version)) {
        remove_pending(g, true);
        d->ops->on_other_version(d->arg, node, version);
    } else {
        xr_handshake_accept(&g->shake, accept);
        xr_handshake_seals(&g->shake, true, &seals);
        fd = remove_pending(g, false);
        if (send(fd, accept, sizeof(accept), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(accept))
            d->ops->on_agent(d->arg, node, fd, &seals);
        else
            close(fd);
    }
}

/* The limit holds for the whole handshake: single bytes do not extend it. */
static bool has_time(struct pending_conn *g)
{
    uint64_t us = (rk_clock_ns() - g->since) / 1000;
    struct timeval left;

    if (us >= XR_HANDSHAKE_S * 1000000ull)
        return false;
    us = XR_HANDSHAKE_S * 1000000ull - us;
    left = (struct timeval){(time_t)(us / 1000000), (suseconds_t)(us % 1000000)};
    return event_add(g->ev, &left) == 0;
}

/* Read as much as the present message lacks, so that frames behind the proof stay in the socket. */
static ssize_t read_message(struct pending_conn *g, int fd)
{
    if (g->len < XR_HANDSHAKE_HELLO)
        return read(fd, g->shake.transcript + g->len, XR_HANDSHAKE_HELLO - g->len);
    return read(fd, g->proof + (g->len - XR_HANDSHAKE_HELLO), XR_HANDSHAKE_HELLO + XR_HANDSHAKE_PROOF - g->len);
}

static void on_handshake(evutil_socket_t fd, short what, void *arg)
{
    struct pending_conn *g = arg;
    ssize_t n = what & EV_READ ? read_message(g, fd) : -1;

    if (n < 0 && !(what & EV_TIMEOUT) && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        g->len += (size_t)n;
    /* The first wrong byte identifies an unauthenticated peer: do not wait for the rest. */
    if (n <= 0 || !xr_handshake_begins(g->shake.transcript, g->len))
        reject_peer(g);
    else if (g->len == XR_HANDSHAKE_HELLO + XR_HANDSHAKE_PROOF)
        check_proof(g);
    else if (!has_time(g) || (g->len == XR_HANDSHAKE_HELLO && !answer_hello(g)))
        reject_peer(g);
}

/*
 * Memory or descriptors are short: accept fewer from now on, so that this process keeps some. With few pending
 * connections these are not the cause; the oldest makes room for the next. Other errors change nothing.
 */
static void too_many(struct xr_listener *d, int error)
{
    if (error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS) {
        if (d->npending > PENDING_FEW)
            d->room = d->npending - d->npending / 4;
        else if (d->npending)
            make_room(d, d->npending);
    }
    pause_listening(d);
}

static void on_pending(evutil_socket_t fd, short what, void *arg)
{
    static const struct timeval time_limit = {XR_HANDSHAKE_S, 0};
    struct xr_listener *d = arg;
    struct pending_conn *g;
    int s;

    (void)what;
    if (!make_room(d, d->room)) {
        pause_listening(d);
        return;
    }
    s = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (s < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            too_many(d, errno);
        return;
    }
    g = calloc(1, sizeof(*g));
    if (g)
        g->ev = event_new(d->base, s, EV_READ | EV_PERSIST, on_handshake, g);
    if (!g || !g->ev || event_add(g->ev, &time_limit)) {
        if (g && g->ev)
            event_free(g->ev);
        free(g);
        close(s);
        return;
    }
    g->listener = d;
    g->since = rk_clock_ns();
    rk_list_append(&d->pending, &g->link);
    d->npending++;
}

/* ------------------------------------------------------------------ addresses */

/* Listen in both address families if available; on one address only if an interface was named. */
static int listen_at(const char *address, uint32_t *port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET};
    bool use_six = !address || strchr(address, ':');
    const int off = 0;
    socklen_t len;
    int fd = -1;

    if (address && use_six)
        inet_pton(AF_INET6, address, &six.sin6_addr);
    else if (address)
        inet_pton(AF_INET, address, &four.sin_addr);
    if (use_six) {
        fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0)
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
        len = sizeof(six);
        if (fd >= 0 && bind(fd, (struct sockaddr *)&six, len) == 0 && listen(fd, BACKLOG) == 0 &&
            getsockname(fd, (struct sockaddr *)&six, &len) == 0) {
            *port = ntohs(six.sin6_port);
            return fd;
        }
        if (fd >= 0)
            close(fd);
        if (address)
            return -1;
    }
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    len = sizeof(four);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&four, len) == 0 && listen(fd, BACKLOG) == 0 &&
        getsockname(fd, (struct sockaddr *)&four, &len) == 0) {
        *port = ntohs(four.sin_port);
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

/* ---------------------------------------------------------------- open, close */

rank_status_t xr_listener_open(struct event_base *base, const struct xr_setup *setup, const struct xr_listener_ops *ops,
                               void *arg, struct xr_listener **out, char ***addresses, uint32_t *port, char *err,
                               size_t errlen)
{
    struct xr_listener *d = calloc(1, sizeof(*d));

    *addresses = xr_netif_addresses(setup->interface);
    if (!*addresses || !d) {
        xr_netif_none(setup->interface, err, errlen);
        free(d);
        return RANK_ERR_ARG;
    }
    d->base = base;
    d->ops = ops;
    d->arg = arg;
    d->setup = setup;
    d->room = PENDING_MAX;
    rk_list_init(&d->pending);
    d->fd = listen_at(setup->interface ? (*addresses)[0] : NULL, port);
    if (d->fd < 0)
        snprintf(err, errlen, "cannot listen for the agents of other hosts: %s", strerror(errno));
    else
        d->ev = event_new(base, d->fd, EV_READ | EV_PERSIST, on_pending, d);
    d->again = evtimer_new(base, listener_on_again, d);
    if (!d->ev || !d->again || event_add(d->ev, NULL)) {
        xr_listener_close(d);
        xr_strv_free(*addresses);
        *addresses = NULL;
        return RANK_ERR_SYSTEM;
    }
    *out = d;
    return RANK_OK;
}

void xr_listener_close(struct xr_listener *d)
{
    if (!d)
        return;
    while (!rk_list_empty(&d->pending))
        remove_pending(rk_list_entry(d->pending.next, struct pending_conn, link), true);
    if (d->ev)
        event_free(d->ev);
    if (d->again)
        event_free(d->again);
    if (d->fd >= 0)
        close(d->fd);
    free(d);
}

uint32_t xr_listener_unauthenticated(const struct xr_listener *d)
{
    return d ? d->unauthenticated + d->npending : 0;
}

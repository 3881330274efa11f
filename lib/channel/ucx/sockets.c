/*
 * sockets.c: connections that nobody answers.
 *
 * Where a cable is pulled nobody is told: the kernel repeats what was sent for a quarter of an hour, and UCX waits
 * with it. So once a second, while there is something to wait for, we ask the kernel about UCX's connections: one
 * whose data has not been acknowledged for RANK_UNANSWERED is shut down, which UCX takes for the end of the
 * peer and tells us. A peer that computes and reads nothing is no such case: its kernel answers for it. A connection
 * with nothing under way has nothing that could be acknowledged; a link that has heard nothing for some seconds
 * sends an empty frame.
 *
 * UCX does not show its sockets. They are known by their ports: its listening sockets are those that appear while its
 * worker is made, and every connection of it has such a port at one end. A card tells a rank's ports to its peers.
 */
#include "lib/base/clock.h"
#include "lib/channel/ucx/ucx.h"

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <arpa/inet.h>
#include <sys/socket.h>

enum { LOOK_NS = 1000 * 1000 * 1000, SILENT_LOOKS = 3, FDS_MAX = 4096 };
/* How long it has been sending in vain, for a connection that was idle before: the kernel doubles its time-out from
 * 0.2 s on; where its own device is down it tries every half second. */
enum { TIMEOUT_US = 3 * 1000 * 1000, TRIES = 8 };

/* The port of an address of the Internet, either version; 0: it is of another kind. */
static uint16_t port_of(const struct sockaddr_storage *a)
{
    if (a->ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)(const void *)a)->sin_port);
    if (a->ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)(const void *)a)->sin6_port);
    return 0;
}

/* Calls fn for every descriptor of this process. */
static void each_fd(void (*fn)(int fd, void *arg), void *arg)
{
    DIR *dir = opendir("/proc/self/fd");
    const struct dirent *d;

    if (!dir)
        return;
    while ((d = readdir(dir)) != NULL) {
        char *end;
        long fd = strtol(d->d_name, &end, 10);
        if (end != d->d_name && !*end && fd >= 0 && fd < FDS_MAX && fd != dirfd(dir))
            fn((int)fd, arg);
    }
    closedir(dir);
}

/* 0: it does not listen. */
static uint16_t listening_port(int fd)
{
    struct sockaddr_storage a = {0};
    socklen_t len = sizeof(a), size = sizeof(int);
    int listens = 0;

    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) < 0 || !listens ||
        getsockname(fd, (struct sockaddr *)&a, &len) < 0)
        return 0;
    return port_of(&a);
}

struct listeners {
    uint16_t *ports;
    int n;
};

static void add_listener(int fd, void *arg)
{
    struct listeners *l = arg;
    uint16_t port = listening_port(fd);

    for (int i = 0; i < l->n; i++) {
        if (l->ports[i] == port)
            return;
    }
    if (port && l->n < RK_UCX_PORTS_MAX)
        l->ports[l->n++] = port;
}

void rk_ucx_ports_before(struct rk_ucx *ucx)
{
    struct listeners l = {ucx->old_ports, 0};

    each_fd(add_listener, &l);
}

void rk_ucx_ports_after(struct rk_ucx *ucx)
{
    uint16_t all[RK_UCX_PORTS_MAX] = {0};
    struct listeners l = {all, 0};
    int n = 0;

    each_fd(add_listener, &l);
    for (int i = 0; i < l.n; i++) {
        bool old = false;
        for (int k = 0; k < RK_UCX_PORTS_MAX; k++)
            old |= ucx->old_ports[k] == all[i];
        if (!old)
            ucx->ports[n++] = all[i];
    }
    rk_ucx_ports_known(ucx, ucx->ports);
}

void rk_ucx_ports_known(struct rk_ucx *ucx, const uint16_t *ports)
{
    for (int i = 0; i < RK_UCX_PORTS_MAX; i++)
        ucx->known_ports[ports[i] / 8] |= (uint8_t)(1 << ports[i] % 8);
    ucx->known_ports[0] &= (uint8_t)~1;
}

static bool is_known(const struct rk_ucx *ucx, const struct sockaddr_storage *a)
{
    uint16_t port = port_of(a);

    return ucx->known_ports[port / 8] >> (port % 8) & 1;
}

/* Is it a connection of UCX's? theirs: gets its other end. */
static bool is_ours(const struct rk_ucx *ucx, int fd, struct sockaddr_storage *theirs)
{
    struct sockaddr_storage mine = {0};
    socklen_t len = sizeof(mine), len2 = sizeof(*theirs);

    return getsockname(fd, (struct sockaddr *)&mine, &len) == 0 &&
           getpeername(fd, (struct sockaddr *)theirs, &len2) == 0 && (is_known(ucx, &mine) || is_known(ucx, theirs));
}

static void hang_up(int fd, void *arg)
{
    struct sockaddr_storage theirs = {0};

    if (is_ours(arg, fd, &theirs))
        shutdown(fd, SHUT_RDWR);
}

void rk_ucx_hang_up(struct rk_ucx *ucx)
{
    if (ucx->ports[0])
        each_fd(hang_up, ucx);
}

static void look_at(int fd, void *arg)
{
    struct rk_ucx *ucx = arg;
    struct sockaddr_storage theirs = {0};
    socklen_t size = sizeof(struct tcp_info);
    struct tcp_info info;
    char text[INET6_ADDRSTRLEN] = "?";

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0 || info.tcpi_unacked == 0 ||
        (info.tcpi_rto < TIMEOUT_US && info.tcpi_retransmits < TRIES) ||
        info.tcpi_last_ack_recv < rk_ucx_conf()->unanswered / 1000000)
        return;
    if (!is_ours(ucx, fd, &theirs))
        return;
    inet_ntop(theirs.ss_family,
              theirs.ss_family == AF_INET
                  ? (const void *)&((const struct sockaddr_in *)(const void *)&theirs)->sin_addr
                  : (const void *)&((const struct sockaddr_in6 *)(const void *)&theirs)->sin6_addr,
              text, sizeof(text));
    rk_error("%s has not answered for %u s: the connection is given up (is a cable or a network device down?)",
             text, info.tcpi_last_ack_recv / 1000);
    shutdown(fd, SHUT_RDWR);
}

/* Something under way to a peer, or a peer that has been silent. True if the kernel is to be asked. */
static bool waits_for(struct rk_ucx_link *l)
{
    if (!l->ep || l->failed || l->bye || !l->confirmed)
        return l->ep && !l->failed && !l->bye && (l->unsent || !rk_list_empty(&l->ops));
    if (l->in.due != l->due_seen) {
        l->due_seen = l->in.due;
        l->silent = 0;
    } else if (++l->silent >= SILENT_LOOKS) {
        l->silent = 0;
        rk_ucx_control(l, RK_KIND_CREDIT, NULL, 0); /* of nothing */
    }
    return true;
}

void rk_ucx_watch(struct rk_ucx *ucx)
{
    uint64_t now = rk_clock_ns();
    bool any = false;

    if (now < ucx->next_look || ucx->inside)
        return;
    ucx->next_look = now + LOOK_NS;
    for (uint32_t i = 0; i < ucx->nlinks; i++) {
        rk_ucx_look_at_lost(ucx->links[i], now);
        any |= waits_for(ucx->links[i]);
    }
    if (any && ucx->ports[0] && rk_ucx_conf()->unanswered > 0)
        each_fd(look_at, ucx);
}

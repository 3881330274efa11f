/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * listen_guard.c: keep silent and foreign connections from blocking libpmix.
 *
 * libpmix:  4.2.2, and upstream's master until September 2026.
 * Symptom:  libpmix's one thread accepts connections and waits for the first bytes of each without limit. Any process
 *           on the host that connects and sends nothing stops PMIx for all ranks.
 * Upstream: openpmix/openpmix#4259, merged in September 2026: the server reads a handshake as its bytes arrive and drops
 *           it after 5 s.
 * Retire:   when the oldest supported libpmix has that change.
 *
 * Three measures, each on libpmix's listening sockets only:
 * - TCP_DEFER_ACCEPT: the kernel holds a connection back until it has bytes. A client sends its handshake by one send(),
 *   so that it is complete at accept().
 * - SO_RCVTIMEO, which accepted sockets inherit: each read returns after HALF_US.
 * - accept() is interposed. It queries the kernel (sock_diag(7)) for the user of the peer and closes connections of other
 *   users. A peer that sends byte by byte would pass the first two measures.
 *
 * A peer that has closed its socket has no user any more: the kernel reports root for it, or finds none, while its bytes
 * wait here. Only a socket that is open and belongs to a file passes.
 *
 * The dynamic linker takes accept() from the program first. A library that accepts in another way, or a kernel that
 * does not answer, leaves the port unguarded. Root passes. libpmix itself refuses clients that state another user.
 */
#include "launcher/pmix/pmix_internal.h"
#include "lib/base/log.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define SILENT_S 60 /* a client sends at once, but may wait for a core */
#define HALF_US 100000

/* ---------------------------------------------------------- peer credential check */

#define SEEN __attribute__((weak, visibility("default")))

enum { GUARDED_MAX = 4 }; /* one a family of addresses */

static struct {
    int fd[GUARDED_MAX];
    atomic_uint n;  /* of them */
    int diag;       /* the netlink socket; used by libpmix's thread only, once n is set */
    uint32_t seq;   /* requests so far */
    atomic_uint rejected;
} guard = {.diag = -1};

static bool diag_fill(struct inet_diag_sockid *id, const struct sockaddr_storage *remote,
                      const struct sockaddr_storage *local)
{
    const struct sockaddr_in *r4 = (const void *)remote, *l4 = (const void *)local;
    const struct sockaddr_in6 *r6 = (const void *)remote, *l6 = (const void *)local;

    id->idiag_cookie[0] = id->idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    if (remote->ss_family != local->ss_family)
        return false;
    if (remote->ss_family == AF_INET) {
        id->idiag_sport = r4->sin_port;
        id->idiag_dport = l4->sin_port;
        id->idiag_src[0] = r4->sin_addr.s_addr;
        id->idiag_dst[0] = l4->sin_addr.s_addr;
        return true;
    }
    if (remote->ss_family != AF_INET6)
        return false;
    id->idiag_sport = r6->sin6_port;
    id->idiag_dport = l6->sin6_port;
    memcpy(id->idiag_src, &r6->sin6_addr, sizeof(id->idiag_src));
    memcpy(id->idiag_dst, &l6->sin6_addr, sizeof(id->idiag_dst));
    return true;
}

/*
 * Find the socket that has the remote address and is connected to the local one. Without one *found has the state 0.
 * Returns false if the kernel does not answer.
 */
static bool diag_find(const struct sockaddr_storage *remote, const struct sockaddr_storage *local, struct inet_diag_msg *found)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 of;
    } request = {.head = {.nlmsg_len = sizeof(request), .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                          .nlmsg_flags = NLM_F_REQUEST, .nlmsg_seq = ++guard.seq},
                 .of = {.sdiag_family = (uint8_t)remote->ss_family, .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0u}};
    union {
        struct nlmsghdr head;
        char bytes[2048];
    } answer;

    memset(found, 0, sizeof(*found));
    if (!diag_fill(&request.of.id, remote, local) || send(guard.diag, &request, sizeof(request), 0) != sizeof(request))
        return false;
    /* The reply is queued when send() returns. Earlier replies that were not read come first. */
    for (;;) {
        ssize_t n = recv(guard.diag, &answer, sizeof(answer), MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || !NLMSG_OK(&answer.head, (size_t)n))
            return false;
        if (answer.head.nlmsg_seq == request.head.nlmsg_seq)
            break;
    }
    if (answer.head.nlmsg_type == NLMSG_ERROR && answer.head.nlmsg_len >= NLMSG_LENGTH(sizeof(struct nlmsgerr)))
        return ((const struct nlmsgerr *)NLMSG_DATA(&answer.head))->error == -ENOENT;
    if (answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY || answer.head.nlmsg_len < NLMSG_LENGTH(sizeof(*found)))
        return false;
    memcpy(found, NLMSG_DATA(&answer.head), sizeof(*found));
    return true;
}

/* Does the kernel answer for the listening socket itself? */
static bool diag_answers_for(int fd)
{
    struct sockaddr_storage here, none;
    socklen_t len = sizeof(here);
    struct inet_diag_msg found;

    if (getsockname(fd, (struct sockaddr *)&here, &len))
        return false;
    memset(&none, 0, sizeof(none));
    none.ss_family = here.ss_family;
    return diag_find(&here, &none, &found) && found.idiag_state == TCP_LISTEN && found.idiag_uid == geteuid();
}

static void credentials_guard(const int *fds, size_t n)
{
    unsigned found = 0;

    if (n == 0 || guard.diag >= 0)
        return;
    guard.diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    for (size_t i = 0; i < n && found < GUARDED_MAX && guard.diag >= 0; i++) {
        if (diag_answers_for(fds[i]))
            guard.fd[found++] = fds[i];
    }
    if (found < n)
        rk_debug("the kernel does not report the users of connections: any user of this host can connect to PMIx's port");
    atomic_store_explicit(&guard.n, found, memory_order_release);
}

static bool peer_is_allowed(int fd)
{
    struct sockaddr_storage remote, local;
    socklen_t len = sizeof(remote), length = sizeof(local);
    struct inet_diag_msg peer;

    if (getpeername(fd, (struct sockaddr *)&remote, &len) || getsockname(fd, (struct sockaddr *)&local, &length))
        return false; /* it is reset */
    if (!diag_find(&remote, &local, &peer))
        return true;
    return (peer.idiag_state == TCP_ESTABLISHED || peer.idiag_state == TCP_CLOSE_WAIT) && peer.idiag_inode != 0 &&
           (peer.idiag_uid == geteuid() || peer.idiag_uid == 0);
}

SEEN int accept(int at, struct sockaddr *restrict from, socklen_t *restrict len)
{
    static int (*_Atomic real)(int, struct sockaddr *, socklen_t *);
    int (*libcs)(int, struct sockaddr *, socklen_t *) = atomic_load_explicit(&real, memory_order_relaxed);
    unsigned n = atomic_load_explicit(&guard.n, memory_order_acquire);
    bool guarded = false;
    int fd;

    if (!libcs) {
        *(void **)&libcs = dlsym(RTLD_NEXT, "accept");
        if (!libcs) {
            errno = ENOSYS;
            return -1;
        }
        atomic_store_explicit(&real, libcs, memory_order_relaxed);
    }
    fd = libcs(at, from, len);
    for (unsigned i = 0; i < n; i++)
        guarded = guarded || guard.fd[i] == at;
    if (fd < 0 || !guarded || peer_is_allowed(fd))
        return fd;
    atomic_fetch_add_explicit(&guard.rejected, 1, memory_order_relaxed);
    close(fd);
    errno = EAGAIN; /* as if no connection were pending */
    return -1;
}

unsigned xr_server_rejected(void)
{
    return atomic_load_explicit(&guard.rejected, memory_order_relaxed);
}

/* -------------------------------------------------------------- listening sockets */

static bool is_tcp_listener(int fd)
{
    int on = 0, domain = AF_UNSPEC;
    socklen_t len = sizeof(on);

    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len) || !on)
        return false;
    len = sizeof(domain);
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
           (domain == AF_INET || domain == AF_INET6);
}

static size_t list_listeners(int *fds, size_t max)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *e;
    size_t n = 0;

    while (dir && n < max && (e = readdir(dir))) {
        int fd = atoi(e->d_name);
        if (e->d_name[0] != '.' && fd != dirfd(dir) && is_tcp_listener(fd))
            fds[n++] = fd;
    }
    if (dir)
        closedir(dir);
    return n;
}

void xr_listen_guard_note(struct xr_listen_guard *l)
{
    l->n = list_listeners(l->fd, XR_LISTENERS);
}

void xr_listen_guard_since(const struct xr_listen_guard *before)
{
    const struct timeval half = {0, HALF_US};
    const int silent = SILENT_S;
    int fds[2 * XR_LISTENERS];
    size_t n = list_listeners(fds, 2 * XR_LISTENERS), new = 0;

    for (size_t i = 0; i < n; i++) {
        bool old = false;
        for (size_t k = 0; k < before->n; k++)
            old = old || before->fd[k] == fds[i];
        if (old)
            continue;
        setsockopt(fds[i], IPPROTO_TCP, TCP_DEFER_ACCEPT, &silent, sizeof(silent));
        setsockopt(fds[i], SOL_SOCKET, SO_RCVTIMEO, &half, sizeof(half));
        fds[new++] = fds[i];
    }
    credentials_guard(fds, new);
}

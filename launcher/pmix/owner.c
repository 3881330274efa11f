/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * owner.c: the library's own door is for processes of this user.
 *
 * libpmix accepts whoever comes to its port on the loopback and reads the first words in the one thread that does all else,
 * with no limit to the time that they take in all: another user of the host who says a long word byte by byte would stop
 * PMIx for all ranks. Who a connection belongs to the kernel knows (sock_diag(7)), and so it is asked before the library
 * reads. The library accepts by accept(2), which the dynamic linker takes from the program first, as the functions in
 * event_order.c; a library that accepts in another way, or a kernel that does not answer, leaves the door as it was. Root, whom
 * nothing keeps out, is let in; clients of other users the library refuses anyhow, by what they say of themselves.
 */
#include "launcher/pmix/pmix_internal.h"
#include "lib/base/log.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SEEN __attribute__((weak, visibility("default")))

enum { DOORS = 4 }; /* one for each family that the library serves */

static struct {
    int fd[DOORS];
    atomic_uint n;  /* of them */
    int kernel;     /* asked by the library's thread only, once n is there */
    uint32_t asked; /* questions so far */
    atomic_uint turned_away;
} doors = {.kernel = -1};

static bool owner_fill(struct inet_diag_sockid *id, const struct sockaddr_storage *theirs, const struct sockaddr_storage *ours)
{
    const struct sockaddr_in *t4 = (const void *)theirs, *o4 = (const void *)ours;
    const struct sockaddr_in6 *t6 = (const void *)theirs, *o6 = (const void *)ours;

    id->idiag_cookie[0] = id->idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    if (theirs->ss_family != ours->ss_family)
        return false;
    if (theirs->ss_family == AF_INET) {
        id->idiag_sport = t4->sin_port;
        id->idiag_dport = o4->sin_port;
        id->idiag_src[0] = t4->sin_addr.s_addr;
        id->idiag_dst[0] = o4->sin_addr.s_addr;
        return true;
    }
    if (theirs->ss_family != AF_INET6)
        return false;
    id->idiag_sport = t6->sin6_port;
    id->idiag_dport = o6->sin6_port;
    memcpy(id->idiag_src, &t6->sin6_addr, sizeof(id->idiag_src));
    memcpy(id->idiag_dst, &o6->sin6_addr, sizeof(id->idiag_dst));
    return true;
}

/* Whose the socket is that has this address, and is connected to that one. */
static bool owner_of(const struct sockaddr_storage *theirs, const struct sockaddr_storage *ours, uid_t *uid)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 of;
    } ask = {.head = {.nlmsg_len = sizeof(ask), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST,
                      .nlmsg_seq = ++doors.asked},
             .of = {.sdiag_family = (uint8_t)theirs->ss_family, .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0u}};
    union {
        struct nlmsghdr head;
        char bytes[2048];
    } answer;
    struct inet_diag_msg said;

    if (!owner_fill(&ask.of.id, theirs, ours) || send(doors.kernel, &ask, sizeof(ask), 0) != sizeof(ask))
        return false;
    /* It is there when the question has been taken; before it only what nobody has waited for. */
    for (;;) {
        ssize_t n = recv(doors.kernel, &answer, sizeof(answer), MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || !NLMSG_OK(&answer.head, (size_t)n))
            return false;
        if (answer.head.nlmsg_seq == ask.head.nlmsg_seq)
            break;
    }
    if (answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY || answer.head.nlmsg_len < NLMSG_LENGTH(sizeof(said)))
        return false;
    memcpy(&said, NLMSG_DATA(&answer.head), sizeof(said));
    *uid = said.idiag_uid;
    return true;
}

/* The door itself is there to be asked for. */
static bool owner_told_of(int fd)
{
    struct sockaddr_storage here, nobody;
    socklen_t len = sizeof(here);
    uid_t uid;

    if (getsockname(fd, (struct sockaddr *)&here, &len))
        return false;
    memset(&nobody, 0, sizeof(nobody));
    nobody.ss_family = here.ss_family;
    return owner_of(&here, &nobody, &uid) && uid == geteuid();
}

void xr_owner_guard(const int *fds, size_t n)
{
    unsigned found = 0;

    if (n == 0 || doors.kernel >= 0)
        return;
    doors.kernel = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    for (size_t i = 0; i < n && found < DOORS && doors.kernel >= 0; i++) {
        if (owner_told_of(fds[i]))
            doors.fd[found++] = fds[i];
    }
    if (found < n)
        rk_debug("the kernel does not tell whose a connection is: PMIx's door is open to all users of this host");
    atomic_store_explicit(&doors.n, found, memory_order_release);
}

static bool owner_is_ours(int fd)
{
    struct sockaddr_storage theirs, ours;
    socklen_t len = sizeof(theirs), length = sizeof(ours);
    uid_t uid;

    /* One that the kernel does not know any more has closed, and its end can be read at once. */
    return getpeername(fd, (struct sockaddr *)&theirs, &len) || getsockname(fd, (struct sockaddr *)&ours, &length) ||
           !owner_of(&theirs, &ours, &uid) || uid == geteuid() || uid == 0;
}

SEEN int accept(int at, struct sockaddr *restrict from, socklen_t *restrict len)
{
    static int (*_Atomic real)(int, struct sockaddr *, socklen_t *);
    int (*libcs)(int, struct sockaddr *, socklen_t *) = atomic_load_explicit(&real, memory_order_relaxed);
    unsigned n = atomic_load_explicit(&doors.n, memory_order_acquire);
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
        guarded = guarded || doors.fd[i] == at;
    if (fd < 0 || !guarded || owner_is_ours(fd))
        return fd;
    atomic_fetch_add_explicit(&doors.turned_away, 1, memory_order_relaxed);
    close(fd);
    errno = EAGAIN; /* as if nobody had come */
    return -1;
}

unsigned xr_server_strangers(void)
{
    return atomic_load_explicit(&doors.turned_away, memory_order_relaxed);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connect.c: connect an agent to its parent. See listener.h.
 */
#include "launcher/bootstrap/listener.h"
#include "launcher/bootstrap/handshake.h"
#include "launcher/job/timeouts.h"
#include "lib/base/clock.h"
#include "lib/base/conf.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RETRY_MS 100

static int left(uint64_t deadline)
{
    uint64_t now = rk_clock_ns();

    return now >= deadline ? 0 : (int)((deadline - now) / 1000000u) + 1;
}

static bool connect_wait_for(int fd, short events, uint64_t deadline)
{
    struct pollfd p = {.fd = fd, .events = events};
    int n;

    do
        n = poll(&p, 1, left(deadline));
    while (n < 0 && errno == EINTR);
    if (n == 0)
        errno = ETIMEDOUT;
    return n > 0;
}

static int connect_connect_to(const char *address, uint32_t port, uint64_t deadline)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    bool is_six = strchr(address, ':') != NULL;
    socklen_t len = sizeof(int);
    int fd, error = 0;

    if (inet_pton(is_six ? AF_INET6 : AF_INET, address,
                  is_six ? (void *)&six.sin6_addr : (void *)&four.sin_addr) != 1) {
        errno = EINVAL;
        return -1;
    }
    fd = socket(is_six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, is_six ? (struct sockaddr *)&six : (struct sockaddr *)&four,
                is_six ? sizeof(six) : sizeof(four)) == 0)
        return fd;
    if (errno == EINPROGRESS && connect_wait_for(fd, POLLOUT, deadline) &&
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0)
        return fd;
    error = error ? error : errno;
    close(fd);
    errno = error;
    return -1;
}

/* Receive a message of the parent. Returns false with errno: ECONNRESET at its end. */
static bool receive_whole(int fd, uint8_t *message, size_t len, uint64_t deadline)
{
    for (size_t have = 0; have < len;) {
        ssize_t n;

        if (!connect_wait_for(fd, POLLIN, deadline))
            return false;
        n = recv(fd, message + have, len - have, 0);
        if (n == 0)
            errno = ECONNRESET;
        if (n <= 0)
            return false;
        have += (size_t)n;
    }
    return true;
}

static bool send_whole(int fd, const uint8_t *message, size_t len)
{
    return send(fd, message, len, MSG_NOSIGNAL) == (ssize_t)len;
}

/* Carry out the handshake. The parent proves its key first, so that nothing else is sent to another process. */
static bool authenticate(int fd, struct xr_setup *s, uint64_t deadline)
{
    uint8_t answer[XR_HANDSHAKE_ANSWER], proof[XR_HANDSHAKE_PROOF], accept[XR_HANDSHAKE_ACCEPT];
    struct xr_handshake h;

    memcpy(h.key, s->secret, sizeof(h.key));
    if (!xr_handshake_hello(&h, s->node) || !send_whole(fd, h.transcript, XR_HANDSHAKE_HELLO) ||
        !receive_whole(fd, answer, sizeof(answer), deadline))
        return false;
    if (!xr_handshake_prove(&h, answer, proof)) {
        errno = EACCES;
        return false;
    }
    /* A parent with many pending connections may have closed this one, and the kernel takes the proof all the same. */
    if (!send_whole(fd, proof, sizeof(proof)) || !receive_whole(fd, accept, sizeof(accept), deadline))
        return false;
    if (!xr_handshake_is_accepted(&h, accept)) {
        errno = EACCES;
        return false;
    }
    xr_handshake_seals(&h, false, &s->seals);
    return true;
}

/* Return the address from which the parent reached this host, by ssh or srun: the route back works. */
static const char *reverse_address(const struct xr_setup *s)
{
    const char *srun = rk_env("SLURM_LAUNCH_NODE_IPADDR"), *from = srun ? srun : rk_env("SSH_CONNECTION");
    size_t len = from ? strcspn(from, " ") : 0;

    for (char *const *a = s->addresses; len && *a; a++) {
        if (strlen(*a) == len && memcmp(*a, from, len) == 0)
            return *a;
    }
    return NULL;
}

static int connect_parent(struct xr_setup *s, const char *address, uint64_t deadline)
{
    int fd = connect_connect_to(address, s->port, deadline);

    if (fd >= 0 && authenticate(fd, s, deadline))
        return fd;
    if (fd >= 0) {
        int error = errno;
        close(fd);
        errno = error;
    }
    return -1;
}

static bool was_disconnected(int error)
{
    return error == ECONNRESET || error == EPIPE;
}

/*
 * Connect at any of the first n addresses. Returns the socket, or -1 with errno; a refusal after the connect
 * takes precedence over other errors.
 */
static int connect_any(struct xr_setup *s, size_t n, uint64_t end)
{
    const uint64_t brief = XR_CONNECT_BRIEF_MS * 1000000ull;
    const char *first = reverse_address(s);
    int fd = first ? connect_parent(s, first, end) : -1, error = first ? errno : 0;

    for (size_t i = 0; fd < 0 && i < n; i++) {
        uint64_t now = rk_clock_ns(), part = (end > now ? end - now : 0) / (n - i);
        if (s->addresses[i] == first)
            continue;
        /* Each address gets its part of the remaining time, but little of it once another one has proved right. */
        fd = connect_parent(s, s->addresses[i], now + (was_disconnected(error) && part > brief ? brief : part));
        if (!was_disconnected(error))
            error = errno;
    }
    errno = error;
    return fd;
}

int xr_connect_parent(struct xr_setup *s, int ms, char *err, size_t errlen)
{
    uint64_t end = rk_clock_ns() + (uint64_t)ms * 1000000u;
    size_t n = 0;
    int fd;

    for (char *const *a = s->addresses; *a; a++)
        n++;
    /*
     * Many pending connections at the listener may have displaced ours. A parent that is gone refuses the
     * connection.
     */
    while ((fd = connect_any(s, n, end)) < 0 && was_disconnected(errno) && left(end) > RETRY_MS)
        poll(NULL, 0, RETRY_MS);
    if (fd < 0 && errlen) {
        int at = snprintf(err, errlen, "cannot connect to its parent at port %u of", s->port);
        for (size_t i = 0; i < n && at < (int)errlen; i++)
            at += snprintf(err + at, errlen - (size_t)at, "%s %s", i ? "," : "", s->addresses[i]);
        if (at < (int)errlen)
            snprintf(err + at, errlen - (size_t)at, ": %s (--if chooses the network)", strerror(errno));
    }
    return fd;
}

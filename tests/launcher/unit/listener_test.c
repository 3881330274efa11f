/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * listener_test.c: keep an agent that has sent, admit a closed one again.
 */
#include "launcher/bootstrap/listener.h"
#include "launcher/bootstrap/handshake.h"
#include "lib/base/clock.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROOM = 256 }; /* of a listener */

static char *here[] = {(char *)(uintptr_t) "127.0.0.1", NULL};
static uint32_t came;

static void on_agent(void *arg, uint32_t node, int fd)
{
    (void)arg;
    assert_int_equal(node, 7);
    came++;
    close(fd);
}

static void on_other_version(void *arg, uint32_t node, const char *version)
{
    (void)arg;
    fail_msg("%u is of version %s", node, version);
}

static int come(uint32_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

static void run_until(struct event_base *base, const struct xr_listener *listener, uint32_t closed_peers, uint32_t agents)
{
    uint64_t end = rk_clock_ns() + 20000000000ull;

    while (xr_listener_unauthenticated(listener) != closed_peers || came != agents) {
        const struct timeval tick = {0, 10000};
        assert_true(rk_clock_ns() < end);
        event_base_loopexit(base, &tick);
        event_base_dispatch(base);
    }
}

/* The listener was stopped, so that the first bytes of its first peer are unread when room is needed. */
static void active_peer_stays(void **state)
{
    static const struct xr_listener_ops ops = {on_agent, on_other_version};
    struct event_base *base = event_base_new();
    uint8_t secret[XR_SECRET] = "a secret", word[XR_HANDSHAKE];
    struct xr_listener *listener = NULL;
    char **addresses, err[256];
    int fd[ROOM + 1];
    uint32_t port;

    (void)state;
    assert_non_null(base);
    came = 0;
    assert_int_equal(xr_listener_open(base, secret, "lo", &ops, NULL, &listener, &addresses, &port, err, sizeof(err)), RANK_OK);
    for (int i = 0; i < ROOM; i++)
        fd[i] = come(port);
    run_until(base, listener, ROOM, 0);
    poll(NULL, 0, 600); /* a peer that is silent for longer than half a second may be closed */
    fd[ROOM] = come(port);
    xr_handshake_make(word, secret, 7);
    assert_int_equal(send(fd[0], word, sizeof(word), 0), sizeof(word));
    /* Another one goes, and is counted; the newest is pending, the first is closed. */
    run_until(base, listener, ROOM, 1);
    for (int i = 0; i <= ROOM; i++)
        close(fd[i]);
    xr_listener_close(listener);
    xr_strings_free(addresses);
    event_base_free(base);
}

struct parent {
    int fd;
    uint32_t throws;
    bool stays;
    const struct xr_setup *setup;
};

/* A parent that throws out the first that come, and then answers or goes away. */
static void *be_parent(void *arg)
{
    struct parent *p = arg;
    uint8_t word[XR_HANDSHAKE];

    for (uint32_t i = 0; i < p->throws + p->stays; i++) {
        struct pollfd wait = {.fd = p->fd, .events = POLLIN};
        int fd = poll(&wait, 1, 20000) == 1 ? accept(p->fd, NULL, NULL) : -1;
        bool right = fd >= 0 && recv(fd, word, sizeof(word), MSG_WAITALL) == sizeof(word);
        if (right && i == p->throws)
            right = send(fd, p->setup->secret + XR_SECRET / 2, XR_SECRET / 2, MSG_NOSIGNAL) == XR_SECRET / 2;
        if (fd >= 0)
            close(fd);
        if (!right)
            break;
    }
    shutdown(p->fd, SHUT_RDWR); /* from now on each connection is refused */
    return NULL;
}

static int enter(uint32_t throws, bool stays, int ms, char *err, size_t errlen)
{
    struct xr_setup setup = {.secret = "another", .node = 7, .addresses = here};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct parent p = {socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), throws, stays, &setup};
    socklen_t len = sizeof(at);
    pthread_t thread;
    int fd;

    assert_true(p.fd >= 0 && bind(p.fd, (struct sockaddr *)&at, len) == 0 && listen(p.fd, 8) == 0);
    assert_int_equal(getsockname(p.fd, (struct sockaddr *)&at, &len), 0);
    setup.port = ntohs(at.sin_port);
    memset(setup.secret + XR_SECRET / 2, 5, XR_SECRET / 2);
    assert_int_equal(pthread_create(&thread, NULL, be_parent, &p), 0);
    fd = xr_listener_enter(&setup, ms, err, errlen);
    shutdown(p.fd, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(p.fd);
    return fd;
}

static void closed_peer_reconnects(void **state)
{
    char err[256] = "";
    uint64_t begin;
    int fd = enter(3, true, 60000, err, sizeof(err));

    (void)state;
    if (fd < 0)
        fail_msg("%s", err);
    close(fd);
    /* But not to a parent that is gone. */
    begin = rk_clock_ns();
    assert_int_equal(enter(1, false, 60000, err, sizeof(err)), -1);
    assert_non_null(strstr(err, "Connection refused"));
    assert_true(rk_clock_ns() - begin < 20000000000ull);
    /* And not for ever. */
    assert_int_equal(enter(100, false, 350, err, sizeof(err)), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(active_peer_stays),
        cmocka_unit_test(closed_peer_reconnects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

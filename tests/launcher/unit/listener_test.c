/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * listener_test.c: authenticate agents and their parents, and seal their frames.
 * An agent that has sent something stays when room is needed, and one that was closed comes in again.
 */
#include "launcher/bootstrap/listener.h"
#include "launcher/bootstrap/handshake.h"
#include "lib/base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
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
static struct xr_seals came_seals;

static void on_agent(void *arg, uint32_t node, int fd, const struct xr_seals *seals)
{
    (void)arg;
    assert_int_equal(node, 7);
    came++;
    came_seals = *seals;
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

/* Run the loop until the other side has sent these, or has closed the connection. Returns whether it has sent them. */
static bool await_bytes(struct event_base *base, int fd, void *data, size_t len)
{
    uint64_t end = rk_clock_ns() + 20000000000ull;
    ssize_t n;

    while ((n = recv(fd, data, len, MSG_DONTWAIT | MSG_PEEK)) != (ssize_t)len) {
        const struct timeval tick = {0, 1000};
        if (n == 0 || (n < 0 && errno == ECONNRESET))
            return false;
        assert_true(rk_clock_ns() < end);
        event_base_loopexit(base, &tick);
        event_base_dispatch(base);
    }
    return recv(fd, data, len, 0) == (ssize_t)len;
}

static struct xr_listener *open_listener(struct event_base *base, const struct xr_setup *setup, uint32_t *port)
{
    static const struct xr_listener_ops ops = {on_agent, on_other_version};
    struct xr_listener *listener = NULL;
    char **addresses, err[256];

    assert_non_null(base);
    came = 0;
    assert_int_equal(xr_listener_open(base, setup, &ops, NULL, &listener, &addresses, port, err, sizeof(err)), RANK_OK);
    xr_strv_free(addresses);
    return listener;
}

/* Node 7 is a grandchild of the front end. */
static struct xr_setup front_setup(void)
{
    return (struct xr_setup){.secret = "a secret", .secret_node = XR_NODE_FRONT, .shape = {.nodes = 9, .fanout = 3},
                             .interface = (char *)(uintptr_t) "lo"};
}

static struct xr_handshake agent_handshake(const struct xr_setup *front, uint32_t node)
{
    struct xr_handshake h;

    assert_true(xr_handshake_key(&front->shape, front->secret_node, front->secret, node, h.key));
    assert_true(xr_handshake_hello(&h, node));
    return h;
}

/* The listener was stopped, so that the first bytes of its first peer are unread when room is needed. */
static void active_peer_stays(void **state)
{
    const struct xr_setup setup = front_setup();
    struct xr_handshake h = agent_handshake(&setup, 7);
    uint8_t answer[XR_HANDSHAKE_ANSWER], proof[XR_HANDSHAKE_PROOF];
    struct event_base *base = event_base_new();
    int fd[ROOM + 1];
    uint32_t port;
    struct xr_listener *listener = open_listener(base, &setup, &port);

    (void)state;
    for (int i = 0; i < ROOM; i++)
        fd[i] = come(port);
    run_until(base, listener, ROOM, 0);
    poll(NULL, 0, 600); /* a peer that is silent for longer than half a second may be closed */
    fd[ROOM] = come(port);
    assert_int_equal(send(fd[0], h.transcript, XR_HANDSHAKE_HELLO, 0), XR_HANDSHAKE_HELLO);
    /* Another one goes, and is counted; the newest is pending. */
    run_until(base, listener, ROOM + 1, 0);
    await_bytes(base, fd[0], answer, sizeof(answer));
    assert_true(xr_handshake_prove(&h, answer, proof));
    assert_int_equal(send(fd[0], proof, sizeof(proof), 0), sizeof(proof));
    run_until(base, listener, ROOM, 1);
    for (int i = 0; i <= ROOM; i++)
        close(fd[i]);
    xr_listener_close(listener);
    event_base_free(base);
}

struct parent {
    int fd;
    uint32_t throws;
    bool stays;
    const struct xr_setup *setup;
};

/* A parent that closes the first connections, after HELLO and after PROOF in turn, and then accepts one or goes away. */
static void *be_parent(void *arg)
{
    struct parent *p = arg;
    uint8_t answer[XR_HANDSHAKE_ANSWER], proof[XR_HANDSHAKE_PROOF], accept_it[XR_HANDSHAKE_ACCEPT];

    for (uint32_t i = 0; i < p->throws + p->stays; i++) {
        struct pollfd wait = {.fd = p->fd, .events = POLLIN};
        int fd = poll(&wait, 1, 20000) == 1 ? accept(p->fd, NULL, NULL) : -1;
        struct xr_handshake h;
        bool right = fd >= 0 && recv(fd, h.transcript, XR_HANDSHAKE_HELLO, MSG_WAITALL) == XR_HANDSHAKE_HELLO;
        if (right && (i == p->throws || i % 2)) {
            memcpy(h.key, p->setup->secret, sizeof(h.key));
            right = xr_handshake_answer(&h, answer) &&
                    send(fd, answer, sizeof(answer), MSG_NOSIGNAL) == sizeof(answer) &&
                    recv(fd, proof, sizeof(proof), MSG_WAITALL) == sizeof(proof) && xr_handshake_is_proved(&h, proof);
        }
        if (right && i == p->throws) {
            xr_handshake_accept(&h, accept_it);
            right = send(fd, accept_it, sizeof(accept_it), MSG_NOSIGNAL) == sizeof(accept_it);
        }
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
    struct xr_setup setup = {.secret = "another", .node = 7, .secret_node = 7, .addresses = here};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct parent p = {socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), throws, stays, &setup};
    socklen_t len = sizeof(at);
    pthread_t thread;
    int fd;

    assert_true(p.fd >= 0 && bind(p.fd, (struct sockaddr *)&at, len) == 0 && listen(p.fd, 8) == 0);
    assert_int_equal(getsockname(p.fd, (struct sockaddr *)&at, &len), 0);
    setup.port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&thread, NULL, be_parent, &p), 0);
    fd = xr_connect_parent(&setup, ms, err, errlen);
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

/* ------------------------------------------------------------- what others can do */

/* Send HELLO as a node, and PROOF. Returns whether an answer came. */
static bool exchange(struct event_base *base, int fd, struct xr_handshake *h, uint8_t *proof, bool prove)
{
    uint8_t answer[XR_HANDSHAKE_ANSWER];

    assert_int_equal(send(fd, h->transcript, XR_HANDSHAKE_HELLO, MSG_NOSIGNAL), XR_HANDSHAKE_HELLO);
    if (!await_bytes(base, fd, answer, sizeof(answer)))
        return false;
    if (prove)
        xr_handshake_prove(h, answer, proof);
    send(fd, proof, XR_HANDSHAKE_PROOF, MSG_NOSIGNAL);
    return true;
}

/* Each key gives those of its descendants, the same by any way, and no others. */
static void keys_of_nodes(void **state)
{
    uint8_t secret[RK_AUTH_KEY] = "a secret", key[40][RK_AUTH_KEY], other[RK_AUTH_KEY];

    (void)state;
    for (uint32_t fanout = 1; fanout < 5; fanout++) {
        const struct xr_kary shape = {.nodes = 40, .fanout = fanout, .head = 11};

        for (uint32_t i = 0; i < 40; i++) {
            assert_true(xr_handshake_key(&shape, XR_NODE_FRONT, secret, i, key[i]));
            for (uint32_t k = 0; k < i; k++)
                assert_memory_not_equal(key[i], key[k], RK_AUTH_KEY);
        }
        for (uint32_t i = 0; i < 40; i++) {
            for (uint32_t k = 0; k < 40; k++) {
                assert_int_equal(xr_handshake_key(&shape, k, key[k], i, other), xr_kary_is_below(&shape, k, i));
                if (xr_kary_is_below(&shape, k, i))
                    assert_memory_equal(other, key[i], RK_AUTH_KEY);
            }
        }
        assert_false(xr_handshake_key(&shape, XR_NODE_FRONT, secret, 40, other));
        assert_false(xr_handshake_key(&shape, XR_NODE_FRONT, secret, XR_NODE_ALL, other));
    }
}

static void only_the_node_enters(void **state)
{
    const struct xr_setup setup = front_setup();
    struct xr_handshake right = agent_handshake(&setup, 7), wrong = right, none;
    struct event_base *base = event_base_new();
    uint8_t proof[XR_HANDSHAKE_PROOF];
    struct xr_seals mine;
    uint32_t port, turned_away = 0, own = XR_NODE_FRONT;
    struct xr_listener *listener = open_listener(base, &setup, &port);
    int fd = come(port);

    (void)state;
    assert_true(exchange(base, fd, &right, proof, true));
    run_until(base, listener, 0, 1);
    close(fd);
    xr_handshake_seals(&right, false, &mine);
    assert_memory_equal(mine.out.key, came_seals.in.key, RK_AUTH_KEY);
    assert_memory_equal(mine.in.key, came_seals.out.key, RK_AUTH_KEY);
    assert_memory_not_equal(mine.in.key, mine.out.key, RK_AUTH_KEY);
    /* A host that has recorded all of that repeats it. */
    fd = come(port);
    assert_true(exchange(base, fd, &right, proof, false));
    run_until(base, listener, ++turned_away, 1);
    close(fd);
    /* The agent of another node, a peer without a key, a node that is none, and the listener's own. */
    for (int i = 0; i < 4; i++) {
        fd = come(port);
        if (i == 0)
            wrong = agent_handshake(&setup, 6);
        if (i == 1)
            memset(wrong.key, 0, sizeof(wrong.key));
        none = wrong;
        none.transcript[12] = i == 2 ? 9 : 7;
        if (i == 3)
            memcpy(none.transcript + 12, &own, sizeof(own));
        assert_int_equal(exchange(base, fd, &none, proof, true), i < 2);
        run_until(base, listener, ++turned_away, 1);
        close(fd);
    }
    xr_listener_close(listener);
    event_base_free(base);
}

static char got[64], closed[64];

static bool on_message(void *arg, uint32_t node, uint32_t kind, struct xr_unpacker *u)
{
    const char *text = xr_unpack_string(u);

    (void)arg;
    assert_int_equal(node, XR_NODE_FRONT);
    assert_int_equal(kind, 70);
    assert_non_null(text);
    strcat(got, text);
    return true;
}

static void on_close(void *arg, const char *why)
{
    (void)arg;
    snprintf(closed, sizeof(closed), "%s", why ? why : "-");
}

/* Two frames travel through a third process: it flips a bit, repeats, leaves out, swaps or returns them. */
static void sealed_frames(void **state)
{
    static const struct xr_conn_ops ops = {.on_message = on_message, .on_close = on_close};
    struct xr_seals from = {.out.key = "up", .in.key = "down"}, to = {.out.key = "down", .in.key = "up"};
    struct event_base *base = event_base_new();
    const int bits = 8 * (12 + 4 + 4 + RK_SEAL_MAC);

    (void)state;
    for (int act = 0; act < bits + 5; act++) {
        struct xr_conn *sender, *receiver;
        uint8_t frame[2][256], half;
        int in[2], out[2];

        got[0] = closed[0] = '\0';
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, in) | socketpair(AF_UNIX, SOCK_STREAM, 0, out), 0);
        assert_int_equal(xr_conn_open(base, in[0], &from, &ops, NULL, &sender), RANK_OK);
        assert_int_equal(xr_conn_open(base, out[0], act == bits + 4 ? &from : &to, &ops, NULL, &receiver), RANK_OK);
        for (int i = 0; i < 2; i++) {
            struct xr_packer p = {0};

            xr_pack_string(&p, i ? "two" : "one");
            xr_conn_send(sender, 70, &p);
            xr_conn_flush(sender);
            half = bits / 8;
            assert_int_equal(recv(in[1], frame[i], sizeof(frame[i]), MSG_DONTWAIT), half);
        }
        if (act < bits)
            frame[0][act / 8] ^= (uint8_t)(1 << act % 8);
        for (int i = 0; i < 2; i++) {
            int which = act == bits + 1 ? 0 : act == bits + 2 ? 1 : act == bits + 3 ? !i : i;
            assert_int_equal(send(out[1], frame[which], half, MSG_NOSIGNAL), half);
        }
        shutdown(out[1], SHUT_WR);
        while (!closed[0])
            event_base_loop(base, EVLOOP_ONCE);
        assert_string_equal(got, act == bits ? "onetwo" : act == bits + 1 ? "one" : "");
        if (act == bits)
            assert_string_equal(closed, "-");
        else if (act >= 4 * 8)
            assert_string_equal(closed, "a message was changed on its way");
        xr_conn_close(sender);
        xr_conn_close(receiver);
        close(in[1]);
        close(out[1]);
    }
    event_base_free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(active_peer_stays),
        cmocka_unit_test(closed_peer_reconnects),
        cmocka_unit_test(keys_of_nodes),
        cmocka_unit_test(only_the_node_enters),
        cmocka_unit_test(sealed_frames),
    };

    if (!rk_auth_open())
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp.c: measure plain sockets.
 * A ping-pong of 8 bytes, a stream, and messages of 8 bytes, one a system call and 64 at a time. Both sides poll.
 *
 *   tcp [--quick]                    over loopback, to a child
 *   tcp --serve PORT                 one connection, then the end
 *   tcp --to ADDRESS PORT [--quick]  from another host
 */
#include "bench/limits/limit_bench.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

enum { CHUNK = 1 << 20, SAMPLES = 9 };

struct plan {
    uint64_t pings, bytes, messages;
};

static const struct plan whole = {4000, 64 << 20, 100000}, quick = {20, 2 << 20, 640};
static uint64_t words[CHUNK / 8];

/* At least one byte, at most max; polls. */
static size_t some(int fd, void *buf, size_t max)
{
    ssize_t n;

    while ((n = recv(fd, buf, max, MSG_DONTWAIT)) <= 0) {
        if (n == 0) {
            errno = ECONNRESET;
            limit_die("recv");
        }
        if (errno != EAGAIN && errno != EINTR)
            limit_die("recv");
    }
    return (size_t)n;
}

static void tcp_receive(int fd, void *buf, size_t bytes)
{
    for (size_t at = 0; at < bytes;)
        at += some(fd, (char *)buf + at, bytes - at);
}

static void transmit(int fd, const void *buf, size_t bytes)
{
    ssize_t n;

    for (size_t at = 0; at < bytes; at += (size_t)n) {
        n = send(fd, (const char *)buf + at, bytes - at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            n = 0;
        if (n < 0)
            limit_die("send");
    }
}

/* So many bytes, in words that count up from 0 and begin anew with each chunk; then a word back. */
static void swallow(int fd, uint64_t bytes, uint64_t chunk)
{
    static uint64_t in[CHUNK / 8];
    uint64_t done = 0, answer = bytes;
    size_t held = 0;

    while (done < bytes) {
        uint64_t left = bytes - done;
        held += some(fd, (char *)in + held, left - held < CHUNK - held ? left - held : CHUNK - held);
        for (size_t i = 0; i < held / 8; i++)
            limit_check(in[i] == (done / 8 + i) % (chunk / 8));
        done += held / 8 * 8;
        in[0] = in[held / 8 % (CHUNK / 8)]; /* what is left of a word */
        held %= 8;
    }
    transmit(fd, &answer, 8);
}

static void tcp_serve(int fd)
{
    struct plan plan;
    uint64_t word;

    tcp_receive(fd, &plan, sizeof(plan));
    for (int s = 0; s < SAMPLES; s++) {
        for (uint64_t i = 0; i < plan.pings; i++) {
            tcp_receive(fd, &word, 8);
            transmit(fd, &word, 8);
        }
        swallow(fd, plan.bytes, CHUNK);
        swallow(fd, plan.messages * 8, 512);
        swallow(fd, plan.messages * 8, 512);
    }
}

static void expect_count(int fd, uint64_t bytes)
{
    uint64_t word;

    tcp_receive(fd, &word, 8);
    limit_check(word == bytes);
}

static void tcp_measure(int fd, const struct plan *plan)
{
    double lat[SAMPLES], stream[SAMPLES], one[SAMPLES], many[SAMPLES], t;
    uint64_t word;

    for (uint64_t i = 0; i < CHUNK / 8; i++)
        words[i] = i;
    transmit(fd, plan, sizeof(*plan));
    for (int s = 0; s < SAMPLES; s++) {
        t = limit_ns();
        for (uint64_t i = 0; i < plan->pings; i++) {
            transmit(fd, &i, 8);
            tcp_receive(fd, &word, 8);
            limit_check(word == i);
        }
        lat[s] = (limit_ns() - t) / (double)plan->pings / 2e3;
        t = limit_ns();
        for (uint64_t at = 0; at < plan->bytes; at += CHUNK)
            transmit(fd, words, CHUNK);
        expect_count(fd, plan->bytes);
        stream[s] = (double)plan->bytes / (limit_ns() - t);
        t = limit_ns();
        for (uint64_t i = 0; i < plan->messages; i++)
            transmit(fd, &words[i % 64], 8);
        expect_count(fd, plan->messages * 8);
        one[s] = (double)plan->messages / (limit_ns() - t) * 1e3;
        t = limit_ns();
        for (uint64_t i = 0; i < plan->messages; i += 64)
            transmit(fd, words, plan->messages - i < 64 ? (plan->messages - i) * 8 : 512);
        expect_count(fd, plan->messages * 8);
        many[s] = (double)plan->messages / (limit_ns() - t) * 1e3;
    }
    limit_print("tcp_8B", limit_median(lat, SAMPLES), "us", "8 bytes over a socket, one way");
    limit_print("tcp_stream", limit_median(stream, SAMPLES), "GB/s", "a stream over a socket");
    limit_print("tcp_rate_1", limit_median(one, SAMPLES), "M/s",
                "messages of 8 bytes over a socket, one a system call");
    limit_print("tcp_rate_64", limit_median(many, SAMPLES), "M/s",
                "messages of 8 bytes over a socket, 64 a system call");
}

static int prepared(int fd)
{
    int on = 1;

    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
        limit_die("TCP_NODELAY");
    return fd;
}

/* Listens there; *port is what it is, if it was 0. */
static int listening(in_addr_t address, uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(*port),
                             .sin_addr.s_addr = address};
    socklen_t len = sizeof(at);
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
        bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 1) ||
        getsockname(fd, (struct sockaddr *)&at, &len))
        limit_die("listen");
    *port = ntohs(at.sin_port);
    return fd;
}

/* Until a process listens there, for ten seconds. */
static int connected(in_addr_t address, uint16_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port),
                             .sin_addr.s_addr = address};

    for (double end = limit_ns() + 1e10;;) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
            limit_die("socket");
        if (connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
            return prepared(fd);
        if (errno != ECONNREFUSED || limit_ns() > end)
            limit_die("connect");
        close(fd);
        sched_yield();
    }
}

static void serve_one(int listener)
{
    int fd = accept(listener, NULL, NULL);

    if (fd < 0)
        limit_die("accept");
    tcp_serve(prepared(fd));
    close(fd);
    close(listener);
}

static void tcp_child(void *arg)
{
    serve_one(*(int *)arg);
}

int main(int argc, char **argv)
{
    in_addr_t address = htonl(INADDR_LOOPBACK);
    uint16_t port = 0;
    pid_t pid;
    int fd;

    if (argc == 3 && strcmp(argv[1], "--serve") == 0) {
        alarm(60);
        port = (uint16_t)atoi(argv[2]);
        serve_one(listening(htonl(INADDR_ANY), &port));
        return 0;
    }
    if (argc >= 4 && strcmp(argv[1], "--to") == 0) {
        alarm(60);
        address = inet_addr(argv[2]);
        fd = connected(address, (uint16_t)atoi(argv[3]));
        tcp_measure(fd, limit_quick(argc - 3, argv + 3) ? &quick : &whole);
        close(fd);
        return 0;
    }
    fd = listening(address, &port);
    pid = limit_fork(tcp_child, &fd);
    close(fd);
    fd = connected(address, port);
    tcp_measure(fd, limit_quick(argc, argv) ? &quick : &whole);
    close(fd);
    limit_join(pid);
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simdelay.c: simulate a cable in user space that delays and loses packets.
 *
 *   simdelay IF1 IF2 MICROSECONDS LOSS     loss in 1/10000 of the packets
 *
 * Carries every packet between two interfaces, each after the same delay, for
 * kernels without netem; hosts.sh lays it. When it carries, it prints its
 * process number, as in /proc, and goes on in the background. Packets
 * keep their offload headers (PACKET_VNET_HDR), so that segments larger than
 * the MTU and unfinished checksums survive. The choice of lost packets is the
 * same in every run.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { LARGEST = 70000, BATCH = 64, BUFFER = 64 << 20, FULL_PAUSE_NS = 20000 };

struct packet {
    struct packet *next;
    int64_t due;
    size_t len;
    char bytes[];
};

/* What came in at one end and is on its way to the other. */
struct lane {
    int in, out;
    struct packet *first, **last;
};

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int open_end(const char *name)
{
    int one = 1, big = BUFFER;
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ALL));
    struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};

    at.sll_ifindex = (int)if_nametoindex(name);
    if (fd < 0 || at.sll_ifindex == 0 ||
        setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) < 0 ||
        setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) < 0 || /* no loops */
        bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0) {
        fprintf(stderr, "simdelay: interface %s: %s\n", name, strerror(errno));
        exit(1);
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &big, sizeof(big));
    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &big, sizeof(big));
    return fd;
}

/* A packet that the interface does not want, because it is down, is lost. */
static void deliver(struct lane *l)
{
    const struct timespec pause = {0, FULL_PAUSE_NS};
    struct packet *p = l->first;

    l->first = p->next;
    if (!l->first)
        l->last = &l->first;
    while (send(l->out, p->bytes, p->len, 0) < 0 && (errno == ENOBUFS || errno == EAGAIN))
        nanosleep(&pause, NULL);
    free(p);
}

static void take(struct lane *l, int64_t delay, int loss)
{
    static char buf[LARGEST];

    for (int i = 0; i < BATCH; i++) {
        ssize_t n = recv(l->in, buf, sizeof(buf), 0);
        struct packet *p;

        if (n <= 0)
            return;
        if (loss > 0 && rand() % 10000 < loss)
            continue;
        p = malloc(sizeof(*p) + (size_t)n);
        if (!p)
            continue; /* lost, too */
        p->next = NULL;
        p->due = now_ns() + delay;
        p->len = (size_t)n;
        memcpy(p->bytes, buf, p->len);
        *l->last = p;
        l->last = &p->next;
    }
}

static void carry(struct lane lanes[2], int64_t delay, int loss)
{
    for (;;) {
        struct pollfd fds[2];
        int64_t now = now_ns(), wait = -1;
        struct timespec ts;

        for (int i = 0; i < 2; i++) {
            struct lane *l = &lanes[i];
            while (l->first && l->first->due <= now)
                deliver(l);
            if (l->first && (wait < 0 || l->first->due - now < wait))
                wait = l->first->due - now;
            fds[i] = (struct pollfd){l->in, POLLIN, 0};
        }
        ts.tv_sec = wait / 1000000000;
        ts.tv_nsec = wait % 1000000000;
        if (ppoll(fds, 2, wait < 0 ? NULL : &ts, NULL) <= 0)
            continue;
        for (int i = 0; i < 2; i++) {
            if (fds[i].revents)
                take(&lanes[i], delay, loss);
        }
    }
}

static bool number(const char *text, long max, long *out)
{
    char *end;

    *out = strtol(text, &end, 10);
    return *text && !*end && *out >= 0 && *out <= max;
}

int main(int argc, char **argv)
{
    struct lane lanes[2];
    char self[32] = {0};
    long us, loss;
    int ready[2];
    pid_t pid;

    if (argc != 5 || !number(argv[3], 60000000, &us) || !number(argv[4], 10000, &loss)) {
        fprintf(stderr, "usage: simdelay IF1 IF2 MICROSECONDS LOSS (in 1/10000)\n");
        return 2;
    }
    lanes[0].in = lanes[1].out = open_end(argv[1]);
    lanes[1].in = lanes[0].out = open_end(argv[2]);
    for (int i = 0; i < 2; i++) {
        lanes[i].first = NULL;
        lanes[i].last = &lanes[i].first;
    }
    if (pipe2(ready, O_CLOEXEC) < 0 || (pid = fork()) < 0) {
        perror("simdelay");
        return 1;
    }
    if (pid > 0) { /* until the child carries */
        close(ready[1]);
        /* At once, as behind a fork: nothing of the child's is ours to tidy, and the leak checker of a sanitized
         * build cannot check us in a pid namespace with another's /proc. */
        _exit(read(ready[0], self, 1) == 1 ? 0 : 1);
    }
    close(ready[0]);
    setsid();
    /* Not getpid(): that is the number in our own namespace. */
    if (readlink("/proc/self", self, sizeof(self) - 1) < 0)
        return 1;
    printf("%s\n", self);
    fflush(stdout);
    if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
        return 1;
    prctl(PR_SET_TIMERSLACK, 1);
    if (write(ready[1], "r", 1) != 1)
        return 1;
    close(ready[1]);
    carry(lanes, us * 1000, (int)loss);
}

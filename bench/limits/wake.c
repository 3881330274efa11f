/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wake.c: measure how long a sleeping process takes to wake, by futex and epoll.
 * The latter on an eventfd. After a long sleep a process
 * is slower to wake than after a short one: the core sleeps deeper, and that of a virtual machine is given away.
 */
#include "bench/limits/limit_bench.h"

#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

enum { SAMPLES = 301, QUICK = 3, AWAKE = 500000 /* ns for which the waker has been up: its own wake-up is not measured */ };

static const struct way {
    const char *name, *text;
    bool by_fd;
    int asleep; /* ns */
    int samples;
} ways[] = {
    {"wake_futex", "a wake-up noticed just after falling asleep on a futex", false, 200000, SAMPLES},
    {"wake_eventfd", "a write noticed just after falling asleep in epoll on an eventfd", true, 200000, SAMPLES},
    {"wake_futex_1s", "a wake-up noticed after 1 s of sleep on a futex", false, 1000000000, 9},
};

enum { WAYS = sizeof(ways) / sizeof(*ways) };

struct shared {
    struct limit_flag woken;
    _Atomic uint32_t word;
    int fd, ep;
    bool quick;
};

static int wake_rounds(const struct shared *s, const struct way *w)
{
    return s->quick ? QUICK : w->samples;
}

static void sleeper(void *arg)
{
    struct shared *s = arg;
    struct epoll_event ev;
    uint64_t count;
    uint32_t turn = 0;

    for (const struct way *w = ways; w < ways + WAYS; w++) {
        for (int i = 0; i < wake_rounds(s, w); i++, turn++) {
            if (w->by_fd) {
                if (epoll_wait(s->ep, &ev, 1, -1) != 1 || read(s->fd, &count, 8) != 8)
                    limit_die("epoll");
                limit_check(count == 1);
                atomic_store(&s->word, turn + 1);
            }
            while (atomic_load(&s->word) == turn)
                syscall(SYS_futex, &s->word, FUTEX_WAIT, turn, NULL, NULL, 0);
            limit_set(&s->woken, turn + 1);
        }
    }
}

/* So that the other one is asleep for so long. */
static void idle(int ns)
{
    double until = limit_ns() + ns;

    if (ns > AWAKE) {
        struct timespec pause_time = {.tv_sec = (ns - AWAKE) / 1000000000, .tv_nsec = (ns - AWAKE) % 1000000000};

        nanosleep(&pause_time, NULL);
    }
    while (limit_ns() < until)
        ;
}

int main(int argc, char **argv)
{
    struct shared *s = limit_shared(sizeof(*s));
    struct epoll_event ev = {.events = EPOLLIN};
    uint64_t one = 1;
    uint32_t turn = 0;
    double v[SAMPLES], t;
    pid_t pid;

    s->quick = limit_quick(argc, argv);
    s->fd = eventfd(0, EFD_CLOEXEC);
    s->ep = epoll_create1(EPOLL_CLOEXEC);
    if (s->fd < 0 || s->ep < 0 || epoll_ctl(s->ep, EPOLL_CTL_ADD, s->fd, &ev))
        limit_die("eventfd");
    pid = limit_fork(sleeper, s);
    for (const struct way *w = ways; w < ways + WAYS; w++) {
        for (int i = 0; i < wake_rounds(s, w); i++, turn++) {
            idle(s->quick ? AWAKE : w->asleep);
            t = limit_ns();
            if (w->by_fd) {
                if (write(s->fd, &one, 8) != 8)
                    limit_die("eventfd");
            } else {
                atomic_store(&s->word, turn + 1);
                syscall(SYS_futex, &s->word, FUTEX_WAKE, 1, NULL, NULL, 0);
            }
            limit_await(&s->woken, turn + 1);
            v[i] = (limit_ns() - t) / 1e3;
        }
        limit_print(w->name, limit_median(v, wake_rounds(s, w)), "us", w->text);
    }
    limit_join(pid);
    return 0;
}

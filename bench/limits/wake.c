/* wake.c: how long a process that sleeps takes to notice: on a futex, and in epoll on an eventfd. */
#include "bench/limits/limits.h"

#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

enum { SAMPLES = 301, ASLEEP = 200000 /* ns after which it does */ };

struct shared {
    struct limit_flag woken;
    _Atomic uint32_t word;
    int fd, ep, samples;
};

static void sleeper(void *arg)
{
    struct shared *s = arg;
    struct epoll_event ev;
    uint64_t count;
    uint32_t turn = 0;

    for (int i = 0; i < s->samples; i++, turn++) {
        while (atomic_load(&s->word) == turn)
            syscall(SYS_futex, &s->word, FUTEX_WAIT, turn, NULL, NULL, 0);
        limit_set(&s->woken, turn + 1);
    }
    for (int i = 0; i < s->samples; i++, turn++) {
        if (epoll_wait(s->ep, &ev, 1, -1) != 1 || read(s->fd, &count, 8) != 8)
            limit_die("epoll");
        limit_check(count == 1);
        limit_set(&s->woken, turn + 1);
    }
}

int main(int argc, char **argv)
{
    struct shared *s = limit_shared(sizeof(*s));
    struct epoll_event ev = {.events = EPOLLIN};
    uint64_t one = 1;
    uint32_t turn = 0;
    double v[SAMPLES], t;
    pid_t pid;

    s->samples = limit_quick(argc, argv) ? 3 : SAMPLES;
    s->fd = eventfd(0, EFD_CLOEXEC);
    s->ep = epoll_create1(EPOLL_CLOEXEC);
    if (s->fd < 0 || s->ep < 0 || epoll_ctl(s->ep, EPOLL_CTL_ADD, s->fd, &ev))
        limit_die("eventfd");
    pid = limit_fork(sleeper, s);
    for (int by_fd = 0; by_fd < 2; by_fd++) {
        for (int i = 0; i < s->samples; i++, turn++) {
            for (t = limit_ns() + ASLEEP; limit_ns() < t;)
                ;
            t = limit_ns();
            if (by_fd) {
                if (write(s->fd, &one, 8) != 8)
                    limit_die("eventfd");
            } else {
                atomic_store(&s->word, turn + 1);
                syscall(SYS_futex, &s->word, FUTEX_WAKE, 1, NULL, NULL, 0);
            }
            limit_await(&s->woken, turn + 1);
            v[i] = (limit_ns() - t) / 1e3;
        }
        limit_print(by_fd ? "wake_eventfd" : "wake_futex", limit_median(v, s->samples), "us",
                    by_fd ? "who sleeps in epoll on an eventfd has noticed a write"
                          : "who sleeps on a futex has noticed a wake-up");
    }
    limit_join(pid);
    return 0;
}

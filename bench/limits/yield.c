/*
 * yield.c: many pairs of processes on two cores, each pair handing a flag to
 * and fro, everybody calling sched_yield while waiting: how many flags a
 * second all of them hand over.
 */
#include "bench/limits/limits.h"

enum { MOST = 64 };

struct shared {
    _Alignas(LIMIT_LINE) _Atomic uint64_t up;
    struct limit_flag go, stop, to[MOST / 2], from[MOST / 2];
    _Atomic uint64_t handed;
    int pairs;
};

/* Until stopped, or for the last flag of a pair. */
static bool await_turn(struct shared *s, struct limit_flag *flag, uint64_t turn)
{
    while (atomic_load_explicit(&flag->turn, memory_order_acquire) != turn) {
        if (atomic_load_explicit(&s->stop.turn, memory_order_relaxed))
            return false;
        sched_yield();
    }
    return true;
}

static void one_of_all(struct shared *s, int i)
{
    struct limit_flag *mine = i % 2 ? &s->from[i / 2] : &s->to[i / 2];
    struct limit_flag *theirs = i % 2 ? &s->to[i / 2] : &s->from[i / 2];
    uint64_t turn = 0;

    limit_pin(i / 2 % 2 ^ i % 2); /* a pair on both cores */
    atomic_fetch_add(&s->up, 1);
    while (atomic_load(&s->go.turn) == 0)
        sched_yield();
    for (;; turn++) {
        if (i % 2 == 0)
            limit_set(mine, turn + 1);
        if (!await_turn(s, theirs, turn + 1))
            break;
        if (i % 2)
            limit_set(mine, turn + 1);
    }
    atomic_fetch_add(&s->handed, turn);
    _exit(0);
}

int main(int argc, char **argv)
{
    double seconds = limit_quick(argc, argv) ? 0.02 : 0.4, t;
    struct timespec pause = {0, (long)(seconds * 1e9)};
    pid_t pid[MOST];

    alarm(60);
    for (int n = 2; n <= MOST; n = n < 8 ? n * 2 : n * 8) {
        struct shared *s = limit_shared(sizeof(*s));
        char name[32];

        for (int i = 0; i < n; i++) {
            pid[i] = fork();
            if (pid[i] < 0)
                limit_die("fork");
            if (pid[i] == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                alarm(60);
                one_of_all(s, i);
            }
        }
        while (atomic_load(&s->up) < (uint64_t)n)
            sched_yield();
        t = limit_ns();
        limit_set(&s->go, 1);
        nanosleep(&pause, NULL);
        limit_set(&s->stop, 1);
        t = limit_ns() - t;
        for (int i = 0; i < n; i++)
            limit_join(pid[i]);
        limit_check(atomic_load(&s->handed) > 0);
        snprintf(name, sizeof(name), "yield_%d", n);
        limit_print(name, (double)atomic_load(&s->handed) / t * 1e3, "M/s",
                    "flags handed over, all processes together, who waits yields");
        munmap(s, sizeof(*s));
    }
    return 0;
}

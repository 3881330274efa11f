/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * yield.c: count the flags that pairs of processes hand over on two cores.
 * Each pair hands a flag to and fro, all calling sched_yield while waiting: the sum over all pairs, a
 * second. And the same where each has another partner each time, and both hand a flag to the other.
 */
#include "bench/limits/limit_bench.h"

enum { MOST = 64, ROUNDS = 64 };

struct shared {
    _Alignas(LIMIT_LINE) _Atomic uint64_t up;
    struct limit_flag go, stop, to[MOST / 2], from[MOST / 2];
    struct limit_flag by[MOST][MOST]; /* [writer][reader] */
    _Atomic uint64_t handed;
    unsigned char partner[ROUNDS][MOST];
};

/* Until stopped, or for the last flag of a pair. */
static bool await_turn(struct shared *s, struct limit_flag *flag, uint64_t turn)
{
    while (atomic_load_explicit(&flag->turn, memory_order_acquire) < turn) { /* at random it may be ahead */
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

/* Pairs: in each round all are shuffled, and neighbours are partners. */
static void yield_draw(struct shared *s)
{
    unsigned char deck[MOST];

    srand(42);
    for (int r = 0; r < ROUNDS; r++) {
        for (int i = 0; i < MOST; i++)
            deck[i] = (unsigned char)i;
        for (int i = MOST - 1; i > 0; i--) {
            int j = rand() % (i + 1);
            unsigned char t = deck[i];
            deck[i] = deck[j];
            deck[j] = t;
        }
        for (int i = 0; i < MOST; i++)
            s->partner[r][deck[i]] = deck[i ^ 1];
    }
}

static void one_at_random(struct shared *s, int i)
{
    uint64_t met[MOST] = {0}, handed = 0;
    int p;

    limit_pin(i % 2);
    atomic_fetch_add(&s->up, 1);
    while (atomic_load(&s->go.turn) == 0)
        sched_yield();
    do {
        p = s->partner[handed++ % ROUNDS][i];
        limit_set(&s->by[i][p], ++met[p]);
    } while (await_turn(s, &s->by[p][i], met[p]));
    atomic_fetch_add(&s->handed, handed);
    _exit(0);
}

static void yield_measure(const char *name, int n, double seconds, void (*one)(struct shared *s, int i), const char *what)
{
    struct timespec pause = {0, (long)(seconds * 1e9)};
    struct shared *s = limit_shared(sizeof(*s));
    pid_t pid[MOST];
    double t;

    yield_draw(s);
    for (int i = 0; i < n; i++) {
        pid[i] = fork();
        if (pid[i] < 0)
            limit_die("fork");
        if (pid[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            alarm(60);
            one(s, i);
        }
    }
    while (atomic_load(&s->up) < (uint64_t)n)
        sched_yield();
    t = limit_ns();
    limit_set(&s->go, 1);
    nanosleep(&pause, NULL);
    while (one == one_of_all && atomic_load(&s->from[0].turn) == 0) /* under load the time may be too short */
        sched_yield();
    limit_set(&s->stop, 1);
    t = limit_ns() - t;
    for (int i = 0; i < n; i++)
        limit_join(pid[i]);
    limit_check(atomic_load(&s->handed) > 0);
    limit_print(name, (double)atomic_load(&s->handed) / t * 1e3, "M/s", what);
    munmap(s, sizeof(*s));
}

int main(int argc, char **argv)
{
    double seconds = limit_quick(argc, argv) ? 0.02 : 0.4;
    char name[32];

    alarm(60);
    for (int n = 2; n <= MOST; n = n < 8 ? n * 2 : n * 8) {
        snprintf(name, sizeof(name), "yield_%d", n);
        yield_measure(name, n, seconds, one_of_all, "flags handed over, all processes together, waiting ones yield");
    }
    yield_measure("yield_random_64", MOST, seconds, one_at_random, "the same, each time to another partner, which hands one back");
    return 0;
}

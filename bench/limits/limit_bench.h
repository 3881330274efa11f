/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limit_bench.h: start, measure and check the programs of this folder.
 *
 * Each measures one thing that the machine does without any library, with two
 * processes on two cores: what is between its figure and ours is ours to lose.
 * A figure is a line: name, value, unit, what it is. What was moved is
 * checked; wrong data, a peer that died or a minute without an end is an error.
 *
 * --quick: a few rounds, to see that it works.
 */
#ifndef RK_BENCH_LIMITS_LIMIT_BENCH_H
#define RK_BENCH_LIMITS_LIMIT_BENCH_H

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_LINE = 128 }; /* two lines: they are fetched in pairs */

/* A counter that one writes and the other waits for, alone in its line; data beside it where wanted. */
struct limit_flag {
    _Alignas(LIMIT_LINE) _Atomic uint64_t turn;
    uint64_t data;
};

__attribute__((noreturn)) static inline void limit_die(const char *what)
{
    fprintf(stderr, "%s: %s: %m\n", program_invocation_short_name, what);
    exit(1);
}

static inline void limit_check(bool right)
{
    if (!right) {
        fprintf(stderr, "%s: the data are wrong\n", program_invocation_short_name);
        exit(1);
    }
}

static inline double limit_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline void limit_await(struct limit_flag *flag, uint64_t turn)
{
    while (atomic_load_explicit(&flag->turn, memory_order_acquire) != turn)
        ;
}

static inline void limit_at_least(struct limit_flag *flag, uint64_t count)
{
    while (atomic_load_explicit(&flag->turn, memory_order_acquire) < count)
        ;
}

static inline void limit_set(struct limit_flag *flag, uint64_t turn)
{
    atomic_store_explicit(&flag->turn, turn, memory_order_release);
}

/* Memory that parent and child share, zeroed. */
static inline void *limit_shared(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        limit_die("mmap");
    memset(p, 0, bytes);
    return p;
}

/* The i-th core of those we may use. */
static inline void limit_pin(int i)
{
    cpu_set_t may, one;

    if (sched_getaffinity(0, sizeof(may), &may))
        limit_die("sched_getaffinity");
    if (CPU_COUNT(&may) < 2) {
        fprintf(stderr, "%s: needs two cores\n", program_invocation_short_name);
        exit(77);
    }
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &may) && i-- == 0)
            CPU_SET(core, &one);
    }
    if (sched_setaffinity(0, sizeof(one), &one))
        limit_die("sched_setaffinity");
}

/* A child that runs there(arg) on the second core, while the caller goes on on the first. */
static inline pid_t limit_fork(void (*there)(void *), void *arg)
{
    pid_t parent = getpid(), pid;

    fflush(NULL);
    alarm(60);
    pid = fork();
    if (pid < 0)
        limit_die("fork");
    if (pid > 0) {
        limit_pin(0);
        return pid;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    limit_pin(1);
    alarm(60);
    there(arg);
    _exit(0); /* what the parent holds is not its to free */
}

static inline void limit_join(pid_t pid)
{
    int status;

    if (waitpid(pid, &status, 0) != pid || status != 0) {
        fprintf(stderr, "%s: the other process failed\n", program_invocation_short_name);
        exit(1);
    }
}

static inline int limit_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static inline double limit_median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof(*v), limit_ascending);
    return v[n / 2];
}

static inline void limit_print(const char *name, double value, const char *unit, const char *what)
{
    printf("%-24s %9.4g %-5s %s\n", name, value, unit, what);
    fflush(stdout);
}

static inline bool limit_quick(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], "--quick") == 0;
}

/* ------------------------------------------------------------------------- copies */

enum { LIMIT_SIZES = 4, LIMIT_MOST = 4 << 20 };
static const size_t limit_size[LIMIT_SIZES] = {4096, 65536, 1 << 20, LIMIT_MOST};

/* "copy_mapped_64K", in GB/s. */
static inline void limit_print_copy(const char *name, size_t bytes, double ns, const char *what)
{
    char full[64];

    if (bytes < 1 << 20)
        snprintf(full, sizeof(full), "%s_%zuK", name, bytes >> 10);
    else
        snprintf(full, sizeof(full), "%s_%zuM", name, bytes >> 20);
    limit_print(full, (double)bytes / ns, "GB/s", what);
}

/* Every eight bytes hold their place and the turn. */
static inline void limit_fill(void *buf, size_t bytes, uint64_t turn)
{
    uint64_t *p = buf;

    for (size_t i = 0; i < bytes / 8; i++)
        p[i] = (turn << 32) + i;
}

static inline void limit_check_filled(const void *buf, size_t bytes, uint64_t turn)
{
    const uint64_t *p = buf;
    uint64_t bad = 0;

    for (size_t i = 0; i < bytes / 8; i++)
        bad |= p[i] ^ ((turn << 32) + i);
    limit_check(bad == 0);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* worker_threads.h: run several threads that do the same. */
#ifndef TESTS_MP_WORKER_THREADS_H
#define TESTS_MP_WORKER_THREADS_H

#include "tests/mp/mp.h"

enum { WORKERS_MAX = 16 };

struct workers {
    struct mp *mp;
    int threads; /* --threads N, 3 */
    int rounds;  /* --rounds N, 200 */
};

struct hand {
    struct workers *workers;
    struct mp *mp;
    int t;           /* 0 to threads - 1 */
    uint64_t random; /* a seed of its own, from the run's */
    void (*work)(struct hand *me);
    void *arg;
};

void workers_start(struct workers *workers, struct mp *mp, int *argc, char **argv);
/* Run it on all threads; returns when all have. arg is shared by all. */
void workers_run(struct workers *workers, void (*work)(struct hand *me), void *arg);

#endif

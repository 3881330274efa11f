/* SPDX-License-Identifier: BSD-3-Clause */
/* worker_threads.c: see worker_threads.h. */
#include "tests/mp/threads/worker_threads.h"

#include <pthread.h>

static void *run(void *arg)
{
    struct hand *me = arg;

    me->work(me);
    return NULL;
}

void workers_start(struct workers *workers, struct mp *mp, int *argc, char **argv)
{
    mp_start_level(mp, argc, argv, RANK_THREAD_MULTIPLE);
    workers->mp = mp;
    workers->threads = (int)mp_option(*argc, argv, "--threads", 3);
    workers->rounds = (int)mp_option(*argc, argv, "--rounds", 200);
    MP_CHECK(workers->threads > 0 && workers->threads <= WORKERS_MAX);
}

void workers_run(struct workers *workers, void (*work)(struct hand *me), void *arg)
{
    struct hand hand[WORKERS_MAX];
    pthread_t id[WORKERS_MAX];

    for (int t = 0; t < workers->threads; t++) {
        hand[t] = (struct hand){.workers = workers, .mp = workers->mp, .t = t, .work = work, .arg = arg,
                                .random = workers->mp->seed * 31 + (uint64_t)(workers->mp->rank * WORKERS_MAX + t)};
        MP_CHECK_EQ(pthread_create(&id[t], NULL, run, &hand[t]), 0);
    }
    for (int t = 0; t < workers->threads; t++)
        MP_CHECK_EQ(pthread_join(id[t], NULL), 0);
}

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

void crew_start(struct crew *crew, struct mp *mp, int *argc, char **argv)
{
    mp_start_level(mp, argc, argv, RANK_THREAD_MULTIPLE);
    crew->mp = mp;
    crew->threads = (int)mp_option(*argc, argv, "--threads", 3);
    crew->rounds = (int)mp_option(*argc, argv, "--rounds", 200);
    MP_CHECK(crew->threads > 0 && crew->threads <= CREW_MAX);
}

void crew_run(struct crew *crew, void (*work)(struct hand *me), void *arg)
{
    struct hand hand[CREW_MAX];
    pthread_t id[CREW_MAX];

    for (int t = 0; t < crew->threads; t++) {
        hand[t] = (struct hand){.crew = crew, .mp = crew->mp, .t = t, .work = work, .arg = arg,
                                .random = crew->mp->seed * 31 + (uint64_t)(crew->mp->rank * CREW_MAX + t)};
        MP_CHECK_EQ(pthread_create(&id[t], NULL, run, &hand[t]), 0);
    }
    for (int t = 0; t < crew->threads; t++)
        MP_CHECK_EQ(pthread_join(id[t], NULL), 0);
}

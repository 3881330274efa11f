/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait_by_polling.c: run ranks that only poll and never wait, on one core.
 * By test, testall, testany, testsome, iprobe, improbe and progress. A rank that polls in vain yields, so that a message goes round
 * among many of them. One that computes between polls keeps the core, as does one that has a core to itself.
 *
 *   --apart      each on its own core, if there are as many: none makes way
 *   --level N    of threads
 */
#include "tests/mp/mp.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TAG = 3, NEVER = 4, ROUNDS = 20, LOOKS = 20000, BUSY_LOOKS = 500 };

static _Thread_local int64_t yields;

/* The library calls this one. */
__attribute__((visibility("default"))) int sched_yield(void)
{
    yields++;
    return (int)syscall(SYS_sched_yield);
}

/* The launcher may have bound us to another. */
static void share_a_core(void)
{
    cpu_set_t set, one;

    CPU_ZERO(&set);
    for (int i = 0; i < CPU_SETSIZE; i++)
        CPU_SET(i, &set);
    MP_CHECK(sched_setaffinity(0, sizeof(set), &set) == 0 && sched_getaffinity(0, sizeof(set), &set) == 0);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, &set))
            continue;
        CPU_ZERO(&one);
        CPU_SET(i, &one);
        MP_CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
        return;
    }
}

enum way { TEST, TESTALL, TESTANY, TESTSOME, IPROBE, IMPROBE, PROGRESS, WAYS };

static void take_by_looks(struct mp *mp, enum way way, int from, int64_t *value)
{
    rank_message_t message = RANK_MESSAGE_NULL;
    rank_request_t req = RANK_REQUEST_NULL;
    rank_envelope_t env;
    int64_t index, n = 0;
    int done = 0;

    if (way == IPROBE || way == IMPROBE) {
        while (!done) {
            if (way == IPROBE)
                MP_OK(rank_iprobe(from, TAG, mp->world, &done, NULL));
            else
                MP_OK(rank_improbe(from, TAG, mp->world, &done, &message, NULL));
        }
        if (way == IPROBE)
            MP_OK(rank_recv(value, 1, RANK_INT64, from, TAG, mp->world, NULL));
        else
            MP_OK(rank_mrecv(value, 1, RANK_INT64, &message, NULL));
        return;
    }
    MP_OK(rank_irecv(value, 1, RANK_INT64, from, TAG, mp->world, &req));
    while (!done) {
        switch (way) {
        case TESTALL:
            MP_OK(rank_testall(1, &req, &done, &env));
            break;
        case TESTANY:
            MP_OK(rank_testany(1, &req, &index, &done, &env));
            break;
        case TESTSOME:
            MP_OK(rank_testsome(1, &req, &n, &index, &env));
            done = n == 1;
            break;
        case PROGRESS:
            MP_OK(rank_progress());
            done = *(volatile int64_t *)value >= 0;
            if (done)
                MP_OK(rank_wait(&req, NULL));
            break;
        default:
            MP_OK(rank_test(&req, &done, &env));
        }
    }
}

/* All but one poll for a message at any time. */
static void ring(struct mp *mp, enum way way)
{
    int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;

    for (int i = 0; i < ROUNDS; i++) {
        int64_t value = i, got = -1;
        rank_request_t req;

        if (mp->rank == 0) {
            MP_OK(rank_isend(&value, 1, RANK_INT64, to, TAG, mp->world, &req));
            take_by_looks(mp, way, from, &got);
            MP_OK(rank_wait(&req, NULL));
        } else {
            take_by_looks(mp, way, from, &got);
            value = got;
            MP_OK(rank_send(&value, 1, RANK_INT64, to, TAG, mp->world));
        }
        MP_CHECK_EQ(got, i);
    }
}

static int64_t look(rank_request_t *req, int64_t n, double busy)
{
    int64_t before = yields;
    int done = 0;

    for (int64_t i = 0; i < n; i++) {
        double end = busy > 0 ? mp_now() + busy : 0;
        MP_OK(rank_test(req, &done, NULL));
        MP_CHECK(!done);
        while (busy > 0 && mp_now() < end)
            ;
    }
    return yields - before;
}

int main(int argc, char **argv)
{
    bool apart = mp_flag(argc, argv, "--apart");
    rank_thread_level_t level = (rank_thread_level_t)mp_option(argc, argv, "--level", RANK_THREAD_SERIALIZED);
    rank_request_t never;
    int64_t polling, computing;
    struct mp mp;

    if (!apart)
        share_a_core();
    mp_start_level(&mp, &argc, argv, level);
    mp_case(&mp, "round");
    for (int w = 0; w < WAYS; w++)
        ring(&mp, (enum way)w);

    mp_case(&mp, "in vain");
    MP_OK(rank_irecv(NULL, 0, RANK_BYTE, (mp.rank + 1) % mp.size, NEVER, mp.world, &never));
    polling = look(&never, LOOKS, 0);
    mp_barrier(mp.world);
    computing = look(&never, BUSY_LOOKS, 40e-6);
    mp_barrier(mp.world);
    MP_OK(rank_send(NULL, 0, RANK_BYTE, (mp.rank - 1 + mp.size) % mp.size, NEVER, mp.world));
    MP_OK(rank_wait(&never, NULL));
    if (mp.size == 1 || (apart && sysconf(_SC_NPROCESSORS_ONLN) >= mp.size))
        MP_CHECK_EQ(polling, 0);
    else if (!apart)
        MP_CHECK(polling >= LOOKS / 100);
    MP_CHECK(computing < BUSY_LOOKS / 10); /* a lock's, where there is one */
    mp_end(&mp);
    return 0;
}

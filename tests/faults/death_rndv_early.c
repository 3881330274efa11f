/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * death_rndv_early.c: kill a rank while its large messages are fetched early.
 * Each of them has come whole or ends with RANK_ERR_PEER_DEAD, be it received afterwards or by a receive that waits for the fetch.
 *
 *   --after US  when it dies after all have met (6000)
 *   --within S  seconds in which all get it
 */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static double in_time = 8.0;
#else
static double in_time = 2.0;
#endif

enum { N = 16, BYTES = 3 << 20, TAG = 4 };

static char *mine[N];

static void check(int i, rank_status_t st)
{
    MP_CHECK(st == RANK_OK || st == RANK_ERR_PEER_DEAD);
    if (st == RANK_OK)
        MP_CHECK_EQ(mp_verify(mine[i], BYTES, (uint64_t)i), -1);
}

/* How long one computes. */
static const double pause = 0.003;

/* While it waits for a send of its own, they are fetched. */
static void receive_after(struct mp *mp, int victim)
{
    double until = mp_now() + pause;
    char c;

    while (mp_now() < until)
        ;
    if (mp->rank + 1 < victim)
        MP_OK(rank_recv(&c, 1, RANK_BYTE, mp->rank + 1, TAG + 1, mp->world, NULL));
    MP_STATUS(rank_ssend(mine[0], BYTES, RANK_BYTE, victim, TAG + 1, mp->world), RANK_ERR_PEER_DEAD);
    for (int i = 0; i < N; i++)
        check(i, rank_recv(mine[i], BYTES, RANK_BYTE, victim, TAG, mp->world, NULL));
}

/* The receives come while they are: the send is over sooner. */
static void receive_during(struct mp *mp, int victim)
{
    rank_request_t req[N];
    rank_envelope_t env[N];

    MP_OK(rank_ssend("", 1, RANK_BYTE, mp->rank - 1, TAG + 1, mp->world));
    for (int i = 0; i < N; i++)
        MP_OK(rank_irecv(mine[i], BYTES, RANK_BYTE, victim, TAG, mp->world, &req[i]));
    for (int i = 0; i < N; i++) {
        rank_wait(&req[i], &env[i]);
        check(i, env[i].status);
    }
}

int main(int argc, char **argv)
{
    double after = (double)mp_option(argc, argv, "--after", 6000) * 1e-6, when;
    rank_request_t req[N];
    struct mp mp;
    int victim;
    char c;

    mp_start(&mp, &argc, argv);
    in_time = (double)mp_option(argc, argv, "--within", (int64_t)in_time);
    victim = mp.size - 1;
    for (int i = 0; i < N; i++) {
        mine[i] = mp_alloc(BYTES);
        if (mp.rank == victim)
            mp_fill(mine[i], BYTES, (uint64_t)i);
        else
            memset(mine[i], 0, BYTES);
    }
    mp_case(&mp, "death of a sender");
    /* All have to have got it by then, and take turns where they are many. */
    mp_barrier(mp.world);
    if (mp.rank == 0)
        when = mp_now() + (mp.size > 4 ? mp.size / 2 : 1) * after;
    MP_OK(rank_bcast(&when, 1, RANK_F64, 0, mp.world));
    if (mp.rank == victim) {
        mp_die_at(&when);
        for (int to = 0; to < victim; to++) {
            for (int i = 0; i < N; i++)
                MP_OK(rank_isend(mine[i], BYTES, RANK_BYTE, to, TAG, mp.world, &req[i]));
        }
        rank_recv(&c, 1, RANK_BYTE, 0, TAG, mp.world, NULL);
        mp_fail(__FILE__, __LINE__, "the victim lives");
    }
    if (mp.rank % 2)
        receive_during(&mp, victim);
    else
        receive_after(&mp, victim);
    MP_STATUS(rank_recv(mine[0], BYTES, RANK_BYTE, victim, TAG, mp.world, NULL), RANK_ERR_PEER_DEAD);
    if (mp_now() - when > in_time)
        mp_fail(__FILE__, __LINE__, "reported after %.3f s", mp_now() - when);
    for (int i = 0; i < N; i++)
        free(mine[i]);
    mp_end_survivor(&mp);
    return 0;
}

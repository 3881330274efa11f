/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * death_twice.c: kill two ranks, one after the other, under wildcard receives.
 * On two teams: each death ends the receives once a team, they can be posted and started again, and receive from the living. A
 * waitall of requests with the dead and with the living ends all, each with its own status.
 */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>

/* Between the deaths; the first is known to all long before the second. */
static const double apart = 2.0;

static void mixed_waitall(struct mp *mp, int first, int next, int prev)
{
    rank_request_t req[3];
    rank_envelope_t env[3];
    int32_t in[2] = {-1, -1};

    MP_OK(rank_irecv(&in[0], 1, RANK_INT32, first, 2, mp->world, &req[0]));
    MP_OK(rank_irecv(&in[1], 1, RANK_INT32, prev, 3, mp->world, &req[1]));
    MP_OK(rank_isend(&mp->rank, 1, RANK_INT32, next, 3, mp->world, &req[2]));
    MP_STATUS(rank_waitall(3, req, env), RANK_ERR_PEER_DEAD);
    MP_CHECK_EQ(env[0].status, RANK_ERR_PEER_DEAD);
    MP_CHECK_EQ(env[1].status, RANK_OK);
    MP_CHECK_EQ(env[2].status, RANK_OK);
    MP_CHECK_EQ(in[0], -1);
    MP_CHECK_EQ(in[1], prev);
    for (int i = 0; i < 3; i++)
        MP_CHECK(req[i] == RANK_REQUEST_NULL);
}

static void live(struct mp *mp, rank_team_t dup, rank_team_t living)
{
    int n = mp->size - 2, next = (mp->rank + 1) % n, prev = (mp->rank + n - 1) % n;
    rank_request_t again;
    int32_t in = -1, there = -1;

    MP_OK(rank_recv_init(&there, 1, RANK_INT32, RANK_ANY_SOURCE, 7, mp->world, &again));
    MP_OK(rank_start(&again));
    mixed_waitall(mp, mp->size - 1, next, prev);
    MP_STATUS(rank_wait(&again, NULL), RANK_ERR_PEER_DEAD);
    MP_OK(rank_start(&again));
    MP_STATUS(rank_recv(&in, 1, RANK_INT32, RANK_ANY_SOURCE, 5, dup, NULL), RANK_ERR_PEER_DEAD); /* a team of its own */
    MP_STATUS(rank_recv(&in, 1, RANK_INT32, RANK_ANY_SOURCE, 5, dup, NULL), RANK_ERR_PEER_DEAD); /* the second death */
    MP_STATUS(rank_recv(&in, 1, RANK_INT32, mp->size - 2, 2, mp->world, NULL), RANK_ERR_PEER_DEAD);
    MP_STATUS(rank_wait(&again, NULL), RANK_ERR_PEER_DEAD);
    mp_barrier(living);
    /* Both deaths are reported on both teams: now the living, if there are any. */
    if (n == 1) {
        MP_OK(rank_start(&again));
        MP_STATUS(rank_wait(&again, NULL), RANK_ERR_PEER_DEAD);
        MP_STATUS(rank_recv(&in, 1, RANK_INT32, RANK_ANY_SOURCE, 5, dup, NULL), RANK_ERR_PEER_DEAD);
        MP_OK(rank_request_free(&again));
        return;
    }
    MP_OK(rank_start(&again));
    MP_OK(rank_send(&mp->rank, 1, RANK_INT32, next, 7, mp->world));
    MP_OK(rank_wait(&again, NULL));
    MP_CHECK_EQ(there, prev);
    MP_OK(rank_send(&mp->rank, 1, RANK_INT32, next, 5, dup));
    MP_OK(rank_recv(&in, 1, RANK_INT32, RANK_ANY_SOURCE, 5, dup, NULL));
    MP_CHECK_EQ(in, prev);
    MP_OK(rank_request_free(&again));
    mp_barrier(living); /* a rank that leaves counts as dead for wildcard receives */
}

int main(int argc, char **argv)
{
    rank_team_t dup, living;
    double when = 0;
    struct mp mp;
    int victim;

    mp_start(&mp, &argc, argv);
    MP_CHECK(mp.size >= 3);
    victim = mp.rank >= mp.size - 2;
    MP_OK(rank_team_dup(mp.world, &dup));
    MP_OK(rank_team_split(mp.world, victim ? RANK_UNDEFINED : 0, 0, &living));
    mp_case(&mp, "twice");
    if (mp.rank == 0)
        when = mp_now() + 0.1;
    MP_OK(rank_bcast(&when, 1, RANK_F64, 0, mp.world));
    if (victim) {
        if (mp.rank == mp.size - 2)
            when += apart;
        mp_die_at(&when);
        for (;;)
            MP_OK(rank_recv(NULL, 0, RANK_BYTE, mp.rank, 999, mp.world, NULL));
    }
    live(&mp, dup, living);
    MP_OK(rank_team_free(&living));
    mp_end_survivor(&mp);
    return 0;
}

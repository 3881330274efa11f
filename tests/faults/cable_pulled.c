/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cable_pulled.c: lose a host by a pulled cable, and go on.
 *
 * Half of the ranks are on that host. It is cut off when rank 0 has printed "ready". The others get a status from the call they wait
 * in, in time, go on among themselves, and leave.
 *
 * Rank 0 waits for a message, rank 1 puts, further ones wait for a signal; all have a receive from any source open.
 */
#include "tests/mp/mp.h"

#include <string.h>
#include <unistd.h>

/* The 10 s that are promised between hosts, and what the machine takes. */
static const double in_time = 12.0;

static void lose(struct mp *mp, rank_mem_t mem)
{
    int other = mp->rank + mp->size / 2;
    char buf[8] = {0};
    rank_status_t st = RANK_OK;
    double t0 = mp_now();

    if (mp->rank == 0)
        st = rank_recv(buf, 8, RANK_BYTE, other, 5, mp->world, NULL);
    else if (mp->rank == 1)
        while (!st && mp_now() < t0 + in_time) {
            st = rank_put(buf, 8, other, mem, 8);
            st = st ? st : rank_flush(mem, other);
        }
    else
        st = rank_signal_wait(mem, 0, RANK_CMP_EQ, 77, other, NULL);
    MP_STATUS(st, RANK_ERR_PEER_DEAD);
    if (mp_now() - t0 > in_time)
        mp_fail(__FILE__, __LINE__, "reported after %.1f s", mp_now() - t0);
}

static void go_on(struct mp *mp, rank_team_t living)
{
    int n = mp->size / 2, next = (mp->rank + 1) % n, prev = (mp->rank + n - 1) % n;
    int32_t in = -1;

    for (int32_t i = 0; i < 100; i++) {
        MP_OK(rank_sendrecv(&i, 1, RANK_INT32, next, 6, &in, 1, RANK_INT32, prev, 6, mp->world, NULL));
        MP_CHECK_EQ(in, i);
    }
    mp_barrier(living);
    /* From any source again, of the living now. */
    MP_OK(rank_sendrecv(&mp->rank, 1, RANK_INT32, next, 7, &in, 1, RANK_INT32, RANK_ANY_SOURCE, 7, mp->world, NULL));
    MP_CHECK_EQ(in, prev);
    MP_STATUS(rank_send(&in, 1, RANK_INT32, mp->rank + n, 7, mp->world), RANK_ERR_PEER_DEAD);
}

int main(int argc, char **argv)
{
    rank_request_t any;
    rank_team_t living;
    rank_mem_t mem;
    struct mp mp;
    bool here;
    int32_t in;
    void *p;

    mp_start(&mp, &argc, argv);
    here = mp.rank < mp.size / 2;
    MP_OK(rank_team_split(mp.world, here, 0, &living));
    MP_OK(rank_alloc(mp.world, RANK_MEM_HOST, 64, &p, &mem));
    memset(p, 0, 64);
    mp_case(&mp, "cable");
    for (int r = 0; r < mp.size; r++) /* all connect to each other */
        MP_OK(rank_sendrecv(&mp.rank, 1, RANK_INT32, (mp.rank + r) % mp.size, 4, &in, 1, RANK_INT32,
                            (mp.rank - r + mp.size) % mp.size, 4, mp.world, NULL));
    mp_barrier(mp.world);
    if (!here) { /* whatever becomes of this side, it ends */
        alarm(60);
        while (rank_recv(&in, 1, RANK_INT32, 0, 9, mp.world, NULL) == RANK_OK)
            ;
        _exit(3);
    }
    MP_OK(rank_irecv(&in, 1, RANK_INT32, RANK_ANY_SOURCE, 7, mp.world, &any));
    mp_barrier(living);
    if (mp.rank == 0) {
        printf("ready\n");
        fflush(stdout);
    }
    lose(&mp, mem);
    MP_STATUS(rank_wait(&any, NULL), RANK_ERR_PEER_DEAD);
    /* The two over there may be given up one after the other: wait until both are. */
    for (int r = mp.size / 2; r < mp.size; r++)
        MP_STATUS(rank_recv(&in, 1, RANK_INT32, r, 8, mp.world, NULL), RANK_ERR_PEER_DEAD);
    while (rank_irecv(&in, 1, RANK_INT32, RANK_ANY_SOURCE, 8, mp.world, &any) == RANK_OK) {
        rank_status_t st;
        int done = 0;
        st = rank_test(&any, &done, NULL);
        if (done) { /* once more for one that was still alive then */
            MP_CHECK_EQ(st, RANK_ERR_PEER_DEAD);
            continue;
        }
        MP_OK(rank_cancel(&any));
        MP_STATUS(rank_wait(&any, NULL), RANK_ERR_CANCELED);
        break;
    }
    mp_barrier(living);
    go_on(&mp, living);
    MP_OK(rank_team_free(&living));
    mp_end_survivor(&mp);
    return 0;
}

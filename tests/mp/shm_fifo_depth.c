/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_fifo_depth.c: deepen the ring of a fifo that its sender finds full often.
 * A fifo of many ranks begins with a shallow ring. RANK_LOG=debug reports the change, and cases checks for it; what comes through
 * meanwhile is whole.
 */
#include "tests/mp/mp.h"

#include <sched.h>

enum { MOST = 1900, BURST = 60, ROUNDS = 40, TAG = 2 };

/* Rank 1 sends more than fits while rank 0 makes no calls, and reports it through memory; then all of it is received. */
static void stream(struct mp *mp, uint64_t *random, rank_mem_t mem, volatile int64_t *reported)
{
    static char buf[BURST][MOST];
    rank_request_t req[BURST];

    for (int64_t round = 1; round <= ROUNDS; round++) {
        int64_t bytes[BURST];

        for (int k = 0; k < BURST; k++)
            bytes[k] = MOST / 2 + 1 + (int64_t)mp_below(random, MOST / 2);
        if (mp->rank == 1) {
            for (int k = 0; k < BURST; k++) {
                mp_fill(buf[k], (size_t)bytes[k], (uint64_t)(round * BURST + k));
                MP_OK(rank_isend(buf[k], bytes[k], RANK_BYTE, 0, TAG, mp->world, &req[k]));
            }
            MP_OK(rank_put(&round, sizeof(round), 0, mem, 0));
            MP_OK(rank_waitall(BURST, req, NULL));
            MP_OK(rank_send(&round, sizeof(round), RANK_BYTE, 0, TAG + 1, mp->world));
        } else {
            while (*reported < round)
                sched_yield();
            for (int k = 0; k < BURST; k++) {
                MP_OK(rank_recv(buf[0], MOST, RANK_BYTE, 1, TAG, mp->world, NULL));
                MP_CHECK_EQ(mp_verify(buf[0], (size_t)bytes[k], (uint64_t)(round * BURST + k)), -1);
            }
            /* What rank 1 needs of us to go on it has by then. */
            MP_OK(rank_recv(buf[0], MOST, RANK_BYTE, 1, TAG + 1, mp->world, NULL));
        }
    }
}

int main(int argc, char **argv)
{
    uint64_t random;
    rank_mem_t mem;
    struct mp mp;
    void *reported;

    mp_start(&mp, &argc, argv);
    random = mp.seed;
    MP_OK(rank_alloc(mp.world, RANK_MEM_HOST, sizeof(int64_t), &reported, &mem));
    mp_case(&mp, "stream");
    if (mp.rank < 2)
        stream(&mp, &random, mem, reported);
    mp_barrier(mp.world);
    MP_OK(rank_free(&mem));
    mp_end(&mp);
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * barrier.c: build a barrier by dissemination.
 *
 * Hensgen, Finkel, Manber: "Two algorithms for barrier synchronization", International Journal of Parallel
 * Programming 17(1), 1988. In round k each rank signals the one 2^k further that all ranks it has signals of have
 * arrived. Cost: ceil(log2 p) alpha.
 */
#include "collectives/algo.h"
#include "collectives/pattern.h"

void rk_build_barrier_dissemination(struct rk_sched *s, const struct rk_coll_call *c)
{
    int rank = c->team->rank, size = c->team->size;
    struct rk_step *heard = NULL;

    for (int k = 0; k < rk_log2_ceil(size); k++) {
        int to, from;
        struct rk_step *recv;

        rk_dissemination(rank, size, k, &to, &from);
        recv = rk_sched_recv(s, NULL, from, (uint32_t)k, NULL, 0);
        rk_sched_send(s, heard, to, (uint32_t)k, NULL, 0);
        heard = rk_sched_join(s, recv, heard); /* this round and all before */
    }
}

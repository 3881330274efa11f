/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gatherv.c: build schedules of gatherv and scatterv.
 *
 * linear  a message from each rank to the root, or from the root to each rank,
 *         without copies. A rank knows its own length only, so no rank can
 *         forward for others, and an empty block is a message too: its receiver
 *         may expect data, and must not wait for ever.
 *         Cost: (p-1) alpha + sum of n beta.
 */
#include "collectives/algo.h"
#include "collectives/pattern.h"

void rk_build_gatherv_linear(struct rk_sched *s, const struct rk_coll_call *c)
{
    int rank = c->team->rank, size = c->team->size;

    if (rank != c->root) {
        rk_sched_send(s, NULL, c->root, 0, c->sbuf, c->bytes);
        return;
    }
    for (int d = 1; d < size; d++) {
        int from = rk_ring(rank, d, size);

        rk_sched_recv(s, NULL, from, 0, rk_block_at(c->rbuf, c->rdispls[from], c->elem),
                      (size_t)c->rcounts[from] * c->elem);
    }
    rk_sched_copy(s, NULL, rk_block_at(c->rbuf, c->rdispls[rank], c->elem), c->sbuf, c->bytes);
}

void rk_build_scatterv_linear(struct rk_sched *s, const struct rk_coll_call *c)
{
    int rank = c->team->rank, size = c->team->size;

    if (rank != c->root) {
        rk_sched_recv(s, NULL, c->root, 0, c->rbuf, c->bytes);
        return;
    }
    for (int d = 1; d < size; d++) {
        int to = rk_ring(rank, d, size);

        rk_sched_send(s, NULL, to, 0, rk_block_at(c->sbuf, c->sdispls[to], c->elem), (size_t)c->scounts[to] * c->elem);
    }
    rk_sched_copy(s, NULL, c->rbuf, rk_block_at(c->sbuf, c->sdispls[rank], c->elem), c->bytes);
}

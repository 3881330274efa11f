/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * allgather.c: build schedules of allgather and allgatherv.
 *
 * bruck               Bruck et al., "Efficient algorithms for all-to-all
 *                     communications in multiport message-passing systems",
 *                     IEEE TPDS 8(11), 1997: the data of a rank doubles each round,
 *                     for any number of ranks, with a rotation at the end.
 *                     Cost: ceil(log2 p) alpha + (p-1) n beta, and a copy.
 * recursive_doubling  the same for powers of two, in place, without the copy.
 * ring                p - 1 steps to the neighbour (Thakur et al. 2005).
 *                     Cost: (p-1)(alpha + n beta).
 * linear (v)          every rank to every other at once.
 *                     Cost: (p-1) alpha + sum of n beta.
 */
#include "collectives/algo.h"
#include "collectives/pattern.h"

void rk_build_allgather_bruck(struct rk_sched *s, const struct rk_coll_call *c)
{
    int rank = c->team->rank, size = c->team->size;
    char *have = rk_sched_scratch(s, (size_t)size * c->bytes); /* from the own block on upwards */
    struct rk_step *done = rk_sched_copy(s, NULL, have, c->sbuf, c->bytes);
    size_t head = (size_t)(size - rank) * c->bytes;

    for (int k = 0; 1 << k < size; k++) {
        int to, from, n;
        struct rk_step *recv;

        rk_bruck_gather(rank, size, k, &to, &from, &n);
        recv = rk_sched_recv(s, NULL, from, (uint32_t)k, have + ((size_t)c->bytes << k),
                             (size_t)n * c->bytes);
        rk_sched_send(s, done, to, (uint32_t)k, have, (size_t)n * c->bytes);
        done = rk_sched_join(s, done, recv);
    }
    rk_sched_copy(s, done, c->rbuf + (size_t)rank * c->bytes, have, head);
    rk_sched_copy(s, done, c->rbuf, have + head, (size_t)rank * c->bytes);
}

void rk_build_allgather_doubling(struct rk_sched *s, const struct rk_coll_call *c)
{
    int rank = c->team->rank, size = c->team->size;
    struct rk_step *done =
        rk_sched_copy(s, NULL, c->rbuf + (size_t)rank * c->bytes, c->sbuf, c->bytes);

    for (int k = rk_log2_ceil(size) - 1; k >= 0; k--) {
        struct rk_halving r = rk_halving(rank, size, k);
        size_t bytes = (size_t)r.half * c->bytes;
        struct rk_step *recv;

        recv = rk_sched_recv(s, NULL, r.peer, (uint32_t)k, c->rbuf + (size_t)r.give * c->bytes,
                             bytes);
        rk_sched_send(s, done, r.peer, (uint32_t)k, c->rbuf + (size_t)r.keep * c->bytes, bytes);
        done = rk_sched_join(s, done, recv);
    }
}

/* Position and length of block r in rbuf. */
struct block {
    char *at;
    size_t bytes;
};

static struct block block_of(const struct rk_coll_call *c, int r)
{
    if (c->kind == RK_COLL_ALLGATHERV)
        return (struct block){c->rbuf + (size_t)c->rdispls[r] * c->elem,
                              (size_t)c->rcounts[r] * c->elem};
    return (struct block){c->rbuf + (size_t)r * c->bytes, c->bytes};
}

void rk_build_allgather_ring(struct rk_sched *s, const struct rk_coll_call *c)
{
    int rank = c->team->rank, size = c->team->size;
    int left = rk_ring(rank, -1, size), right = rk_ring(rank, 1, size);
    struct block mine = block_of(c, rank);
    struct rk_step *have = NULL;

    rk_sched_copy(s, NULL, mine.at, c->sbuf, mine.bytes);
    for (int k = 0; k < size - 1; k++) {
        int out = rk_ring_gather_send(rank, size, k);
        struct block give = block_of(c, out), take = block_of(c, rk_ring(out, -1, size));

        rk_sched_send(s, have, right, (uint32_t)k, k == 0 ? c->sbuf : give.at, give.bytes);
        have = rk_sched_recv(s, NULL, left, (uint32_t)k, take.at, take.bytes);
    }
}

void rk_build_allgatherv_linear(struct rk_sched *s, const struct rk_coll_call *c)
{
    int rank = c->team->rank, size = c->team->size;
    struct block mine = block_of(c, rank);

    for (int d = 1; d < size; d++) {
        int from = rk_ring(rank, -d, size);
        struct block take = block_of(c, from);
        rk_sched_recv(s, NULL, from, 0, take.at, take.bytes);
    }
    for (int d = 1; d < size; d++)
        rk_sched_send(s, NULL, rk_ring(rank, d, size), 0, c->sbuf, mine.bytes);
    rk_sched_copy(s, NULL, mine.at, c->sbuf, mine.bytes);
}

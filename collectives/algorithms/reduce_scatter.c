/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reduce_scatter.c: build schedules of reduce_scatter. n: bytes of a block.
 *
 * recursive_halving  Thakur, Rabenseifner, Gropp 2005: half of the rest is exchanged
 *                    each round; ranks beyond a power of two fold in.
 *                    Cost: log2 p alpha + (p-1) n beta + (p-1) n gamma; folded:
 *                    2 more messages and p n (beta + gamma). If the order counts,
 *                    near vranks meet first and blocks are copied in that order.
 * pairwise           every rank sends each block to its owner.
 *                    Cost: (p-1)(alpha + n beta + n gamma), nothing forwarded.
 * ring               partial sums circulate (Patarasu, Yuan 2009).
 *                    Cost: (p-1)(alpha + n beta + n gamma), neighbours only.
 */
#include "collectives/algorithms/recursive_halving.h"

static int64_t block_part(const struct rk_coll_call *c, int pow2, int i)
{
    int first, n;

    if (i == pow2)
        return c->count * c->team->size;
    rk_fold_members(i, c->team->size, &first, &n);
    return c->count * first;
}

/* If the order counts: parts at the places of their vranks. */
static int64_t placed_part(const struct rk_coll_call *c, int pow2, int i)
{
    (void)pow2;
    return c->count * rk_place_first(i, c->team->size);
}

static int64_t block_of_place(const struct rk_coll_call *c, int pow2, int i)
{
    return block_part(c, pow2, rk_place(i, pow2));
}

void rk_build_reduce_scatter_halving(struct rk_sched *s, const struct rk_coll_call *c)
{
    struct rk_halving_of of = {.total = c->count * c->team->size,
                               .at = c->ordered ? placed_part : block_part,
                               .from = c->ordered ? block_of_place : NULL,
                               .near = c->ordered};
    struct rk_fold f = rk_fold(c->team->rank, c->team->size);
    char *work = NULL, *mine;
    struct rk_halved h;
    struct rk_step *done;

    if (f.vrank >= 0)
        work = rk_sched_scratch(s, (size_t)of.total * c->elem);
    rk_build_halved(s, c, &of, c->sbuf, work, &h);
    if (f.vrank < 0) {
        /* In place, the result overwrites what is sent. */
        done = rk_sched_recv(s, h.sent, f.partner, RK_HALVED_TAGS, c->rbuf, c->bytes);
        rk_build_finish(s, done, c, c->rbuf, c->count);
        return;
    }
    mine = work + (size_t)of.at(c, f.pow2, h.place) * c->elem;
    if (f.partner >= 0) { /* the first of the two blocks is the partner's */
        rk_sched_send(s, h.reduced, f.partner, RK_HALVED_TAGS, mine, c->bytes);
        mine += c->bytes;
    }
    done = rk_sched_join(s, h.reduced, h.sent);
    done = rk_sched_copy(s, done, c->rbuf, mine, c->bytes);
    rk_build_finish(s, done, c, c->rbuf, c->count);
}

void rk_build_reduce_scatter_pairwise(struct rk_sched *s, const struct rk_coll_call *c)
{
    int rank = c->team->rank, size = c->team->size;
    const char *sum = rk_sent_block(c, rank);
    char *to = c->in_place ? rk_sched_scratch(s, c->bytes) : c->rbuf;
    struct rk_step *sum1 = NULL, *sum2 = NULL, *send1 = NULL, *send2 = NULL, *all;
    char *in[2];

    for (int i = 0; i < 2; i++)
        in[i] = rk_sched_scratch(s, c->bytes);
    all = rk_sched_join(s, NULL, NULL);
    for (int k = 1; k < size; k++) { /* two at a time */
        int dest, source;
        struct rk_step *recv, *send;

        rk_pairwise(rank, size, k, &dest, &source);
        recv = rk_sched_recv(s, sum2, source, 0, in[k % 2], c->bytes);
        send = rk_sched_send(s, send2, dest, 0, rk_sent_block(c, dest), c->bytes);
        rk_sched_order(send, all);
        send2 = send1;
        send1 = send;
        sum2 = sum1;
        sum1 = rk_sched_reduce(s, recv, to, sum, in[k % 2], (size_t)c->count);
        rk_sched_order(sum2, sum1);
        sum = to;
    }
    rk_sched_order(sum1, all);
    if (c->in_place)
        all = rk_sched_copy(s, all, c->rbuf, to, c->bytes);
    rk_build_finish(s, all, c, c->rbuf, c->count);
}

void rk_build_reduce_scatter_ring(struct rk_sched *s, const struct rk_coll_call *c)
{
    int rank = c->team->rank, size = c->team->size;
    int left = rk_ring(rank, -1, size), right = rk_ring(rank, 1, size);
    struct rk_step *sum = NULL, *send1 = NULL;
    char *part[2];

    for (int i = 0; i < 2; i++)
        part[i] = rk_sched_scratch(s, c->bytes);
    for (int k = 0; k < size - 1; k++) {
        int out = rk_ring_reduce_send(rank, size, k), in = rk_ring(out, -1, size);
        bool last = k == size - 2;
        char *here = part[k % 2];
        struct rk_step *recv, *send;

        send = rk_sched_send(s, sum, right, (uint32_t)k,
                             k == 0 ? rk_sent_block(c, out) : part[(k - 1) % 2],
                             c->bytes);
        /* Overwrites what was sent in the step before. */
        recv = rk_sched_recv(s, send1, left, (uint32_t)k, here, c->bytes);
        sum = rk_sched_reduce(s, recv, last ? c->rbuf : here, here,
                              rk_sent_block(c, in), (size_t)c->count);
        if (last) /* in place it overwrites the first block, which may be in a send */
            rk_sched_order(send, sum);
        send1 = send;
    }
    rk_build_finish(s, sum, c, c->rbuf, c->count);
}

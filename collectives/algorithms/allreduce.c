/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * allreduce.c: build schedules of allreduce.
 *
 * recursive_doubling  Thakur, Rabenseifner, Gropp, "Optimization of collective
 *                     communication operations in MPICH", IJHPCA 19(1), 2005:
 *                     partners at distance 1, 2, 4... exchange their data;
 *                     ranks beyond a power of two fold in before and out after.
 *                     Cost: log2 p (alpha + n beta + n gamma), 2 more if folded.
 * rabenseifner        Rabenseifner, ICCS 2004: recursive halving, then
 *                     recursive doubling the way back.
 *                     Cost: 2 log2 p alpha + 2 (p-1)/p n beta + (p-1)/p n gamma.
 * ring                Patarasu, Yuan, "Bandwidth optimal all-reduce algorithms
 *                     for clusters of workstations", JPDC 69(2), 2009: p - 1
 *                     steps around a ring to reduce, p - 1 to gather.
 *                     Cost: 2 (p-1) alpha + 2 (p-1)/p n beta + (p-1)/p n gamma.
 *
 * The order of a reduction depends on the ranks only, and partners use the same order of operands. So all ranks
 * get identical bits, in every run.
 */
#include "collectives/algorithms/recursive_halving.h"

void rk_build_allreduce_doubling(struct rk_sched *s, const struct rk_coll_call *c)
{
    struct rk_fold f = rk_fold(c->team->rank, c->team->size);
    struct rk_step *done = NULL, *before = NULL, *send, *recv; /* done: last reduction, and the one before */
    const char *have = c->sbuf;
    char *in[2];

    if (f.vrank < 0) {
        send = rk_sched_send(s, NULL, f.partner, 0, have, c->bytes);
        rk_sched_recv(s, send, f.partner, 63, c->rbuf, c->bytes); /* rbuf may be sbuf */
        return;
    }
    for (int i = 0; i < 2; i++) /* a round's receive is posted during the round before */
        in[i] = rk_sched_scratch(s, c->bytes);
    if (f.partner >= 0) {
        recv = rk_sched_recv(s, NULL, f.partner, 0, in[1], c->bytes);
        done = rk_build_reduce_pair(s, recv, c, f.partner, c->rbuf, have, in[1], c->count);
        have = c->rbuf;
    }
    for (int k = 0; 1 << k < f.pow2; k++) {
        int peer = rk_unfold(f.vrank ^ 1 << k, c->team->size);

        recv = rk_sched_recv(s, before, peer, (uint32_t)k + 1, in[k % 2], c->bytes);
        send = rk_sched_send(s, done, peer, (uint32_t)k + 1, have, c->bytes);
        before = done;
        done = rk_build_reduce_pair(s, recv, c, peer, c->rbuf, have, in[k % 2], c->count);
        rk_sched_order(before, done);
        rk_sched_order(send, done); /* it overwrites what is sent */
        have = c->rbuf;
    }
    done = rk_build_finish(s, done, c, c->rbuf, c->count);
    if (f.partner >= 0)
        rk_sched_send(s, done, f.partner, 63, c->rbuf, c->bytes);
}

void rk_build_allreduce_rabenseifner(struct rk_sched *s, const struct rk_coll_call *c)
{
    int size = c->team->size;
    struct rk_step *done, *recv;
    struct rk_halved h;
    struct rk_fold f;
    int64_t at, len;
    int rounds;

    rk_build_halved(s, c, &(struct rk_halving_of){.total = c->count, .at = rk_even_part, .near = true}, c->sbuf, c->rbuf, &h);
    f = h.fold;
    if (f.vrank < 0) {
        rk_sched_recv(s, h.sent, f.partner, RK_HALVED_TAGS, c->rbuf, c->bytes);
        return;
    }
    rounds = rk_log2_ceil(f.pow2);
    at = rk_even_part(c, f.pow2, h.place);
    len = rk_even_part(c, f.pow2, h.place + 1) - at;
    done = rk_build_finish(s, h.reduced, c, c->rbuf + (size_t)at * c->elem, len);
    for (int k = rounds - 1; k >= 0; k--) {
        struct rk_halving r = rk_halving(h.place, f.pow2, k);
        int64_t mine = rk_even_part(c, f.pow2, r.keep), theirs = rk_even_part(c, f.pow2, r.give);
        size_t mine_len = (size_t)(rk_even_part(c, f.pow2, r.keep + r.half) - mine) * c->elem;
        size_t theirs_len = (size_t)(rk_even_part(c, f.pow2, r.give + r.half) - theirs) * c->elem;
        int peer = rk_halved_rank(&h, r.peer, size);
        uint32_t tag = RK_HALVED_TAGS + 1 + (uint32_t)k;

        /* It overwrites what the halving sent. */
        recv = rk_sched_recv(s, h.sent, peer, tag, c->rbuf + (size_t)theirs * c->elem, theirs_len);
        rk_sched_send(s, done, peer, tag, c->rbuf + (size_t)mine * c->elem, mine_len);
        done = rk_sched_join(s, done, recv);
    }
    if (f.partner >= 0)
        rk_sched_send(s, done, f.partner, RK_HALVED_TAGS, c->rbuf, c->bytes);
}

/*
 * Ring. A long message is cut into slices that circulate independently: received data is still cached when it is
 * reduced, and the reduction of a slice overlaps the transfer of the next. Slices of equal parity share scratch
 * memory: a slice reduces only after the one before the last has finished reducing.
 */
enum { SLICES_AT_ONCE = 2 };

struct ring {
    struct rk_sched *s;
    const struct rk_coll_call *c;
    int left, right;
    char *in[SLICES_AT_ONCE][2];
    struct rk_step *reduced[SLICES_AT_ONCE]; /* last reduction of the slice that used this scratch before */
    uint32_t tag;
};

static void ring_slice(struct ring *g, int turn, int64_t first, int64_t count)
{
    const struct rk_coll_call *c = g->c;
    struct rk_sched *s = g->s;
    int rank = c->team->rank, size = c->team->size;
    struct rk_step *before = g->reduced[turn], *sum1 = NULL, *sum2 = before, *have;
    struct rk_step *sent = rk_sched_join(s, NULL, NULL);

    for (int k = 0; k < size - 1; k++) {
        int out = rk_ring_reduce_send(rank, size, k), in = rk_ring(out, -1, size);
        size_t out_at = (size_t)(first + rk_part_at(count, size, out)) * c->elem;
        size_t in_at = (size_t)(first + rk_part_at(count, size, in)) * c->elem;
        int64_t in_len = rk_part_len(count, size, in);
        struct rk_step *recv, *send;

        recv = rk_sched_recv(s, sum2, g->left, g->tag, g->in[turn][k % 2],
                             (size_t)in_len * c->elem);
        send = rk_sched_send(s, sum1, g->right, g->tag, (k == 0 ? c->sbuf : c->rbuf) + out_at,
                             (size_t)rk_part_len(count, size, out) * c->elem);
        rk_sched_order(send, sent);
        sum2 = k == 0 ? before : sum1;
        sum1 = rk_sched_reduce(s, recv, c->rbuf + in_at, g->in[turn][k % 2],
                               c->sbuf + in_at, (size_t)in_len);
        rk_sched_order(sum2 != before ? sum2 : NULL, sum1);
        g->tag++;
    }
    g->reduced[turn] = sum1;
    have = rk_build_finish(s, sum1, c,
                           c->rbuf + (size_t)(first + rk_part_at(count, size, rank)) * c->elem,
                           rk_part_len(count, size, rank));
    for (int k = 0; k < size - 1; k++) {
        int out = rk_ring_gather_send(rank, size, k), in = rk_ring(out, -1, size);
        size_t out_at = (size_t)(first + rk_part_at(count, size, out)) * c->elem;
        size_t in_at = (size_t)(first + rk_part_at(count, size, in)) * c->elem;

        rk_sched_send(s, have, g->right, g->tag, c->rbuf + out_at,
                      (size_t)rk_part_len(count, size, out) * c->elem);
        /* It overwrites a partial sum that was sent, or the input. */
        have = rk_sched_recv(s, sent, g->left, g->tag, c->rbuf + in_at,
                             (size_t)rk_part_len(count, size, in) * c->elem);
        g->tag++;
    }
}

void rk_build_allreduce_ring(struct rk_sched *s, const struct rk_coll_call *c)
{
    int size = c->team->size, rank = c->team->rank;
    size_t slice_bytes = (size_t)RK_RING_PART * (size_t)size;
    int slices = (int)((c->bytes + slice_bytes - 1) / slice_bytes);
    struct ring g = {.s = s, .c = c, .left = rk_ring(rank, -1, size),
                     .right = rk_ring(rank, 1, size)};
    int64_t longest = (c->count + slices - 1) / slices;

    for (int t = 0; t < SLICES_AT_ONCE && t < slices; t++) {
        for (int i = 0; i < 2; i++)
            g.in[t][i] = rk_sched_scratch(s, (size_t)(longest / size + 1) * c->elem);
    }
    for (int i = 0; i < slices; i++)
        ring_slice(&g, i % SLICES_AT_ONCE, rk_part_at(c->count, slices, i),
                   rk_part_len(c->count, slices, i));
}

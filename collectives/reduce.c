/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reduce.c: build schedules of reduce.
 *
 * binomial      each vertex reduces its subtrees; log-depth.
 *               Cost: ceil(log2 p) (alpha + n beta + n gamma).
 * rabenseifner  Rabenseifner, "Optimization of collective reduction
 *               operations", ICCS 2004: reduce-scatter by recursive halving,
 *               then every part goes straight to the root.
 *               Cost: (log2 p + p) alpha + 2 n beta + n gamma.
 */
#include "collectives/recursive_halving.h"

void rk_build_reduce_binomial(struct rk_sched *s, const struct rk_coll_call *c)
{
    int size = c->team->size, v = rk_virtual(c->team->rank, c->root, size);
    struct rk_step *sum1 = NULL, *sum2 = NULL; /* last sum, and the one before */
    const char *sum = c->sbuf;
    char *to, *in[2] = {NULL, NULL};
    struct rk_tree t;

    rk_tree_binomial(v, size, &t);
    to = v == 0 ? c->rbuf : t.children ? rk_sched_scratch(s, c->bytes) : NULL;
    for (int i = 0; i < 2 && i < t.children; i++)
        in[i] = rk_sched_scratch(s, c->bytes);
    for (int i = 0; i < t.children; i++) {
        struct rk_step *recv = rk_sched_recv(s, sum2, rk_real(t.child[i], c->root, size), 0,
                                             in[i % 2], c->bytes);
        sum2 = sum1;
        sum1 = rk_sched_reduce(s, recv, to, sum, in[i % 2], (size_t)c->count);
        rk_sched_order(sum2, sum1);
        sum = to;
    }
    if (v == 0)
        rk_build_finish(s, sum1, c, c->rbuf, c->count);
    else
        rk_sched_send(s, sum1, rk_real(t.parent, c->root, size), 0, sum, c->bytes);
}

void rk_build_reduce_rabenseifner(struct rk_sched *s, const struct rk_coll_call *c)
{
    int64_t at = 0, len = 0; /* own part */
    int rank = c->team->rank, size = c->team->size;
    char *work = rank == c->root ? c->rbuf : rk_sched_scratch(s, c->bytes);
    struct rk_halved h;
    struct rk_step *all;

    rk_build_halved(s, c, c->count, rk_even_part, c->sbuf, work, &h);
    if (h.fold.vrank >= 0) {
        at = rk_even_part(c, h.fold.pow2, h.fold.vrank);
        len = rk_even_part(c, h.fold.pow2, h.fold.vrank + 1) - at;
    }
    if (rank != c->root) {
        if (len > 0)
            rk_sched_send(s, h.reduced, c->root, RK_HALVED_TAGS, work + (size_t)at * c->elem,
                          (size_t)len * c->elem);
        return;
    }
    all = rk_sched_join(s, h.reduced, h.sent);
    for (int v = 0; v < h.fold.pow2; v++) {
        struct rk_step *recv;

        at = rk_even_part(c, h.fold.pow2, v);
        len = rk_even_part(c, h.fold.pow2, v + 1) - at;
        if (len == 0 || v == h.fold.vrank)
            continue;
        /* What it overwrites must have been sent. */
        recv = rk_sched_recv(s, h.sent, rk_unfold(v, size), RK_HALVED_TAGS,
                             work + (size_t)at * c->elem, (size_t)len * c->elem);
        rk_sched_order(recv, all);
    }
    rk_build_finish(s, all, c, work, c->count);
}

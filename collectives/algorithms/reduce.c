/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reduce.c: build schedules of reduce.
 *
 * binomial      each vertex reduces its subtrees; log-depth. If the order
 *               counts, ranks fold to a power of two, vrank 0 has the sum and
 *               forwards it to the root.
 *               Cost: ceil(log2 p) (alpha + n beta + n gamma).
 * rabenseifner  Rabenseifner, "Optimization of collective reduction
 *               operations", ICCS 2004: reduce-scatter by recursive halving,
 *               then every part goes straight to the root.
 *               Cost: (log2 p + p) alpha + 2 n beta + n gamma.
 */
#include "collectives/algorithms/recursive_halving.h"

/* Receive the sums of the children in turn and add them to *sum, in to. */
static struct rk_step *sum_children(struct rk_sched *s, struct rk_step *after, const struct rk_coll_call *c,
                                    const struct rk_tree *t, int (*real)(int v, const struct rk_coll_call *c),
                                    const char **sum, char *to)
{
    struct rk_step *sum1 = after, *sum2 = NULL; /* last sum, and the one before */
    char *in[2] = {NULL, NULL};

    for (int i = 0; i < 2 && i < t->children; i++)
        in[i] = rk_sched_scratch(s, c->bytes);
    for (int i = 0; i < t->children; i++) {
        struct rk_step *recv = rk_sched_recv(s, sum2, real(t->child[i], c), 0, in[i % 2], c->bytes);

        sum2 = sum1;
        sum1 = rk_sched_reduce(s, recv, to, *sum, in[i % 2], (size_t)c->count);
        rk_sched_order(sum2, sum1);
        *sum = to;
    }
    return sum1;
}

static int from_root(int v, const struct rk_coll_call *c)
{
    return rk_real(v, c->root, c->team->size);
}

static int from_fold(int v, const struct rk_coll_call *c)
{
    return rk_unfold(v, c->team->size);
}

/* Fold, sum at vrank 0, and forward to the root: the sums of recursive doubling, for any root. */
static void build_binomial_ordered(struct rk_sched *s, const struct rk_coll_call *c)
{
    int rank = c->team->rank, first = from_fold(0, c);
    struct rk_fold f = rk_fold(rank, c->team->size);
    struct rk_step *done = NULL;
    const char *sum = c->sbuf;
    struct rk_tree t;
    char *to, *in;

    if (f.vrank < 0) {
        done = rk_sched_send(s, NULL, f.partner, 1, c->sbuf, c->bytes);
    } else {
        rk_tree_binomial(f.vrank, f.pow2, &t);
        to = rank == c->root ? c->rbuf : t.children || f.partner >= 0 ? rk_sched_scratch(s, c->bytes) : NULL;
        if (f.partner >= 0) {
            in = rk_sched_scratch(s, c->bytes);
            done = rk_sched_recv(s, NULL, f.partner, 1, in, c->bytes);
            done = rk_build_reduce_pair(s, done, c, f.partner, to, sum, in, c->count);
            sum = to;
        }
        done = sum_children(s, done, c, &t, from_fold, &sum, to);
        if (rank != first)
            done = rk_sched_send(s, done, from_fold(t.parent, c), 0, sum, c->bytes);
        else if (rank != c->root)
            rk_sched_send(s, done, c->root, 2, sum, c->bytes);
    }
    if (rank != c->root)
        return;
    if (rank != first)
        done = rk_sched_recv(s, done, first, 2, c->rbuf, c->bytes);
    rk_build_finish(s, done, c, c->rbuf, c->count);
}

void rk_build_reduce_binomial(struct rk_sched *s, const struct rk_coll_call *c)
{
    int size = c->team->size, v = rk_virtual(c->team->rank, c->root, size);
    const char *sum = c->sbuf;
    struct rk_step *done;
    struct rk_tree t;
    char *to;

    if (c->ordered) {
        build_binomial_ordered(s, c);
        return;
    }
    rk_tree_binomial(v, size, &t);
    to = v == 0 ? c->rbuf : t.children ? rk_sched_scratch(s, c->bytes) : NULL;
    done = sum_children(s, NULL, c, &t, from_root, &sum, to);
    if (v == 0)
        rk_build_finish(s, done, c, c->rbuf, c->count);
    else
        rk_sched_send(s, done, from_root(t.parent, c), 0, sum, c->bytes);
}

void rk_build_reduce_rabenseifner(struct rk_sched *s, const struct rk_coll_call *c)
{
    int64_t at = 0, len = 0; /* own part */
    int rank = c->team->rank, size = c->team->size;
    char *work = rank == c->root ? c->rbuf : rk_sched_scratch(s, c->bytes);
    struct rk_halved h;
    struct rk_step *all;

    rk_build_halved(s, c, &(struct rk_halving_of){.total = c->count, .at = rk_even_part, .near = true}, c->sbuf, work, &h);
    if (h.place >= 0) {
        at = rk_even_part(c, h.fold.pow2, h.place);
        len = rk_even_part(c, h.fold.pow2, h.place + 1) - at;
    }
    if (rank != c->root) {
        if (len > 0)
            rk_sched_send(s, h.reduced, c->root, RK_HALVED_TAGS, work + (size_t)at * c->elem,
                          (size_t)len * c->elem);
        return;
    }
    all = rk_sched_join(s, h.reduced, h.sent);
    for (int i = 0; i < h.fold.pow2; i++) {
        struct rk_step *recv;

        at = rk_even_part(c, h.fold.pow2, i);
        len = rk_even_part(c, h.fold.pow2, i + 1) - at;
        if (len == 0 || i == h.place)
            continue;
        /* What it overwrites must have been sent. */
        recv = rk_sched_recv(s, h.sent, rk_halved_rank(&h, i, size), RK_HALVED_TAGS,
                             work + (size_t)at * c->elem, (size_t)len * c->elem);
        rk_sched_order(recv, all);
    }
    rk_build_finish(s, all, c, work, c->count);
}

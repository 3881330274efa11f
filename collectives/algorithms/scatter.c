/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scatter.c: build schedules of scatter, the reverse of gather.c.
 *
 * binomial  each vertex gets the blocks of its subtree; log-depth.
 *           Cost: ceil(log2 p) alpha + (p-1) n beta, blocks of n bytes.
 * linear    the root to every rank.
 *           Cost: (p-1)(alpha + n beta), without copies on the way.
 */
#include "collectives/algo.h"
#include "collectives/pattern.h"

static void root_gives(struct rk_sched *s, const struct rk_coll_call *c, int child, int n)
{
    int size = c->team->size, first = rk_real(child, c->root, size);
    int head = first + n <= size ? n : size - first;
    const char *from = c->sbuf + (size_t)first * c->bytes;
    struct rk_step *packed = NULL;
    char *joined;

    if (head < n) { /* by virtual rank they are two pieces */
        joined = rk_sched_scratch(s, (size_t)n * c->bytes);
        packed = rk_sched_copy(s, NULL, joined, from, (size_t)head * c->bytes);
        packed = rk_sched_copy(s, packed, joined + (size_t)head * c->bytes, c->sbuf,
                               (size_t)(n - head) * c->bytes);
        from = joined;
    }
    rk_sched_send(s, packed, first, 0, from, (size_t)n * c->bytes);
}

void rk_build_scatter_binomial(struct rk_sched *s, const struct rk_coll_call *c)
{
    int size = c->team->size, v = rk_virtual(c->team->rank, c->root, size);
    struct rk_step *have;
    struct rk_tree t;
    char *mine;

    rk_tree_binomial(v, size, &t);
    if (v == 0) {
        for (int i = t.children - 1; i >= 0; i--)
            root_gives(s, c, t.child[i], t.child_span[i]);
        rk_sched_copy(s, NULL, c->rbuf, c->sbuf + (size_t)c->root * c->bytes, c->bytes);
        return;
    }
    mine = t.children ? rk_sched_scratch(s, (size_t)t.span * c->bytes) : c->rbuf;
    have = rk_sched_recv(s, NULL, rk_real(t.parent, c->root, size), 0, mine,
                         (size_t)t.span * c->bytes);
    for (int i = t.children - 1; i >= 0; i--)
        rk_sched_send(s, have, rk_real(t.child[i], c->root, size), 0,
                      mine + (size_t)(t.child[i] - v) * c->bytes,
                      (size_t)t.child_span[i] * c->bytes);
    if (t.children)
        rk_sched_copy(s, have, c->rbuf, mine, c->bytes);
}

void rk_build_scatter_linear(struct rk_sched *s, const struct rk_coll_call *c)
{
    int rank = c->team->rank, size = c->team->size;

    if (rank != c->root) {
        rk_sched_recv(s, NULL, c->root, 0, c->rbuf, c->bytes);
        return;
    }
    for (int d = 1; d < size; d++) {
        int r = rk_ring(rank, d, size);
        rk_sched_send(s, NULL, r, 0, c->sbuf + (size_t)r * c->bytes, c->bytes);
    }
    rk_sched_copy(s, NULL, c->rbuf, c->sbuf + (size_t)rank * c->bytes, c->bytes);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gather.c: build schedules of gather.
 *
 * binomial  each vertex gathers its subtree and forwards it; log-depth.
 *           Cost: ceil(log2 p) alpha + (p-1) n beta, blocks of n bytes.
 * linear    every rank to the root, which receives in place.
 *           Cost: (p-1)(alpha + n beta), without copies on the way.
 */
#include "collectives/algo.h"
#include "collectives/pattern.h"

#include <string.h>

/* A run of blocks by virtual rank, laid out by rank: it may wrap around at rank 0. */
struct spread {
    char *to;
    const char *from;
    size_t bytes; /* of a block */
    int first, n, size;
};

static rank_status_t gather_spread(void *arg)
{
    const struct spread *p = arg;
    int head = p->first + p->n <= p->size ? p->n : p->size - p->first;

    memcpy(p->to + (size_t)p->first * p->bytes, p->from, (size_t)head * p->bytes);
    memcpy(p->to, p->from + (size_t)head * p->bytes, (size_t)(p->n - head) * p->bytes);
    return RANK_OK;
}

static void root_takes(struct rk_sched *s, const struct rk_coll_call *c, int child, int n)
{
    int size = c->team->size, first = rk_real(child, c->root, size);
    struct rk_step *recv;
    struct spread *p;

    if (first + n <= size) {
        rk_sched_recv(s, NULL, first, 0, c->rbuf + (size_t)first * c->bytes, (size_t)n * c->bytes);
        return;
    }
    p = rk_sched_scratch(s, sizeof(*p));
    *p = (struct spread){.to = c->rbuf, .from = rk_sched_scratch(s, (size_t)n * c->bytes),
                         .bytes = c->bytes, .first = first, .n = n, .size = size};
    recv = rk_sched_recv(s, NULL, first, 0, (void *)(uintptr_t)p->from, (size_t)n * c->bytes);
    rk_sched_call(s, recv, gather_spread, p);
}

void rk_build_gather_binomial(struct rk_sched *s, const struct rk_coll_call *c)
{
    int size = c->team->size, v = rk_virtual(c->team->rank, c->root, size);
    struct rk_tree t;
    struct rk_step *all;
    char *mine;

    rk_tree_binomial(v, size, &t);
    if (v == 0) {
        rk_sched_copy(s, NULL, c->rbuf + (size_t)c->root * c->bytes, c->sbuf, c->bytes);
        for (int i = 0; i < t.children; i++)
            root_takes(s, c, t.child[i], t.child_span[i]);
        return;
    }
    if (t.children == 0) {
        rk_sched_send(s, NULL, rk_real(t.parent, c->root, size), 0, c->sbuf, c->bytes);
        return;
    }
    mine = rk_sched_scratch(s, (size_t)t.span * c->bytes);
    all = rk_sched_join(s, rk_sched_copy(s, NULL, mine, c->sbuf, c->bytes), NULL);
    for (int i = 0; i < t.children; i++)
        rk_sched_order(rk_sched_recv(s, NULL, rk_real(t.child[i], c->root, size), 0,
                                     mine + (size_t)(t.child[i] - v) * c->bytes,
                                     (size_t)t.child_span[i] * c->bytes),
                       all);
    rk_sched_send(s, all, rk_real(t.parent, c->root, size), 0, mine, (size_t)t.span * c->bytes);
}

void rk_build_gather_linear(struct rk_sched *s, const struct rk_coll_call *c)
{
    int rank = c->team->rank;

    if (rank != c->root) {
        rk_sched_send(s, NULL, c->root, 0, c->sbuf, c->bytes);
        return;
    }
    for (int r = 0; r < c->team->size; r++) {
        char *to = c->rbuf + (size_t)r * c->bytes;
        if (r == rank)
            rk_sched_copy(s, NULL, to, c->sbuf, c->bytes);
        else
            rk_sched_recv(s, NULL, r, 0, to, c->bytes);
    }
}

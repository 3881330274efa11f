/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bcast.c: build schedules of bcast.
 *
 * binomial      the number of ranks with the data doubles each round.
 *               Cost: ceil(log2 p) (alpha + n beta).
 * scatter_ring  van de Geijn, as in Barnett et al., "Building a
 *               high-performance collective communication library", SC 1994: a
 *               binomial scatter of p parts, then a ring that gathers them.
 *               Cost: (log2 p + p - 1) alpha + 2 (p - 1)/p n beta.
 * chain         segments travel down a line of ranks, all links busy at once.
 *               Cost: (p - 2 + k)(alpha + n/k beta) for k segments.
 */
#include "collectives/algo.h"
#include "collectives/pattern.h"

enum { CHAIN_SEGMENT = 64 << 10, CHAIN_SEGMENTS_MAX = 128, PART_ALIGN = 64 };

void rk_build_bcast_binomial(struct rk_sched *s, const struct rk_coll_call *c)
{
    int size = c->team->size, v = rk_virtual(c->team->rank, c->root, size);
    struct rk_step *have = NULL;
    struct rk_tree t;

    rk_tree_binomial(v, size, &t);
    if (v != 0)
        have = rk_sched_recv(s, NULL, rk_real(t.parent, c->root, size), 0, c->rbuf, c->bytes);
    for (int i = t.children - 1; i >= 0; i--) /* largest subtree first */
        rk_sched_send(s, have, rk_real(t.child[i], c->root, size), 0, c->rbuf, c->bytes);
}

void rk_build_bcast_chain(struct rk_sched *s, const struct rk_coll_call *c)
{
    int size = c->team->size, v = rk_virtual(c->team->rank, c->root, size);
    int64_t k = (int64_t)((c->bytes + CHAIN_SEGMENT - 1) / CHAIN_SEGMENT);

    if (k > CHAIN_SEGMENTS_MAX)
        k = CHAIN_SEGMENTS_MAX;
    for (int i = 0; i < k; i++) {
        size_t at = (size_t)rk_part_at((int64_t)c->bytes, (int)k, i);
        size_t len = (size_t)rk_part_len((int64_t)c->bytes, (int)k, i);
        struct rk_step *have = NULL;

        if (v > 0)
            have = rk_sched_recv(s, NULL, rk_real(v - 1, c->root, size), (uint32_t)i,
                                 c->rbuf + at, len);
        if (v < size - 1)
            rk_sched_send(s, have, rk_real(v + 1, c->root, size), (uint32_t)i, c->rbuf + at, len);
    }
}

/* Start of part i of the message; i = size: its end. Whole cache lines. */
static size_t part_at(const struct rk_coll_call *c, int i)
{
    int64_t lines = (int64_t)((c->bytes + PART_ALIGN - 1) / PART_ALIGN);
    size_t at = (size_t)rk_part_at(lines, c->team->size, i) * PART_ALIGN;

    return at < c->bytes ? at : c->bytes;
}

static size_t parts_len(const struct rk_coll_call *c, int first, int n)
{
    return part_at(c, first + n) - part_at(c, first);
}

void rk_build_bcast_scatter_ring(struct rk_sched *s, const struct rk_coll_call *c)
{
    int size = c->team->size, v = rk_virtual(c->team->rank, c->root, size);
    int left = rk_real(rk_ring(v, -1, size), c->root, size);
    int right = rk_ring(v, 1, size), right_real = rk_real(right, c->root, size);
    struct rk_step *scattered = NULL, *last = NULL;
    struct rk_tree t, right_tree;

    rk_tree_binomial(v, size, &t);
    rk_tree_binomial(right, size, &right_tree);
    if (v != 0)
        scattered = rk_sched_recv(s, NULL, rk_real(t.parent, c->root, size), 0,
                                  c->rbuf + part_at(c, v), parts_len(c, v, t.span));
    for (int i = t.children - 1; i >= 0; i--)
        rk_sched_send(s, scattered, rk_real(t.child[i], c->root, size), 0,
                      c->rbuf + part_at(c, t.child[i]),
                      parts_len(c, t.child[i], t.child_span[i]));

    /* Skip parts that a rank has from the scatter. */
    for (int step = 0; step < size - 1; step++) {
        int out = rk_ring_gather_send(v, size, step), in = rk_ring(out, -1, size);

        if (out < right || out >= right + right_tree.span)
            rk_sched_send(s, out >= v && out < v + t.span ? scattered : last, right_real,
                          (uint32_t)step + 1, c->rbuf + part_at(c, out), parts_len(c, out, 1));
        if (in < v || in >= v + t.span)
            last = rk_sched_recv(s, NULL, left, (uint32_t)step + 1, c->rbuf + part_at(c, in),
                                 parts_len(c, in, 1));
    }
}

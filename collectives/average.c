/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * average.c: average 16-bit floats without overflow.
 *
 * A sum of F16 overflows at 65,520. Where partial sums go as messages, each rank first divides its input by 2^k >= p,
 * which is exact above p * 2^-14. The last step multiplies the sum by 2^k / p. So an average rounds as often as a sum
 * and a division do. BF16 needs no scale: it has the exponents of F32.
 *
 * The arena has the inputs of all ranks at hand. There, 16-bit floats are sent as F32, summed, and rounded once. So do
 * kernels of a device: the input of a call that may run there is scaled when it has been copied to the host.
 */
#include "collectives/average.h"
#include "collectives/coll_args.h"
#include "collectives/coll_kind.h"

struct scaled {
    struct rk_coll_call call; /* with the scaled input */
    const void *from;
    void *to;
    size_t count;
};

static void scale_now(void *arg)
{
    const struct scaled *g = arg;

    rk_op_scale(g->to, g->from, g->count, g->call.team->size);
}

static rank_status_t scale_input(void *arg)
{
    const struct scaled *g = arg;

    if (!g->call.stage || !g->call.stage->deferred)
        scale_now(arg);
    return RANK_OK;
}

static size_t input_elements(const struct rk_coll_call *c)
{
    size_t n = 0;

    for (int r = 0; c->kind == RK_COLL_REDUCE_SCATTERV && r < c->team->size; r++)
        n += (size_t)c->rcounts[r];
    if (n)
        return n;
    return (size_t)c->count * (size_t)(c->kind == RK_COLL_REDUCE_SCATTER ? c->team->size : 1);
}

void rk_build_call(struct rk_sched *s, const struct rk_algo *algo, const struct rk_coll_call *c)
{
    bool in_result = c->kind == RK_COLL_ALLREDUCE || (c->kind == RK_COLL_REDUCE && c->team->rank == c->root);
    struct rk_step *first;
    struct scaled *g;

    if (c->op != RANK_AVG || !rk_op_scales(c->dtype) || !rk_coll_shape[c->kind].reduces) {
        algo->build(s, c);
        return;
    }
    g = rk_sched_scratch(s, sizeof(*g));
    *g = (struct scaled){*c, c->sbuf, NULL, input_elements(c)};
    g->to = in_result ? c->rbuf : rk_sched_scratch(s, g->count * c->elem);
    if (s->status)
        return;
    g->call.sbuf = g->to;
    g->call.in_place = in_result;
    first = rk_sched_call(s, NULL, scale_input, g);
    algo->build(s, &g->call);
    if (c->stage && c->stage->deferred) {
        c->stage->filled = scale_now;
        c->stage->filled_arg = g;
    }
    for (struct rk_step *step = s->steps; !s->status && step; step = step->next) {
        if (step != first && step->pending == 0)
            rk_sched_order(first, step);
    }
}

/* ----------------------------------------------------------------- in the arena */

enum { WIDE_MAX = RK_SLOT_DATA / sizeof(float) };

/* With more ranks than a slot has floats. */
static rank_status_t reduce_scatter_unwidened(struct rk_arena *a, const struct rk_coll_call *c)
{
    bool scales = c->op == RANK_AVG && rk_op_scales(c->dtype);
    char in[RK_SLOT_DATA];
    rank_status_t st;

    if (scales)
        rk_op_scale(in, c->sbuf, input_elements(c), a->n);
    st = rk_arena_reduce_scatter(a, scales ? in : c->sbuf, c->rbuf, (size_t)c->count, c->bytes, c->fn);
    if (!st && c->op == RANK_AVG)
        rk_op_divide(c->dtype, c->rbuf, (size_t)c->count, a->n);
    return st;
}

rank_status_t rk_arena_sum_halves(struct rk_arena *a, const struct rk_coll_call *c)
{
    float in[WIDE_MAX], sum[WIDE_MAX];
    rk_op_fn fn = rk_op_kernel(RANK_SUM, RANK_F32);
    size_t blocks = c->kind == RK_COLL_REDUCE_SCATTER ? (size_t)a->n : 1, count = (size_t)c->count;
    bool receives = c->kind != RK_COLL_REDUCE || a->me == c->root;

    if (blocks > WIDE_MAX)
        return reduce_scatter_unwidened(a, c);
    for (size_t at = 0, len, bytes; at < count; at += len) { /* a half at most, in each of two turns */
        rank_status_t st;

        len = count - at < WIDE_MAX / blocks ? count - at : WIDE_MAX / blocks;
        bytes = len * sizeof(float);
        for (size_t b = 0; b < blocks; b++)
            rk_op_widen(c->dtype, in + b * len, c->sbuf + (b * count + at) * c->elem, len);
        if (c->kind == RK_COLL_REDUCE)
            st = rk_arena_reduce(a, in, sum, len, bytes, fn, c->root);
        else if (c->kind == RK_COLL_ALLREDUCE)
            st = rk_arena_allreduce(a, in, sum, len, bytes, fn);
        else
            st = rk_arena_reduce_scatter(a, in, sum, len, bytes, fn);
        if (st)
            return st;
        if (receives)
            rk_op_narrow(c->dtype, c->rbuf + at * c->elem, sum, len, c->op == RANK_AVG ? a->n : 1);
    }
    return RANK_OK;
}

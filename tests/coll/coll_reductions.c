/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_reductions.c: reduce every datatype x operation, short and long.
 *
 * Lengths, forms in place and roots are drawn for each pair and counted. With --full each pair has all of them.
 */
#include "tests/coll/any_coll.h"
#include "tests/coll/mp_coll.h"

#include <stdlib.h>
#include <string.h>

/* Bit k of forms: is call k in place? */
static void every_call(struct coll_test *t, rank_op_t op, rank_dtype_t d, int64_t count, int root, unsigned forms)
{
    static const enum any_kind kinds[] = {ANY_ALLREDUCE, ANY_REDUCE, ANY_REDUCE_SCATTER, ANY_REDUCE_SCATTERV, ANY_SCAN, ANY_EXSCAN};
    struct any_coll c;

    for (int k = 0; k < (op == RANK_AVG ? 4 : 6); k++) {
        any_coll_open(&c, t->team, kinds[k], count, d, op, &t->seed);
        c.root = root;
        c.in_place = forms >> k & 1;
        MP_OK(any_coll_start(&c));
        MP_OK(any_coll_finish(&c));
        any_coll_check(&c);
        any_coll_close(&c);
        t->checks++;
    }
}

static void every_form(struct coll_test *t, rank_op_t op, rank_dtype_t d, int64_t count, int root)
{
    every_call(t, op, d, count, root, 0);
    every_call(t, op, d, count, root, ~0u);
}

/* Short ones of each pair, from all roots in turn: of all lengths in both forms, or with one length and forms that are drawn. */
static void every_pair(struct coll_test *t)
{
    enum { DRAWN = 3 };
    static const int64_t drawn[DRAWN] = {1, 7, 53}, all[] = {0, 1, 2, 3, 7, 8, 53, 64, 255, 511, 1030};
    int n = t->full ? (int)(sizeof(all) / sizeof(all[0])) : 0, root = 0, times[DRAWN] = {0};
    unsigned in_place = 0, apart = 0; /* forms that have been drawn, a bit a call */

    for (int d = 0; d < VALUE_DTYPES; d++) {
        for (int op = 0; op < VALUE_OPS; op++) {
            MP_CHECK_EQ(rank_op_defined(value_ops[op], value_dtypes[d]),
                        value_defined(value_ops[op], value_dtypes[d]));
            if (!value_defined(value_ops[op], value_dtypes[d]))
                continue;
            for (int i = 0; i < n; i++) {
                every_form(t, value_ops[op], value_dtypes[d], all[i], root);
                root = (root + 1) % t->size;
            }
            if (!t->full) {
                int i = (int)mp_below(&t->seed, DRAWN);
                unsigned forms = (unsigned)mp_below(&t->seed, 64);

                every_call(t, value_ops[op], value_dtypes[d], drawn[i], root, forms);
                root = (root + 1) % t->size;
                times[i]++;
                in_place |= forms;
                apart |= ~forms & 63;
            }
        }
    }
    for (int i = 0; i < DRAWN && !t->full; i++)
        MP_CHECK(times[i] > 0);
    MP_CHECK(t->full || (in_place == 63 && apart == 63));
}

/* Long ones, past every threshold and segment. */
static void long_ones(struct coll_test *t)
{
    static const struct {
        rank_op_t op;
        rank_dtype_t d;
        int64_t count;
        bool full;
    } cases[] = {
        {RANK_SUM, RANK_F64, 512, false},        {RANK_SUM, RANK_F64, 513, false},
        {RANK_SUM, RANK_F32, 3001, false},       {RANK_MAX, RANK_INT8, 20011, false},
        {RANK_AVG, RANK_F16, 9973, false},       {RANK_MINLOC, RANK_PAIR_F64, 2053, false},
        {RANK_SUM, RANK_INT32, 70001, false},    {RANK_PROD, RANK_F64_COMPLEX, 40009, true},
        {RANK_SUM, RANK_F64, 300007, true},      {RANK_BXOR, RANK_UINT64, 131072, true},
        {RANK_MAXLOC, RANK_PAIR_INT32, 65537, true}, {RANK_AVG, RANK_BF16, 400009, true},
        {RANK_SUM, RANK_F32, 2500003, true},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int root = (int)i % t->size;
        unsigned forms = (unsigned)mp_below(&t->seed, 64);
        if (cases[i].full && !t->full)
            continue;
        if (t->full)
            every_form(t, cases[i].op, cases[i].d, cases[i].count, root);
        else
            every_call(t, cases[i].op, cases[i].d, cases[i].count, root, forms);
    }
}

/* Sums of large F16 overflow; averages must not, by any algorithm. Each rank gives the same, and block b differs. */
static void large_averages(struct coll_test *t)
{
    static const int64_t counts[] = {1, 5, 1500, 9001};
    enum { MOST = 9001 };
    uint16_t *in = calloc((size_t)t->size, sizeof(*in) * MOST), *out = calloc(MOST, sizeof(*out));

    for (int c = 0; c < 4; c++) {
        int64_t n = counts[c];
        for (int64_t i = 0; i < n * t->size; i++)
            in[i] = (uint16_t)(0x7a00 + i / n % 4); /* 49,152 and a little more */
        for (int kind = 0; kind < 4; kind++) {
            int root = (c + kind) % t->size, want = 0x7a00 + (kind == 2 ? t->rank % 4 : 0);
            rank_request_t req;
            memset(out, 0, sizeof(*out) * MOST);
            if (kind == 0)
                MP_OK(rank_allreduce(in, out, n, RANK_F16, RANK_AVG, t->team));
            else if (kind == 1)
                MP_OK(rank_reduce(in, out, n, RANK_F16, RANK_AVG, root, t->team));
            else if (kind == 2)
                MP_OK(rank_reduce_scatter(in, out, n, RANK_F16, RANK_AVG, t->team));
            else { /* in place, too */
                memcpy(out, in, sizeof(*out) * (size_t)n);
                MP_OK(rank_iallreduce(RANK_IN_PLACE, out, n, RANK_F16, RANK_AVG, t->team, &req));
                MP_OK(rank_wait(&req, NULL));
            }
            for (int64_t i = 0; i < n && (kind != 1 || t->rank == root); i++)
                MP_CHECK(abs(out[i] - want) <= 1 + t->size / 4); /* units in the last place */
            t->checks++;
        }
    }
    free(in);
    free(out);
}

/* Blocks of 16-bit floats that are cut and scaled: all ranks have the same input, which is their average. */
static void scattered_averages(struct coll_test *t)
{
    enum { LONG = 600001 };
    static const uint16_t one_to_three[] = {0x3c00, 0x4000, 0x4200};
    int64_t *counts = mp_alloc((size_t)t->size * sizeof(*counts)), total = 0, mine = 0;
    uint16_t *in, *out = mp_alloc(LONG * sizeof(*out));

    for (int r = 0; r < t->size; r++) {
        counts[r] = LONG - r % 3 * 100000;
        mine = r == t->rank ? total : mine;
        total += counts[r];
    }
    in = mp_alloc((size_t)LONG * (size_t)t->size * sizeof(*in));
    for (int uneven = 0; uneven < 2; uneven++) {
        int form = coll_toss(t); /* one of two, or both */
        for (int in_place = t->full ? 0 : form; in_place < (t->full ? 2 : form + 1); in_place++) {
            int64_t first = uneven ? mine : (int64_t)t->rank * LONG, n = uneven ? counts[t->rank] : LONG;
            const void *from = in_place ? RANK_IN_PLACE : in;
            uint16_t *to = in_place ? in : out;

            for (int64_t i = 0; i < (int64_t)LONG * t->size; i++)
                in[i] = one_to_three[i % 3];
            if (uneven)
                MP_OK(rank_reduce_scatterv(from, to, counts, RANK_F16, RANK_AVG, t->team));
            else
                MP_OK(rank_reduce_scatter(from, to, LONG, RANK_F16, RANK_AVG, t->team));
            for (int64_t i = 0; i < n; i++)
                MP_CHECK_EQ(to[i], one_to_three[(first + i) % 3]);
            t->checks++;
        }
    }
    free(counts);
    free(in);
    free(out);
}

void coll_reductions(struct coll_test *t)
{
    large_averages(t);
    scattered_averages(t);
    every_pair(t);
    long_ones(t);
}

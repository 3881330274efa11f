/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel_rate.c: measure sums of several arrays, by instruction set.
 *
 *   bench/kernel_rate [--quick]
 *
 * The arrays lie in the second cache. Sets take turns, so that all see the same phases of the machine; the best of their
 * rounds counts. GB/s counts the bytes that are loaded and stored. "pairs": base, one array after the other. The last
 * column is the ratio of the widest set.
 */
#include "collectives/op/kernel_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ARRAYS = 8, TOTAL = 256 << 10 /* bytes: in the second cache, not in the first */ };

static char memory[TOTAL + (ARRAYS + 1) * 4096];

struct work {
    struct rk_reducer r;
    const void *src[ARRAYS];
    void *dst;
    int k;
    size_t n;
};

static void add_pairs(const struct work *w)
{
    rk_reduce(&w->r, w->dst, w->src[0], w->src[1], w->n);
    for (int i = 2; i < w->k; i++)
        rk_reduce(&w->r, w->dst, w->dst, w->src[i], w->n);
}

/* Seconds of one reduction. */
static double sample(const struct work *w, bool pairs, int times)
{
    struct timespec a, b;

    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < times; i++) {
        if (pairs)
            add_pairs(w);
        else
            rk_reduce_many(&w->r, w->dst, w->src, w->k, w->n);
        __asm__ volatile("" ::: "memory");
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    return ((double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec)) / times;
}

static void kernel_rate(const char *name, rank_dtype_t dtype, int k, int rounds)
{
    size_t bytes = TOTAL / (size_t)(k + 1) / 64 * 64;
    double best[RK_KERNEL_SETS + 1];
    struct work w = {.r.dtype = dtype, .k = k, .n = bytes / rk_dtype_bytes(dtype)};
    int sets = 0;

    for (int i = 0; i <= k; i++) { /* 64 bytes further each, so that they do not share the sets of a cache */
        char *at = memory + (size_t)i * (bytes + 64);
        if (i < k)
            w.src[i] = at;
        else
            w.dst = at;
    }
    while (sets < RK_KERNEL_SETS && rk_kernel_sets[sets]->runs())
        sets++;
    for (int i = 0; i <= sets; i++)
        best[i] = 1e9;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i <= sets; i++) { /* 0: pairs */
            double t;
            rk_kernels_use(rk_kernel_sets[i ? i - 1 : 0]);
            w.r.fn = rk_op_kernel(RANK_SUM, dtype);
            t = sample(&w, i == 0, 50);
            best[i] = t < best[i] ? t : best[i];
        }
    }
    printf("%-5s %2d", name, k);
    for (int i = 0; i <= sets; i++)
        printf(" %10.1f", (double)bytes * (k + 1) / best[i] * 1e-9);
    printf(" %7.2f\n", best[0] / best[sets]);
}

int main(int argc, char **argv)
{
    static const int arrays[] = {2, 4, 8};
    static const struct {
        const char *name;
        rank_dtype_t dtype;
    } types[] = {{"f32", RANK_F32}, {"f64", RANK_F64}, {"int32", RANK_INT32}, {"f16", RANK_F16}, {"bf16", RANK_BF16}};
    int rounds = argc > 1 && strcmp(argv[1], "--quick") == 0 ? 2 : 100;

    printf("sum   k      pairs");
    for (int i = 0; i < RK_KERNEL_SETS && rk_kernel_sets[i]->runs(); i++)
        printf(" %10s", rk_kernel_sets[i]->name);
    printf("   ratio\n");
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        for (int i = 0; i < 3; i++)
            kernel_rate(types[t].name, types[t].dtype, arrays[i], rounds);
    }
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel_set.h: choose among kernels built for several instruction sets.
 *
 * All sets give the same bits, except sign and payload of a NaN.
 */
#ifndef RK_COLLECTIVES_KERNEL_SET_H
#define RK_COLLECTIVES_KERNEL_SET_H

#include "collectives/op/op.h"

/* dst = src[0] op ... op src[k - 1] for n elements, k >= 2. dst may be a source. A 16-bit sum rounds once, at the end. */
typedef void (*rk_many_fn)(void *dst, const void *const *src, int k, size_t n);

enum { RK_SET_OPS = RK_HANDLE_INDEX(RANK_MAX) + 1 }; /* SUM, PROD, MIN, MAX */

/* Conversions of n halves. */
struct rk_half_kernels {
    void (*widen)(float *dst, const void *src, size_t n);
    void (*narrow)(void *dst, const float *src, size_t n, float by); /* src / by */
    /* src * times / by; dst may be src. A finite one stays finite. */
    void (*scale)(void *dst, const void *src, size_t n, float times, float by);
};

struct rk_kernel_set {
    const char *name;
    bool (*runs)(void); /* this processor has the instructions */
    rk_op_fn pair[RK_DTYPE_COUNT][RK_SET_OPS];   /* NULL: the kernel of op.c is the only one */
    rk_many_fn many[RK_DTYPE_COUNT][RK_SET_OPS]; /* NULL: reduce pairs */
    struct rk_half_kernels f16, bf16;
};

#if defined(__x86_64__)
enum { RK_KERNEL_SETS = 3 };
#else
enum { RK_KERNEL_SETS = 1 };
#endif

/* From the plainest, which runs everywhere, to the widest. */
extern const struct rk_kernel_set *const rk_kernel_sets[RK_KERNEL_SETS];
extern const struct rk_kernel_set rk_kernel_set_base, rk_kernel_set_v3, rk_kernel_set_v4;

/* Use a set from now on. It must run here. */
void rk_kernels_use(const struct rk_kernel_set *set);
const struct rk_kernel_set *rk_kernels_used(void);
/* Use the widest set that runs here. The first call decides. */
void rk_kernels_choose(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* op_divide.c: divide sums for averages, and convert 16-bit floats. */
#include "collectives/op/kernel_set.h"
#include "collectives/op/op_loop.h"

static void divide_f32(void *dst, size_t n, float by)
{
    typedef float RK_OP_LOOSE loose;
    loose *d = dst;

    for (size_t i = 0; i < n; i++)
        d[i] /= by;
}

static void divide_f64(void *dst, size_t n, double by)
{
    typedef double RK_OP_LOOSE loose;
    loose *d = dst;

    for (size_t i = 0; i < n; i++)
        d[i] /= by;
}

static const struct rk_half_kernels *half_kernels(rank_dtype_t dtype)
{
    const struct rk_kernel_set *set = rk_kernels_used();

    return dtype == RANK_F16 ? &set->f16 : &set->bf16;
}

/* 2^k >= by: F16 sums of inputs divided by it do not overflow. */
static float scale_of(int by)
{
    int k = 0;

    while (1 << k < by)
        k++;
    return (float)(1 << k);
}

void rk_op_scale(void *dst, const void *src, size_t n, int by)
{
    half_kernels(RANK_F16)->scale(dst, src, n, 1, scale_of(by));
}

void rk_op_widen(rank_dtype_t dtype, float *dst, const void *src, size_t n)
{
    half_kernels(dtype)->widen(dst, src, n);
}

void rk_op_narrow(rank_dtype_t dtype, void *dst, const float *src, size_t n, int by)
{
    half_kernels(dtype)->narrow(dst, src, n, (float)by);
}

void rk_op_divide(rank_dtype_t dtype, void *dst, size_t n, int by)
{
    switch (dtype) {
    case RANK_F16:
        half_kernels(dtype)->scale(dst, dst, n, scale_of(by), (float)by);
        break;
    case RANK_BF16:
        half_kernels(dtype)->scale(dst, dst, n, 1, (float)by);
        break;
    case RANK_F32:
        divide_f32(dst, n, (float)by);
        break;
    case RANK_F64:
        divide_f64(dst, n, (double)by);
        break;
    case RANK_F32_COMPLEX:
        divide_f32(dst, 2 * n, (float)by);
        break;
    case RANK_F64_COMPLEX:
        divide_f64(dst, 2 * n, (double)by);
        break;
    default: /* AVG is not defined for other types */
        break;
    }
}

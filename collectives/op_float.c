/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op_float.c: reduce floating point and complex numbers.
 *
 * The 16-bit types are added and multiplied as floats, with one rounding an operation; min and max return an input
 * unchanged.
 */
#include "collectives/float16.h"
#include "collectives/op_loop.h"

struct c32 {
    float re, im;
} RK_OP_LOOSE_STRUCT;

struct c64 {
    double re, im;
} RK_OP_LOOSE_STRUCT;

#define FLOAT_KERNELS(name, type)                                                                  \
    RK_OP_KERNEL(name##_sum, type, x + y)                                                          \
    RK_OP_KERNEL(name##_prod, type, (x * y))                                                          \
    RK_OP_KERNEL(name##_min, type, y < x ? y : x)                                                  \
    RK_OP_KERNEL(name##_max, type, y > x ? y : x)

FLOAT_KERNELS(f32, float)
FLOAT_KERNELS(f64, double)

#define HALF_KERNELS(name, up, down)                                                               \
    RK_OP_KERNEL(name##_sum, uint16_t, down(up(x) + up(y)))                                        \
    RK_OP_KERNEL(name##_prod, uint16_t, down(up(x) * up(y)))                                       \
    RK_OP_KERNEL(name##_min, uint16_t, up(y) < up(x) ? y : x)                                      \
    RK_OP_KERNEL(name##_max, uint16_t, up(y) > up(x) ? y : x)

HALF_KERNELS(f16, rk_f16_to_f32, rk_f32_to_f16)
HALF_KERNELS(bf16, rk_bf16_to_f32, rk_f32_to_bf16)

#define COMPLEX_KERNELS(name)                                                                      \
    RK_OP_KERNEL_STRUCT(name##_sum, struct name, ((struct name){x.re + y.re, x.im + y.im}))        \
    RK_OP_KERNEL_STRUCT(name##_prod, struct name,                                                  \
                        ((struct name){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}))

COMPLEX_KERNELS(c32)
COMPLEX_KERNELS(c64)

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

/* 2^k >= by: F16 sums of inputs divided by it do not overflow. */
static float scale_of(int by)
{
    int k = 0;

    while (1 << k < by)
        k++;
    return (float)(1 << k);
}

/* A finite sum gives a finite average, even if roundings have taken it past the greatest F16. */
RK_INLINE uint16_t unscaled_f16(uint16_t sum, float scale, float by)
{
    const float most = 65504;
    float x = rk_f16_to_f32(sum), r = x * scale / by;

    r = r > most && x <= most ? most : r;
    r = r < -most && x >= -most ? -most : r;
    return rk_f32_to_f16(r);
}

static void divide_f16(void *dst, size_t n, float scale, float by)
{
    typedef uint16_t RK_OP_LOOSE loose;
    loose *d = dst;

    for (size_t i = 0; i < n; i++)
        d[i] = unscaled_f16(d[i], scale, by);
}

#define HALF_CONVERSIONS(name)                                                                     \
    static void scale_##name(void *dst, const void *src, size_t n, float by)                       \
    {                                                                                              \
        typedef uint16_t RK_OP_LOOSE loose;                                                        \
        loose *d = dst;                                                                            \
        const loose *s = src;                                                                      \
        RK_OP_PRAGMA                                                                               \
        for (size_t i = 0; i < n; i++)                                                             \
            d[i] = rk_f32_to_##name(rk_##name##_to_f32(s[i]) / by);                                \
    }                                                                                              \
    static void widen_##name(float *dst, const void *src, size_t n)                                \
    {                                                                                              \
        typedef uint16_t RK_OP_LOOSE loose;                                                        \
        const loose *s = src;                                                                      \
        for (size_t i = 0; i < n; i++)                                                             \
            dst[i] = rk_##name##_to_f32(s[i]);                                                     \
    }                                                                                              \
    static void narrow_##name(void *dst, const float *src, size_t n, float by)                     \
    {                                                                                              \
        typedef uint16_t RK_OP_LOOSE loose;                                                        \
        loose *d = dst;                                                                            \
        for (size_t i = 0; i < n; i++)                                                             \
            d[i] = rk_f32_to_##name(src[i] / by);                                                  \
    }

HALF_CONVERSIONS(f16)
HALF_CONVERSIONS(bf16)

void rk_op_scale(void *dst, const void *src, size_t n, int by)
{
    scale_f16(dst, src, n, scale_of(by));
}

void rk_op_widen(rank_dtype_t dtype, float *dst, const void *src, size_t n)
{
    if (dtype == RANK_F16)
        widen_f16(dst, src, n);
    else
        widen_bf16(dst, src, n);
}

void rk_op_narrow(rank_dtype_t dtype, void *dst, const float *src, size_t n, int by)
{
    if (dtype == RANK_F16)
        narrow_f16(dst, src, n, (float)by);
    else
        narrow_bf16(dst, src, n, (float)by);
}

void rk_op_divide(rank_dtype_t dtype, void *dst, size_t n, int by)
{
    switch (dtype) {
    case RANK_F16:
        divide_f16(dst, n, scale_of(by), (float)by);
        break;
    case RANK_BF16:
        scale_bf16(dst, dst, n, (float)by);
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

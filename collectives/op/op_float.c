/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op_float.c: reduce floating point and complex numbers.
 *
 * The 16-bit types are added and multiplied as floats, with one rounding an operation; min and max return an input
 * unchanged. It is a NaN if one of the inputs is.
 */
#include "collectives/op/float16.h"
#include "collectives/op/op_loop.h"

struct c32 {
    float re, im;
} RK_OP_LOOSE_STRUCT;

struct c64 {
    double re, im;
} RK_OP_LOOSE_STRUCT;

#define FLOAT_KERNELS(name, type)                                                                  \
    RK_OP_KERNEL(name##_sum, type, x + y)                                                          \
    RK_OP_KERNEL(name##_prod, type, (x * y))                                                          \
    RK_OP_KERNEL(name##_min, type, ((y < x) | (y != y)) ? y : x)                                   \
    RK_OP_KERNEL(name##_max, type, ((y > x) | (y != y)) ? y : x)

FLOAT_KERNELS(f32, float)
FLOAT_KERNELS(f64, double)

/* Is y the minimum (maximum) of x and y, or a NaN? */
RK_INLINE bool is_lesser(float x, float y)
{
    return (y < x) | (y != y);
}
RK_INLINE bool is_greater(float x, float y)
{
    return (y > x) | (y != y);
}

#define HALF_KERNELS(name, up, down)                                                               \
    RK_OP_KERNEL(name##_sum, uint16_t, down(up(x) + up(y)))                                        \
    RK_OP_KERNEL(name##_prod, uint16_t, down(up(x) * up(y)))                                       \
    RK_OP_KERNEL(name##_min, uint16_t, is_lesser(up(x), up(y)) ? y : x)                            \
    RK_OP_KERNEL(name##_max, uint16_t, is_greater(up(x), up(y)) ? y : x)

HALF_KERNELS(f16, rk_f16_to_f32, rk_f32_to_f16)
HALF_KERNELS(bf16, rk_bf16_to_f32, rk_f32_to_bf16)

#define COMPLEX_KERNELS(name)                                                                      \
    RK_OP_KERNEL_STRUCT(name##_sum, struct name, ((struct name){x.re + y.re, x.im + y.im}))        \
    RK_OP_KERNEL_STRUCT(name##_prod, struct name,                                                  \
                        ((struct name){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}))

COMPLEX_KERNELS(c32)
COMPLEX_KERNELS(c64)

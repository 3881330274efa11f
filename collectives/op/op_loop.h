/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op_loop.h: generate the loop of a reduction kernel. Included by op_*.c only.
 *
 * dst may be a or b, which the compiler has to be told is harmless; at plain -O2 gcc would leave such loops
 * scalar.
 */
#ifndef RK_COLL_OP_LOOP_H
#define RK_COLL_OP_LOOP_H

#include "collectives/op/op.h"

#if defined(__clang__)
#define RK_OP_PRAGMA _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#pragma GCC optimize("O3")
#define RK_OP_PRAGMA _Pragma("GCC ivdep")
#else
#define RK_OP_PRAGMA
#endif

/* A type as in user buffers: any alignment and declared type. Structs must be declared with RK_OP_LOOSE_STRUCT. */
#define RK_OP_LOOSE __attribute__((may_alias, aligned(1)))
#define RK_OP_LOOSE_STRUCT __attribute__((may_alias, packed))

/* expr uses the values x and y of type. loose: the type as in buffers. */
#define RK_OP_KERNEL_OF(name, type, loose, expr)                                                   \
    void rk_op_##name(void *dst, const void *a, const void *b, size_t n)                           \
    {                                                                                              \
        loose *d = dst;                                                                            \
        const loose *p = a, *q = b;                                                                \
        RK_OP_PRAGMA                                                                               \
        for (size_t i = 0; i < n; i++) {                                                           \
            type x = p[i], y = q[i];                                                               \
            d[i] = (expr);                                                                         \
        }                                                                                          \
    }

#define RK_OP_KERNEL(name, type, expr)                                                             \
    typedef type RK_OP_LOOSE rk_op_##name##_t;                                                     \
    RK_OP_KERNEL_OF(name, type, rk_op_##name##_t, expr)
#define RK_OP_KERNEL_STRUCT(name, type, expr) RK_OP_KERNEL_OF(name, type, type, expr)

#endif

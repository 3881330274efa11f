/* SPDX-License-Identifier: BSD-3-Clause */
/* op_int.c: reduce integers. Sums and products wrap. */
#include "collectives/op/op_loop.h"

/* wide: an unsigned type in which overflow is defined, also after promotion to int. */
#define INT_KERNELS(name, type, wide)                                                              \
    RK_OP_KERNEL(name##_sum, type, (type)((wide)x + (wide)y))                                      \
    RK_OP_KERNEL(name##_prod, type, (type)((wide)x * (wide)y))                                     \
    RK_OP_KERNEL(name##_min, type, y < x ? y : x)                                                  \
    RK_OP_KERNEL(name##_max, type, y > x ? y : x)                                                  \
    RK_OP_KERNEL(name##_land, type, (type)((x != 0) & (y != 0)))                                   \
    RK_OP_KERNEL(name##_lor, type, (type)((x | y) != 0))                                           \
    RK_OP_KERNEL(name##_lxor, type, (type)((x != 0) ^ (y != 0)))                                   \
    RK_OP_KERNEL(name##_band, type, (type)(x & y))                                                 \
    RK_OP_KERNEL(name##_bor, type, (type)(x | y))                                                  \
    RK_OP_KERNEL(name##_bxor, type, (type)(x ^ y))

INT_KERNELS(int8, int8_t, uint32_t)
INT_KERNELS(int16, int16_t, uint32_t)
INT_KERNELS(int32, int32_t, uint32_t)
INT_KERNELS(int64, int64_t, uint64_t)
INT_KERNELS(uint8, uint8_t, uint32_t)
INT_KERNELS(uint16, uint16_t, uint32_t)
INT_KERNELS(uint32, uint32_t, uint32_t)
INT_KERNELS(uint64, uint64_t, uint64_t)

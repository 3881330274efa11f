/* SPDX-License-Identifier: BSD-3-Clause */
/* op_pair.c: reduce pairs of value and index. Ties take the lower index. */
#include "collectives/op/op_loop.h"

/* As the types of rank.h, with any alignment. */
#define LOC_KERNELS(name, value_type, index_type)                                                  \
    struct name {                                                                                  \
        value_type value;                                                                          \
        index_type index;                                                                          \
    } RK_OP_LOOSE_STRUCT;                                                                          \
    _Static_assert(sizeof(struct name) == sizeof(rank_##name##_t), "no padding in a pair");        \
    RK_OP_KERNEL_STRUCT(name##_minloc, struct name,                                                \
                        y.value < x.value || (y.value == x.value && y.index < x.index) ? y : x)    \
    RK_OP_KERNEL_STRUCT(name##_maxloc, struct name,                                                \
                        y.value > x.value || (y.value == x.value && y.index < x.index) ? y : x)

LOC_KERNELS(pair_int32, int32_t, int32_t)
LOC_KERNELS(pair_int64, int64_t, int64_t)
LOC_KERNELS(pair_f32, float, int32_t)
LOC_KERNELS(pair_f64, double, int64_t)

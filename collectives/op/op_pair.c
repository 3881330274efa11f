/* SPDX-License-Identifier: BSD-3-Clause */
/* op_pair.c: reduce pairs of value and index. */
/* Ties take the lower index. A NaN is taken before each number. */
#include "collectives/op/op_loop.h"

/* As the types of rank.h, with any alignment. */
#define LOC_KERNELS(name, value_type, index_type, nan)                                                \
    struct name {                                                                                  \
        value_type value;                                                                          \
        index_type index;                                                                          \
    } RK_OP_LOOSE_STRUCT;                                                                          \
    _Static_assert(sizeof(struct name) == sizeof(rank_##name##_t), "no padding in a pair");        \
    RK_OP_KERNEL_STRUCT(name##_minloc, struct name, TAKES_SECOND(<, nan) ? y : x)                  \
    RK_OP_KERNEL_STRUCT(name##_maxloc, struct name, TAKES_SECOND(>, nan) ? y : x)

#define NO_NAN(v) false
#define IS_NAN(v) __builtin_isnan(v)
#define TAKES_SECOND(before, nan)                                                                  \
    (nan(x.value) || nan(y.value)                                                                  \
         ? nan(y.value) && (!nan(x.value) || y.index < x.index)                                    \
         : y.value before x.value || (y.value == x.value && y.index < x.index))

LOC_KERNELS(pair_int32, int32_t, int32_t, NO_NAN)
LOC_KERNELS(pair_int64, int64_t, int64_t, NO_NAN)
LOC_KERNELS(pair_f32, float, int32_t, IS_NAN)
LOC_KERNELS(pair_f64, double, int64_t, IS_NAN)

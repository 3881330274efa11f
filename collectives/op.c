/* SPDX-License-Identifier: BSD-3-Clause */
/* op.c: list the reductions by operation and datatype. */
#include "collectives/op.h"

#define ARITH(type)                                                                                \
    [RANK_SUM] = rk_op_##type##_sum, [RANK_PROD] = rk_op_##type##_prod,                            \
    [RANK_MIN] = rk_op_##type##_min, [RANK_MAX] = rk_op_##type##_max
#define BITS(type)                                                                                 \
    [RANK_BAND] = rk_op_##type##_band, [RANK_BOR] = rk_op_##type##_bor,                            \
    [RANK_BXOR] = rk_op_##type##_bxor
#define LOGIC(type)                                                                                \
    [RANK_LAND] = rk_op_##type##_land, [RANK_LOR] = rk_op_##type##_lor,                            \
    [RANK_LXOR] = rk_op_##type##_lxor
#define AVG(type) [RANK_AVG] = rk_op_##type##_sum
#define SUM_PROD(type) [RANK_SUM] = rk_op_##type##_sum, [RANK_PROD] = rk_op_##type##_prod
#define LOC(type) [RANK_MINLOC] = rk_op_##type##_minloc, [RANK_MAXLOC] = rk_op_##type##_maxloc

const struct rk_op_row rk_op_table[RANK_DTYPE_COUNT] = {
    [RANK_BYTE] = {{BITS(uint8)}},
    [RANK_INT8] = {{ARITH(int8), BITS(int8), LOGIC(int8)}},
    [RANK_INT16] = {{ARITH(int16), BITS(int16), LOGIC(int16)}},
    [RANK_INT32] = {{ARITH(int32), BITS(int32), LOGIC(int32)}},
    [RANK_INT64] = {{ARITH(int64), BITS(int64), LOGIC(int64)}},
    [RANK_UINT8] = {{ARITH(uint8), BITS(uint8), LOGIC(uint8)}},
    [RANK_UINT16] = {{ARITH(uint16), BITS(uint16), LOGIC(uint16)}},
    [RANK_UINT32] = {{ARITH(uint32), BITS(uint32), LOGIC(uint32)}},
    [RANK_UINT64] = {{ARITH(uint64), BITS(uint64), LOGIC(uint64)}},
    [RANK_F16] = {{ARITH(f16), AVG(f16)}},
    [RANK_BF16] = {{ARITH(bf16), AVG(bf16)}},
    [RANK_F32] = {{ARITH(f32), AVG(f32)}},
    [RANK_F64] = {{ARITH(f64), AVG(f64)}},
    [RANK_F32_COMPLEX] = {{SUM_PROD(c32), AVG(c32)}},
    [RANK_F64_COMPLEX] = {{SUM_PROD(c64), AVG(c64)}},
    [RANK_PAIR_INT32] = {{LOC(pair_int32)}},
    [RANK_PAIR_INT64] = {{LOC(pair_int64)}},
    [RANK_PAIR_F32] = {{LOC(pair_f32)}},
    [RANK_PAIR_F64] = {{LOC(pair_f64)}},
};

int rank_op_defined(rank_op_t op, rank_dtype_t dtype)
{
    return rk_op_kernel(op, dtype) != NULL;
}

RK_PUBLIC(rank_op_defined);

/* SPDX-License-Identifier: BSD-3-Clause */
/* dtype.c: define the sizes of datatypes. */
#include "lib/data/dtype.h"

const uint8_t rk_dtype_bytes[RANK_DTYPE_COUNT] = {
    [RANK_BYTE] = 1,       [RANK_INT8] = 1,        [RANK_INT16] = 2,      [RANK_INT32] = 4,
    [RANK_INT64] = 8,      [RANK_UINT8] = 1,       [RANK_UINT16] = 2,     [RANK_UINT32] = 4,
    [RANK_UINT64] = 8,     [RANK_F16] = 2,         [RANK_BF16] = 2,       [RANK_F32] = 4,
    [RANK_F64] = 8,        [RANK_F32_COMPLEX] = 8,         [RANK_F64_COMPLEX] = 16,       [RANK_PAIR_INT32] = 8,
    [RANK_PAIR_INT64] = 16, [RANK_PAIR_F32] = 8,   [RANK_PAIR_F64] = 16,
};

int64_t rank_dtype_size(rank_dtype_t dtype)
{
    return (unsigned)dtype < RANK_DTYPE_COUNT ? rk_dtype_bytes[dtype] : RANK_ERR_DTYPE;
}

RK_PUBLIC(rank_dtype_size);

/* SPDX-License-Identifier: BSD-3-Clause */
/* dtype.c: return the size of a datatype. */
#include "lib/data/dtype.h"

int64_t rank_dtype_size(rank_dtype_t dtype)
{
    return rk_dtype_is_valid(dtype) ? (int64_t)rk_dtype_bytes(dtype) : RANK_ERR_DTYPE;
}

RK_PUBLIC(rank_dtype_size);

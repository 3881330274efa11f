/* SPDX-License-Identifier: BSD-3-Clause */
/* dtype.h: convert counts of datatypes into bytes. */
#ifndef RK_DATA_DTYPE_H
#define RK_DATA_DTYPE_H

#include "lib/base/arg_error.h"
#include "lib/base/compiler.h"
#include "lib/rank.h"

extern const uint8_t rk_dtype_bytes[RANK_DTYPE_COUNT];

/* Maximum bytes of a call: beyond any memory, with margin for headers and offsets. */
#define RK_SPAN_MAX (1ll << 62)

/*
 * Size in bytes of count elements, for the public function call. RANK_ERR_DTYPE, or RANK_ERR_COUNT (negative, or
 * more than RK_SPAN_MAX bytes).
 */
RK_INLINE rank_status_t rk_dtype_span(const char *call, rank_dtype_t dtype, int64_t count, size_t *bytes)
{
    int64_t n;

    if (rk_unlikely((unsigned)dtype >= RANK_DTYPE_COUNT))
        return rk_arg_error(RANK_ERR_DTYPE, call, "dtype %d is none (there are %d)", (int)dtype, RANK_DTYPE_COUNT);
    if (rk_likely((uint64_t)count <= RK_SPAN_MAX >> 8)) { /* fits in any case */
        *bytes = (size_t)count * rk_dtype_bytes[dtype];
        return RANK_OK;
    }
    if (rk_unlikely(count < 0))
        return rk_arg_error(RANK_ERR_COUNT, call, "count %lld is negative", (long long)count);
    if (rk_unlikely(__builtin_mul_overflow(count, rk_dtype_bytes[dtype], &n) || n > RK_SPAN_MAX))
        return rk_arg_error(RANK_ERR_COUNT, call, "count %lld is more than memory can hold", (long long)count);
    *bytes = (size_t)n;
    return RANK_OK;
}

#endif

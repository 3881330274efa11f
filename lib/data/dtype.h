/* SPDX-License-Identifier: BSD-3-Clause */
/* dtype.h: convert counts of datatypes into bytes. */
#ifndef RK_DATA_DTYPE_H
#define RK_DATA_DTYPE_H

#include "lib/base/arg_error.h"
#include "lib/base/compiler.h"
#include "lib/rank.h"

#include <stdbool.h>

/* Parts of a predefined datatype or operation: see rank/types.h. Tables are indexed by the index. */
#define RK_HANDLE_INDEX(handle) ((unsigned)((handle) >> 8) & 0xffff)
#define RK_HANDLE_CLASS(handle) ((handle) & ~(uint64_t)0xffffff)
enum { RK_DTYPE_COUNT = RK_HANDLE_INDEX(RANK_PAIR_F64) + 1, RK_OP_COUNT = RK_HANDLE_INDEX(RANK_MAXLOC) + 1 };

RK_INLINE bool rk_dtype_is_valid(rank_dtype_t dtype)
{
    return dtype - RK_HANDLE_CLASS(RANK_BYTE) < RK_DTYPE_COUNT << 8;
}

RK_INLINE bool rk_op_is_valid(rank_op_t op)
{
    return op - RK_HANDLE_CLASS(RANK_SUM) < RK_OP_COUNT << 8;
}

/* Bytes of an element of a valid datatype. */
RK_INLINE uint32_t rk_dtype_bytes(rank_dtype_t dtype)
{
    return (uint8_t)dtype;
}

/* Maximum bytes of a call: beyond any memory, with margin for headers and offsets. */
#define RK_SPAN_MAX (1ll << 62)

/*
 * Size in bytes of count elements, for the public function call. RANK_ERR_DTYPE, or RANK_ERR_COUNT (negative, or
 * more than RK_SPAN_MAX bytes).
 */
RK_INLINE rank_status_t rk_dtype_span(const char *call, rank_dtype_t dtype, int64_t count, size_t *bytes)
{
    uint64_t in_class = dtype - RK_HANDLE_CLASS(RANK_BYTE);
    int64_t n;

    if (rk_unlikely(in_class >= RK_DTYPE_COUNT << 8))
        return rk_arg_error(RANK_ERR_DTYPE, call, "dtype %#llx is none", (unsigned long long)dtype);
    if (rk_likely((uint64_t)count <= RK_SPAN_MAX >> 8)) { /* fits in any case */
        *bytes = (size_t)count * (uint8_t)in_class;
        return RANK_OK;
    }
    if (rk_unlikely(count < 0))
        return rk_arg_error(RANK_ERR_COUNT, call, "count %lld is negative", (long long)count);
    if (rk_unlikely(__builtin_mul_overflow(count, rk_dtype_bytes(dtype), &n) || n > RK_SPAN_MAX))
        return rk_arg_error(RANK_ERR_COUNT, call, "count %lld is more than memory can hold", (long long)count);
    *bytes = (size_t)n;
    return RANK_OK;
}

#endif

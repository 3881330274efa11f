/* SPDX-License-Identifier: BSD-3-Clause */
/* dtype.h: convert counts of datatypes into bytes. */
#ifndef RK_DATA_DTYPE_H
#define RK_DATA_DTYPE_H

#include "lib/base/arg_error.h"
#include "lib/base/compiler.h"
#include "lib/rank.h"

#include <stdbool.h>

/*
 * Parts of a predefined datatype or operation: see rank/types.h. Tables are indexed by the index.
 *
 * A datatype of rank_dtype_create has its size in bits 0 to 19, less one, and the class RK_DTYPE_BLOB. Its index in the
 * table of dtype.c is in bits 32 to 47. Bits 20 to 23 and 48 to 63 are its generation. So a checked one needs no lookup,
 * and the operations that use it no reference.
 */
#define RK_HANDLE_INDEX(handle) ((unsigned)((handle) >> 8) & 0xffff)
#define RK_HANDLE_CLASS(handle) ((handle) & ~(uint64_t)0xffffff)
enum { RK_DTYPE_COUNT = RK_HANDLE_INDEX(RANK_PAIR_F64) + 1, RK_OP_COUNT = RK_HANDLE_INDEX(RANK_MAXLOC) + 1 };

#define RK_DTYPE_BLOB ((rank_dtype_t)0x02000000)
#define RK_BLOB_MAX (1ll << 20)

RK_INLINE bool rk_dtype_is_predefined(rank_dtype_t dtype)
{
    return dtype - RK_HANDLE_CLASS(RANK_BYTE) < RK_DTYPE_COUNT << 8;
}

RK_INLINE bool rk_op_is_predefined(rank_op_t op)
{
    return op - RK_HANDLE_CLASS(RANK_SUM) < RK_OP_COUNT << 8;
}

/* Bytes of an element of a valid datatype. */
RK_INLINE uint32_t rk_dtype_bytes(rank_dtype_t dtype)
{
    return rk_likely(rk_dtype_is_predefined(dtype)) ? (uint8_t)dtype : (uint32_t)(dtype & (RK_BLOB_MAX - 1)) + 1;
}

/* Is it a datatype of rank_dtype_create that has not been freed? Takes a lock. */
RK_COLD bool rk_dtype_is_blob(rank_dtype_t dtype);
/* A datatype that any rank can compare with its own: it stands for all blobs of that size. */
RK_INLINE rank_dtype_t rk_dtype_alike(rank_dtype_t dtype)
{
    return rk_dtype_is_predefined(dtype) ? dtype : RK_DTYPE_BLOB | (dtype & (RK_BLOB_MAX - 1));
}

/* Maximum bytes of a call: beyond any memory, with margin for headers and offsets. */
#define RK_SPAN_MAX (1ll << 62)

/* The part of the next function for other datatypes than predefined ones. */
RK_COLD rank_status_t rk_dtype_span_blob(const char *call, rank_dtype_t dtype, int64_t count, size_t *bytes);

/*
 * Size in bytes of count elements, for the public function call. RANK_ERR_DTYPE, or RANK_ERR_COUNT (negative, or
 * more than RK_SPAN_MAX bytes).
 */
RK_INLINE rank_status_t rk_dtype_span(const char *call, rank_dtype_t dtype, int64_t count, size_t *bytes)
{
    uint64_t in_class = dtype - RK_HANDLE_CLASS(RANK_BYTE);
    int64_t n;

    if (rk_unlikely(in_class >= RK_DTYPE_COUNT << 8))
        return rk_dtype_span_blob(call, dtype, count, bytes);
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

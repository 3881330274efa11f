/* dtype.h: the sizes of datatypes, for whoever turns counts into bytes. */
#ifndef RK_DATA_DTYPE_H
#define RK_DATA_DTYPE_H

#include "lib/base/compiler.h"
#include "lib/rank.h"

extern const uint8_t rk_dtype_bytes[RANK_DTYPE_COUNT];

/* The most that one call may name: far beyond any memory, and with room for sums of headers and offsets. */
#define RK_SPAN_MAX (1ll << 62)

/* count elements in bytes; RANK_ERR_DTYPE or RANK_ERR_COUNT (negative, or more than RK_SPAN_MAX bytes). */
RK_INLINE rank_status_t rk_dtype_span(rank_dtype_t dtype, int64_t count, size_t *bytes)
{
    int64_t n;

    if (rk_unlikely((unsigned)dtype >= RANK_DTYPE_COUNT))
        return RANK_ERR_DTYPE;
    if (rk_likely((uint64_t)count <= RK_SPAN_MAX >> 8)) { /* times a byte: no need to look */
        *bytes = (size_t)count * rk_dtype_bytes[dtype];
        return RANK_OK;
    }
    if (rk_unlikely(count < 0 || __builtin_mul_overflow(count, rk_dtype_bytes[dtype], &n) || n > RK_SPAN_MAX))
        return RANK_ERR_COUNT;
    *bytes = (size_t)n;
    return RANK_OK;
}

#endif

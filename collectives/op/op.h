/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op.h: reduce arrays: dst[i] = a[i] op b[i].
 *
 * One function a valid pair of operation and datatype: plain loops that vectorize. dst may be a or b; any
 * alignment.
 */
#ifndef RK_COLL_OP_H
#define RK_COLL_OP_H

#include "lib/data/dtype.h"

#include <stdatomic.h>

typedef void (*rk_op_fn)(void *dst, const void *a, const void *b, size_t n);

/* Kernels of a family: NULL if the operation is not defined. AVG is listed as SUM. */
struct rk_op_row {
    _Atomic(rk_op_fn) fn[RK_OP_COUNT]; /* kernel_set.h replaces some */
};

extern struct rk_op_row rk_op_table[RK_DTYPE_COUNT]; /* by index */

/* NULL if not defined, or if the operation or the datatype is none of the predefined ones. */
RK_INLINE rk_op_fn rk_op_kernel(rank_op_t op, rank_dtype_t dtype)
{
    if (!rk_op_is_predefined(op) || !rk_dtype_is_predefined(dtype))
        return NULL;
    return atomic_load_explicit(&rk_op_table[RK_HANDLE_INDEX(dtype)].fn[RK_HANDLE_INDEX(op)], memory_order_relaxed);
}

/* An operation of rank_op_create. Its memory lives until the last reference to it ends. */
struct rk_user_op;

/* How a call reduces. */
struct rk_reducer {
    rk_op_fn fn; /* unused with user */
    rank_dtype_t dtype;
    const struct rk_user_op *user; /* NULL: a predefined operation; else a reference */
    void *temp;  /* rk_user_op_temp elements, for user */
};

/* rk_reduce and rk_reduce_many by an operation of the program. */
void rk_reduce_user(const struct rk_reducer *r, void *dst, const void *a, const void *b, size_t n);
void rk_reduce_many_user(const struct rk_reducer *r, void *dst, const void *const *src, int k, size_t n);

/* dst = a op b, for n elements; dst may be a or b. */
RK_INLINE void rk_reduce(const struct rk_reducer *r, void *dst, const void *a, const void *b, size_t n)
{
    if (rk_unlikely(r->user != NULL))
        rk_reduce_user(r, dst, a, b, n);
    else
        r->fn(dst, a, b, n);
}

/* Is op one of rank_op_create that has not been freed? Sets *commutative if so. Takes a lock. */
RK_COLD bool rk_user_op_check(rank_op_t op, bool *commutative);
/* A reference to it; NULL: freed. */
const struct rk_user_op *rk_user_op_take(rank_op_t op);
/* End a reference. No-op if NULL. */
void rk_user_op_drop(const struct rk_user_op *user);
/* Elements of a reducer's temporary memory, for elements of that many bytes. */
size_t rk_user_op_temp(size_t elem);

/*
 * dst = src[0] op src[1] ... op src[k - 1] for n elements, from left to right; k >= 2. dst may be one of the sources, and
 * overlaps no other memory. A sum of 16-bit floats is taken in F32 and rounded once.
 */
void rk_reduce_many(const struct rk_reducer *r, void *dst, const void *const *src, int k, size_t n);

/* LAND, LOR or LXOR: the result is 0 or 1. */
RK_INLINE bool rk_op_is_logical(rank_op_t op)
{
    return op == RANK_LAND || op == RANK_LOR || op == RANK_LXOR;
}

/* Set each of n elements that is not 0 to 1, in memory of any kind. */
rank_status_t rk_op_make_logical(rank_dtype_t dtype, void *buf, size_t n);

/* Last part of AVG: divide n sums by the number of ranks, with one rounding. F16: the sums of scaled inputs. */
void rk_op_divide(rank_dtype_t dtype, void *dst, size_t n, int by);

/* AVG of this type needs inputs that are scaled before they are summed (average.c). */
RK_INLINE bool rk_op_scales(rank_dtype_t dtype)
{
    return dtype == RANK_F16;
}

/* dst = src divided by a power of two, so that by F16 sum without overflow. dst may be src. */
void rk_op_scale(void *dst, const void *src, size_t n, int by);

/* Convert n numbers of F16 or BF16; narrow divides each by a number first. */
void rk_op_widen(rank_dtype_t dtype, float *dst, const void *src, size_t n);
void rk_op_narrow(rank_dtype_t dtype, void *dst, const float *src, size_t n, int by);

/* The families; each fills a row of the table in op.c. */
#define RK_OP_DECLARE(type, op) void rk_op_##type##_##op(void *, const void *, const void *, size_t)
#define RK_OP_DECLARE_BITS(type)                                                                   \
    RK_OP_DECLARE(type, band);                                                                     \
    RK_OP_DECLARE(type, bor);                                                                      \
    RK_OP_DECLARE(type, bxor)
#define RK_OP_DECLARE_ARITH(type)                                                                  \
    RK_OP_DECLARE(type, sum);                                                                      \
    RK_OP_DECLARE(type, prod);                                                                     \
    RK_OP_DECLARE(type, min);                                                                      \
    RK_OP_DECLARE(type, max)
#define RK_OP_DECLARE_INT(type)                                                                    \
    RK_OP_DECLARE_ARITH(type);                                                                     \
    RK_OP_DECLARE_BITS(type);                                                                      \
    RK_OP_DECLARE(type, land);                                                                     \
    RK_OP_DECLARE(type, lor);                                                                      \
    RK_OP_DECLARE(type, lxor)
#define RK_OP_DECLARE_LOC(type)                                                                    \
    RK_OP_DECLARE(type, minloc);                                                                   \
    RK_OP_DECLARE(type, maxloc)

RK_OP_DECLARE_INT(int8);
RK_OP_DECLARE_INT(int16);
RK_OP_DECLARE_INT(int32);
RK_OP_DECLARE_INT(int64);
RK_OP_DECLARE_INT(uint8);
RK_OP_DECLARE_INT(uint16);
RK_OP_DECLARE_INT(uint32);
RK_OP_DECLARE_INT(uint64);
RK_OP_DECLARE_ARITH(f16);
RK_OP_DECLARE_ARITH(bf16);
RK_OP_DECLARE_ARITH(f32);
RK_OP_DECLARE_ARITH(f64);
RK_OP_DECLARE(c32, sum);
RK_OP_DECLARE(c32, prod);
RK_OP_DECLARE(c64, sum);
RK_OP_DECLARE(c64, prod);
RK_OP_DECLARE_LOC(pair_int32);
RK_OP_DECLARE_LOC(pair_int64);
RK_OP_DECLARE_LOC(pair_f32);
RK_OP_DECLARE_LOC(pair_f64);

#endif

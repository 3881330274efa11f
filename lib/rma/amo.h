/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * amo.h: update memory atomically by the CPU, for mapped memory and at the owner.
 *
 * Updates without a result have cases of their own: processors execute them without a loop.
 */
#ifndef RK_RMA_AMO_H
#define RK_RMA_AMO_H

#include "lib/data/dtype.h"
#include "lib/rma/rma_wire.h"

#include <string.h>

#define RK_AMO_LOOP(type, at, old, expr)                                                           \
    type old = __atomic_load_n((type *)(at), __ATOMIC_RELAXED);                                    \
    while (!__atomic_compare_exchange_n((type *)(at), &(old), (type)(expr), 1, __ATOMIC_ACQ_REL,   \
                                        __ATOMIC_RELAXED))                                         \
        rk_cpu_relax();

RK_INLINE uint32_t rk_f32_sum(uint32_t a, uint32_t b)
{
    float x, y;

    memcpy(&x, &a, sizeof(x));
    memcpy(&y, &b, sizeof(y));
    x += y;
    memcpy(&a, &x, sizeof(a));
    return a;
}

RK_INLINE uint64_t rk_f64_sum(uint64_t a, uint64_t b)
{
    double x, y;

    memcpy(&x, &a, sizeof(x));
    memcpy(&y, &b, sizeof(y));
    x += y;
    memcpy(&a, &x, sizeof(a));
    return a;
}

#define RK_AMO_CASES(type)                                                                         \
    case RANK_AMO_ADD:                                                                             \
        __atomic_add_fetch((type *)at, (type)v, __ATOMIC_ACQ_REL);                                 \
        return 0;                                                                                  \
    case RANK_AMO_FETCH_ADD:                                                                       \
        return __atomic_fetch_add((type *)at, (type)v, __ATOMIC_ACQ_REL);                          \
    case RANK_AMO_SWAP:                                                                            \
        return __atomic_exchange_n((type *)at, (type)v, __ATOMIC_ACQ_REL);                         \
    case RANK_AMO_AND:                                                                             \
        __atomic_and_fetch((type *)at, (type)v, __ATOMIC_ACQ_REL);                                 \
        return 0;                                                                                  \
    case RANK_AMO_FETCH_AND:                                                                       \
        return __atomic_fetch_and((type *)at, (type)v, __ATOMIC_ACQ_REL);                          \
    case RANK_AMO_OR:                                                                              \
        __atomic_or_fetch((type *)at, (type)v, __ATOMIC_ACQ_REL);                                  \
        return 0;                                                                                  \
    case RANK_AMO_FETCH_OR:                                                                        \
        return __atomic_fetch_or((type *)at, (type)v, __ATOMIC_ACQ_REL);                           \
    case RANK_AMO_XOR:                                                                             \
        __atomic_xor_fetch((type *)at, (type)v, __ATOMIC_ACQ_REL);                                 \
        return 0;                                                                                  \
    case RANK_AMO_FETCH_XOR:                                                                       \
        return __atomic_fetch_xor((type *)at, (type)v, __ATOMIC_ACQ_REL);                          \
    default: { /* RK_AMO_CAS */                                                                    \
        type old = (type)compare;                                                                  \
        __atomic_compare_exchange_n((type *)at, &old, (type)v, 0, __ATOMIC_ACQ_REL,                \
                                    __ATOMIC_ACQUIRE);                                             \
        return old;                                                                                \
    }

RK_INLINE uint64_t rk_amo_32(void *at, unsigned amo, uint64_t v, uint64_t compare)
{
    switch (amo) {
        RK_AMO_CASES(uint32_t)
    }
}

RK_INLINE uint64_t rk_amo_64(void *at, unsigned amo, uint64_t v, uint64_t compare)
{
    switch (amo) {
        RK_AMO_CASES(uint64_t)
    }
}

/* Requires rk_amo_defined(amo, dtype) and aligned at. Returns the previous value if wanted. */
RK_INLINE uint64_t rk_amo_apply(void *at, unsigned amo, unsigned dtype, uint64_t v,
                                uint64_t compare)
{
    if (rk_unlikely(dtype == RK_HANDLE_INDEX(RANK_F32) && amo <= RANK_AMO_FETCH_ADD)) {
        RK_AMO_LOOP(uint32_t, at, old, rk_f32_sum(old, (uint32_t)v))
        return old;
    }
    if (rk_unlikely(dtype == RK_HANDLE_INDEX(RANK_F64) && amo <= RANK_AMO_FETCH_ADD)) {
        RK_AMO_LOOP(uint64_t, at, old, rk_f64_sum(old, v))
        return old;
    }
    if (dtype == RK_HANDLE_INDEX(RANK_INT64) || dtype == RK_HANDLE_INDEX(RANK_UINT64) || dtype == RK_HANDLE_INDEX(RANK_F64))
        return rk_amo_64(at, amo, v, compare);
    return rk_amo_32(at, amo, v, compare);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* op_v4.c: reduce arrays with AVX-512 (x86-64-v4), without fused operations. */
#include "collectives/op/float16.h"
#include "collectives/op/kernel_set.h"

#if defined(__x86_64__)
#include <immintrin.h>

static bool v4_runs(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl")
#endif

#define RK_VEC 64
#define RK_SET rk_kernel_set_v4
#define RK_SET_RUNS v4_runs
#define RK_SET_NAME "x86-64-v4"
#define RK_SET_HALVES

/* y < x ? y : x, which is x if one is a NaN; y where that is one. */
#define OR_NAN(op, name, x, y) _mm512_mask_##op##_##name((y), _mm512_cmp_##name##_mask((y), (y), _CMP_ORD_Q), (y), (x))
#define MIN_F32(x, y) ((vec_f32)OR_NAN(min, ps, (__m512)(x), (__m512)(y)))
#define MAX_F32(x, y) ((vec_f32)OR_NAN(max, ps, (__m512)(x), (__m512)(y)))
#define MIN_F64(x, y) ((vec_f64)OR_NAN(min, pd, (__m512d)(x), (__m512d)(y)))
#define MAX_F64(x, y) ((vec_f64)OR_NAN(max, pd, (__m512d)(x), (__m512d)(y)))
#define MIN_INT32(x, y) ((vec_int32)_mm512_min_epi32((__m512i)(x), (__m512i)(y)))
#define MAX_INT32(x, y) ((vec_int32)_mm512_max_epi32((__m512i)(x), (__m512i)(y)))
#define MIN_INT64(x, y) ((vec_int64)_mm512_min_epi64((__m512i)(x), (__m512i)(y)))
#define MAX_INT64(x, y) ((vec_int64)_mm512_max_epi64((__m512i)(x), (__m512i)(y)))

RK_INLINE __m512 load_f16(const void *from)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256(from));
}

RK_INLINE void store_f16(void *to, __m512 v)
{
    _mm256_storeu_si256(to, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

RK_INLINE __m512 load_bf16(const void *from)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(from)), 16));
}

/* As rk_f32_to_bf16. */
RK_INLINE void store_bf16(void *to, __m512 v)
{
    __m512i x = _mm512_castps_si512(v), high = _mm512_srli_epi32(x, 16);
    __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(x, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
    __m512i nan = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
    __m512i r = _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), nan);

    _mm256_storeu_si256(to, _mm512_cvtepi32_epi16(r));
}

RK_INLINE void store2_f16(char *to, __m512 a, __m512 b)
{
    store_f16(to, a);
    store_f16(to + 32, b);
}

RK_INLINE void store2_bf16(char *to, __m512 a, __m512 b)
{
    store_bf16(to, a);
    store_bf16(to + 32, b);
}

#include "collectives/op/op_vector.h"

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif

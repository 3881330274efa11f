/* SPDX-License-Identifier: BSD-3-Clause */
/* op_v3.c: reduce arrays with AVX2 and F16C (x86-64-v3), without fused operations. */
#include "collectives/op/float16.h"
#include "collectives/op/kernel_set.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

static bool v3_runs(void)
{
    unsigned a, b, c, d;

    /* clang has no name for F16C. AVX2 stands for the system's support of the registers. */
    return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,f16c")
#endif

#define RK_VEC 32
#define RK_SET rk_kernel_set_v3
#define RK_SET_RUNS v3_runs
#define RK_SET_NAME "x86-64-v3"
#define RK_SET_HALVES

/* y < x ? y : x, which is x if one is a NaN; where y is one, all bits are set, which is a NaN too. */
#define NAN_OR(name, y, r) _mm256_or_##name((r), _mm256_cmp_##name((y), (y), _CMP_UNORD_Q))
#define MIN_F32(x, y) ((vec_f32)NAN_OR(ps, (__m256)(y), _mm256_min_ps((__m256)(y), (__m256)(x))))
#define MAX_F32(x, y) ((vec_f32)NAN_OR(ps, (__m256)(y), _mm256_max_ps((__m256)(y), (__m256)(x))))
#define MIN_F64(x, y) ((vec_f64)NAN_OR(pd, (__m256d)(y), _mm256_min_pd((__m256d)(y), (__m256d)(x))))
#define MAX_F64(x, y) ((vec_f64)NAN_OR(pd, (__m256d)(y), _mm256_max_pd((__m256d)(y), (__m256d)(x))))
#define MIN_INT32(x, y) ((vec_int32)_mm256_min_epi32((__m256i)(x), (__m256i)(y)))
#define MAX_INT32(x, y) ((vec_int32)_mm256_max_epi32((__m256i)(x), (__m256i)(y)))

RK_INLINE __m256 load_f16(const void *from)
{
    return _mm256_cvtph_ps(_mm_loadu_si128(from));
}

RK_INLINE void store_f16(void *to, __m256 v)
{
    _mm_storeu_si128(to, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

RK_INLINE __m256 load_bf16(const void *from)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(from)), 16));
}

/* To nearest even, into the lower halves. Not for NaN. */
RK_INLINE __m256i round_bf16(__m256 v)
{
    __m256i x = _mm256_castps_si256(v), odd = _mm256_and_si256(_mm256_srli_epi32(x, 16), _mm256_set1_epi32(1));

    return _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(x, _mm256_set1_epi32(0x7fff)), odd), 16);
}

/* As rk_f32_to_bf16. */
RK_INLINE void store_bf16(void *to, __m256 v)
{
    __m256i nan = _mm256_or_si256(_mm256_srli_epi32(_mm256_castps_si256(v), 16), _mm256_set1_epi32(0x40));
    __m256i r = _mm256_blendv_epi8(round_bf16(v), nan, _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q)));

    _mm_storeu_si128(to, _mm_packus_epi32(_mm256_castsi256_si128(r), _mm256_extracti128_si256(r, 1)));
}

/* Packing works within 128 bits: the permutation puts the four parts in order. */
RK_INLINE void store2_bf16(char *to, __m256 a, __m256 b)
{
    if (rk_unlikely(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q)))) {
        store_bf16(to, a);
        store_bf16(to + 16, b);
    } else {
        __m256i r = _mm256_packus_epi32(round_bf16(a), round_bf16(b));
        _mm256_storeu_si256((void *)to, _mm256_permute4x64_epi64(r, 0xd8));
    }
}

RK_INLINE void store2_f16(char *to, __m256 a, __m256 b)
{
    store_f16(to, a);
    store_f16(to + 16, b);
}

#include "collectives/op/op_vector.h"

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op_vector.h: reduce several arrays at once, with vectors of RK_VEC bytes.
 *
 * Included by op_base.c, op_v3.c and op_v4.c only, which define RK_VEC, RK_SET and the operations that need
 * instructions of their own. A loop keeps four vectors in registers while it reads all sources.
 */
#include "collectives/op/float16.h"
#include "collectives/op/kernel_set.h"

typedef float vec_f32 __attribute__((vector_size(RK_VEC)));
typedef double vec_f64 __attribute__((vector_size(RK_VEC)));
typedef int32_t vec_int32 __attribute__((vector_size(RK_VEC)));
typedef int64_t vec_int64 __attribute__((vector_size(RK_VEC)));
typedef uint32_t vec_uint32 __attribute__((vector_size(RK_VEC)));
typedef uint64_t vec_uint64 __attribute__((vector_size(RK_VEC)));

#define VEC_LOAD(name, type)                                                                       \
    RK_INLINE type name(const void *from)                                                          \
    {                                                                                              \
        type v;                                                                                    \
        memcpy(&v, from, sizeof(v));                                                               \
        return v;                                                                                  \
    }
VEC_LOAD(load_f32, vec_f32)
VEC_LOAD(load_f64, vec_f64)
VEC_LOAD(load_int32, vec_int32)
VEC_LOAD(load_int64, vec_int64)
VEC_LOAD(load_uint32, vec_uint32)
VEC_LOAD(load_uint64, vec_uint64)

typedef uint16_t loose_half __attribute__((may_alias, aligned(1)));

#define STORE(to, v) memcpy(to, &(v), sizeof(v))
#define STORE2(to, v, w) (STORE(to, v), STORE((to) + sizeof(v), w))

#define ADD(x, y) ((x) + (y))
#define MULTIPLY(x, y) ((x) * (y))
/* A NaN is the result, for numbers of floating point. */
#define LESSER(x, y) ((((y) < (x)) | ((y) != (y))) ? (y) : (x))
#define GREATER(x, y) ((((y) > (x)) | ((y) != (y))) ? (y) : (x))
#define AS_IT_IS(x) (x)
/* C has no conditional operator for vectors. */
#define VEC_SELECT(type, mask, x, y) ((type)(((mask) & (y)) | (~(mask) & (x))))
#ifndef MIN_INT32
#define MIN_INT32(x, y) VEC_SELECT(vec_int32, (y) < (x), x, y)
#define MAX_INT32(x, y) VEC_SELECT(vec_int32, (y) > (x), x, y)
#endif
#ifndef MIN_INT64
#define MIN_INT64(x, y) VEC_SELECT(vec_int64, (y) < (x), x, y)
#define MAX_INT64(x, y) VEC_SELECT(vec_int64, (y) > (x), x, y)
#endif
#ifndef MIN_F32
#define MIN_F32(x, y) VEC_SELECT(vec_f32, ((y) < (x)) | ((y) != (y)), (vec_int32)(x), (vec_int32)(y))
#define MAX_F32(x, y) VEC_SELECT(vec_f32, ((y) > (x)) | ((y) != (y)), (vec_int32)(x), (vec_int32)(y))
#define MIN_F64(x, y) VEC_SELECT(vec_f64, ((y) < (x)) | ((y) != (y)), (vec_int64)(x), (vec_int64)(y))
#define MAX_F64(x, y) VEC_SELECT(vec_f64, ((y) > (x)) | ((y) != (y)), (vec_int64)(x), (vec_int64)(y))
#endif

/* Fewer elements than a vector are left: a loop for more would only be longer. */
#if defined(__clang__)
#define ONE_BY_ONE _Pragma("clang loop vectorize(disable) unroll(disable)")
#else
#define ONE_BY_ONE
#endif

/*
 * Define <name>_many and <name>_pair. mem: type of an element in memory; acc: of one in computing; up and down
 * convert. v...: the same for vectors; store2 stores two.
 */
#define KERNEL(name, mem, acc, up, down, op, vec, vload, vstore, store2, vop)                      \
    RK_INLINE void name##_loop(char *dst, const void *const *src, int k, size_t n)                 \
    {                                                                                              \
        enum { STEP = sizeof(vec) / sizeof(acc), WIDTH = STEP * sizeof(mem) };                     \
        size_t i = 0, bytes = n * sizeof(mem);                                                     \
        for (; i + 4 * WIDTH <= bytes; i += 4 * WIDTH) {                                           \
            const char *p = (const char *)src[0] + i;                                              \
            vec a = vload(p), b = vload(p + WIDTH), c = vload(p + 2 * WIDTH), d = vload(p + 3 * WIDTH); \
            for (int j = 1; j < k; j++) {                                                          \
                p = (const char *)src[j] + i;                                                      \
                a = vop(a, vload(p));                                                              \
                b = vop(b, vload(p + WIDTH));                                                      \
                c = vop(c, vload(p + 2 * WIDTH));                                                  \
                d = vop(d, vload(p + 3 * WIDTH));                                                  \
            }                                                                                      \
            store2(dst + i, a, b);                                                                 \
            store2(dst + i + 2 * WIDTH, c, d);                                                     \
        }                                                                                          \
        for (; i + WIDTH <= bytes; i += WIDTH) {                                                   \
            vec a = vload((const char *)src[0] + i);                                               \
            for (int j = 1; j < k; j++)                                                            \
                a = vop(a, vload((const char *)src[j] + i));                                       \
            vstore(dst + i, a);                                                                    \
        }                                                                                          \
        ONE_BY_ONE                                                                                 \
        for (; i < bytes; i += sizeof(mem)) {                                                      \
            mem x;                                                                                 \
            memcpy(&x, (const char *)src[0] + i, sizeof(x));                                       \
            acc sum = up(x);                                                                       \
            for (int j = 1; j < k; j++) {                                                          \
                memcpy(&x, (const char *)src[j] + i, sizeof(x));                                   \
                acc y = up(x);                                                                     \
                sum = (acc)op(sum, y);                                                             \
            }                                                                                      \
            x = down(sum);                                                                         \
            memcpy(dst + i, &x, sizeof(x));                                                        \
        }                                                                                          \
    }                                                                                              \
    static void name##_many(void *dst, const void *const *src, int k, size_t n)                    \
    {                                                                                              \
        name##_loop(dst, src, k, n);                                                               \
    }                                                                                              \
    KERNEL_PAIR(name)

#ifdef RK_SET_IS_BASE /* the kernels of op.c are the pairs' */
#define KERNEL_PAIR(name)
#define PAIR(type, op) rk_op_##type##_##op
#else
#define KERNEL_PAIR(name)                                                                          \
    static void name##_pair(void *dst, const void *a, const void *b, size_t n)                     \
    {                                                                                              \
        const void *src[2] = {a, b};                                                               \
        name##_loop(dst, src, 2, n);                                                               \
    }
#define PAIR(type, op) PAIR_OF(type, op)
#define PAIR_OF(type, op) type##_##op##_pair
#define uint32_sum_pair int32_sum_pair
#define uint32_prod_pair int32_prod_pair
#define uint64_sum_pair int64_sum_pair
#define uint64_prod_pair int64_prod_pair
#endif

#define PLAIN(name, type, op, vtype, vop) \
    KERNEL(name, type, type, AS_IT_IS, AS_IT_IS, op, vec_##vtype, load_##vtype, STORE, STORE2, vop)
#define ARITHMETIC(name, type, NAME, wide, vwide)                                                  \
    PLAIN(name##_sum, wide, ADD, vwide, ADD)                                                       \
    PLAIN(name##_prod, wide, MULTIPLY, vwide, MULTIPLY)                                            \
    PLAIN(name##_min, type, LESSER, name, MIN_##NAME)                                              \
    PLAIN(name##_max, type, GREATER, name, MAX_##NAME)

ARITHMETIC(f32, float, F32, float, f32)
ARITHMETIC(f64, double, F64, double, f64)
ARITHMETIC(int32, int32_t, INT32, uint32_t, uint32) /* unsigned sums wrap */
ARITHMETIC(int64, int64_t, INT64, uint64_t, uint64)

#ifdef RK_SET_HALVES /* load_f16, load_bf16, store_f16, store_bf16: vectors of float */
#define HALVES(name)                                                                               \
    KERNEL(name##_sum, uint16_t, float, rk_##name##_to_f32, rk_f32_to_##name, ADD, vec_f32, load_##name, store_##name, store2_##name, ADD)
#else
enum { HALVES_PIECE = 512 }; /* sums of a round, in the first cache */

/* The compiler makes vectors of these loops. */
#define HALVES(name)                                                                               \
    static void name##_sum_many(void *dst, const void *const *src, int k, size_t n)                \
    {                                                                                              \
        float sum[HALVES_PIECE];                                                                   \
        for (size_t at = 0, len; at < n; at += len) {                                              \
            const loose_half *p = (const loose_half *)src[0] + at;                                           \
            loose_half *d = (loose_half *)dst + at;                                                          \
            len = n - at < HALVES_PIECE ? n - at : HALVES_PIECE;                                   \
            for (size_t i = 0; i < len; i++)                                                       \
                sum[i] = rk_##name##_to_f32(p[i]);                                                 \
            for (int j = 1; j < k; j++) {                                                          \
                p = (const loose_half *)src[j] + at;                                                    \
                for (size_t i = 0; i < len; i++)                                                   \
                    sum[i] += rk_##name##_to_f32(p[i]);                                            \
            }                                                                                      \
            for (size_t i = 0; i < len; i++)                                                       \
                d[i] = rk_f32_to_##name(sum[i]);                                                   \
        }                                                                                          \
    }
#endif
HALVES(f16)
HALVES(bf16)

/* x is finite and r, of the same sign, is not as a half: the greatest one instead. */
RK_INLINE float finite_half(float x, float r, float most)
{
    float near = r < 0 ? -most : most;
    bool beyond = (r > most && x <= most) || (r < -most && x >= -most);

    return beyond ? near : r;
}

#ifdef RK_SET_HALVES
RK_INLINE vec_f32 finite_halves(vec_f32 x, vec_f32 r, float greatest)
{
    vec_f32 most = (vec_f32){0} + greatest;

    r = VEC_SELECT(vec_f32, (vec_int32)(r > most) & (vec_int32)(x <= most), (vec_int32)r, (vec_int32)most);
    return VEC_SELECT(vec_f32, (vec_int32)(r < -most) & (vec_int32)(x >= -most), (vec_int32)r, (vec_int32)-most);
}

/* Whole vectors; i stays behind them. load and store are of vectors of float. */
#define HALF_VECTORS(from, load, to, store, ...)                                                   \
    for (; i + RK_VEC / 4 <= n; i += RK_VEC / 4) {                                                 \
        vec_f32 v = load(from + i);                                                                \
        v = __VA_ARGS__;                                                                           \
        store(to + i, v);                                                                          \
    }
#define THE_REST ONE_BY_ONE
#else
#define HALF_VECTORS(from, load, to, store, ...)
#define THE_REST RK_OP_PRAGMA
#endif

#define HALF_CONVERSIONS(name, most)                                                               \
    static void name##_widen(float *dst, const void *src, size_t n)                                \
    {                                                                                              \
        const loose_half *s = src;                                                                 \
        size_t i = 0;                                                                              \
        HALF_VECTORS(s, load_##name, dst, STORE, v)                                                \
        THE_REST                                                                                   \
        for (; i < n; i++)                                                                         \
            dst[i] = rk_##name##_to_f32(s[i]);                                                     \
    }                                                                                              \
    static void name##_narrow(void *dst, const float *src, size_t n, float by)                     \
    {                                                                                              \
        loose_half *d = dst;                                                                       \
        size_t i = 0;                                                                              \
        HALF_VECTORS(src, load_f32, d, store_##name, v / by)                                       \
        THE_REST                                                                                   \
        for (; i < n; i++)                                                                         \
            d[i] = rk_f32_to_##name(src[i] / by);                                                  \
    }                                                                                              \
    static void name##_scale(void *dst, const void *src, size_t n, float times, float by)          \
    {                                                                                              \
        const loose_half *s = src;                                                                 \
        loose_half *d = dst;                                                                       \
        size_t i = 0;                                                                              \
        HALF_VECTORS(s, load_##name, d, store_##name, finite_halves(v, v * times / by, most))      \
        THE_REST                                                                                   \
        for (; i < n; i++) {                                                                       \
            float x = rk_##name##_to_f32(s[i]);                                                    \
            d[i] = rk_f32_to_##name(finite_half(x, x * times / by, most));                         \
        }                                                                                          \
    }

HALF_CONVERSIONS(f16, 65504.0f)
HALF_CONVERSIONS(bf16, __builtin_inff())

#define AT(name) RK_HANDLE_INDEX(RANK_##name)
#define ROW(type) {PAIR(type, sum), PAIR(type, prod), PAIR(type, min), PAIR(type, max)}
#define MANY(type) {type##_sum_many, type##_prod_many, type##_min_many, type##_max_many}

const struct rk_kernel_set RK_SET = {
    .name = RK_SET_NAME,
    .runs = RK_SET_RUNS,
    .pair = {
        [AT(F32)] = ROW(f32),
        [AT(F64)] = ROW(f64),
        [AT(INT32)] = ROW(int32),
        [AT(INT64)] = ROW(int64),
        [AT(UINT32)] = {PAIR(uint32, sum), PAIR(uint32, prod)},
        [AT(UINT64)] = {PAIR(uint64, sum), PAIR(uint64, prod)},
        [AT(F16)] = {PAIR(f16, sum)},
        [AT(BF16)] = {PAIR(bf16, sum)},
    },
    .many = {
        [AT(F32)] = MANY(f32),
        [AT(F64)] = MANY(f64),
        [AT(INT32)] = MANY(int32),
        [AT(INT64)] = MANY(int64),
        [AT(UINT32)] = {int32_sum_many, int32_prod_many},
        [AT(UINT64)] = {int64_sum_many, int64_prod_many},
        [AT(F16)] = {f16_sum_many},
        [AT(BF16)] = {bf16_sum_many},
    },
    .f16 = {f16_widen, f16_narrow, f16_scale},
    .bf16 = {bf16_widen, bf16_narrow, bf16_scale},
};

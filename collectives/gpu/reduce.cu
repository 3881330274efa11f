/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reduce.cu: reduce up to eight arrays in device memory, in one pass.
 *
 * One kernel for each type and operation of collectives/op, rk_reduce_TYPE_OP. Where the sign makes no difference, the
 * signed types use the kernel of the unsigned one. The results have the bits of rk_reduce_many, except the payload of a
 * NaN and, where the CPU fuses multiply and add, complex products: 16-bit floats are summed in F32 and rounded once;
 * their products are rounded each time.
 *
 * Threads load and store 16 bytes. Elements before the first aligned one of dst, and behind the last, go one by one. A
 * source that is not aligned where dst is goes by words of 4 bytes, or by bytes.
 */
#include "lib/mem/cuda/cuda_reduction.h"

#ifdef RK_CUDA_SHIM /* C++ for the tests' stand-in of the driver: the host's conversions */
#define RK_BASE_COMPILER_H
#define RK_INLINE static inline
#include "collectives/op/float16.h"
#else
#include <cstdint>
#include <cstring>
#define STANDIN_KERNEL(name)
#endif

#ifdef RK_CUDA_SHIM
#define UNROLL
#else
#define UNROLL _Pragma("unroll")
#endif
#define ON static __device__ __forceinline__

/* ----------------------------------------------------------------- types */

struct c32 {
    float re, im;
};
struct c64 {
    double re, im;
};
template <typename V, typename I> struct pair {
    V value;
    I index;
};

struct f16 {
#ifdef RK_CUDA_SHIM
    ON float up(uint16_t x) { return rk_f16_to_f32(x); }
    ON uint16_t down(float x) { return rk_f32_to_f16(x); }
#else
    ON float up(uint16_t x)
    {
        float y;
        asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
        return y;
    }
    ON uint16_t down(float x)
    {
        uint16_t y;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
        return y;
    }
#endif
};

struct bf16 {
    ON float up(uint16_t x) { return __uint_as_float((unsigned)x << 16); }
#ifdef RK_CUDA_SHIM
    ON uint16_t down(float x) { return rk_f32_to_bf16(x); }
#else
    ON uint16_t down(float x)
    {
        uint16_t y;
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
        return y;
    }
#endif
};

/* ----------------------------------------------------------------- operations */

namespace op {


/* False for integers. Of a minimum or maximum a NaN is the result, of pairs the one with the lowest index. */
template <typename T> ON bool is_nan(T v)
{
    return v != v;
}

template <typename T> ON bool takes_second(bool before, T x, T y)
{
    if (is_nan(x.value) || is_nan(y.value))
        return is_nan(y.value) && (!is_nan(x.value) || y.index < x.index);
    return before || (y.value == x.value && y.index < x.index);
}

/* Each has types of an element in memory and of an accumulator, their conversions, and the operation. */
#define OPERATION(name, T, expr)                                                                   \
    template <typename T> struct name {                                                            \
        typedef T elem;                                                                            \
        typedef T acc;                                                                             \
        ON T up(T x) { return x; }                                                                 \
        ON T down(T x, int) { return x; }                                                          \
        ON T with(T x, T y) { return expr; }                                                       \
    };

OPERATION(sum, T, (T)(x + y))
OPERATION(prod, T, (T)(1u * x * y)) /* in unsigned numbers overflow is defined */
OPERATION(min, T, y < x || is_nan(y) ? y : x)
OPERATION(max, T, y > x || is_nan(y) ? y : x)
OPERATION(land, T, (T)((x != 0) & (y != 0)))
OPERATION(lor, T, (T)((x | y) != 0))
OPERATION(lxor, T, (T)((x != 0) ^ (y != 0)))
OPERATION(band, T, (T)(x & y))
OPERATION(bor, T, (T)(x | y))
OPERATION(bxor, T, (T)(x ^ y))
OPERATION(prod_float, T, x * y)
OPERATION(prod_complex, T, (T{x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}))
OPERATION(minloc, T, takes_second(y.value < x.value, x, y) ? y : x)
OPERATION(maxloc, T, takes_second(y.value > x.value, x, y) ? y : x)

template <typename T> struct sum_float : sum<T> {
    ON T down(T x, int by) { return by ? x / (T)by : x; }
};

template <typename T, typename F> struct sum_complex {
    typedef T elem;
    typedef T acc;
    ON T up(T x) { return x; }
    ON T down(T x, int by) { return by ? T{x.re / (F)by, x.im / (F)by} : x; }
    ON T with(T x, T y) { return T{x.re + y.re, x.im + y.im}; }
};

template <typename H> struct sum_half {
    typedef uint16_t elem;
    typedef float acc;
    ON float up(uint16_t x) { return H::up(x); }
    ON uint16_t down(float x, int by) { return H::down(by ? x / (float)by : x); }
    ON float with(float x, float y) { return x + y; }
};

/* An element is the accumulator: each product is rounded. */
#define HALF_OPERATION(name, expr)                                                                 \
    template <typename H> struct name : band<uint16_t> {                                           \
        ON uint16_t with(uint16_t x, uint16_t y) { return expr; }                                  \
    };

HALF_OPERATION(prod_half, H::down(H::up(x) * H::up(y)))
HALF_OPERATION(min_half, H::up(y) < H::up(x) || is_nan(H::up(y)) ? y : x)
HALF_OPERATION(max_half, H::up(y) > H::up(x) || is_nan(H::up(y)) ? y : x)

}

/* ----------------------------------------------------------------- memory */

ON const char *at_byte(const void *p, size_t i) { return (const char *)p + i; }
ON unsigned misaligned(const void *p, unsigned to) { return (unsigned)((uintptr_t)p % to); }

/* Registers of a chunk of 16 bytes. */
union chunk {
    uint4 all;
    unsigned words[4];
    unsigned char bytes[16];
};

/* From any address. */
ON uint4 load_any(const char *p)
{
    union chunk c;

    if (misaligned(p, 16) == 0) {
        c.all = *(const uint4 *)p;
    } else if (misaligned(p, 4) == 0) {
        for (int i = 0; i < 4; i++)
            c.words[i] = ((const unsigned *)p)[i];
    } else {
        for (int i = 0; i < 16; i++)
            c.bytes[i] = ((const unsigned char *)p)[i];
    }
    return c.all;
}

ON void store_any(char *p, uint4 value)
{
    union chunk c;

    c.all = value;
    if (misaligned(p, 16) == 0) {
        *(uint4 *)p = value;
    } else {
        for (int i = 0; i < 16; i++)
            p[i] = (char)c.bytes[i];
    }
}

/* ----------------------------------------------------------------- loops */

/* Accumulators of the elements in a chunk. */
template <typename O> struct chunk_sum {
    typedef typename O::elem elem;
    enum { PER = 16 / sizeof(elem) };
    typename O::acc acc[PER];

    __device__ __forceinline__ void set(const uint4 &value)
    {
        elem e[PER];
        memcpy(e, &value, sizeof(e));
        UNROLL
        for (int i = 0; i < PER; i++)
            acc[i] = O::up(e[i]);
    }
    __device__ __forceinline__ void add(const uint4 &value)
    {
        elem e[PER];
        memcpy(e, &value, sizeof(e));
        UNROLL
        for (int i = 0; i < PER; i++)
            acc[i] = O::with(acc[i], O::up(e[i]));
    }
    __device__ __forceinline__ uint4 result(int by) const
    {
        elem e[PER];
        uint4 value;
        UNROLL
        for (int i = 0; i < PER; i++)
            e[i] = O::down(acc[i], by);
        memcpy(&value, e, sizeof(value));
        return value;
    }
};

template <typename E> ON E load_element(const char *p)
{
    E e;

    for (unsigned b = 0; b < sizeof(e); b++)
        ((char *)&e)[b] = p[b];
    return e;
}

/* One element, at this byte of the arrays. */
template <typename O> ON void reduce_element(const struct rk_cuda_reduction &a, size_t at)
{
    typename O::elem e = load_element<typename O::elem>(at_byte(a.src[0], at));
    typename O::acc acc = O::up(e);

    for (int j = 1; j < a.k; j++)
        acc = O::with(acc, O::up(load_element<typename O::elem>(at_byte(a.src[j], at))));
    e = O::down(acc, a.by);
    for (unsigned b = 0; b < sizeof(e); b++)
        ((char *)a.dst + at)[b] = ((const char *)&e)[b];
}

/* The loads of a chunk are under way at the same time. */
template <typename O> ON void reduce_aligned(const struct rk_cuda_reduction &a, size_t at)
{
    struct chunk_sum<O> sum;
    uint4 in[RK_CUDA_OPERANDS];

    UNROLL
    for (int j = 0; j < RK_CUDA_OPERANDS; j++) {
        if (j < a.k)
            in[j] = *(const uint4 *)at_byte(a.src[j], at);
    }
    sum.set(in[0]);
    UNROLL
    for (int j = 1; j < RK_CUDA_OPERANDS; j++) {
        if (j < a.k)
            sum.add(in[j]);
    }
    *(uint4 *)((char *)a.dst + at) = sum.result(a.by);
}

template <typename O> ON void reduce_unaligned(const struct rk_cuda_reduction &a, size_t at)
{
    struct chunk_sum<O> sum;

    sum.set(load_any(at_byte(a.src[0], at)));
    for (int j = 1; j < a.k; j++)
        sum.add(load_any(at_byte(a.src[j], at)));
    store_any((char *)a.dst + at, sum.result(a.by));
}

template <typename O> ON void reduce_all(const struct rk_cuda_reduction &a)
{
    const size_t elem = sizeof(typename O::elem), bytes = a.n * elem;
    size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x, step = (size_t)gridDim.x * blockDim.x;
    size_t head = (16 - misaligned(a.dst, 16)) % 16, chunks, edge;
    bool aligned = true;

    if (head % elem) /* no element of dst is aligned */
        head = 0;
    if (head > bytes)
        head = bytes;
    chunks = (bytes - head) / 16;
    edge = (bytes - chunks * 16) / elem;
    aligned = misaligned(at_byte(a.dst, head), 16) == 0;
    for (int j = 0; j < a.k; j++)
        aligned = aligned && misaligned(at_byte(a.src[j], head), 16) == 0;
    for (size_t i = first; i < edge; i += step)
        reduce_element<O>(a, i * elem < head ? i * elem : i * elem + chunks * 16);
    if (aligned) {
        for (size_t i = first; i < chunks; i += step)
            reduce_aligned<O>(a, head + i * 16);
    } else {
        for (size_t i = first; i < chunks; i += step)
            reduce_unaligned<O>(a, head + i * 16);
    }
}

/* ----------------------------------------------------------------- kernels */

#define KERNEL(type, op, ...)                                                                      \
    extern "C" __global__ void __launch_bounds__(RK_CUDA_BLOCK)                                    \
        rk_reduce_##type##_##op(const __grid_constant__ struct rk_cuda_reduction a)                \
    {                                                                                              \
        reduce_all<__VA_ARGS__>(a);                                                                \
    }                                                                                              \
    STANDIN_KERNEL(rk_reduce_##type##_##op)

#define UNSIGNED_KERNELS(name, T)                                                                  \
    KERNEL(name, sum, op::sum<T>)                                                                      \
    KERNEL(name, prod, op::prod<T>)                                                                    \
    KERNEL(name, min, op::min<T>)                                                                      \
    KERNEL(name, max, op::max<T>)                                                                      \
    KERNEL(name, land, op::land<T>)                                                                    \
    KERNEL(name, lor, op::lor<T>)                                                                      \
    KERNEL(name, lxor, op::lxor<T>)                                                                    \
    KERNEL(name, band, op::band<T>)                                                                    \
    KERNEL(name, bor, op::bor<T>)                                                                      \
    KERNEL(name, bxor, op::bxor<T>)
#define SIGNED_KERNELS(name, T)                                                                    \
    KERNEL(name, min, op::min<T>)                                                                      \
    KERNEL(name, max, op::max<T>)
#define FLOAT_KERNELS(name, T)                                                                     \
    KERNEL(name, sum, op::sum_float<T>)                                                                \
    KERNEL(name, prod, op::prod_float<T>)                                                              \
    SIGNED_KERNELS(name, T)
#define HALF_KERNELS(H)                                                                            \
    KERNEL(H, sum, op::sum_half<H>)                                                                    \
    KERNEL(H, prod, op::prod_half<H>)                                                                  \
    KERNEL(H, min, op::min_half<H>)                                                                    \
    KERNEL(H, max, op::max_half<H>)
#define COMPLEX_KERNELS(C, F)                                                                      \
    KERNEL(C, sum, op::sum_complex<C, F>)                                                              \
    KERNEL(C, prod, op::prod_complex<C>)
#define PAIR_KERNELS(name, ...)                                                                    \
    KERNEL(name, minloc, op::minloc<__VA_ARGS__>)                                                      \
    KERNEL(name, maxloc, op::maxloc<__VA_ARGS__>)

UNSIGNED_KERNELS(uint8, uint8_t)
UNSIGNED_KERNELS(uint16, uint16_t)
UNSIGNED_KERNELS(uint32, uint32_t)
UNSIGNED_KERNELS(uint64, uint64_t)
SIGNED_KERNELS(int8, int8_t)
SIGNED_KERNELS(int16, int16_t)
SIGNED_KERNELS(int32, int32_t)
SIGNED_KERNELS(int64, int64_t)
FLOAT_KERNELS(f32, float)
FLOAT_KERNELS(f64, double)
HALF_KERNELS(f16)
HALF_KERNELS(bf16)
COMPLEX_KERNELS(c32, float)
COMPLEX_KERNELS(c64, double)
PAIR_KERNELS(pair_int32, pair<int32_t, int32_t>)
PAIR_KERNELS(pair_int64, pair<int64_t, int64_t>)
PAIR_KERNELS(pair_f32, pair<float, int32_t>)
PAIR_KERNELS(pair_f64, pair<double, int64_t>)

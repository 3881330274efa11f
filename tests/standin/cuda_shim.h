/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda_shim.h: compile a kernel's .cu as C++ for the stand-in.
 *
 * One thread runs the whole grid, so a kernel has to be a grid-stride loop without barriers, and its only parameter
 * one structure. STANDIN_KERNEL(name), after the kernel, makes it known to the stand-in; nvcc sees an empty macro,
 * which the .cu defines unless it is defined. Build: c++ -shared -fPIC -include cuda_shim.h -x c++ FILE.cu
 */
#ifndef RK_CUDA_SHIM_H
#define RK_CUDA_SHIM_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#define RK_CUDA_SHIM 1
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __restrict__ __restrict
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __syncthreads() ((void)0)
#define __threadfence() ((void)0)
#define __threadfence_system() ((void)0)

struct shim_dim3 {
    unsigned x, y, z;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) float4 {
    float x, y, z, w;
};

static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

static const shim_dim3 blockIdx = {0, 0, 0}, threadIdx = {0, 0, 0}, blockDim = {1, 1, 1}, gridDim = {1, 1, 1};

static inline float __uint_as_float(unsigned bits)
{
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline unsigned __float_as_uint(float value)
{
    unsigned bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
}

template <typename T> static inline T __ldg(const T *ptr) { return *ptr; }

template <typename T> static inline size_t shim_call(void (*kernel)(T), const void *param)
{
    if (param)
        kernel(*static_cast<const T *>(param));
    return sizeof(T);
}

#define STANDIN_KERNEL(name)                                                                                      \
    extern "C" __attribute__((visibility("default")))                                                             \
    size_t name##_standin(const void *param, const unsigned *, const unsigned *)                                  \
    {                                                                                                             \
        return shim_call(name, param);                                                                            \
    }

#endif

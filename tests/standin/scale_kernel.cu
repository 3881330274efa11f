/* SPDX-License-Identifier: BSD-3-Clause */
/* scale_kernel.cu: add two arrays, scaled; a kernel for standin_test. */
#ifndef STANDIN_KERNEL
#define STANDIN_KERNEL(name)
#endif

struct scale_args {
    float *out;
    const float *in[2];
    size_t n;
    float factor;
};

extern "C" __global__ void scale(struct scale_args a)
{
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < a.n; i += (size_t)gridDim.x * blockDim.x)
        a.out[i] = a.factor * (a.in[0][i] + a.in[1][i]);
}
STANDIN_KERNEL(scale)

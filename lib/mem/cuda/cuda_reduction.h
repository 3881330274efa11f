/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_reduction.h: pass operands to a reduction kernel, in C and C++. */
#ifndef RK_MEM_CUDA_REDUCTION_H
#define RK_MEM_CUDA_REDUCTION_H

#include <stddef.h>

enum {
    RK_CUDA_OPERANDS = 8,
    RK_CUDA_BLOCK = 256 /* threads */
};

/* dst = (src[0] op ... op src[k - 1]) / by, from left to right, for n elements of any alignment. dst may be a source. */
struct rk_cuda_reduction {
    void *dst;
    const void *src[RK_CUDA_OPERANDS];
    size_t n;
    int k;  /* 1 to RK_CUDA_OPERANDS */
    int by; /* of sums of floating point numbers; 0: do not divide */
};

#endif

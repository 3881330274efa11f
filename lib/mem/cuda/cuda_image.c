/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda_image.c: hold the reduction kernels for the driver.
 *
 * They are those of collectives/gpu/reduce.cu: RK_CUDA_IMAGE is a file that nvcc has made, or PTX of a release. A build
 * without either has a text instead, which drivers refuse; the stand-in of the tests takes any image.
 */
#include "lib/mem/cuda/cuda_reduce.h"

#ifdef RK_CUDA_IMAGE
const char rk_cuda_image_text[] = RK_CUDA_IMAGE_HOLDS;
__asm__(".pushsection .rodata\n"
        ".balign 16\n"
        ".globl rk_cuda_image\n"
        ".hidden rk_cuda_image\n"
        "rk_cuda_image:\n"
        ".incbin \"" RK_CUDA_IMAGE "\"\n"
        ".byte 0\n"
        ".popsection\n");
#else
const char rk_cuda_image_text[] = "none, built without nvcc";
const char rk_cuda_image[] = "built without nvcc";
#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_reduce.h: reduce arrays in device memory by kernels. */
#ifndef RK_MEM_CUDA_REDUCE_H
#define RK_MEM_CUDA_REDUCE_H

#include "lib/rank.h"

#include <stddef.h>

/* As reduce of struct rk_kind (lib/mem/kind.h). The kernels run on the device of dst, in its primary context. */
rank_status_t rk_cuda_reduce(void *dst, const void *const *src, int k, size_t n, rank_dtype_t dtype, rank_op_t op, int by);

/* Unload the kernels. The next reduction loads them again. */
void rk_cuda_unload_kernels(void);

/* The kernels as the driver loads them, and a text that lists the architectures. */
extern const char rk_cuda_image[] __attribute__((visibility("hidden")));
extern const char rk_cuda_image_text[];

#endif

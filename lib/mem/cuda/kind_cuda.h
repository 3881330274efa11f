/* SPDX-License-Identifier: BSD-3-Clause */
/* kind_cuda.h: declare the kind of CUDA device memory. */
#ifndef RK_MEM_CUDA_KIND_CUDA_H
#define RK_MEM_CUDA_KIND_CUDA_H

#include "lib/mem/kind.h"

extern const struct rk_kind rk_kind_cuda;

#endif

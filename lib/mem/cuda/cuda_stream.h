/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_stream.h: let CUDA streams start work (lib/mem/device_stream.h). */
#ifndef RK_MEM_CUDA_CUDA_STREAM_H
#define RK_MEM_CUDA_CUDA_STREAM_H

#include "lib/mem/device_stream.h"

extern const struct rk_stream_ops rk_cuda_streams;

/* Free the words of closed streams. Before the contexts are released. */
void rk_cuda_streams_release(void);

#endif

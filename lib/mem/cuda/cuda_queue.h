/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_queue.h: begin copies of device memory, and find out when they are over. */
#ifndef RK_MEM_CUDA_QUEUE_H
#define RK_MEM_CUDA_QUEUE_H

#include "lib/mem/cuda/cuda_context.h"
#include "lib/mem/kind.h"

/* Begin a copy; p describes the side in device memory, which is to if to_device. As begin of struct rk_kind. */
rank_status_t rk_cuda_begin(void *to, const void *from, bool to_device, const struct rk_cuda_pointer *p, size_t bytes,
                            struct rk_kind_copy **out);
bool rk_cuda_over(struct rk_kind_copy *copy, rank_status_t *st);

/* As pin and unpin of struct rk_kind: for all devices. */
bool rk_cuda_pin(void *ptr, size_t bytes);
void rk_cuda_unpin(void *ptr);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda_alloc.h: allocate device memory that other processes of the node can map.
 *
 * Memory is of the driver's VMM calls, with one shareable handle, if the device has both; else of cuMemAlloc, with a
 * legacy IPC handle. Without either, other processes reach it by its owner only.
 */
#ifndef RK_MEM_CUDA_ALLOC_H
#define RK_MEM_CUDA_ALLOC_H

#include "lib/mem/cuda/cuda_driver.h"

/* Allocate zeroed memory on the device of the current context, or on device 0. */
rank_status_t rk_cuda_alloc(size_t bytes, void **out);
/* Free memory of rk_cuda_alloc or rk_cuda_import. */
void rk_cuda_free(void *ptr);

/* Of imported memory, the device that it was mapped for; else -1. No other device need reach the mapping. */
int rk_cuda_imported_for(const void *ptr);

/* As export, export_end, import and outlives of struct rk_kind (lib/mem/kind.h). */
size_t rk_cuda_export(const void *ptr, size_t bytes, void *handle, size_t room);
void rk_cuda_export_end(const void *handle, size_t len);
rank_status_t rk_cuda_import(const void *handle, size_t len, const void *near, void **out);
bool rk_cuda_outlives(const void *base);

#endif

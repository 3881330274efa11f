/* SPDX-License-Identifier: BSD-3-Clause */
/* backend_cuda.h: allocate buffers of rankbench in memory of CUDA devices. */
#ifndef RK_BENCH_BACKEND_CUDA_H
#define RK_BENCH_BACKEND_CUDA_H

#include "bench/backend.h"

/* For be_device_prepare, be_device_usable, be_device_text and be_copy see backend.h. */

/* Memory of the driver. NULL: it has none. */
void *backend_cuda_alloc(size_t bytes, struct be_mem mem);
void backend_cuda_free(void *ptr);

/* Make a device current for this thread, until leave. device: -1 for the rank's own. */
void backend_cuda_enter(int device);
void backend_cuda_leave(void);

/* Release what the process has of its devices, after rank_finalize. No-op if no device was used. */
void backend_cuda_close(void);

#endif

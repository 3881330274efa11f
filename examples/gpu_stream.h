/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_stream.h: use a GPU and a stream of it, without a CUDA toolkit.
 *
 * A program with the toolkit calls cudaStreamCreate and so on in place of these.
 * Here the driver is loaded at run time. A call that fails ends the job.
 */
#ifndef EXAMPLES_GPU_STREAM_H
#define EXAMPLES_GPU_STREAM_H

#include <stddef.h>

/* Load and initialize the driver. Call before rank_init. Returns NULL, or why there is no GPU. */
const char *gpu_open(void);
int gpu_count(void);
/* Make a device current for this thread. */
void gpu_use(int device);
/* Release it. All of its memory and streams are gone before. */
void gpu_close(void);

void *gpu_alloc(size_t bytes);
void gpu_free(void *ptr);
/* Memory of the host that copies in a stream do not wait for. */
void *gpu_host_alloc(size_t bytes);
void gpu_host_free(void *ptr);

/* A stream is a CUstream. */
void *gpu_stream_create(void);
void gpu_stream_destroy(void *stream);
void gpu_stream_wait(void *stream);
/* Put a copy into a stream: to the device, or from it. */
void gpu_copy_in(void *device, const void *host, size_t bytes, void *stream);
void gpu_copy_out(void *host, const void *device, size_t bytes, void *stream);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_context.h: find the context and device of memory, and enter contexts. */
#ifndef RK_MEM_CUDA_CONTEXT_H
#define RK_MEM_CUDA_CONTEXT_H

#include "lib/mem/cuda/cuda_driver.h"

#include <stdatomic.h>

enum { RK_CUDA_DEVICES_MAX = 64 };

/* Outstanding starts of streams (cuda_stream.c). Above 0, waiting for another stream may never end. */
extern _Atomic int rk_cuda_starts;

/* What the driver reports of a pointer. */
struct rk_cuda_pointer {
    bool settled;            /* SYNC_MEMOPS: synchronous copies of the program to it are complete when they return */
    bool on_device;          /* device memory; managed and registered memory count as host memory */
    int device;              /* its ordinal */
    CUcontext context;       /* the context of its allocation; NULL: of none, as VMM memory */
    unsigned long long id;   /* BUFFER_ID: no two allocations of a process have the same, unlike the address */
};

/*
 * Describe a pointer. Without an initialized driver all memory is host memory. RANK_ERR_DEVICE: the driver fails, and
 * then out->on_device is set, so that no CPU accesses the memory.
 */
rank_status_t rk_cuda_pointer(const void *ptr, struct rk_cuda_pointer *out);

/* Make a context current. Leave it by rk_cuda_leave on the same thread if this succeeds: the caller's is current again. */
rank_status_t rk_cuda_enter(CUcontext context);
void rk_cuda_leave(void);

/* Ordinal of the device of the thread's current context; device 0 without one. Initializes CUDA. */
rank_status_t rk_cuda_current_device(int *device);

/*
 * Enter the primary context of a device. It is retained until rk_cuda_release. stream, if not NULL, gets an own stream
 * there of the highest priority, which does not wait for the legacy stream. Leave it by rk_cuda_leave.
 */
rank_status_t rk_cuda_enter_primary(int device, CUstream *stream);

/* The same, with the own stream of copies that begin (cuda_queue.h): one for each direction, as a device has an engine for each. */
rank_status_t rk_cuda_enter_queue(int device, bool to_device, CUstream *stream);

/* Is this the primary context of the device? Does not make one. */
bool rk_cuda_is_primary(CUcontext context, int device);

/*
 * Make the program's copies to device memory complete, in the memory's context. The driver's synchronous copies from
 * pageable host memory may return before that. Later ones to this allocation do not, if the driver can set that.
 * No-op while a stream waits for the library: the streams that this waits for may wait for that one.
 */
rank_status_t rk_cuda_settle(const void *ptr, const struct rk_cuda_pointer *pointer);

/* A result of a call with the own stream, or a module: has the program reset the device, and they are gone? */
RK_INLINE bool rk_cuda_is_stale(CUresult r)
{
    return r == CUDA_ERROR_INVALID_HANDLE || r == CUDA_ERROR_CONTEXT_IS_DESTROYED || r == CUDA_ERROR_INVALID_CONTEXT;
}

/* Forget the own stream of a device: the program has reset the device, and the stream with it. */
void rk_cuda_forget(int device);

/* Destroy the own streams and release the contexts. Later calls make them again. */
void rk_cuda_release(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kind_cuda.c: describe CUDA device memory to the library.
 *
 * A copy is complete on return. It does not wait for streams of the program: what a kernel writes must be complete
 * before the call.
 */
#include "lib/mem/cuda/kind_cuda.h"
#include "lib/base/log.h"
#include "lib/mem/cuda/cuda_alloc.h"
#include "lib/mem/cuda/cuda_context.h"

#include <stdio.h>

/* required: the user has set it. Otherwise a program that does not use CUDA pays for no initialization. */
static rank_status_t cuda_open(bool required, char *why, size_t room)
{
    return rk_cuda_load(required, why, room);
}

static bool cuda_query(const void *ptr, size_t bytes)
{
    struct rk_cuda_pointer p;

    (void)bytes;
    rk_cuda_pointer(ptr, &p); /* a failing driver fails the copy */
    return p.on_device;
}

static int cuda_device(const void *ptr)
{
    struct rk_cuda_pointer p;

    return rk_cuda_pointer(ptr, &p) == RANK_OK && p.on_device ? p.device : -1;
}

/* The program has reset the device since the stream was made. */
static bool stream_is_stale(CUresult r)
{
    return r == CUDA_ERROR_INVALID_HANDLE || r == CUDA_ERROR_CONTEXT_IS_DESTROYED || r == CUDA_ERROR_INVALID_CONTEXT;
}

static rank_status_t copy_by_stream(CUdeviceptr to, CUdeviceptr from, size_t bytes, int device)
{
    const char *call = NULL;
    CUresult r = CUDA_SUCCESS;

    for (int i = 0; i < 2; i++) {
        CUstream stream;
        rank_status_t st = rk_cuda_enter_primary(device, &stream);

        if (st)
            return st;
        call = "cuMemcpyAsync";
        r = rk_cuda.MemcpyAsync(to, from, bytes, stream);
        if (r == CUDA_SUCCESS) {
            call = "cuStreamSynchronize";
            r = rk_cuda.StreamSynchronize(stream);
        }
        rk_cuda_leave();
        if (!stream_is_stale(r))
            break;
        rk_cuda_forget(device);
    }
    return rk_cuda_check(call, r);
}

/* In a context that the program has created itself. */
static rank_status_t copy_in_context(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUcontext context)
{
    rank_status_t st = rk_cuda_enter(context);

    if (st)
        return st;
    st = RK_CUDA_CALL(MemcpyAsync, to, from, bytes, RK_CUDA_STREAM_PER_THREAD);
    if (!st)
        st = RK_CUDA_CALL(StreamSynchronize, RK_CUDA_STREAM_PER_THREAD);
    rk_cuda_leave();
    return st;
}

static rank_status_t cuda_copy(void *to, const struct rk_kind *to_kind, const void *from, const struct rk_kind *from_kind, size_t bytes)
{
    CUdeviceptr dst = (CUdeviceptr)(uintptr_t)to, src = (CUdeviceptr)(uintptr_t)from;
    struct rk_cuda_pointer p;
    rank_status_t st = rk_cuda_pointer(to_kind ? to : from, &p);

    (void)from_kind;
    if (st)
        return st;
    if (p.context && !rk_cuda_is_primary(p.context, p.device))
        return copy_in_context(dst, src, bytes, p.context);
    return copy_by_stream(dst, src, bytes, p.device);
}

static void cuda_describe(char *text, size_t room)
{
    int n = 0;

    rk_cuda.DeviceGetCount(&n);
    snprintf(text, room, "driver %d.%d, %d %s", rk_cuda.version / 1000, rk_cuda.version % 1000 / 10, n, n == 1 ? "device" : "devices");
}

const struct rk_kind rk_kind_cuda = {
    .name = "cuda",
    .id = RANK_MEM_CUDA,
    .open = cuda_open,
    .close = rk_cuda_release,
    .describe = cuda_describe,
    .query = cuda_query,
    .device = cuda_device,
    .alloc = rk_cuda_alloc,
    .free = rk_cuda_free,
    .copy = cuda_copy,
    .export = rk_cuda_export,
    .export_end = rk_cuda_export_end,
    .import = rk_cuda_import,
};

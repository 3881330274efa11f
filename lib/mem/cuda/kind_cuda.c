/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kind_cuda.c: describe CUDA device memory to the library.
 *
 * A copy is complete on return. It does not wait for kernels of the program: what these write must be complete before
 * the call.
 */
#include "lib/mem/cuda/kind_cuda.h"
#include "lib/base/log.h"
#include "lib/mem/cuda/cuda_alloc.h"
#include "lib/mem/cuda/cuda_context.h"
#include "lib/mem/cuda/cuda_export.h"
#include "lib/mem/cuda/cuda_paths.h"
#include "lib/mem/cuda/cuda_queue.h"
#include "lib/mem/cuda/cuda_reduce.h"
#include "lib/mem/cuda/cuda_stream.h"

#include <stdio.h>
#include <string.h>

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

/* A hash of the device's UUID (FNV-1a); a part of a device (MIG) has its own. */
static uint64_t cuda_device_id(const void *ptr)
{
    uint64_t id = 14695981039346656037u;
    CUdevice device;
    CUuuid uuid;

    if (!RK_CUDA_HAS(DeviceGetUuid) || rk_cuda.DeviceGet(&device, cuda_device(ptr)) != CUDA_SUCCESS ||
        rk_cuda.DeviceGetUuid(&uuid, device) != CUDA_SUCCESS)
        return 0;
    for (size_t i = 0; i < sizeof(uuid.bytes); i++)
        id = (id ^ (unsigned char)uuid.bytes[i]) * 1099511628211u;
    return id;
}

/* A copy with one or two sides in device memory. */
struct device_copy {
    const void *side[2]; /* the target first; NULL: host memory */
    struct rk_cuda_pointer of[2];
    CUdeviceptr to, from;
    size_t bytes;
};

static rank_status_t copy_settle(const struct device_copy *c)
{
    rank_status_t st = RANK_OK;

    for (int i = 0; i < 2 && !st; i++) {
        if (c->side[i] && rk_cuda_imported_for(c->side[i]) < 0) /* else the owner has done it */
            st = rk_cuda_settle(c->side[i], &c->of[i]);
    }
    return st;
}

static rank_status_t copy_by_stream(const struct device_copy *c, int device)
{
    const char *call = NULL;
    CUresult r = CUDA_SUCCESS;

    for (int i = 0; i < 2; i++) {
        CUstream stream;
        rank_status_t st = rk_cuda_enter_primary(device, &stream);

        if (st)
            return st;
        st = copy_settle(c);
        if (st) {
            rk_cuda_leave();
            return st;
        }
        call = "cuMemcpyAsync";
        r = rk_cuda.MemcpyAsync(c->to, c->from, c->bytes, stream);
        if (r == CUDA_SUCCESS) {
            call = "cuStreamSynchronize";
            r = rk_cuda.StreamSynchronize(stream);
        }
        rk_cuda_leave();
        if (!rk_cuda_is_stale(r))
            break;
        rk_cuda_forget(device);
    }
    return rk_cuda_check(call, r);
}

/* In a context that the program has created itself. */
static rank_status_t copy_in_context(const struct device_copy *c, CUcontext context)
{
    rank_status_t st = rk_cuda_enter(context);

    if (st)
        return st;
    st = copy_settle(c);
    if (!st)
        st = RK_CUDA_CALL(MemcpyAsync, c->to, c->from, c->bytes, RK_CUDA_STREAM_PER_THREAD);
    if (!st)
        st = RK_CUDA_CALL(StreamSynchronize, RK_CUDA_STREAM_PER_THREAD);
    rk_cuda_leave();
    return st;
}

static rank_status_t cuda_copy(void *to, const struct rk_kind *to_kind, const void *from, const struct rk_kind *from_kind, size_t bytes)
{
    struct device_copy c = {.side = {to_kind ? to : NULL, from_kind ? from : NULL},
                            .to = (CUdeviceptr)(uintptr_t)to, .from = (CUdeviceptr)(uintptr_t)from, .bytes = bytes};
    const struct rk_cuda_pointer *p;
    rank_status_t st = RANK_OK;
    int device;

    for (int i = 0; i < 2 && !st; i++) {
        if (c.side[i])
            st = rk_cuda_pointer(c.side[i], &c.of[i]);
    }
    if (st)
        return st;
    for (int i = 0; i < 2; i++) { /* an earlier query that failed has taken host memory for device memory */
        if (!c.of[i].on_device)
            c.side[i] = NULL;
    }
    if (!c.side[0] && !c.side[1]) {
        memmove(to, from, bytes);
        return RANK_OK;
    }
    p = &c.of[c.side[0] ? 0 : 1];
    device = rk_cuda_imported_for(c.side[0] ? to : from);
    if (device < 0 && p->context && !rk_cuda_is_primary(p->context, p->device))
        return copy_in_context(&c, p->context);
    return copy_by_stream(&c, device < 0 ? p->device : device);
}

/* Copies of memory that is in a context of the program, or another rank's, are complete on return. */
static rank_status_t cuda_begin(void *to, const struct rk_kind *to_kind, const void *from, const struct rk_kind *from_kind, size_t bytes,
                                struct rk_kind_copy **out)
{
    const void *device = to_kind ? to : from;
    struct rk_cuda_pointer p;
    rank_status_t st = rk_cuda_pointer(device, &p);

    *out = NULL;
    if (st)
        return st;
    if (!p.on_device || (to_kind && from_kind) || rk_cuda_imported_for(device) >= 0 ||
        (p.context && !rk_cuda_is_primary(p.context, p.device)))
        return cuda_copy(to, to_kind, from, from_kind, bytes);
    return rk_cuda_begin(to, from, to_kind != NULL, &p, bytes, out);
}

static void cuda_describe(char *text, size_t room)
{
    int n = 0;

    rk_cuda.DeviceGetCount(&n);
    snprintf(text, room, "driver %d.%d, %d %s, reduction kernels: %s", rk_cuda.version / 1000, rk_cuda.version % 1000 / 10, n,
             n == 1 ? "device" : "devices", rk_cuda_image_text);
}

static void cuda_close(void)
{
    rk_cuda_streams_release();
    rk_cuda_unload_kernels();
    rk_cuda_release();
}

const struct rk_kind rk_kind_cuda = {
    .name = "cuda",
    .id = RANK_MEM_CUDA,
    .open = cuda_open,
    .close = cuda_close,
    .describe = cuda_describe,
    .describe_paths = rk_cuda_describe_paths,
    .query = cuda_query,
    .device = cuda_device,
    .device_id = cuda_device_id,
    .alloc = rk_cuda_alloc,
    .free = rk_cuda_free,
    .copy = cuda_copy,
    .begin = cuda_begin,
    .over = rk_cuda_over,
    .pin = rk_cuda_pin,
    .unpin = rk_cuda_unpin,
    .block = rk_cuda_block,
    .export = rk_cuda_export,
    .export_end = rk_cuda_export_end,
    .import = rk_cuda_import,
    .outlives = rk_cuda_outlives,
    .streams = &rk_cuda_streams,
    .reduce = rk_cuda_reduce,
};

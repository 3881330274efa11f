/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_context.c: find contexts of memory, enter them, open streams. */
#include "lib/mem/cuda/cuda_context.h"

#include <pthread.h>
#include <string.h>

/* Of each device: its primary context, retained, and the own streams there: of copies, and of those from and to it that begin. */
enum { OWN_STREAMS = 3 };
static struct device {
    CUcontext primary;
    CUstream stream[OWN_STREAMS];
} devices[RK_CUDA_DEVICES_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

_Atomic int rk_cuda_starts;

rank_status_t rk_cuda_pointer(const void *ptr, struct rk_cuda_pointer *out)
{
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_CONTEXT,
                                   CU_POINTER_ATTRIBUTE_BUFFER_ID, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS};
    unsigned type = 0, managed = 0, settled = 0; /* two are a bool of the driver's */
    void *values[] = {&type, &managed, &out->device, &out->context, &out->id, &settled};
    CUresult r;

    memset(out, 0, sizeof(*out));
    r = rk_cuda.PointerGetAttributes(RK_ARRAY_LEN(names), names, values, (CUdeviceptr)(uintptr_t)ptr);
    if (r == CUDA_SUCCESS) {
        out->on_device = type == CU_MEMORYTYPE_DEVICE && !managed;
        out->settled = settled != 0;
        return RANK_OK;
    }
    if (r == CUDA_ERROR_NOT_INITIALIZED || r == CUDA_ERROR_DEINITIALIZED || r == CUDA_ERROR_INVALID_VALUE)
        return RANK_OK;
    out->on_device = true;
    out->device = 0;
    return rk_cuda_failed("cuPointerGetAttributes", r);
}

rank_status_t rk_cuda_enter(CUcontext context)
{
    return RK_CUDA_CALL(CtxPushCurrent, context);
}

void rk_cuda_leave(void)
{
    CUcontext context;

    rk_cuda.CtxPopCurrent(&context);
}

rank_status_t rk_cuda_current_device(int *device)
{
    CUcontext context = NULL;
    rank_status_t st = rk_cuda_init();

    *device = 0;
    if (!st)
        st = RK_CUDA_CALL(CtxGetCurrent, &context);
    return st || !context ? st : RK_CUDA_CALL(CtxGetDevice, device);
}

static rank_status_t device_retain(int ordinal)
{
    struct device *d = &devices[ordinal];
    CUdevice handle;
    rank_status_t st;

    if (d->primary)
        return RANK_OK;
    st = RK_CUDA_CALL(DeviceGet, &handle, ordinal);
    return st ? st : RK_CUDA_CALL(DevicePrimaryCtxRetain, &d->primary, handle);
}

bool rk_cuda_is_primary(CUcontext context, int ordinal)
{
    unsigned flags = 0;
    CUdevice handle;
    int active = 0;
    bool is;

    if (ordinal < 0 || ordinal >= RK_CUDA_DEVICES_MAX || rk_cuda.DeviceGet(&handle, ordinal) != CUDA_SUCCESS ||
        rk_cuda.DevicePrimaryCtxGetState(handle, &flags, &active) != CUDA_SUCCESS || !active)
        return false;
    pthread_mutex_lock(&lock);
    is = device_retain(ordinal) == RANK_OK && devices[ordinal].primary == context;
    pthread_mutex_unlock(&lock);
    return is;
}

rank_status_t rk_cuda_settle(const void *ptr, const struct rk_cuda_pointer *pointer)
{
    unsigned on = 1;
    rank_status_t st;

    if (pointer->settled || atomic_load(&rk_cuda_starts) > 0)
        return RANK_OK;
    rk_cuda.PointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)(uintptr_t)ptr);
    st = RK_CUDA_CALL(StreamSynchronize, RK_CUDA_STREAM_LEGACY);
    return st ? st : RK_CUDA_CALL(StreamSynchronize, RK_CUDA_STREAM_PER_THREAD);
}

/* In its context. */
static rank_status_t device_open_stream(struct device *d, int which)
{
    int least, greatest;
    rank_status_t st;

    if (d->stream[which])
        return RANK_OK;
    st = RK_CUDA_CALL(CtxGetStreamPriorityRange, &least, &greatest);
    return st ? st : RK_CUDA_CALL(StreamCreateWithPriority, &d->stream[which], CU_STREAM_NON_BLOCKING, greatest);
}

static rank_status_t enter_with_stream(int ordinal, CUstream *stream, int which)
{
    struct device *d;
    rank_status_t st;

    if (ordinal < 0 || ordinal >= RK_CUDA_DEVICES_MAX)
        return RANK_ERR_NOT_SUPPORTED;
    d = &devices[ordinal];
    pthread_mutex_lock(&lock);
    st = device_retain(ordinal);
    if (!st)
        st = rk_cuda_enter(d->primary);
    if (!st && stream) {
        st = device_open_stream(d, which);
        if (st)
            rk_cuda_leave();
        *stream = d->stream[which];
    }
    pthread_mutex_unlock(&lock);
    return st;
}

rank_status_t rk_cuda_enter_primary(int ordinal, CUstream *stream)
{
    return enter_with_stream(ordinal, stream, 0);
}

rank_status_t rk_cuda_enter_queue(int ordinal, bool to_device, CUstream *stream)
{
    return enter_with_stream(ordinal, stream, to_device ? 2 : 1);
}

void rk_cuda_forget(int ordinal)
{
    CUdevice handle;

    if (ordinal < 0 || ordinal >= RK_CUDA_DEVICES_MAX)
        return;
    pthread_mutex_lock(&lock);
    if (devices[ordinal].primary && rk_cuda.DeviceGet(&handle, ordinal) == CUDA_SUCCESS)
        rk_cuda.DevicePrimaryCtxRelease(handle);
    devices[ordinal] = (struct device){.primary = NULL};
    pthread_mutex_unlock(&lock);
}

void rk_cuda_release(void)
{
    for (int i = 0; i < RK_CUDA_DEVICES_MAX; i++) {
        struct device *d = &devices[i];

        for (int k = 0; k < OWN_STREAMS; k++) {
            if (!d->stream[k] || rk_cuda.CtxPushCurrent(d->primary) != CUDA_SUCCESS)
                continue;
            rk_cuda.StreamDestroy(d->stream[k]);
            rk_cuda_leave();
        }
        if (d->primary)
            rk_cuda_forget(i);
    }
}

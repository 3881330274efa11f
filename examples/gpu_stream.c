/* SPDX-License-Identifier: BSD-3-Clause */
/* gpu_stream.c: see gpu_stream.h. */
#include "gpu_stream.h"

#include <rank.h>

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { NON_BLOCKING = 1, PORTABLE = 1, SINCE = 11070 }; /* CUDA 11.7 has memory operations in streams, which queues need */

typedef uint64_t device_ptr;

/* The driver's calls, as cuda.h declares them for that version. */
static struct {
    int (*init)(unsigned flags);
    int (*count)(int *n);
    int (*device)(int *handle, int ordinal);
    int (*retain)(void **context, int handle);
    int (*release)(int handle);
    int (*set_current)(void *context);
    int (*alloc)(device_ptr *at, size_t bytes);
    int (*free)(device_ptr at);
    int (*host_alloc)(void **at, size_t bytes, unsigned flags);
    int (*host_free)(void *at);
    int (*stream_create)(void **stream, unsigned flags, int priority);
    int (*stream_destroy)(void *stream);
    int (*stream_wait)(void *stream);
    int (*copy_in)(device_ptr to, const void *from, size_t bytes, void *stream);
    int (*copy_out)(void *to, device_ptr from, size_t bytes, void *stream);
} cu;

static int in_use = -1; /* device */

static void gpu_must(int result, const char *call)
{
    char text[128];

    if (!result)
        return;
    snprintf(text, sizeof(text), "%s fails with error %d of the CUDA driver", call, result);
    rank_abort(1, text);
}

const char *gpu_open(void)
{
    /* The names lead to the present versions: a plain dlsym finds those of 32-bit times. */
    static const struct {
        const char *name;
        void *call;
    } calls[] = {
        {"cuInit", &cu.init}, {"cuDeviceGetCount", &cu.count}, {"cuDeviceGet", &cu.device},
        {"cuDevicePrimaryCtxRetain", &cu.retain}, {"cuDevicePrimaryCtxRelease", &cu.release},
        {"cuCtxSetCurrent", &cu.set_current}, {"cuMemAlloc", &cu.alloc}, {"cuMemFree", &cu.free},
        {"cuMemHostAlloc", &cu.host_alloc}, {"cuMemFreeHost", &cu.host_free},
        {"cuStreamCreateWithPriority", &cu.stream_create}, {"cuStreamDestroy", &cu.stream_destroy},
        {"cuStreamSynchronize", &cu.stream_wait}, {"cuMemcpyHtoDAsync", &cu.copy_in}, {"cuMemcpyDtoHAsync", &cu.copy_out},
    };
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    int (*find)(const char *name, void **call, int version, uint64_t flags) = NULL;
    void *call = driver ? dlsym(driver, "cuGetProcAddress") : NULL;

    if (!driver)
        return "there is no CUDA driver (libcuda.so.1)";
    if (!call)
        return "the CUDA driver is older than 11.3";
    memcpy(&find, &call, sizeof(find));
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (find(calls[i].name, &call, SINCE, 0) || !call)
            return "the CUDA driver lacks a call; install a newer one";
        memcpy(calls[i].call, &call, sizeof(call));
    }
    if (cu.init(0) || gpu_count() == 0)
        return "the CUDA driver finds no device";
    return NULL;
}

int gpu_count(void)
{
    int n = 0;

    gpu_must(cu.count(&n), "cuDeviceGetCount");
    return n;
}

void gpu_use(int device)
{
    void *context;

    gpu_must(cu.device(&in_use, device), "cuDeviceGet");
    gpu_must(cu.retain(&context, in_use), "cuDevicePrimaryCtxRetain");
    gpu_must(cu.set_current(context), "cuCtxSetCurrent");
}

void gpu_close(void)
{
    cu.set_current(NULL);
    cu.release(in_use);
}

void *gpu_alloc(size_t bytes)
{
    device_ptr at;

    gpu_must(cu.alloc(&at, bytes), "cuMemAlloc");
    return (void *)(uintptr_t)at;
}

void gpu_free(void *ptr)
{
    gpu_must(cu.free((device_ptr)(uintptr_t)ptr), "cuMemFree");
}

void *gpu_host_alloc(size_t bytes)
{
    void *at;

    gpu_must(cu.host_alloc(&at, bytes, PORTABLE), "cuMemHostAlloc");
    return at;
}

void gpu_host_free(void *ptr)
{
    gpu_must(cu.host_free(ptr), "cuMemFreeHost");
}

/* The priority is the least, as the library's streams have the greatest. */
void *gpu_stream_create(void)
{
    void *stream;

    gpu_must(cu.stream_create(&stream, NON_BLOCKING, 0), "cuStreamCreateWithPriority");
    return stream;
}

void gpu_stream_destroy(void *stream)
{
    gpu_must(cu.stream_destroy(stream), "cuStreamDestroy");
}

void gpu_stream_wait(void *stream)
{
    gpu_must(cu.stream_wait(stream), "cuStreamSynchronize");
}

void gpu_copy_in(void *device, const void *host, size_t bytes, void *stream)
{
    gpu_must(cu.copy_in((device_ptr)(uintptr_t)device, host, bytes, stream), "cuMemcpyHtoDAsync");
}

void gpu_copy_out(void *host, const void *device, size_t bytes, void *stream)
{
    gpu_must(cu.copy_out(host, (device_ptr)(uintptr_t)device, bytes, stream), "cuMemcpyDtoHAsync");
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* device_memory.c: allocate and copy device memory by the driver's calls. */
#include "tests/standin/device_memory.h"
#include "lib/base/arg_error.h"
#include "lib/base/log.h"
#include "lib/mem/cuda/cuda_driver.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 256 };

static CUcontext context;
static CUdevice device;
static struct vmm_block {
    CUdeviceptr at;
    size_t bytes;
} vmm[BLOCKS];
static unsigned turn;
static long created, unmapped; /* calls of MemCreate and MemUnmap below */

/* The driver's loader logs. */
int rk_log_threshold = RK_LOG_WARN;
void rk_log_write(int level, const char *fmt, ...)
{
    va_list ap;

    (void)level;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

rank_status_t rk_fail(rank_status_t st, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    return st;
}

rank_status_t rk_fail_silent(rank_status_t st, const char *fmt, ...)
{
    (void)fmt;
    return st;
}

static void must(const char *what, CUresult r)
{
    char text[256];

    if (r == CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s: %s\n", what, rk_cuda_error_text(r, text, sizeof(text)));
    abort();
}
#define MUST(name, ...) must(#name, rk_cuda.name(__VA_ARGS__))

/* One mapping for each unit of memory, as a caching allocator with growing segments has it. */
static bool vmm_alloc_block(size_t bytes, bool shareable, struct vmm_block *b)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = shareable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
    CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    size_t unit;

    if (rk_cuda.MemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS)
        return false;
    b->bytes = (bytes + unit - 1) / unit * unit;
    MUST(MemAddressReserve, &b->at, b->bytes, 0, 0, 0);
    for (size_t at = 0; at < b->bytes; at += unit) {
        MUST(MemCreate, &handle, unit, &prop, 0);
        created++;
        MUST(MemMap, b->at + at, unit, 0, handle, 0);
        MUST(MemRelease, handle);
    }
    MUST(MemSetAccess, b->at, b->bytes, &access, 1);
    return true;
}

void *device_memory_alloc(enum device_memory_sort sort, size_t bytes)
{
    CUdeviceptr at;

    for (int i = 0; sort != DEVICE_PLAIN && i < BLOCKS; i++) {
        if (!vmm[i].at && vmm_alloc_block(bytes, sort == DEVICE_SHAREABLE, &vmm[i]))
            return (void *)(uintptr_t)vmm[i].at;
    }
    MUST(MemAlloc, &at, bytes ? bytes : 1);
    return (void *)(uintptr_t)at;
}

static rank_status_t user_alloc(size_t bytes, void **out)
{
    static const enum device_memory_sort sorts[] = {DEVICE_PLAIN, DEVICE_SHAREABLE, DEVICE_PLAIN, DEVICE_PLAIN,
                                                    DEVICE_PLAIN, DEVICE_PRIVATE};

    *out = device_memory_alloc(sorts[turn++ % (sizeof(sorts) / sizeof(sorts[0]))], bytes);
    return RANK_OK;
}

static void user_free(void *ptr)
{
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)ptr;

    for (int i = 0; i < BLOCKS; i++) {
        if (vmm[i].at == at) {
            MUST(CtxSynchronize); /* cuMemFree waits for copies, cuMemUnmap does not */
            MUST(MemUnmap, at, vmm[i].bytes);
            unmapped++;
            MUST(MemAddressFree, at, vmm[i].bytes);
            vmm[i].at = 0;
            return;
        }
    }
    MUST(MemFree, at);
}

static rank_status_t user_copy(void *to, const struct rk_kind *to_kind, const void *from, const struct rk_kind *from_kind, size_t bytes)
{
    (void)to_kind;
    (void)from_kind;
    MUST(Memcpy, (CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, bytes);
    return RANK_OK;
}

const struct rk_kind *device_memory(int rank)
{
    static const struct rk_kind user_kind = {
        .name = "device", .id = RANK_MEM_CUDA, .alloc = user_alloc, .free = user_free, .copy = user_copy};
    char why[512];
    int n;

    if (rk_cuda_load(true, why, sizeof(why))) {
        fprintf(stderr, "%s\n", why);
        abort();
    }
    MUST(DeviceGetCount, &n);
    MUST(DeviceGet, &device, rank % n);
    MUST(DevicePrimaryCtxRetain, &context, device);
    MUST(CtxSetCurrent, context);
    return &user_kind;
}

/* The stand-in's counter; NULL: another driver. */
static void *standin_counter(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *counter = library ? dlsym(library, "standin_calls") : NULL;

    if (library)
        dlclose(library); /* rk_cuda_load keeps it */
    return counter;
}

bool device_memory_counts(void)
{
    return standin_counter() != NULL;
}

long device_memory_calls(const char *name)
{
    void *counter = standin_counter();
    unsigned long (*count)(const char *);

    if (!counter)
        return 0;
    memcpy(&count, &counter, sizeof(counter));
    return (long)count(name);
}

long device_memory_mapped(void)
{
    long ipc = device_memory_calls("IpcOpenMemHandle") - device_memory_calls("IpcCloseMemHandle");
    long mapped = device_memory_calls("MemImportFromShareableHandle") + device_memory_calls("MemCreate") - created;

    return device_memory_counts() ? ipc + mapped - (device_memory_calls("MemUnmap") - unmapped) : 0;
}

bool device_memory_is_current(void)
{
    CUcontext now = NULL;

    return rk_cuda.CtxGetCurrent(&now) == CUDA_SUCCESS && now == context;
}

void device_memory_end(void)
{
    rk_cuda.CtxSetCurrent(NULL);
    rk_cuda.DevicePrimaryCtxRelease(device);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* backend_cuda.c: see backend_cuda.h. */
#include "bench/backend_cuda.h"

#include "lib/base/compiler.h"
#include "lib/mem/cuda/cuda_driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_MAX = 64 };

static char no_driver[512]; /* why there is none */
static CUcontext contexts[DEVICES_MAX];
static int own = -1, ndevices;

static void backend_cuda_must(CUresult r, const char *call)
{
    char reason[256], text[320];

    if (rk_likely(r == CUDA_SUCCESS))
        return;
    snprintf(text, sizeof(text), "rankbench: %s: %s", call, rk_cuda_error_text(r, reason, sizeof(reason)));
    be_abort(1, text);
}
#define MUST(name, ...) backend_cuda_must(rk_cuda.name(__VA_ARGS__), "cu" #name)

void be_device_prepare(void)
{
    if (rk_cuda_load(true, no_driver, sizeof(no_driver)))
        return;
    no_driver[0] = '\0';
    setenv("RANK_CUDA", "on", 0);
}

/* The rank's devices; false: there are none, or the process is on a connection and no rank. */
static bool backend_cuda_query(rank_device_t *mine)
{
    return rank_initialized() && rank_device_query(mine) == RANK_OK;
}

/* The device that is near to the rank, or else the ranks take them in turn. */
static int backend_cuda_own(void)
{
    rank_device_t mine = RANK_DEVICE_INIT;

    if (own < 0) {
        own = be_rank() % ndevices;
        if (backend_cuda_query(&mine) && mine.ngpus && mine.gpu[0].ordinal >= 0 && mine.gpu[0].ordinal < ndevices)
            own = mine.gpu[0].ordinal;
    }
    return own;
}

void backend_cuda_enter(int device)
{
    CUdevice handle;

    device = device < 0 ? backend_cuda_own() : device;
    if (!contexts[device]) {
        MUST(DeviceGet, &handle, device);
        MUST(DevicePrimaryCtxRetain, &contexts[device], handle);
    }
    MUST(CtxPushCurrent, contexts[device]);
}

void backend_cuda_leave(void)
{
    CUcontext context;

    MUST(CtxPopCurrent, &context);
}

bool be_device_usable(struct be_mem mem, char *why, size_t room)
{
    rank_mem_kind_t kind = RANK_MEM_HOST;
    void *ptr;

    if (no_driver[0]) {
        snprintf(why, room, "%s", no_driver);
        return false;
    }
    MUST(DeviceGetCount, &ndevices);
    ndevices = ndevices < DEVICES_MAX ? ndevices : DEVICES_MAX;
    if (mem.device >= ndevices) {
        snprintf(why, room, "there is no device %d: rank %d has %d, from 0", mem.device, be_rank(), ndevices);
        return false;
    }
    ptr = backend_cuda_alloc(1, mem);
    if (!ptr) {
        snprintf(why, room, "device %d has no free memory", mem.device < 0 ? own : mem.device);
        return false;
    }
    if (rank_mem_kind(ptr, &kind, NULL))
        kind = RANK_MEM_HOST;
    backend_cuda_free(ptr);
    if (mem.sort == BE_MANAGED || kind == RANK_MEM_CUDA)
        return true;
    snprintf(why, room, "librank takes device memory for host memory; set RANK_CUDA=on");
    return false;
}

/* The path from the rank's cores, where the library has it. */
static const char *backend_cuda_path(const rank_device_t *mine, int device)
{
    for (int i = 0; i < mine->ngpus && i < RANK_DEVICE_MAX; i++) {
        if (mine->gpu[i].ordinal == device)
            return mine->gpu[i].path;
    }
    return "";
}

void be_device_text(char *out, size_t room)
{
    rank_device_t mine = RANK_DEVICE_INIT;
    char name[64], pci[20];
    CUdevice handle;

    out[0] = '\0';
    for (int i = 0; i < DEVICES_MAX; i++) {
        const char *path;
        size_t n = strlen(out);

        if (!contexts[i])
            continue;
        if (n == 0 && !backend_cuda_query(&mine))
            mine.ngpus = 0;
        path = backend_cuda_path(&mine, i);
        MUST(DeviceGet, &handle, i);
        MUST(DeviceGetName, name, sizeof(name), handle);
        MUST(DeviceGetPCIBusId, pci, sizeof(pci), handle);
        snprintf(out + n, room - n, "%scuda:%d %s %s%s%s", n ? ", " : "", i, name, pci, path[0] ? " " : "", path);
    }
}

void be_nic_text(char *out, size_t room)
{
    rank_device_t mine = RANK_DEVICE_INIT;
    int device = -1;

    out[0] = '\0';
    for (int i = 0; i < DEVICES_MAX; i++)
        device = contexts[i] && (device < 0 || i == own) ? i : device;
    if (device < 0 || !backend_cuda_query(&mine))
        return;
    for (int i = 0; i < mine.nnics && i < RANK_DEVICE_MAX; i++) {
        const rank_device_nic_t *nic = &mine.nic[i];
        bool its = mine.ngpus && mine.gpu[0].ordinal == device && nic->path[0]; /* the path is from that GPU */
        size_t n = strlen(out);

        snprintf(out + n, room - n, "%s%s", n ? ", " : "", nic->name[0] ? nic->name : nic->netdev);
        n = strlen(out);
        if (its)
            snprintf(out + n, room - n, " %s from cuda:%d", nic->path, device);
    }
}

/* A device that is in use already: its context serves for all memory. Else the own one, as -1. */
static int backend_cuda_used(void)
{
    for (int i = 0; i < DEVICES_MAX; i++) {
        if (contexts[i])
            return i;
    }
    return -1;
}

void be_copy(void *to, const void *from, size_t bytes)
{
    backend_cuda_enter(backend_cuda_used());
    MUST(Memcpy, (CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, bytes);
    MUST(CtxSynchronize); /* cuMemcpy does not wait for all copies */
    backend_cuda_leave();
}

void *backend_cuda_alloc(size_t bytes, struct be_mem mem)
{
    CUdeviceptr at = 0;
    CUresult r;

    backend_cuda_enter(mem.device);
    if (mem.sort == BE_MANAGED)
        r = rk_cuda.MemAllocManaged(&at, bytes, CU_MEM_ATTACH_GLOBAL);
    else
        r = rk_cuda.MemAlloc(&at, bytes);
    if (r != CUDA_ERROR_OUT_OF_MEMORY)
        backend_cuda_must(r, mem.sort == BE_MANAGED ? "cuMemAllocManaged" : "cuMemAlloc");
    backend_cuda_leave();
    return (void *)(uintptr_t)at;
}

void backend_cuda_free(void *ptr)
{
    backend_cuda_enter(backend_cuda_used());
    MUST(MemFree, (CUdeviceptr)(uintptr_t)ptr);
    backend_cuda_leave();
}

void backend_cuda_close(void)
{
    CUdevice handle;

    for (int i = 0; i < DEVICES_MAX; i++) {
        if (contexts[i] && rk_cuda.DeviceGet(&handle, i) == CUDA_SUCCESS)
            rk_cuda.DevicePrimaryCtxRelease(handle);
        contexts[i] = NULL;
    }
}

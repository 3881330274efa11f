/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_paths.c: find by trial how processes reach each other's device memory. */
#include "lib/mem/cuda/cuda_paths.h"
#include "lib/mem/cuda/cuda_context.h"
#include "lib/mem/cuda/cuda_export.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Does the driver export memory of cuMemAlloc on device 0? */
static bool try_ipc(void)
{
    struct rk_cuda_handle h = {.sort = RK_CUDA_HANDLE_NONE};
    CUdeviceptr at;
    bool done = false;

    if (rk_cuda_enter_primary(0, NULL))
        return false;
    if (rk_cuda.MemAlloc(&at, 1) == CUDA_SUCCESS) {
        done = rk_cuda_export_memory((void *)(uintptr_t)at, &h) && h.sort == RK_CUDA_HANDLE_IPC;
        rk_cuda.MemFree(at);
    }
    rk_cuda_leave();
    return done;
}

/* Does it export memory of device 0 by a descriptor, and read that back? */
static bool try_descriptor(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    struct rk_cuda_handle h = {.sort = RK_CUDA_HANDLE_NONE};
    CUmemGenericAllocationHandle memory, again;
    size_t unit = 0;
    int fd = -1;
    bool done = false;

    if (!RK_CUDA_HAS(MemImportFromShareableHandle) ||
        rk_cuda.MemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS ||
        rk_cuda.MemCreate(&memory, unit, &prop, 0) != CUDA_SUCCESS)
        return false;
    if (rk_cuda_export_fd(memory, 0, &h)) {
        fd = rk_cuda_take_descriptor(&h); /* as another process does it */
        close(h.fd);
    }
    if (fd >= 0) {
        done = rk_cuda.MemImportFromShareableHandle(&again, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) ==
               CUDA_SUCCESS;
        close(fd);
    }
    if (done)
        rk_cuda.MemRelease(again);
    rk_cuda.MemRelease(memory);
    return done;
}

/* The pairs of devices that cannot access each other, as "; not between devices 0-1 2-3". */
static void list_far_pairs(char *text, size_t room)
{
    size_t len = 0;
    int n = 0;

    rk_cuda.DeviceGetCount(&n);
    for (int a = 0; a < n; a++) {
        for (int b = a + 1; b < n && len + 32 < room; b++) {
            CUdevice one, other;
            int can = 0;

            if (rk_cuda.DeviceGet(&one, a) == CUDA_SUCCESS && rk_cuda.DeviceGet(&other, b) == CUDA_SUCCESS &&
                rk_cuda.DeviceCanAccessPeer(&can, one, other) == CUDA_SUCCESS && !can)
                len += (size_t)snprintf(text + len, room - len, "%s %d-%d", len ? "" : "; not between devices", a, b);
        }
    }
}

void rk_cuda_describe_paths(char *text, size_t room)
{
    bool ipc = try_ipc(), descriptor = try_descriptor();
    char pairs[256] = "";

    if (ipc || descriptor)
        list_far_pairs(pairs, sizeof(pairs));
    if (ipc && descriptor)
        snprintf(text, room, "one copy; mapped by IPC handles and descriptors%s", pairs);
    else if (ipc || descriptor)
        snprintf(text, room, "one copy; mapped by %s only%s", ipc ? "IPC handles" : "descriptors", pairs);
    else
        snprintf(text, room, "through host memory; the driver exports no memory");
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_export.c: describe allocations, make handles of them, read handles. */
#include "lib/mem/cuda/cuda_export.h"
#include "lib/base/log.h"
#include "lib/mem/cuda/cuda_context.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

/* ----------------------------------------------------------------------- allocations */

/* Enter the context that owns the memory, or else the device's primary one. */
static rank_status_t enter_owner(const struct rk_cuda_pointer *p)
{
    bool primary = !p->context || rk_cuda_is_primary(p->context, p->device);

    return primary ? rk_cuda_enter_primary(p->device, NULL) : rk_cuda_enter(p->context);
}

/* Make the program's copies complete, in the memory's context. */
static rank_status_t block_settle(const void *ptr, const struct rk_cuda_pointer *p)
{
    rank_status_t st;

    if (p->settled)
        return RANK_OK;
    st = enter_owner(p);
    if (st)
        return st;
    st = rk_cuda_settle(ptr, p);
    rk_cuda_leave();
    return st;
}

/* Memory with an IPC handle is exported as allocated, all other as mapped: a reserved range may have many mappings. */
rank_status_t rk_cuda_block(const void *ptr, bool settle, struct rk_kind_block *out)
{
    unsigned legacy = 0; /* a bool of the driver's */
    CUpointer_attribute range[] = {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    CUpointer_attribute mapping[] = {CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, CU_POINTER_ATTRIBUTE_MAPPING_SIZE};
    CUdeviceptr base = 0, at = (CUdeviceptr)(uintptr_t)ptr;
    void *values[] = {&base, &out->bytes};
    struct rk_cuda_pointer p;
    rank_status_t st = rk_cuda_pointer(ptr, &p);

    if (st || !p.on_device)
        return st ? st : RANK_ERR_NOT_SUPPORTED;
    out->bytes = 0;
    rk_cuda.PointerGetAttribute(&legacy, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, at);
    if (legacy || rk_cuda.PointerGetAttributes(RK_ARRAY_LEN(mapping), mapping, values, at) != CUDA_SUCCESS || !out->bytes)
        st = RK_CUDA_CALL(PointerGetAttributes, RK_ARRAY_LEN(range), range, values, at);
    if (!st && (base > at || at - base >= out->bytes))
        st = RANK_ERR_NOT_SUPPORTED;
    out->base = (void *)(uintptr_t)base;
    out->id = p.id;
    return st || !settle ? st : block_settle(ptr, &p);
}

/* --------------------------------------------------------------------------- handles */

static void handle_set_device(struct rk_cuda_handle *h, int ordinal)
{
    CUdevice device;

    memset(&h->device, 0, sizeof(h->device));
    if (RK_CUDA_HAS(DeviceGetUuid) && rk_cuda.DeviceGet(&device, ordinal) == CUDA_SUCCESS)
        rk_cuda.DeviceGetUuid(&h->device, device);
}

bool rk_cuda_export_fd(CUmemGenericAllocationHandle memory, int device, struct rk_cuda_handle *h)
{
    struct stat file;

    if (!RK_CUDA_HAS(MemExportToShareableHandle) ||
        rk_cuda.MemExportToShareableHandle(&h->fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) != CUDA_SUCCESS)
        return false;
    fcntl(h->fd, F_SETFD, FD_CLOEXEC);
    if (fstat(h->fd, &file) < 0) {
        close(h->fd);
        return false;
    }
    h->sort = RK_CUDA_HANDLE_FD;
    h->pid = getpid();
    h->dev = (uint64_t)file.st_dev;
    h->ino = (uint64_t)file.st_ino;
    handle_set_device(h, device);
    return true;
}

static bool export_ipc(const void *base, const struct rk_cuda_pointer *p, struct rk_cuda_handle *h)
{
    CUresult r;

    if (!RK_CUDA_HAS(IpcGetMemHandle) || !RK_CUDA_HAS(IpcOpenMemHandle) || enter_owner(p) != RANK_OK)
        return false;
    r = rk_cuda.IpcGetMemHandle(&h->ipc, (CUdeviceptr)(uintptr_t)base);
    rk_cuda_leave();
    h->sort = RK_CUDA_HANDLE_IPC;
    h->pid = getpid();
    h->id = p->id;
    handle_set_device(h, p->device);
    return r == CUDA_SUCCESS;
}

bool rk_cuda_export_memory(const void *base, struct rk_cuda_handle *h)
{
    CUmemGenericAllocationHandle memory;
    struct rk_cuda_pointer p;
    bool done;

    if (rk_cuda_pointer(base, &p) || !p.on_device)
        return false;
    if (export_ipc(base, &p, h))
        return true;
    if (!RK_CUDA_HAS(MemRetainAllocationHandle) ||
        rk_cuda.MemRetainAllocationHandle(&memory, (void *)(uintptr_t)base) != CUDA_SUCCESS)
        return false;
    done = rk_cuda_export_fd(memory, p.device, h);
    rk_cuda.MemRelease(memory);
    return done;
}

/* Opening /proc/PID/fd instead would open the device anew, without the memory. */
int rk_cuda_take_descriptor(const struct rk_cuda_handle *h)
{
    int pidfd = (int)syscall(SYS_pidfd_open, h->pid, 0), fd = -1;
    struct stat file;

    if (pidfd >= 0) {
        fd = (int)syscall(SYS_pidfd_getfd, pidfd, h->fd, 0);
        close(pidfd);
    }
    if (fd < 0) {
        rk_info("cannot take a descriptor of device memory from process %d: %m", h->pid);
    } else if (fstat(fd, &file) < 0 || (uint64_t)file.st_dev != h->dev || (uint64_t)file.st_ino != h->ino) {
        rk_info("process %d has no such descriptor of device memory", h->pid);
        close(fd);
        return -1;
    }
    return fd;
}

static bool is_refusal(CUresult r)
{
    switch (r) {
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_PEER_ACCESS_UNSUPPORTED:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_MAP_FAILED:
    case CUDA_ERROR_ALREADY_MAPPED:
    case CUDA_ERROR_TOO_MANY_PEERS:
    case CUDA_ERROR_NOT_PERMITTED:
    case CUDA_ERROR_OPERATING_SYSTEM:
        return true;
    default:
        return false;
    }
}

rank_status_t rk_cuda_import_failed(const struct rk_cuda_handle *h, const char *call, CUresult result)
{
    char text[256];

    if (!is_refusal(result))
        return rk_cuda_failed(call, result);
    rk_info("device memory of process %d cannot be mapped: %s: %s", h->pid, call, rk_cuda_error_text(result, text, sizeof(text)));
    return RANK_ERR_NOT_SUPPORTED;
}

static bool is_active(CUdevice device)
{
    unsigned flags;
    int active = 0;

    return rk_cuda.DevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active;
}

int rk_cuda_device_in_use(const struct rk_cuda_handle *h)
{
    static const CUuuid unknown;
    int n = 0, any = -1;

    if (rk_cuda.DeviceGetCount(&n) != CUDA_SUCCESS)
        return -1;
    for (int i = 0; i < n; i++) {
        CUdevice device;
        CUuuid uuid = unknown;

        if (rk_cuda.DeviceGet(&device, i) != CUDA_SUCCESS || !is_active(device))
            continue;
        if (RK_CUDA_HAS(DeviceGetUuid))
            rk_cuda.DeviceGetUuid(&uuid, device);
        if (memcmp(&uuid, &unknown, sizeof(uuid)) != 0 && memcmp(&uuid, &h->device, sizeof(uuid)) == 0)
            return i;
        if (any < 0)
            any = i;
    }
    return any;
}

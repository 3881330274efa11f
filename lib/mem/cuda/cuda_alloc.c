/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_alloc.c: allocate, export and import device memory. */
#include "lib/mem/cuda/cuda_alloc.h"
#include "lib/base/log.h"
#include "lib/mem/cuda/cuda_context.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
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

enum block_sort { BLOCK_VMM, BLOCK_PLAIN, BLOCK_IPC };

/* Memory that was allocated or imported here. */
struct block {
    struct block *next;
    enum block_sort sort;
    CUdeviceptr at;
    size_t bytes; /* BLOCK_VMM: of the mapping */
    int device;
    bool imported;
    CUmemGenericAllocationHandle handle; /* BLOCK_VMM */
};

static struct block *blocks;
static int nimported;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Memory of another process. */
struct wire_handle {
    int32_t sort;      /* enum block_sort, but not BLOCK_IPC */
    int32_t pid, fd;   /* VMM: descriptor of the shareable handle in that process, */
    uint32_t pad;
    uint64_t dev, ino; /* and the file that it names: the pid may be of another PID namespace */
    uint64_t bytes;
    CUipcMemHandle ipc; /* PLAIN */
};

static struct block *find_block(CUdeviceptr at, bool remove)
{
    struct block **link = &blocks, *found;

    pthread_mutex_lock(&lock);
    while (*link && (*link)->at != at)
        link = &(*link)->next;
    found = *link;
    if (found && remove) {
        *link = found->next;
        __atomic_fetch_sub(&nimported, found->imported, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void add_block(struct block *b)
{
    pthread_mutex_lock(&lock);
    b->next = blocks;
    blocks = b;
    __atomic_fetch_add(&nimported, b->imported, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
}

int rk_cuda_imported_for(const void *ptr)
{
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)ptr;
    int device = -1;

    if (__atomic_load_n(&nimported, __ATOMIC_RELAXED) == 0)
        return -1;
    pthread_mutex_lock(&lock);
    for (const struct block *b = blocks; b && device < 0; b = b->next) {
        if (b->imported && at - b->at < b->bytes)
            device = b->device;
    }
    pthread_mutex_unlock(&lock);
    return device;
}

/* ------------------------------------------------------------------------------ VMM */

static bool device_has(int device, CUdevice_attribute what)
{
    CUdevice handle;
    int has = 0;

    return rk_cuda.DeviceGet(&handle, device) == CUDA_SUCCESS && rk_cuda.DeviceGetAttribute(&has, what, handle) == CUDA_SUCCESS && has;
}

/* Can memory of the device be shared by a descriptor? */
static bool vmm_is_shareable(int device)
{
    return RK_CUDA_HAS(MemExportToShareableHandle) && RK_CUDA_HAS(MemImportFromShareableHandle) &&
           device_has(device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) &&
           device_has(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
}

/* Map b->handle for b->device. On error nothing is mapped, and *call is the call that failed. */
static CUresult vmm_map(struct block *b, const char **call)
{
    CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, b->device}, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUresult r;

    *call = "cuMemAddressReserve";
    r = rk_cuda.MemAddressReserve(&b->at, b->bytes, 0, 0, 0);
    if (r != CUDA_SUCCESS)
        return r;
    *call = "cuMemMap";
    r = rk_cuda.MemMap(b->at, b->bytes, 0, b->handle, 0);
    if (r == CUDA_SUCCESS) {
        *call = "cuMemSetAccess";
        r = rk_cuda.MemSetAccess(b->at, b->bytes, &access, 1);
        if (r != CUDA_SUCCESS)
            rk_cuda.MemUnmap(b->at, b->bytes);
    }
    if (r != CUDA_SUCCESS)
        rk_cuda.MemAddressFree(b->at, b->bytes);
    return r;
}

static rank_status_t vmm_alloc(struct block *b)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, b->device}};
    const char *call;
    size_t unit = 0;
    CUresult r;
    rank_status_t st;

    prop.allocFlags.gpuDirectRDMACapable = device_has(b->device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
    st = RK_CUDA_CALL(MemGetAllocationGranularity, &unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (st)
        return st;
    b->bytes = (b->bytes + unit - 1) / unit * unit;
    st = RK_CUDA_CALL(MemCreate, &b->handle, b->bytes, &prop, 0);
    if (st)
        return st;
    r = vmm_map(b, &call);
    if (r != CUDA_SUCCESS)
        rk_cuda.MemRelease(b->handle);
    return rk_cuda_check(call, r);
}

/* As cuMemFree does, wait for what the program has under way. */
static void vmm_free(const struct block *b)
{
    CUstream stream;

    if (rk_cuda_enter_primary(b->device, &stream) == RANK_OK) {
        rk_cuda.CtxSynchronize();
        rk_cuda_leave();
    }
    rk_cuda.MemUnmap(b->at, b->bytes);
    rk_cuda.MemRelease(b->handle);
    rk_cuda.MemAddressFree(b->at, b->bytes);
}

/* A descriptor of another process, or -1. Opening /proc/PID/fd would open the device anew, without the memory. */
static int take_descriptor(const struct wire_handle *w)
{
    int pidfd = (int)syscall(SYS_pidfd_open, w->pid, 0), fd;
    struct stat file;

    if (pidfd < 0)
        return -1;
    fd = (int)syscall(SYS_pidfd_getfd, pidfd, w->fd, 0);
    close(pidfd);
    if (fd >= 0 && (fstat(fd, &file) < 0 || (uint64_t)file.st_dev != w->dev || (uint64_t)file.st_ino != w->ino)) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool vmm_import(struct block *b, const struct wire_handle *w)
{
    int fd = take_descriptor(w);
    const char *call = "cuMemImportFromShareableHandle";
    CUresult r;

    if (fd < 0) {
        rk_info("cannot take a descriptor of device memory from process %d: %m", w->pid);
        return false;
    }
    r = rk_cuda.MemImportFromShareableHandle(&b->handle, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    close(fd);
    if (r == CUDA_SUCCESS) {
        r = vmm_map(b, &call);
        if (r != CUDA_SUCCESS)
            rk_cuda.MemRelease(b->handle);
    }
    if (r != CUDA_SUCCESS)
        rk_info("device memory of process %d cannot be mapped: %s returns %d", w->pid, call, (int)r);
    return r == CUDA_SUCCESS;
}

/* ---------------------------------------------------------------------- allocations */

static rank_status_t clear_block(const struct block *b, size_t bytes)
{
    CUstream stream;
    rank_status_t st = rk_cuda_enter_primary(b->device, &stream);

    if (st)
        return st;
    st = RK_CUDA_CALL(MemsetD8Async, b->at, 0, bytes, stream);
    if (!st)
        st = RK_CUDA_CALL(StreamSynchronize, stream);
    rk_cuda_leave();
    return st;
}

static rank_status_t plain_alloc(struct block *b)
{
    rank_status_t st = rk_cuda_enter_primary(b->device, NULL);

    if (st)
        return st;
    st = RK_CUDA_CALL(MemAlloc, &b->at, b->bytes);
    rk_cuda_leave();
    return st;
}

static void release_block(const struct block *b)
{
    if (b->sort == BLOCK_VMM) {
        vmm_free(b);
    } else if (rk_cuda_enter_primary(b->device, NULL) == RANK_OK) {
        if (b->sort == BLOCK_PLAIN)
            rk_cuda.MemFree(b->at);
        else
            rk_cuda.IpcCloseMemHandle(b->at);
        rk_cuda_leave();
    }
}

rank_status_t rk_cuda_alloc(size_t bytes, void **out)
{
    struct block *b = calloc(1, sizeof(*b));
    rank_status_t st = b ? RANK_OK : RANK_ERR_NO_MEMORY;

    if (!st)
        st = rk_cuda_current_device(&b->device);
    if (!st) {
        b->bytes = bytes ? bytes : 1;
        b->sort = vmm_is_shareable(b->device) ? BLOCK_VMM : BLOCK_PLAIN;
        st = b->sort == BLOCK_VMM ? vmm_alloc(b) : plain_alloc(b);
    }
    if (!st) {
        st = clear_block(b, bytes ? bytes : 1);
        if (st)
            release_block(b);
    }
    if (st) {
        free(b);
        return st;
    }
    add_block(b);
    *out = (void *)(uintptr_t)b->at;
    return RANK_OK;
}

void rk_cuda_free(void *ptr)
{
    struct block *b = find_block((CUdeviceptr)(uintptr_t)ptr, true);

    if (b)
        release_block(b);
    free(b);
}

size_t rk_cuda_export(const void *ptr, size_t bytes, void *handle, size_t room)
{
    const struct block *b = find_block((CUdeviceptr)(uintptr_t)ptr, false);
    struct wire_handle w = {.pid = getpid(), .fd = -1};
    struct stat file;

    (void)bytes;
    if (!b || room < sizeof(w))
        return 0;
    w.sort = (int32_t)b->sort;
    w.bytes = b->bytes;
    if (b->sort == BLOCK_VMM) {
        if (rk_cuda.MemExportToShareableHandle(&w.fd, b->handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) != CUDA_SUCCESS)
            return 0;
        fcntl(w.fd, F_SETFD, FD_CLOEXEC);
        if (fstat(w.fd, &file) < 0) {
            close(w.fd);
            return 0;
        }
        w.dev = (uint64_t)file.st_dev;
        w.ino = (uint64_t)file.st_ino;
    } else if (b->sort != BLOCK_PLAIN || !RK_CUDA_HAS(IpcGetMemHandle) || !RK_CUDA_HAS(IpcOpenMemHandle) ||
               rk_cuda.IpcGetMemHandle(&w.ipc, b->at) != CUDA_SUCCESS) {
        return 0;
    }
    memcpy(handle, &w, sizeof(w));
    return sizeof(w);
}

void rk_cuda_export_end(const void *handle, size_t len)
{
    struct wire_handle w;

    if (len != sizeof(w))
        return;
    memcpy(&w, handle, sizeof(w));
    if (w.fd >= 0)
        close(w.fd);
}

static bool ipc_import(struct block *b, const struct wire_handle *w)
{
    CUresult r;

    b->sort = BLOCK_IPC;
    if (!RK_CUDA_HAS(IpcOpenMemHandle) || !RK_CUDA_HAS(IpcCloseMemHandle) || rk_cuda_enter_primary(b->device, NULL))
        return false;
    r = rk_cuda.IpcOpenMemHandle(&b->at, w->ipc, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    rk_cuda_leave();
    if (r != CUDA_SUCCESS)
        rk_info("device memory of process %d cannot be mapped: cuIpcOpenMemHandle returns %d", w->pid, (int)r);
    return r == CUDA_SUCCESS;
}

void *rk_cuda_import(const void *handle, size_t len, const void *near)
{
    struct block *b = len == sizeof(struct wire_handle) ? calloc(1, sizeof(*b)) : NULL;
    const struct block *own = find_block((CUdeviceptr)(uintptr_t)near, false);
    struct wire_handle w;

    if (!b)
        return NULL;
    memcpy(&w, handle, sizeof(w));
    b->device = own ? own->device : 0;
    b->bytes = w.bytes;
    b->imported = true;
    b->sort = (enum block_sort)w.sort;
    if (w.sort == BLOCK_VMM ? !vmm_import(b, &w) : w.sort != BLOCK_PLAIN || !ipc_import(b, &w)) {
        free(b);
        return NULL;
    }
    add_block(b);
    return (void *)(uintptr_t)b->at;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_alloc.c: allocate, export and import device memory. */
#include "lib/mem/cuda/cuda_alloc.h"
#include "lib/base/log.h"
#include "lib/mem/cuda/cuda_context.h"
#include "lib/mem/cuda/cuda_export.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum block_sort { BLOCK_VMM = RK_CUDA_HANDLE_FD, BLOCK_PLAIN = RK_CUDA_HANDLE_IPC, BLOCK_IPC };

/* Memory that was allocated or imported here. */
struct block {
    struct block *next;
    enum block_sort sort;
    CUdeviceptr at;
    size_t bytes; /* BLOCK_VMM: of the mapping */
    int device;
    bool imported;
    int users;                           /* BLOCK_IPC: imports, as a context opens a handle once */
    struct rk_cuda_handle of;            /* BLOCK_IPC */
    CUmemGenericAllocationHandle handle; /* BLOCK_VMM */
};

static struct block *blocks;
static int nimported;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct block *find_block(CUdeviceptr at, bool remove)
{
    struct block **link = &blocks, *found;

    pthread_mutex_lock(&lock);
    while (*link && (*link)->at != at)
        link = &(*link)->next;
    found = *link;
    if (found && remove && --found->users > 0)
        found = NULL;
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

/*
 * As cuMemFree does, wait for what the program has under way. Not while a stream may wait for the library, which closes a
 * mapping of a peer's memory at any time.
 */
static void vmm_free(const struct block *b)
{
    CUstream stream;

    if (!b->imported && atomic_load(&rk_cuda_starts) == 0 && rk_cuda_enter_primary(b->device, &stream) == RANK_OK) {
        rk_cuda.CtxSynchronize();
        rk_cuda_leave();
    }
    rk_cuda.MemUnmap(b->at, b->bytes);
    rk_cuda.MemRelease(b->handle);
    rk_cuda.MemAddressFree(b->at, b->bytes);
}

static rank_status_t vmm_import(struct block *b, const struct rk_cuda_handle *h)
{
    int fd = rk_cuda_take_descriptor(h);
    const char *call = "cuMemImportFromShareableHandle";
    CUresult r;

    if (fd < 0)
        return RANK_ERR_NOT_SUPPORTED;
    r = rk_cuda.MemImportFromShareableHandle(&b->handle, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    close(fd);
    if (r == CUDA_SUCCESS) {
        r = vmm_map(b, &call);
        if (r != CUDA_SUCCESS)
            rk_cuda.MemRelease(b->handle);
    }
    return r == CUDA_SUCCESS ? RANK_OK : rk_cuda_import_failed(h, call, r);
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
    struct rk_cuda_handle h = {.sort = RK_CUDA_HANDLE_NONE, .bytes = b ? b->bytes : bytes};
    bool done;

    if (room < sizeof(h) || (b && b->imported))
        return 0;
    done = b && b->sort == BLOCK_VMM ? rk_cuda_export_fd(b->handle, b->device, &h) : rk_cuda_export_memory(ptr, &h);
    memcpy(handle, &h, sizeof(h));
    return done ? sizeof(h) : 0;
}

void rk_cuda_export_end(const void *handle, size_t len)
{
    struct rk_cuda_handle h;

    if (len != sizeof(h))
        return;
    memcpy(&h, handle, sizeof(h));
    if (h.sort == RK_CUDA_HANDLE_FD)
        close(h.fd);
}

static bool is_same_import(const struct block *b, int device, const struct rk_cuda_handle *h)
{
    return b->sort == BLOCK_IPC && b->device == device && b->of.pid == h->pid && b->of.id == h->id &&
           memcmp(&b->of.ipc, &h->ipc, sizeof(h->ipc)) == 0;
}

/* An earlier import of the handle for that device, used once more; or NULL. */
static struct block *import_again(int device, const struct rk_cuda_handle *h)
{
    struct block *b;

    pthread_mutex_lock(&lock);
    for (b = blocks; b && !is_same_import(b, device, h); b = b->next)
        ;
    if (b)
        b->users++;
    pthread_mutex_unlock(&lock);
    return b;
}

static rank_status_t ipc_import(struct block *b, const struct rk_cuda_handle *h)
{
    rank_status_t st;
    CUresult r;

    b->sort = BLOCK_IPC;
    b->of = *h;
    b->users = 1;
    if (!RK_CUDA_HAS(IpcOpenMemHandle) || !RK_CUDA_HAS(IpcCloseMemHandle))
        return RANK_ERR_NOT_SUPPORTED;
    st = rk_cuda_enter_primary(b->device, NULL);
    if (st)
        return st;
    r = rk_cuda.IpcOpenMemHandle(&b->at, h->ipc, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    rk_cuda_leave();
    return r == CUDA_SUCCESS ? RANK_OK : rk_cuda_import_failed(h, "cuIpcOpenMemHandle", r);
}

bool rk_cuda_outlives(const void *base)
{
    const struct block *b = find_block((CUdeviceptr)(uintptr_t)base, false);

    return b && b->sort == BLOCK_VMM;
}

/* Device of memory that was allocated here, or that the program has allocated; -1: none. */
static int device_of(const void *ptr)
{
    const struct block *own = find_block((CUdeviceptr)(uintptr_t)ptr, false);
    struct rk_cuda_pointer p;

    if (own)
        return own->device;
    return rk_cuda_pointer(ptr, &p) == RANK_OK && p.on_device ? p.device : -1;
}

rank_status_t rk_cuda_import(const void *handle, size_t len, const void *near, void **out)
{
    struct rk_cuda_handle h;
    struct block *b;
    rank_status_t st;
    int device;

    if (len != sizeof(h))
        return RANK_ERR_NOT_SUPPORTED;
    memcpy(&h, handle, sizeof(h));
    device = near ? device_of(near) : rk_cuda_device_in_use(&h);
    if (device < 0 || (h.sort != RK_CUDA_HANDLE_FD && h.sort != RK_CUDA_HANDLE_IPC))
        return RANK_ERR_NOT_SUPPORTED;
    b = h.sort == RK_CUDA_HANDLE_IPC ? import_again(device, &h) : NULL;
    if (b) {
        *out = (void *)(uintptr_t)b->at;
        return RANK_OK;
    }
    b = calloc(1, sizeof(*b));
    if (!b)
        return RANK_ERR_NO_MEMORY;
    *b = (struct block){.sort = BLOCK_VMM, .bytes = h.bytes, .device = device, .imported = true};
    st = h.sort == RK_CUDA_HANDLE_FD ? vmm_import(b, &h) : ipc_import(b, &h);
    if (st) {
        free(b);
        return st;
    }
    add_block(b);
    *out = (void *)(uintptr_t)b->at;
    return RANK_OK;
}

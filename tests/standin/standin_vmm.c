/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_vmm.c: map physical memory at reserved addresses, and export it.
 *
 * A descriptor carries O_APPEND, a flag of the open file: dup, SCM_RIGHTS and pidfd_getfd keep it. A file opened
 * anew by /proc/PID/fd lacks it and is refused, as the driver refuses a device opened anew.
 */
#include "tests/standin/standin.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Handles are addresses of these blocks. */
static struct standin_block **blocks;
static int nblocks;

static bool is_aligned(CUdeviceptr n) { return n % STANDIN_LARGE == 0; }

static struct standin_block *find_handle(CUmemGenericAllocationHandle handle)
{
    for (int i = 0; i < nblocks; i++)
        if ((uintptr_t)blocks[i] == handle && blocks[i]->handles)
            return blocks[i];
    return NULL;
}

static void handle_put(struct standin_block *b)
{
    for (int i = 0; i < nblocks && !b->handles && !b->maps; i++)
        if (blocks[i] == b)
            blocks[i--] = blocks[--nblocks];
    standin_block_put(b);
}

static void handle_add(struct standin_block *b)
{
    blocks = realloc(blocks, (nblocks + 1) * sizeof(blocks[0]));
    if (!blocks)
        abort();
    blocks[nblocks++] = b;
    b->handles = 1;
}

int standin_leaked_handles(void)
{
    int n = 0;

    for (int i = 0; i < nblocks; i++)
        n += (int)blocks[i]->handles;
    return n;
}

static CUresult check_prop(const CUmemAllocationProp *prop)
{
    if (!standin_settings.vmm)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (prop->location.id < 0 || prop->location.id >= standin_ndevices)
        return CUDA_ERROR_INVALID_DEVICE;
    if (prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (prop->requestedHandleTypes && !standin_settings.ipc_fd)
        return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}

CUresult standin_MemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop,
                                             CUmemAllocationGranularity_flags option)
{
    CUresult error = check_prop(prop);

    if (!bytes || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = STANDIN_LARGE;
    return error;
}

CUresult standin_MemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *prop,
                           unsigned long long flags)
{
    CUresult error = check_prop(prop);
    struct standin_block *b;

    if (error)
        return error;
    if (!handle || !bytes || !is_aligned(bytes) || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes > standin_settings.memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&standin_lock);
    b = standin_block_create(bytes, prop->location.id, true);
    if (b) {
        b->types = prop->requestedHandleTypes;
        handle_add(b);
        *handle = (uintptr_t)b;
    }
    pthread_mutex_unlock(&standin_lock);
    return b ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult standin_MemRelease(CUmemGenericAllocationHandle handle)
{
    struct standin_block *b;

    pthread_mutex_lock(&standin_lock);
    b = find_handle(handle);
    if (b) {
        b->handles--;
        handle_put(b);
    }
    pthread_mutex_unlock(&standin_lock);
    return b ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult standin_MemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *ptr)
{
    struct standin_range *r;

    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&standin_lock);
    r = standin_range_find((uintptr_t)ptr);
    if (r && r->kind == STANDIN_VMM) {
        r->block->handles++;
        *handle = (uintptr_t)r->block;
    } else
        r = NULL;
    pthread_mutex_unlock(&standin_lock);
    return r ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult standin_MemAddressReserve(CUdeviceptr *ptr, size_t bytes, size_t alignment, CUdeviceptr hint,
                                   unsigned long long flags)
{
    (void)hint;
    if (!standin_settings.vmm)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!ptr || !bytes || !is_aligned(bytes) || (alignment & (alignment - 1)) || flags)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&standin_lock);
    *ptr = standin_area_take(bytes, alignment > STANDIN_LARGE ? alignment : STANDIN_LARGE, true);
    pthread_mutex_unlock(&standin_lock);
    return *ptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult standin_MemAddressFree(CUdeviceptr ptr, size_t bytes)
{
    bool done;

    pthread_mutex_lock(&standin_lock);
    done = !standin_overlaps(ptr, bytes) && standin_area_give(ptr, bytes, true);
    pthread_mutex_unlock(&standin_lock);
    return done ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult standin_MemMap(CUdeviceptr ptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                        unsigned long long flags)
{
    struct standin_block *b;
    CUresult error = CUDA_ERROR_INVALID_VALUE;
    CUdeviceptr base;
    size_t size;

    pthread_mutex_lock(&standin_lock);
    b = find_handle(handle);
    if (b && bytes && is_aligned(bytes) && is_aligned(ptr) && offset == 0 && bytes <= b->size && !flags &&
        standin_area_find(ptr, &base, &size) && bytes <= base + size - ptr && !standin_overlaps(ptr, bytes)) {
        error = CUDA_ERROR_OUT_OF_MEMORY;
        if (standin_block_map(b, ptr, bytes, offset)) {
            struct standin_range *r = standin_range_add(ptr, bytes, STANDIN_VMM);

            r->block = b;
            error = CUDA_SUCCESS;
        }
    }
    pthread_mutex_unlock(&standin_lock);
    return error;
}

/* Do mappings of their whole length fill the range? */
static bool is_whole(CUdeviceptr ptr, size_t bytes)
{
    CUdeviceptr end = ptr + bytes;

    while (ptr < end) {
        const struct standin_range *r = standin_range_find(ptr);

        if (!r || r->kind != STANDIN_VMM || r->base != ptr || r->size > end - ptr)
            return false;
        ptr += r->size;
    }
    return bytes > 0;
}

CUresult standin_MemUnmap(CUdeviceptr ptr, size_t bytes)
{
    CUresult error = CUDA_ERROR_INVALID_VALUE;

    pthread_mutex_lock(&standin_lock);
    if (is_whole(ptr, bytes)) {
        for (CUdeviceptr at = ptr; at < ptr + bytes;) {
            struct standin_range *r = standin_range_find(at);
            struct standin_block *b = r->block;
            size_t size = r->size;

            standin_range_remove(r);
            standin_block_unmap(at, size);
            b->maps--;
            handle_put(b);
            at += size;
        }
        error = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&standin_lock);
    return error;
}

CUresult standin_MemSetAccess(CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *desc, size_t count)
{
    CUresult error = CUDA_ERROR_INVALID_VALUE;

    if (!desc || !count)
        return error;
    for (size_t i = 0; i < count; i++) {
        if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            return CUDA_ERROR_NOT_SUPPORTED;
        if (desc[i].location.id < 0 || desc[i].location.id >= standin_ndevices)
            return CUDA_ERROR_INVALID_DEVICE;
    }
    pthread_mutex_lock(&standin_lock);
    if (is_whole(ptr, bytes)) {
        error = CUDA_SUCCESS;
        for (CUdeviceptr at = ptr; at < ptr + bytes && !error;) {
            struct standin_range *r = standin_range_find(at);

            for (size_t i = 0; i < count; i++) {
                CUdevice device = desc[i].location.id;

                if (r->block->device != device && !standin_settings.peer)
                    error = CUDA_ERROR_INVALID_DEVICE;
                else
                    r->access[device] = desc[i].flags;
            }
            at += r->size;
        }
    }
    pthread_mutex_unlock(&standin_lock);
    return error;
}

CUresult standin_MemExportToShareableHandle(void *shared, CUmemGenericAllocationHandle handle,
                                            CUmemAllocationHandleType type, unsigned long long flags)
{
    struct standin_block *b;
    int fd = -1;

    if (!shared || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&standin_lock);
    b = find_handle(handle);
    if (b && (b->types & type)) {
        fd = fcntl(b->fd, F_DUPFD_CLOEXEC, 0);
        if (fd >= 0 && fcntl(fd, F_SETFL, O_APPEND) != 0)
            abort();
    }
    pthread_mutex_unlock(&standin_lock);
    if (!b || !(b->types & type))
        return CUDA_ERROR_INVALID_VALUE;
    if (fd < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    *(int *)shared = fd;
    return CUDA_SUCCESS;
}

/* Return the device before CUDA_VISIBLE_DEVICES if the descriptor is one of the stand-in's, else -1. */
static int exported_device(int fd)
{
    char path[40], name[64];
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    n = readlink(path, name, sizeof(name) - 1);
    if (n < 0 || !(fcntl(fd, F_GETFL) & O_APPEND))
        return -1;
    name[n] = 0;
    return strncmp(name, "/memfd:standin-gpu", 18) == 0 ? name[18] - 'a' : -1;
}

CUresult standin_MemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shared,
                                              CUmemAllocationHandleType type)
{
    int fd = (int)(intptr_t)shared, physical;
    struct standin_block *b;
    struct stat st;

    if (!standin_settings.ipc_fd)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    physical = exported_device(fd);
    if (physical < 0 || fstat(fd, &st) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    b = calloc(1, sizeof(*b));
    if (!b)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *b = (struct standin_block){.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0),
                                .size = (size_t)st.st_size,
                                .device = standin_ordinal(physical),
                                .physical = physical,
                                .vmm = true,
                                .imported = true,
                                .id = st.st_ino | 1ULL << 63,
                                .types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
    if (b->fd < 0) {
        free(b);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    pthread_mutex_lock(&standin_lock);
    handle_add(b);
    pthread_mutex_unlock(&standin_lock);
    *handle = (uintptr_t)b;
    return CUDA_SUCCESS;
}

CUresult standin_MemGetHandleForAddressRange(void *handle, CUdeviceptr ptr, size_t bytes, CUmemRangeHandleType type,
                                             unsigned long long flags)
{
    struct standin_range *r;
    int fd = -1;

    if (!handle || !bytes || ptr % STANDIN_PAGE || bytes % STANDIN_PAGE || flags ||
        type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&standin_lock);
    r = standin_range_find(ptr);
    if (r && r->block && bytes <= r->base + r->size - ptr)
        fd = fcntl(r->block->fd, F_DUPFD_CLOEXEC, 0);
    pthread_mutex_unlock(&standin_lock);
    if (fd < 0)
        return r && r->block ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
    *(int *)handle = fd;
    return CUDA_SUCCESS;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_ipc.c: export memory by a handle, and open it in another process.
 *
 * The handle names process, descriptor and file; memory that is freed meanwhile has another file or none there.
 * A mapping keeps the memory after the exporter has freed it.
 */
#include "tests/standin/standin.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[8] = "standin";

struct export {
    char magic[8];
    int pid, fd, physical;
    uint64_t file, id;
    uint64_t offset, size;
};
_Static_assert(sizeof(struct export) <= sizeof(CUipcMemHandle), "fits into the driver's handle");

/* Ranges opened here, to find one that is opened again. */
static struct opened {
    struct export what;
    struct CUctx_st *context;
    CUdeviceptr base, at;
    size_t span;
} *opened;
static int nopened;

CUresult standin_IpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr)
{
    struct standin_range *r;
    struct export e = {.pid = getpid()};
    struct stat st;
    CUresult error = CUDA_ERROR_INVALID_VALUE;

    if (!handle)
        return error;
    if (!standin_settings.ipc)
        return CUDA_ERROR_NOT_SUPPORTED;
    pthread_mutex_lock(&standin_lock);
    r = standin_range_find(ptr);
    if (r && r->kind == STANDIN_ALLOC && fstat(r->block->fd, &st) == 0) {
        memcpy(e.magic, magic, sizeof(magic));
        e.fd = r->block->fd;
        e.physical = r->block->physical;
        e.file = st.st_ino;
        e.id = r->id;
        e.offset = r->offset;
        e.size = r->size;
        memset(handle, 0, sizeof(*handle));
        memcpy(handle, &e, sizeof(e));
        error = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&standin_lock);
    return error;
}

/* Open the exporter's file. -1: the process or the memory is gone. */
static int open_export(const struct export *e)
{
    char path[64];
    struct stat st;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", e->pid, e->fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &st) != 0 || st.st_ino != e->file)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Map an export that this context has not opened. */
static CUresult map_export(const struct export *e, struct CUctx_st *context, CUdeviceptr *ptr)
{
    size_t first = e->offset / STANDIN_PAGE * STANDIN_PAGE;
    size_t span = (e->offset + e->size - first + STANDIN_PAGE - 1) / STANDIN_PAGE * STANDIN_PAGE;
    struct standin_block *b = calloc(1, sizeof(*b));
    struct opened *more = realloc(opened, (nopened + 1) * sizeof(*opened));
    int fd = open_export(e);
    CUdeviceptr at = fd >= 0 ? standin_area_take(span, STANDIN_LARGE, false) : 0;
    struct standin_range *r;

    if (!b || !more)
        abort();
    opened = more;
    if (!at) {
        if (fd >= 0)
            close(fd);
        free(b);
        return fd < 0 ? CUDA_ERROR_MAP_FAILED : CUDA_ERROR_OUT_OF_MEMORY;
    }
    *b = (struct standin_block){.fd = fd,
                                .size = e->size,
                                .device = context->device,
                                .physical = e->physical,
                                .imported = true,
                                .id = e->file | 1ULL << 63};
    if (!standin_block_map(b, at, span, first)) {
        standin_area_give(at, span, false);
        standin_block_put(b);
        return CUDA_ERROR_MAP_FAILED;
    }
    r = standin_range_add(at + e->offset - first, e->size, STANDIN_IPC);
    r->block = b;
    r->opened = 1;
    opened[nopened++] = (struct opened){*e, context, r->base, at, span};
    *ptr = r->base;
    return CUDA_SUCCESS;
}

CUresult standin_IpcOpenMemHandle(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned flags)
{
    struct CUctx_st *context = standin_context();
    struct export e;
    CUresult error = CUDA_SUCCESS;

    memcpy(&e, &handle, sizeof(e));
    if (!standin_settings.ipc)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!ptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || memcmp(e.magic, magic, sizeof(magic)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (e.pid == getpid())
        return CUDA_ERROR_INVALID_CONTEXT;
    if (e.physical != standin_devices[context->device].physical && !standin_settings.peer)
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    pthread_mutex_lock(&standin_lock);
    for (int i = 0; i < nopened; i++)
        if (memcmp(&opened[i].what, &e, sizeof(e)) == 0 && opened[i].context == context) {
            standin_range_find(opened[i].base)->opened++;
            *ptr = opened[i].base;
            goto done;
        }
    error = map_export(&e, context, ptr);
done:
    pthread_mutex_unlock(&standin_lock);
    return error;
}

CUresult standin_IpcCloseMemHandle(CUdeviceptr ptr)
{
    CUresult error = CUDA_ERROR_INVALID_VALUE;

    pthread_mutex_lock(&standin_lock);
    for (int i = 0; i < nopened; i++) {
        struct standin_range *r = opened[i].base == ptr ? standin_range_find(ptr) : NULL;
        struct standin_block *b;

        if (!r)
            continue;
        error = CUDA_SUCCESS;
        if (--r->opened)
            break;
        b = r->block;
        standin_range_remove(r);
        standin_block_unmap(opened[i].at, opened[i].span);
        standin_area_give(opened[i].at, opened[i].span, false);
        b->maps--;
        standin_block_put(b);
        opened[i] = opened[--nopened];
        break;
    }
    pthread_mutex_unlock(&standin_lock);
    return error;
}

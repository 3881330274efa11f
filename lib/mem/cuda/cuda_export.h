/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda_export.h: export device memory, by descriptor or IPC handle.
 *
 * Memory of cuMemAlloc has an IPC handle. Memory that is mapped (VMM), as of rank_alloc or of a caching allocator with
 * growing segments, has a descriptor, if its creator has made it shareable. Memory of a stream-ordered pool has
 * neither.
 */
#ifndef RK_MEM_CUDA_EXPORT_H
#define RK_MEM_CUDA_EXPORT_H

#include "lib/mem/cuda/cuda_driver.h"
#include "lib/mem/kind.h"

enum rk_cuda_handle_sort { RK_CUDA_HANDLE_FD, RK_CUDA_HANDLE_IPC, RK_CUDA_HANDLE_NONE };

/* What another process needs to map memory of this one. */
struct rk_cuda_handle {
    int32_t sort;      /* enum rk_cuda_handle_sort */
    int32_t pid, fd;   /* FD: the descriptor in that process, */
    uint32_t pad;
    uint64_t dev, ino; /* and the file that it names: the pid may be of another PID namespace */
    uint64_t bytes;    /* of the mapping */
    uint64_t id;       /* IPC: BUFFER_ID, as the driver may give memory at a reused address the same handle */
    CUuuid device;     /* zeros: unknown */
    CUipcMemHandle ipc;
};

/* As block of struct rk_kind. */
rank_status_t rk_cuda_block(const void *ptr, bool settle, struct rk_kind_block *out);

/* Fill a handle, but its bytes, for the physical memory of a device. False: it cannot be exported. */
bool rk_cuda_export_fd(CUmemGenericAllocationHandle memory, int device, struct rk_cuda_handle *h);
/* The same for the allocation that begins at base. */
bool rk_cuda_export_memory(const void *base, struct rk_cuda_handle *h);

/* A copy of the descriptor that a handle names, or -1. Logs the reason. Caller closes it. */
int rk_cuda_take_descriptor(const struct rk_cuda_handle *h);

/* Status of a failed import: RANK_ERR_NOT_SUPPORTED, logged, if the driver refuses the memory. */
rank_status_t rk_cuda_import_failed(const struct rk_cuda_handle *h, const char *call, CUresult result);

/*
 * Device for which the program can map the memory without a new context: the memory's own, else any. -1: the program
 * uses none.
 */
int rk_cuda_device_in_use(const struct rk_cuda_handle *h);

#endif

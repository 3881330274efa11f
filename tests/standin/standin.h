/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin.h: share the state of the stand-in for libcuda between its files.
 *
 * Device memory is a memfd. Its device address lies in an arena that the CPU cannot access; the same page at
 * address + standin_shadow is readable, which only the stand-in uses. One lock guards all tables and queues.
 * standin_NAME is the body of cuNAME: it runs without the lock, after the checks of standin_enter.
 *
 * Variables, read at the first call:
 *   STANDIN_GPUS=N           devices (default: 1); STANDIN_PCI=ID,ID..., STANDIN_UUID=UUID,UUID... name them
 *   STANDIN_MEMORY=BYTES     memory of a device (default: 8 GiB), counted in each process by itself
 *   STANDIN_PEER=off         no device can access another
 *   STANDIN_IPC=off|legacy|fd   refuse exports: both ways, or all but memory handles, or all but descriptors
 *   STANDIN_VMM=off, STANDIN_MEMOPS=off   without virtual memory management, without 64-bit memory operations
 *   STANDIN_DRIVER=VERSION   cuGetProcAddress refuses later versions (default: 13000)
 *   STANDIN_WITHOUT=NAME,NAME...|optional   these calls are missing, or all optional ones
 *   STANDIN_FAIL=NAME:N[+][:ERROR],...   the N-th call fails, or all from the N-th (default: CUDA_ERROR_UNKNOWN);
 *                            an error that corrupts the context on a device does so here
 *   STANDIN_SEED=N, STANDIN_DELAY=MICROSECONDS   delay work in streams at random, by at most that (default: 200); a seed
 *                                                of 0, the default, does not
 *   STANDIN_QUEUES=N         streams of one priority share N hardware queues (default: one for each stream)
 *   STANDIN_KERNELS=FILE     take all kernels from this shared object, whatever the image is
 *   STANDIN_LEAKS=off        do not report at exit what was not freed
 *   STANDIN_TRACE=1          print each call to stderr
 * CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER select and order devices as the driver does.
 */
#ifndef RK_STANDIN_H
#define RK_STANDIN_H

#include "lib/mem/cuda/cuda_calls.h"
#include "lib/mem/cuda/cuda_types.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define STANDIN_EXPORT __attribute__((visibility("default")))

enum {
    STANDIN_DEVICES = 16,
    STANDIN_PAGE = 4096,
    STANDIN_SMALL = 512, /* alignment of MemAlloc */
    STANDIN_LARGE = 2 << 20 /* granularity of physical memory */
};

#define STANDIN_CALL(name, need, version, result, params, args) STANDIN_##name,
enum standin_call { RK_CUDA_CALLS(STANDIN_CALL) STANDIN_CALLS };
#define STANDIN_BODY(name, need, version, result, params, args) result standin_##name params;
RK_CUDA_CALLS(STANDIN_BODY)

struct CUctx_st {
    CUdevice device;
    unsigned retained;
    CUresult sticky;                  /* CUDA_SUCCESS, or the error that has corrupted the context */
    bool peers[STANDIN_DEVICES];      /* devices with access enabled */
    struct CUstream_st *legacy;       /* the NULL stream */
    struct standin_queue_end *queues; /* STANDIN_QUEUES for each of three priorities */
};

struct standin_device {
    int physical; /* before CUDA_VISIBLE_DEVICES */
    unsigned domain, bus, slot;
    CUuuid uuid;
    size_t used;
    struct CUctx_st primary;
};

/* Physical memory. */
struct standin_block {
    int fd;
    size_t size;
    CUdevice device;  /* -1: not visible in this process */
    int physical;
    unsigned maps;    /* ranges and chunks that hold it */
    unsigned handles; /* references of a VMM handle */
    bool vmm, imported;
    unsigned long long id;
    size_t filled;    /* small allocations are cut off here */
    CUdeviceptr base; /* of a chunk of small allocations, or 0 */
    unsigned types;   /* CUmemAllocationHandleType it may be exported as */
};

enum standin_kind { STANDIN_ALLOC, STANDIN_VMM, STANDIN_IPC, STANDIN_MANAGED, STANDIN_HOST, STANDIN_REGISTERED };

/* Memory that the device can address. Ranges do not overlap. */
struct standin_range {
    CUdeviceptr base;
    size_t size;
    enum standin_kind kind;
    struct CUctx_st *context; /* NULL for VMM */
    struct standin_block *block;
    size_t offset;
    unsigned long long id;
    unsigned opened; /* IPC */
    unsigned pins;   /* copies under way */
    bool sync_memops;
    unsigned access[STANDIN_DEVICES]; /* VMM: CUmemAccess_flags */
};

struct standin_settings {
    size_t memory;
    bool peer, ipc, ipc_fd, vmm, memops, leaks, trace;
    int driver, queues, delay;
    uint64_t seed;
    const char *kernels;
};

/* A point in a stream: reached when that many of its operations are complete. */
struct standin_point {
    struct CUstream_st *stream;
    uint64_t seq;
};

extern pthread_mutex_t standin_lock;
extern pthread_cond_t standin_cond; /* whatever changes */
extern struct standin_settings standin_settings;
extern struct standin_device standin_devices[STANDIN_DEVICES]; /* visible ones */
extern int standin_ndevices;
extern ptrdiff_t standin_shadow;

/* faults */
CUresult standin_enter(enum standin_call call);
void standin_read_settings(void);
bool standin_is_child(void);
const char *standin_call_name(enum standin_call call);

/* device, context */
CUresult standin_find_devices(void);
struct CUctx_st *standin_context(void); /* the thread's current one, or NULL */
bool standin_is_corrupting(CUresult error);
bool standin_can_peer(CUdevice a, CUdevice b);
int standin_leaked_contexts(void);

/* memory: with the lock held */
void standin_arena_create(void);
bool standin_in_arena(CUdeviceptr ptr);
CUdeviceptr standin_area_take(size_t size, size_t alignment, bool reservation);
bool standin_area_give(CUdeviceptr base, size_t size, bool reservation);
bool standin_area_find(CUdeviceptr ptr, CUdeviceptr *base, size_t *size); /* a reservation */
struct standin_range *standin_range_find(CUdeviceptr ptr);
struct standin_range *standin_range_add(CUdeviceptr base, size_t size, enum standin_kind kind);
void standin_range_remove(struct standin_range *range); /* waits for its copies; no-op on the physical memory */
bool standin_overlaps(CUdeviceptr base, size_t size);
struct standin_block *standin_block_create(size_t size, CUdevice device, bool vmm);
void standin_block_put(struct standin_block *block); /* closes it when neither mapped nor held */
bool standin_block_map(struct standin_block *block, CUdeviceptr at, size_t size, size_t offset);
void standin_block_unmap(CUdeviceptr at, size_t size);
bool standin_accessible(const struct standin_range *range, const struct CUctx_st *context);
int standin_leaked_memory(void);
/* Is all of it memory of the stand-in, which the context can access? Host memory that is not pinned is none. */
bool standin_covered(CUdeviceptr ptr, size_t bytes, const struct CUctx_st *context);

/* VMM */
CUdevice standin_ordinal(int physical); /* -1: not visible */
int standin_leaked_handles(void);

/* stream, event */
struct CUstream_st *standin_stream_legacy(struct CUctx_st *context);
CUresult standin_stream_of(CUstream handle, struct CUstream_st **stream);
struct CUctx_st *standin_stream_context(const struct CUstream_st *stream);
/* Calls work(arg, NULL) if it fails, or if the context is corrupted before. end, unless NULL, holds its stream. */
CUresult standin_submit(struct CUstream_st *stream, void (*work)(void *arg, struct CUstream_st *), void *arg,
                        const struct standin_point *after, struct standin_point *end, bool wait);
struct standin_point standin_stream_point(struct CUstream_st *stream);
bool standin_point_reached(const struct standin_point *point);
CUresult standin_point_wait(const struct standin_point *point);
void standin_stream_hold(struct CUstream_st *stream);
void standin_stream_put(struct CUstream_st *stream);
void standin_context_idle(struct CUctx_st *context); /* wait, with the lock held */
int standin_leaked_streams(void);
int standin_leaked_events(void);
int standin_leaked_modules(void);

/* Exported beside the driver's names, for tests. */
STANDIN_EXPORT unsigned long standin_calls(const char *name);          /* so far; -1: no such call */
STANDIN_EXPORT void *standin_host_address(CUdeviceptr ptr);            /* where the CPU can access it */
STANDIN_EXPORT CUresult standin_capture(CUstream stream, int capture); /* begin or end a capture */

#endif

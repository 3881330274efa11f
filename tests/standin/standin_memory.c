/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_memory.c: allocate memory, and list what the device can address.
 *
 * Small allocations share a chunk of physical memory, as in the driver. Addresses are taken again as soon as they
 * are free. Managed and pinned memory is ordinary host memory at one address.
 */
#include "tests/standin/standin.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARENA ((size_t)64 << 30)

ptrdiff_t standin_shadow;

static CUdeviceptr arena;
static struct standin_range **ranges; /* sorted */
static int nranges, ranges_room;
static unsigned long long last_id;

/* Addresses taken, sorted: reservations, or spans that hold an allocation each. */
static struct area {
    CUdeviceptr base;
    size_t size;
    bool reservation;
} *areas;
static int nareas, areas_room;
/* Chunks with room for small allocations, one a device. */
static struct standin_block *chunks[STANDIN_DEVICES];

static size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

/* Make room for one more at index i of an array. */
static void *array_insert(void *array, int *n, int *room, size_t size, int i)
{
    if (*n == *room) {
        *room = *room ? 2 * *room : 64;
        array = realloc(array, *room * size);
        if (!array)
            abort();
    }
    memmove((char *)array + (i + 1) * size, (char *)array + i * size, (*n - i) * size);
    ++*n;
    return array;
}

static void array_remove(void *array, int *n, size_t size, int i)
{
    --*n;
    memmove((char *)array + i * size, (char *)array + (i + 1) * size, (*n - i) * size);
}

/* ------------------------------------------------------------------------ addresses */

static CUdeviceptr arena_map(void)
{
    char *at = mmap(NULL, ARENA + STANDIN_LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (at == MAP_FAILED)
        abort();
    return round_up((uintptr_t)at, STANDIN_LARGE);
}

void standin_arena_create(void)
{
    arena = arena_map();
    standin_shadow = (ptrdiff_t)(arena_map() - arena);
    madvise((void *)(uintptr_t)(arena + standin_shadow), ARENA, MADV_DONTFORK);
}

bool standin_in_arena(CUdeviceptr ptr) { return ptr - arena < ARENA; }

void *standin_host_address(CUdeviceptr ptr)
{
    return (void *)(uintptr_t)(standin_in_arena(ptr) ? ptr + standin_shadow : ptr);
}

CUdeviceptr standin_area_take(size_t size, size_t alignment, bool reservation)
{
    CUdeviceptr base = arena;
    int i;

    for (i = 0; i < nareas; i++) {
        base = round_up(base, alignment);
        if (base + size <= areas[i].base)
            break;
        base = areas[i].base + areas[i].size;
    }
    base = round_up(base, alignment);
    if (size > ARENA || base + size > arena + ARENA)
        return 0;
    areas = array_insert(areas, &nareas, &areas_room, sizeof(areas[0]), i);
    areas[i] = (struct area){base, size, reservation};
    return base;
}

bool standin_area_give(CUdeviceptr base, size_t size, bool reservation)
{
    for (int i = 0; i < nareas; i++)
        if (areas[i].base == base && areas[i].size == size && areas[i].reservation == reservation) {
            array_remove(areas, &nareas, sizeof(areas[0]), i);
            return true;
        }
    return false;
}

bool standin_area_find(CUdeviceptr ptr, CUdeviceptr *base, size_t *size)
{
    for (int i = 0; i < nareas; i++)
        if (areas[i].reservation && ptr - areas[i].base < areas[i].size) {
            *base = areas[i].base;
            *size = areas[i].size;
            return true;
        }
    return false;
}

/* ------------------------------------------------------------------------ ranges */

/* Index of the first range that ends after ptr. */
static int range_index(CUdeviceptr ptr)
{
    int low = 0, high = nranges;

    while (low < high) {
        int mid = (low + high) / 2;

        if (ranges[mid]->base + ranges[mid]->size <= ptr)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct standin_range *standin_range_find(CUdeviceptr ptr)
{
    int i = range_index(ptr);

    return i < nranges && ranges[i]->base <= ptr ? ranges[i] : NULL;
}

bool standin_overlaps(CUdeviceptr base, size_t size)
{
    int i = range_index(base);

    return i < nranges && ranges[i]->base < base + size;
}

struct standin_range *standin_range_add(CUdeviceptr base, size_t size, enum standin_kind kind)
{
    struct standin_range *r = calloc(1, sizeof(*r));
    int i = range_index(base);

    if (!r)
        abort();
    *r = (struct standin_range){.base = base, .size = size, .kind = kind, .id = ++last_id};
    r->context = kind == STANDIN_VMM ? NULL : standin_context();
    ranges = array_insert(ranges, &nranges, &ranges_room, sizeof(ranges[0]), i);
    ranges[i] = r;
    return r;
}

void standin_range_remove(struct standin_range *range)
{
    while (range->pins)
        pthread_cond_wait(&standin_cond, &standin_lock);
    array_remove(ranges, &nranges, sizeof(ranges[0]), range_index(range->base));
    free(range);
}

bool standin_accessible(const struct standin_range *range, const struct CUctx_st *context)
{
    CUdevice device = context->device;

    switch (range->kind) {
    case STANDIN_VMM: return range->access[device] == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    case STANDIN_ALLOC: return range->context == context || context->peers[range->context->device];
    case STANDIN_IPC: return range->context == context;
    default: return true;
    }
}

bool standin_covered(CUdeviceptr ptr, size_t bytes, const struct CUctx_st *context)
{
    while (bytes) {
        const struct standin_range *r = standin_range_find(ptr);
        size_t left;

        if (!r || (context && !standin_accessible(r, context)))
            return false;
        left = r->base + r->size - ptr;
        if (left >= bytes)
            return true;
        ptr += left;
        bytes -= left;
    }
    return true;
}

int standin_leaked_memory(void)
{
    int n = nranges;

    for (int i = 0; i < nareas; i++)
        n += areas[i].reservation;
    return n;
}

/* ------------------------------------------------------------------------ physical memory */

struct standin_block *standin_block_create(size_t size, CUdevice device, bool vmm)
{
    struct standin_block *b;
    int physical = standin_devices[device].physical;
    char name[32] = "standin-gpu0";
    int fd;

    if (standin_devices[device].used + size > standin_settings.memory)
        return NULL;
    name[11] = (char)('a' + physical);
    fd = memfd_create(name, MFD_CLOEXEC);
    b = calloc(1, sizeof(*b));
    if (fd < 0 || !b || ftruncate(fd, (off_t)size) != 0) {
        free(b);
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    *b = (struct standin_block){
        .fd = fd, .size = size, .device = device, .physical = physical, .vmm = vmm, .id = ++last_id};
    standin_devices[device].used += size;
    return b;
}

void standin_block_put(struct standin_block *block)
{
    if (block->maps || block->handles)
        return;
    if (!block->imported)
        standin_devices[block->device].used -= block->size;
    close(block->fd);
    free(block);
}

bool standin_block_map(struct standin_block *block, CUdeviceptr at, size_t size, size_t offset)
{
    void *shadow = standin_host_address(at);

    if (mmap(shadow, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, block->fd, (off_t)offset) == MAP_FAILED)
        return false;
    madvise(shadow, size, MADV_DONTFORK);
    block->maps++;
    return true;
}

void standin_block_unmap(CUdeviceptr at, size_t size)
{
    void *shadow = standin_host_address(at);

    if (mmap(shadow, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        abort();
    madvise(shadow, size, MADV_DONTFORK);
}

/* Map new physical memory at new addresses. */
static struct standin_block *block_place(size_t size, CUdevice device)
{
    struct standin_block *b = standin_block_create(size, device, false);
    CUdeviceptr at = b ? standin_area_take(size, STANDIN_LARGE, false) : 0;

    if (!at || !standin_block_map(b, at, size, 0)) {
        if (at)
            standin_area_give(at, size, false);
        if (b)
            standin_block_put(b);
        return NULL;
    }
    b->base = at;
    return b;
}

static void block_displace(struct standin_block *b)
{
    if (--b->maps > 0)
        return;
    if (chunks[b->device] == b)
        chunks[b->device] = NULL;
    standin_block_unmap(b->base, b->size);
    standin_area_give(b->base, b->size, false);
    standin_block_put(b);
}

CUresult standin_MemAlloc(CUdeviceptr *ptr, size_t bytes)
{
    struct CUctx_st *context = standin_context();
    size_t size = round_up(bytes, bytes < STANDIN_LARGE / 2 ? STANDIN_SMALL : STANDIN_LARGE);
    bool small = bytes < STANDIN_LARGE / 2;
    struct standin_block *b;
    struct standin_range *r;

    if (!ptr || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes > standin_settings.memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&standin_lock);
    b = small ? chunks[context->device] : NULL;
    if (!b || b->filled + size > b->size) {
        b = block_place(small ? STANDIN_LARGE : size, context->device);
        if (!b) {
            pthread_mutex_unlock(&standin_lock);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        if (small)
            chunks[context->device] = b;
        b->maps = 0;
    }
    b->maps++;
    r = standin_range_add(b->base + b->filled, bytes, STANDIN_ALLOC);
    r->block = b;
    r->offset = b->filled;
    b->filled += size;
    *ptr = r->base;
    pthread_mutex_unlock(&standin_lock);
    return CUDA_SUCCESS;
}

/* Remove the range that begins at ptr and is of one of two kinds, when the device is idle. */
static CUresult range_free(CUdeviceptr ptr, enum standin_kind kind, enum standin_kind other)
{
    struct standin_range *r;
    CUresult error = CUDA_ERROR_INVALID_VALUE;

    pthread_mutex_lock(&standin_lock);
    r = standin_range_find(ptr);
    if (r && r->context)
        standin_context_idle(r->context);
    r = standin_range_find(ptr); /* the lock was free in between */
    if (r && r->base == ptr && (r->kind == kind || r->kind == other)) {
        error = r->context->sticky;
        if (r->kind == STANDIN_ALLOC) {
            struct standin_block *b = r->block;

            standin_range_remove(r);
            block_displace(b);
        } else {
            size_t size = r->size;

            standin_range_remove(r);
            munmap((void *)(uintptr_t)ptr, round_up(size, STANDIN_PAGE));
        }
    }
    pthread_mutex_unlock(&standin_lock);
    return error;
}

CUresult standin_MemFree(CUdeviceptr ptr)
{
    return ptr ? range_free(ptr, STANDIN_ALLOC, STANDIN_MANAGED) : CUDA_SUCCESS;
}

/* Map host memory that the device can address. */
static CUresult host_alloc(void **ptr, size_t bytes, enum standin_kind kind)
{
    void *at;

    if (!ptr || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    at = mmap(NULL, round_up(bytes, STANDIN_PAGE), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&standin_lock);
    standin_range_add((uintptr_t)at, bytes, kind);
    pthread_mutex_unlock(&standin_lock);
    *ptr = at;
    return CUDA_SUCCESS;
}

CUresult standin_MemAllocManaged(CUdeviceptr *ptr, size_t bytes, unsigned flags)
{
    void *at;
    CUresult error;

    if (!ptr || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    error = host_alloc(&at, bytes, STANDIN_MANAGED);
    if (!error)
        *ptr = (uintptr_t)at;
    return error;
}

CUresult standin_MemHostAlloc(void **ptr, size_t bytes, unsigned flags)
{
    if (flags > (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED))
        return CUDA_ERROR_INVALID_VALUE;
    return host_alloc(ptr, bytes, STANDIN_HOST);
}

CUresult standin_MemFreeHost(void *ptr) { return range_free((uintptr_t)ptr, STANDIN_HOST, STANDIN_HOST); }

CUresult standin_MemHostRegister(void *ptr, size_t bytes, unsigned flags)
{
    CUdeviceptr base = (uintptr_t)ptr, page = base & ~(CUdeviceptr)(STANDIN_PAGE - 1);
    unsigned char resident[1024];
    CUresult error = CUDA_SUCCESS;

    if (!ptr || !bytes || flags > 15)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & CU_MEMHOSTREGISTER_IOMEMORY)
        return CUDA_ERROR_NOT_PERMITTED;
    for (size_t n; page < base + bytes; page += n) { /* it has to be mapped */
        n = base + bytes - page;
        n = n < sizeof(resident) * STANDIN_PAGE ? n : sizeof(resident) * STANDIN_PAGE;
        if (mincore((void *)(uintptr_t)page, n, resident) != 0)
            return CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_lock(&standin_lock);
    if (standin_in_arena(base))
        error = CUDA_ERROR_INVALID_VALUE;
    else if (standin_overlaps(base, bytes))
        error = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    else
        standin_range_add(base, bytes, STANDIN_REGISTERED);
    pthread_mutex_unlock(&standin_lock);
    return error;
}

CUresult standin_MemHostUnregister(void *ptr)
{
    struct standin_range *r;
    CUresult error = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;

    pthread_mutex_lock(&standin_lock);
    r = standin_range_find((uintptr_t)ptr);
    if (r && r->kind == STANDIN_REGISTERED && r->base == (uintptr_t)ptr) {
        standin_range_remove(r);
        error = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&standin_lock);
    return error;
}

CUresult standin_MemHostGetDevicePointer(CUdeviceptr *device, void *ptr, unsigned flags)
{
    struct standin_range *r;

    if (!device || !ptr || flags)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&standin_lock);
    r = standin_range_find((uintptr_t)ptr);
    *device = r && (r->kind == STANDIN_HOST || r->kind == STANDIN_REGISTERED) ? (uintptr_t)ptr : 0;
    pthread_mutex_unlock(&standin_lock);
    return *device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult standin_MemGetAddressRange(CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr)
{
    struct standin_range *r;

    pthread_mutex_lock(&standin_lock);
    r = standin_range_find(ptr);
    if (r && r->kind != STANDIN_REGISTERED) {
        if (base)
            *base = r->base;
        if (bytes)
            *bytes = r->size;
    } else
        r = NULL;
    pthread_mutex_unlock(&standin_lock);
    return r ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult standin_MemGetInfo(size_t *available, size_t *total)
{
    if (!available || !total)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&standin_lock);
    *total = standin_settings.memory;
    *available = *total - standin_devices[standin_context()->device].used;
    pthread_mutex_unlock(&standin_lock);
    return CUDA_SUCCESS;
}

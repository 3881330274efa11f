/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_copy.c: copy and fill memory, in the order of streams.
 *
 * What the caller has to wait for is as in the driver. Host memory that is not pinned is read before the call returns,
 * and written before it. A synchronous copy from device to device is not waited for, unless SYNC_MEMOPS is set.
 */
#include "tests/standin/standin.h"

#include <stdlib.h>
#include <string.h>

/* Longest source in pageable memory that the driver takes at once. */
enum { STAGED_MAX = 64 << 10 };

struct copy {
    CUdeviceptr to, from;
    size_t bytes;
    void *staged; /* holds the source */
    int fill;     /* this byte instead of a source, or -1 */
};

/* Find the range at ptr, and shorten bytes to it. Returns false if the address is bad. */
static bool piece(CUdeviceptr ptr, size_t *bytes, const struct CUctx_st *context, struct standin_range **range)
{
    struct standin_range *r = standin_range_find(ptr);

    *range = r;
    if (!r)
        return !standin_in_arena(ptr);
    if (r->base + r->size - ptr < *bytes)
        *bytes = r->base + r->size - ptr;
    return r->kind != STANDIN_VMM || standin_accessible(r, context) ||
           (r->block->device >= 0 && r->access[r->block->device]);
}

static void pin(struct standin_range *r, int by)
{
    if (!r)
        return;
    r->pins += by;
    if (!r->pins)
        pthread_cond_broadcast(&standin_cond);
}

/* Copy piece by piece; a bad address corrupts the context. */
static void copy_work(void *arg, struct CUstream_st *stream)
{
    struct copy *c = arg;

    while (stream && c->bytes) {
        struct CUctx_st *context = standin_stream_context(stream);
        struct standin_range *to, *from = NULL;
        size_t n = c->bytes;
        bool ok;

        pthread_mutex_lock(&standin_lock);
        ok = piece(c->to, &n, context, &to) && (c->staged || c->fill >= 0 || piece(c->from, &n, context, &from));
        if (!ok && !context->sticky)
            context->sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
        if (ok) {
            pin(to, 1);
            pin(from, 1);
        }
        pthread_mutex_unlock(&standin_lock);
        if (!ok)
            break;
        if (c->fill >= 0)
            memset(standin_host_address(c->to), c->fill, n);
        else
            memmove(standin_host_address(c->to), standin_host_address(c->from), n);
        pthread_mutex_lock(&standin_lock);
        pin(to, -1);
        pin(from, -1);
        pthread_mutex_unlock(&standin_lock);
        c->to += n;
        c->from += n;
        c->bytes -= n;
    }
    free(c->staged);
    free(c);
}

/* Where an address may be; PAGEABLE stands for host memory that the driver does not manage. */
enum place { DEVICE, PINNED, PAGEABLE, NOWHERE };

static enum place place_of(CUdeviceptr ptr, size_t bytes, const struct CUctx_st *context, bool *sync)
{
    struct standin_range *r = standin_range_find(ptr), *each;

    if (!r)
        return standin_in_arena(ptr) || !ptr ? NOWHERE : PAGEABLE;
    if (!standin_in_arena(ptr))
        return PINNED;
    *sync |= r->sync_memops;
    for (size_t n = bytes; bytes; ptr += n, n = bytes -= n)
        if (!piece(ptr, &n, context, &each))
            return NOWHERE;
    return DEVICE;
}

static CUresult copy_submit(struct copy copy, CUstream stream, bool synchronous, unsigned to_may, unsigned from_may)
{
    struct CUstream_st *s;
    enum place to, from = DEVICE;
    bool sync = false, wait;
    struct copy *c;
    CUresult error = standin_stream_of(stream, &s);

    if (error || !copy.bytes)
        return error;
    pthread_mutex_lock(&standin_lock);
    to = place_of(copy.to, copy.bytes, standin_stream_context(s), &sync);
    if (copy.fill < 0)
        from = place_of(copy.from, copy.bytes, standin_stream_context(s), &sync);
    pthread_mutex_unlock(&standin_lock);
    if (!(to_may >> to & 1) || !(from_may >> from & 1))
        return CUDA_ERROR_INVALID_VALUE;
    c = malloc(sizeof(*c));
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *c = copy;
    wait = synchronous && (to != DEVICE || from != DEVICE || sync);
    if (from == PAGEABLE && to != PAGEABLE) {
        wait = copy.bytes > STAGED_MAX || (synchronous && sync);
        c->staged = wait ? NULL : malloc(copy.bytes);
        if (c->staged) {
            memcpy(c->staged, (void *)(uintptr_t)copy.from, copy.bytes);
            c->from = (uintptr_t)c->staged;
        } else
            wait = true;
    }
    return standin_submit(s, copy_work, c, NULL, NULL, wait || to == PAGEABLE);
}

enum {
    MANAGED = 1 << DEVICE | 1 << PINNED, /* what the driver manages */
    HOST = 1 << PINNED | 1 << PAGEABLE,
    ANY = MANAGED | HOST
};

CUresult standin_Memcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return copy_submit((struct copy){to, from, bytes, NULL, -1}, NULL, true, ANY, ANY);
}

CUresult standin_MemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_submit((struct copy){to, from, bytes, NULL, -1}, stream, false, ANY, ANY);
}

CUresult standin_MemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return copy_submit((struct copy){to, (uintptr_t)from, bytes, NULL, -1}, stream, false, MANAGED, HOST);
}

CUresult standin_MemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_submit((struct copy){(uintptr_t)to, from, bytes, NULL, -1}, stream, false, HOST, MANAGED);
}

CUresult standin_MemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_submit((struct copy){to, from, bytes, NULL, -1}, stream, false, MANAGED, MANAGED);
}

CUresult standin_MemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)
{
    return copy_submit((struct copy){to, 0, bytes, NULL, value}, stream, false, MANAGED, ANY);
}

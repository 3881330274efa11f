/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda_queue.c: begin copies of device memory, and find out when they are over.
 *
 * A copy goes to an own stream of its direction, and an event behind it shows its end. It waits for the program's default
 * streams, as a copy that is complete on return waits for them (rk_cuda_settle).
 */
#include "lib/mem/cuda/cuda_queue.h"
#include "lib/base/log.h"

#include <stdlib.h>

struct cuda_copy {
    struct rk_kind_copy copy; /* first */
    CUevent event;
    int device;
};

/* Let the stream wait for one of the default streams. In the memory's context. */
static CUresult wait_behind(CUstream stream, CUstream other, CUevent event)
{
    CUresult r = rk_cuda.EventRecord(event, other);

    return r == CUDA_SUCCESS ? rk_cuda.StreamWaitEvent(stream, event, 0) : r;
}

/*
 * As rk_cuda_settle. Once an allocation has the attribute, no copy waits: also not the next ones, in other streams. So the
 * default streams have to be idle then. Memory that cannot have it waits in the stream each time.
 */
static CUresult queue_settle(const void *ptr, const struct rk_cuda_pointer *p, CUstream stream, CUevent event)
{
    unsigned on = 1;
    CUresult r;

    if (p->settled || atomic_load(&rk_cuda_starts) > 0)
        return CUDA_SUCCESS;
    r = rk_cuda.PointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)(uintptr_t)ptr);
    if (r == CUDA_SUCCESS) {
        r = rk_cuda.StreamSynchronize(RK_CUDA_STREAM_LEGACY);
        return r == CUDA_SUCCESS ? rk_cuda.StreamSynchronize(RK_CUDA_STREAM_PER_THREAD) : r;
    }
    r = wait_behind(stream, RK_CUDA_STREAM_LEGACY, event);
    return r == CUDA_SUCCESS ? wait_behind(stream, RK_CUDA_STREAM_PER_THREAD, event) : r;
}

rank_status_t rk_cuda_begin(void *to, const void *from, bool to_device, const struct rk_cuda_pointer *p, size_t bytes,
                            struct rk_kind_copy **out)
{
    struct cuda_copy *c = calloc(1, sizeof(*c));
    const char *call = NULL;
    CUresult r = CUDA_SUCCESS;

    if (!c)
        return RANK_ERR_NO_MEMORY;
    c->device = p->device;
    for (int i = 0; i < 2; i++) {
        CUstream stream;
        rank_status_t st = rk_cuda_enter_queue(p->device, to_device, &stream);

        if (st) {
            free(c);
            return st;
        }
        call = "cuEventCreate";
        r = rk_cuda.EventCreate(&c->event, CU_EVENT_DISABLE_TIMING);
        if (r == CUDA_SUCCESS) {
            call = "cuStreamSynchronize or cuStreamWaitEvent";
            r = queue_settle(to_device ? to : from, p, stream, c->event);
            if (r == CUDA_SUCCESS) {
                call = "cuMemcpyAsync";
                r = rk_cuda.MemcpyAsync((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, bytes, stream);
            }
            if (r == CUDA_SUCCESS) {
                call = "cuEventRecord";
                r = rk_cuda.EventRecord(c->event, stream);
                if (r != CUDA_SUCCESS) /* the copy is under way: nothing shows its end */
                    rk_cuda.StreamSynchronize(stream);
            }
            if (r != CUDA_SUCCESS)
                rk_cuda.EventDestroy(c->event);
        }
        rk_cuda_leave();
        if (!rk_cuda_is_stale(r))
            break;
        rk_cuda_forget(p->device);
    }
    if (r != CUDA_SUCCESS)
        free(c);
    else
        *out = &c->copy;
    return rk_cuda_check(call, r);
}

bool rk_cuda_over(struct rk_kind_copy *copy, rank_status_t *st)
{
    struct cuda_copy *c = (struct cuda_copy *)copy;
    CUresult r;

    *st = rk_cuda_enter_primary(c->device, NULL);
    if (!*st) {
        r = rk_cuda.EventQuery(c->event);
        if (r != CUDA_ERROR_NOT_READY)
            rk_cuda.EventDestroy(c->event);
        rk_cuda_leave();
        if (r == CUDA_ERROR_NOT_READY)
            return false;
        *st = rk_cuda_check("cuEventQuery", r);
    } else {
        rk_cuda.EventDestroy(c->event); /* its context is gone, or the driver */
    }
    free(c);
    return true;
}

/* ---------------------------------------------------------------------- pinned memory */

static rank_status_t enter_any_device(void)
{
    int device = 0;
    rank_status_t st = rk_cuda_current_device(&device);

    return st ? st : rk_cuda_enter_primary(device, NULL);
}

bool rk_cuda_pin(void *ptr, size_t bytes)
{
    CUresult r;

    if (enter_any_device())
        return false;
    r = rk_cuda.MemHostRegister(ptr, bytes, CU_MEMHOSTREGISTER_PORTABLE);
    rk_cuda_leave();
    if (r != CUDA_SUCCESS)
        rk_debug("cuMemHostRegister failed (%d): host memory of %zu bytes is not pinned", (int)r, bytes);
    return r == CUDA_SUCCESS;
}

void rk_cuda_unpin(void *ptr)
{
    if (enter_any_device())
        return;
    rk_cuda.MemHostUnregister(ptr);
    rk_cuda_leave();
}

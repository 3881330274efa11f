/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda_stream.c: let a stream of the program start work of the library.
 *
 * The stream writes the number of a start to one word (cuStreamWriteValue64) and waits for another
 * (cuStreamWaitValue64). Words are in pinned memory of the device's primary context, which all contexts can access.
 *
 * A stream may still read its words after the last start has ended. So they are not freed when it is closed: another
 * stream takes them, and goes on counting. At the end the stream's last write shows that it has passed.
 */
#include "lib/mem/cuda/cuda_stream.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/mem/cuda/cuda_context.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PAGE_BYTES = 4096, LINE = 64 };
/* How long the end waits for streams to pass. */
enum { PASS_NS = 1000 * 1000 * 1000, PASS_POLL_NS = 20 * 1000 };

/* In pinned memory: a line for each writer. */
struct words {
    _Alignas(LINE) _Atomic uint64_t reached; /* the stream writes */
    _Atomic uint64_t passed;                 /* it has left the words: the number of the last start */
    _Alignas(LINE) _Atomic uint64_t ended;   /* the library writes */
};
enum { WORDS = PAGE_BYTES / sizeof(struct words) };

struct words_page {
    struct words_page *next;
    struct words *words;
    CUdeviceptr at;
    int device;
    struct words_use {
        bool taken, spoilt; /* spoilt: an append has failed, so that a stream may write at any time */
        uint64_t last;
    } use[WORDS];
};

struct cuda_stream {
    struct rk_stream stream; /* first */
    CUstream handle;
    CUcontext context;
    struct words_page *page;
    int slot;
    uint64_t last;
    bool spoilt;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct words_page *pages;

static CUdeviceptr word_of(const struct cuda_stream *s, size_t member)
{
    return s->page->at + (size_t)s->slot * sizeof(struct words) + member;
}

/* ------------------------------------------------------------------------- words */

static rank_status_t page_create(int device, struct words_page **out)
{
    struct words_page *p = calloc(1, sizeof(*p));
    void *mem = NULL;
    rank_status_t st;

    if (!p)
        return RANK_ERR_NO_MEMORY;
    st = rk_cuda_enter_primary(device, NULL);
    if (!st) {
        st = RK_CUDA_CALL(MemHostAlloc, &mem, PAGE_BYTES, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
        if (!st && (st = RK_CUDA_CALL(MemHostGetDevicePointer, &p->at, mem, 0)) != RANK_OK)
            rk_cuda.MemFreeHost(mem);
        rk_cuda_leave();
    }
    if (st) {
        free(p);
        return st;
    }
    p->words = mem;
    p->device = device;
    for (size_t i = 0; i < WORDS; i++) {
        atomic_init(&p->words[i].reached, 0);
        atomic_init(&p->words[i].passed, 0);
        atomic_init(&p->words[i].ended, 0);
    }
    p->next = pages;
    pages = p;
    *out = p;
    return RANK_OK;
}

static bool page_take(struct words_page *p, struct cuda_stream *s)
{
    for (size_t i = 0; i < WORDS; i++) {
        if (p->use[i].taken || p->use[i].spoilt)
            continue;
        p->use[i].taken = true;
        s->page = p;
        s->slot = (int)i;
        s->last = s->stream.last = p->use[i].last;
        s->stream.reached = &p->words[i].reached;
        return true;
    }
    return false;
}

static rank_status_t words_take(struct cuda_stream *s, int device)
{
    rank_status_t st = RANK_OK;
    struct words_page *p;

    pthread_mutex_lock(&lock);
    for (p = pages; p && !(p->device == device && page_take(p, s)); p = p->next)
        ;
    if (!p && (st = page_create(device, &p)) == RANK_OK)
        page_take(p, s);
    pthread_mutex_unlock(&lock);
    return st;
}

/* ----------------------------------------------------------------------- streams */

static bool stream_is_capturing(CUstream handle)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    return RK_CUDA_HAS(StreamIsCapturing) && rk_cuda.StreamIsCapturing(handle, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static rank_status_t refuse_capture(char *why, size_t room)
{
    snprintf(why, room, "the stream is capturing a graph; end the capture first");
    return RANK_ERR_NOT_SUPPORTED;
}

static rank_status_t refuse_error(CUresult r, const char *call, char *why, size_t room)
{
    char text[256];

    snprintf(why, room, "%s failed: %s", call, rk_cuda_error_text(r, text, sizeof(text)));
    return rk_cuda_failed(call, r);
}

/* In the stream's context. */
static rank_status_t device_waits_for_words(int *device, char *why, size_t room)
{
    CUdevice handle;
    int can = 0;
    rank_status_t st = RK_CUDA_CALL(CtxGetDevice, &handle);

    if (!st)
        st = RK_CUDA_CALL(DeviceGetAttribute, &can, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, handle);
    if (st)
        return st;
    *device = handle;
    if (can && RK_CUDA_HAS(StreamWaitValue64) && RK_CUDA_HAS(StreamWriteValue64))
        return RANK_OK;
    snprintf(why, room, "%s has no 64-bit memory operations in streams%s", can ? "the CUDA driver" : "the device",
             can ? "; install one of CUDA 11.7 or newer" : "");
    return RANK_ERR_NOT_SUPPORTED;
}

static rank_status_t stream_find(struct cuda_stream *s, int *device, char *why, size_t room)
{
    rank_status_t st;
    CUresult r = rk_cuda.StreamGetCtx(s->handle, &s->context);

    if (r == CUDA_ERROR_INVALID_HANDLE || r == CUDA_ERROR_INVALID_VALUE) {
        snprintf(why, room, "opts->stream is not a CUDA stream");
        return RANK_ERR_ARG;
    }
    if (r != CUDA_SUCCESS)
        return refuse_error(r, "cuStreamGetCtx", why, room);
    st = rk_cuda_enter(s->context);
    if (st)
        return st;
    st = device_waits_for_words(device, why, room);
    if (!st && stream_is_capturing(s->handle))
        st = refuse_capture(why, room);
    rk_cuda_leave();
    if (!st && !rk_cuda_is_primary(s->context, *device)) {
        snprintf(why, room, "the stream's context is not the primary one of device %d", *device);
        st = RANK_ERR_NOT_SUPPORTED;
    }
    return st;
}

static rank_status_t cuda_stream_open(void *handle, struct rk_stream **out, char *why, size_t room)
{
    struct cuda_stream *s;
    rank_status_t st = rk_cuda_init();
    int device = 0;

    snprintf(why, room, "the CUDA driver failed");
    if (st)
        return st;
    if (handle == NULL || handle == RK_CUDA_STREAM_LEGACY || handle == RK_CUDA_STREAM_PER_THREAD) {
        snprintf(why, room, "a default stream cannot wait, as others wait for it; create a stream with CU_STREAM_NON_BLOCKING");
        return RANK_ERR_NOT_SUPPORTED;
    }
    s = calloc(1, sizeof(*s));
    if (!s) {
        snprintf(why, room, "out of memory");
        return RANK_ERR_NO_MEMORY;
    }
    s->handle = handle;
    st = stream_find(s, &device, why, room);
    if (!st)
        st = words_take(s, device);
    if (st)
        free(s);
    else
        *out = &s->stream;
    return st;
}

static rank_status_t cuda_stream_start(struct rk_stream *stream, uint64_t number, char *why, size_t room)
{
    struct cuda_stream *s = (struct cuda_stream *)stream;
    const char *call = "cuCtxPushCurrent";
    CUresult r;

    s->last = number;
    atomic_fetch_add(&rk_cuda_starts, 1);
    r = rk_cuda.CtxPushCurrent(s->context);
    if (r != CUDA_SUCCESS)
        return refuse_error(r, call, why, room);
    if (stream_is_capturing(s->handle)) {
        rk_cuda_leave();
        return refuse_capture(why, room);
    }
    call = "cuStreamWriteValue64";
    r = rk_cuda.StreamWriteValue64(s->handle, word_of(s, offsetof(struct words, reached)), number, CU_STREAM_WRITE_VALUE_DEFAULT);
    if (r == CUDA_SUCCESS) {
        call = "cuStreamWaitValue64";
        r = rk_cuda.StreamWaitValue64(s->handle, word_of(s, offsetof(struct words, ended)), number, CU_STREAM_WAIT_VALUE_GEQ);
    }
    rk_cuda_leave();
    s->spoilt |= r != CUDA_SUCCESS;
    return r == CUDA_SUCCESS ? RANK_OK : refuse_error(r, call, why, room);
}

static void cuda_stream_raise(struct rk_stream *stream, uint64_t number)
{
    const struct cuda_stream *s = (struct cuda_stream *)stream;

    atomic_store_explicit(&s->page->words[s->slot].ended, number, memory_order_release);
    atomic_fetch_sub(&rk_cuda_starts, 1);
}

static rank_status_t cuda_stream_check(struct rk_stream *stream)
{
    const struct cuda_stream *s = (struct cuda_stream *)stream;
    rank_status_t st = rk_cuda_enter(s->context);
    CUresult r = CUDA_SUCCESS;

    if (st)
        return st;
    if (!stream_is_capturing(s->handle)) /* a query would end the capture */
        r = rk_cuda.StreamQuery(s->handle);
    rk_cuda_leave();
    return r == CUDA_ERROR_NOT_READY ? RANK_OK : rk_cuda_check("cuStreamQuery", r);
}

static void cuda_stream_close(struct rk_stream *stream)
{
    struct cuda_stream *s = (struct cuda_stream *)stream;
    struct words_use *use = &s->page->use[s->slot];

    if (s->last > use->last && rk_cuda.CtxPushCurrent(s->context) == CUDA_SUCCESS) {
        if (stream_is_capturing(s->handle) || rk_cuda.StreamWriteValue64(s->handle, word_of(s, offsetof(struct words, passed)), s->last,
                                                                         CU_STREAM_WRITE_VALUE_DEFAULT) != CUDA_SUCCESS)
            s->spoilt = true;
        rk_cuda_leave();
    }
    pthread_mutex_lock(&lock);
    use->last = s->last;
    use->spoilt |= s->spoilt;
    use->taken = false;
    pthread_mutex_unlock(&lock);
    free(s);
}

/* ----------------------------------------------------------------------- the end */

static bool page_is_passed(const struct words_page *p)
{
    for (size_t i = 0; i < WORDS; i++) {
        if (p->use[i].taken || p->use[i].spoilt || atomic_load(&p->words[i].passed) < p->use[i].last)
            return false;
    }
    return true;
}

void rk_cuda_streams_release(void)
{
    uint64_t until = rk_clock_ns() + PASS_NS;
    struct words_page *p, *next;

    pthread_mutex_lock(&lock);
    for (p = pages, pages = NULL; p; p = next) {
        bool passed = page_is_passed(p);

        next = p->next;
        while (!passed && rk_clock_ns() < until) {
            nanosleep(&(struct timespec){0, PASS_POLL_NS}, NULL);
            passed = page_is_passed(p);
        }
        if (passed && rk_cuda_enter_primary(p->device, NULL) == RANK_OK) {
            rk_cuda.MemFreeHost(p->words);
            rk_cuda_leave();
        } else {
            rk_debug("a stream of device %d is still at its words, which stay", p->device);
        }
        free(p);
    }
    pthread_mutex_unlock(&lock);
}

const struct rk_stream_ops rk_cuda_streams = {
    .open = cuda_stream_open,
    .start = cuda_stream_start,
    .raise = cuda_stream_raise,
    .check = cuda_stream_check,
    .close = cuda_stream_close,
};

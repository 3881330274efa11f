/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_event.c: record events; let streams wait for words and write them.
 */
#include "tests/standin/standin.h"

#include <stdlib.h>
#include <time.h>

enum { POLL_NS = 20000 };

struct CUevent_st {
    struct CUevent_st *next;
    struct CUctx_st *context;
    struct standin_point point; /* stream NULL: never recorded */
};

static struct CUevent_st *events;

static bool is_event(const struct CUevent_st *event)
{
    for (struct CUevent_st *e = events; e; e = e->next)
        if (e == event)
            return true;
    return false;
}

int standin_leaked_events(void)
{
    int n = 0;

    for (struct CUevent_st *e = events; e; e = e->next)
        n++;
    return n;
}

static void no_work(void *arg, struct CUstream_st *stream)
{
    (void)arg;
    (void)stream;
}

CUresult standin_EventCreate(CUevent *event, unsigned flags)
{
    struct CUevent_st *e;

    if (!event || flags & ~(unsigned)(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS))
        return CUDA_ERROR_INVALID_VALUE;
    e = calloc(1, sizeof(*e));
    if (!e)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&standin_lock);
    *e = (struct CUevent_st){.next = events, .context = standin_context()};
    events = e;
    pthread_mutex_unlock(&standin_lock);
    *event = e;
    return CUDA_SUCCESS;
}

CUresult standin_EventDestroy(CUevent event)
{
    CUresult error = CUDA_ERROR_INVALID_HANDLE;

    pthread_mutex_lock(&standin_lock);
    for (struct CUevent_st **p = &events; *p; p = &(*p)->next)
        if (*p == event) {
            *p = event->next;
            standin_stream_put(event->point.stream);
            free(event);
            error = CUDA_SUCCESS;
            break;
        }
    pthread_mutex_unlock(&standin_lock);
    return error;
}

CUresult standin_EventRecord(CUevent event, CUstream stream)
{
    struct standin_point point;
    struct CUstream_st *s;
    CUresult error = standin_stream_of(stream, &s);

    if (error)
        return error;
    pthread_mutex_lock(&standin_lock);
    if (!is_event(event) || event->context != standin_stream_context(s))
        error = CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_unlock(&standin_lock);
    if (!error)
        error = standin_submit(s, no_work, NULL, NULL, &point, false);
    if (error)
        return error;
    pthread_mutex_lock(&standin_lock);
    standin_stream_put(event->point.stream);
    event->point = point;
    pthread_mutex_unlock(&standin_lock);
    return CUDA_SUCCESS;
}

/* Find what an event stands for. */
static CUresult event_point(CUevent event, struct standin_point *point)
{
    if (!is_event(event))
        return CUDA_ERROR_INVALID_HANDLE;
    *point = event->point;
    return CUDA_SUCCESS;
}

CUresult standin_EventQuery(CUevent event)
{
    struct standin_point point;
    CUresult error;

    pthread_mutex_lock(&standin_lock);
    error = event_point(event, &point);
    if (!error)
        error = !standin_point_reached(&point) ? CUDA_ERROR_NOT_READY : event->context->sticky;
    pthread_mutex_unlock(&standin_lock);
    return error;
}

CUresult standin_EventSynchronize(CUevent event)
{
    struct standin_point point;
    CUresult error;

    pthread_mutex_lock(&standin_lock);
    error = event_point(event, &point);
    if (!error)
        error = point.stream ? standin_point_wait(&point) : event->context->sticky;
    pthread_mutex_unlock(&standin_lock);
    return error;
}

CUresult standin_StreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    struct standin_point point = {0};
    struct CUstream_st *s;
    CUresult error = standin_stream_of(stream, &s);

    if (error)
        return error;
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&standin_lock);
    error = event_point(event, &point);
    if (!error && point.stream)
        standin_stream_hold(point.stream); /* until it is submitted */
    pthread_mutex_unlock(&standin_lock);
    if (error || !point.stream)
        return error;
    error = standin_submit(s, no_work, NULL, &point, NULL, false);
    pthread_mutex_lock(&standin_lock);
    standin_stream_put(point.stream);
    pthread_mutex_unlock(&standin_lock);
    return error;
}

/* ------------------------------------------------------------------------ words in memory */

struct word {
    CUdeviceptr ptr;
    uint64_t value;
    unsigned flags;
};

/* Return the word's address here, or corrupt the context if it is not mapped any more. */
static uint64_t *word_address(const struct word *w, struct CUstream_st *stream)
{
    struct CUctx_st *context = standin_stream_context(stream);
    struct standin_range *r;

    r = standin_range_find(w->ptr);
    if (r && standin_accessible(r, context))
        return standin_host_address(w->ptr);
    if (!context->sticky)
        context->sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
    return NULL;
}

static bool is_satisfied(const struct word *w, uint64_t now)
{
    switch (w->flags & ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH) {
    case CU_STREAM_WAIT_VALUE_GEQ: return (int64_t)(now - w->value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ: return now == w->value;
    case CU_STREAM_WAIT_VALUE_AND: return (now & w->value) != 0;
    default: return ~(now | w->value) != 0;
    }
}

static void word_wait(void *arg, struct CUstream_st *stream)
{
    struct word *w = arg;

    while (stream) {
        uint64_t *at;
        bool done;

        pthread_mutex_lock(&standin_lock);
        at = word_address(w, stream);
        done = !at || standin_stream_context(stream)->sticky || is_satisfied(w, __atomic_load_n(at, __ATOMIC_ACQUIRE));
        pthread_mutex_unlock(&standin_lock);
        if (done)
            break;
        nanosleep(&(struct timespec){0, POLL_NS}, NULL);
    }
    free(w);
}

static void word_write(void *arg, struct CUstream_st *stream)
{
    struct word *w = arg;
    uint64_t *at;

    if (stream) {
        pthread_mutex_lock(&standin_lock);
        at = word_address(w, stream);
        if (at)
            __atomic_store_n(at, w->value, __ATOMIC_RELEASE);
        pthread_mutex_unlock(&standin_lock);
    }
    free(w);
}

static CUresult word_submit(CUstream stream, struct word word, void (*work)(void *, struct CUstream_st *))
{
    struct CUstream_st *s;
    CUresult error = standin_stream_of(stream, &s);
    struct word *w;

    if (error)
        return error;
    if (!standin_settings.memops)
        return CUDA_ERROR_NOT_SUPPORTED;
    pthread_mutex_lock(&standin_lock);
    if (word.ptr % sizeof(uint64_t) || !standin_covered(word.ptr, sizeof(uint64_t), standin_stream_context(s)))
        error = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_unlock(&standin_lock);
    if (error)
        return error;
    w = malloc(sizeof(*w));
    if (!w)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *w = word;
    return standin_submit(s, work, w, NULL, NULL, false);
}

CUresult standin_StreamWaitValue64(CUstream stream, CUdeviceptr ptr, cuuint64_t value, unsigned flags)
{
    if ((flags & ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH) > CU_STREAM_WAIT_VALUE_NOR)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & CU_STREAM_WAIT_VALUE_FLUSH) /* CAN_FLUSH_REMOTE_WRITES is 0 */
        return CUDA_ERROR_NOT_SUPPORTED;
    return word_submit(stream, (struct word){ptr, value, flags}, word_wait);
}

CUresult standin_StreamWriteValue64(CUstream stream, CUdeviceptr ptr, cuuint64_t value, unsigned flags)
{
    if (flags > CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)
        return CUDA_ERROR_INVALID_VALUE;
    return word_submit(stream, (struct word){ptr, value, flags}, word_write);
}

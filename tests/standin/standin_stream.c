/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_stream.c: run the work of each stream in order, on a thread of its own.
 *
 * An operation waits for points in other streams: an event, the NULL stream, blocking streams before the NULL stream's
 * own work, or the stream before it in a shared hardware queue. A corrupted context drops what has not run.
 */
#include "tests/standin/standin.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PRIORITIES = 3 };

struct operation {
    struct operation *next;
    void (*work)(void *arg, struct CUstream_st *stream);
    void *arg;
    int nafter;
    struct standin_point after[];
};

struct standin_queue_end {
    struct standin_point last;
};

struct CUstream_st {
    struct CUstream_st *next;
    struct CUctx_st *context;
    unsigned flags, refs;
    int priority, queue;
    bool running, destroyed, capturing, per_thread;
    pthread_t owner; /* of a per-thread stream */
    uint64_t submitted, completed, random;
    struct operation *first, **tail;
};

static struct CUstream_st *streams;
static unsigned created;

static bool is_pending(const struct CUstream_st *s) { return s->completed < s->submitted; }

bool standin_point_reached(const struct standin_point *point)
{
    return !point->stream || point->stream->completed >= point->seq;
}

struct standin_point standin_stream_point(struct CUstream_st *stream)
{
    return (struct standin_point){stream, stream->submitted};
}

struct CUctx_st *standin_stream_context(const struct CUstream_st *stream) { return stream->context; }

void standin_stream_hold(struct CUstream_st *stream) { stream->refs++; }

void standin_stream_put(struct CUstream_st *stream)
{
    if (stream && --stream->refs == 0)
        free(stream);
}

/* Return another pseudorandom number (splitmix64). */
static uint64_t stream_random(struct CUstream_st *s)
{
    uint64_t z = s->random += 0x9e3779b97f4a7c15;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* Sleep before some operations, if a seed is set. */
static void stream_delay(struct CUstream_st *s)
{
    uint64_t z = stream_random(s);

    if (standin_settings.seed && standin_settings.delay && z % 4 == 0) {
        uint64_t us = (z >> 8) % standin_settings.delay;

        nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
    }
}

static bool is_ready(const struct operation *op)
{
    for (int i = 0; i < op->nafter; i++)
        if (!standin_point_reached(&op->after[i]))
            return false;
    return true;
}

/* Take a destroyed stream out of the list. No-op if it is out. */
static void stream_unlink(struct CUstream_st *stream)
{
    for (struct CUstream_st **p = &streams; *p; p = &(*p)->next)
        if (*p == stream) {
            *p = stream->next;
            break;
        }
}

static void *stream_main(void *arg)
{
    struct CUstream_st *s = arg;

    pthread_mutex_lock(&standin_lock);
    for (;;) {
        struct operation *op = s->first;
        bool dropped;

        if (!op) {
            if (s->destroyed)
                break;
            pthread_cond_wait(&standin_cond, &standin_lock);
            continue;
        }
        if (!s->context->sticky && !is_ready(op)) {
            pthread_cond_wait(&standin_cond, &standin_lock);
            continue;
        }
        dropped = s->context->sticky != CUDA_SUCCESS;
        pthread_mutex_unlock(&standin_lock);
        if (!dropped)
            stream_delay(s);
        op->work(op->arg, dropped ? NULL : s);
        pthread_mutex_lock(&standin_lock);
        s->first = op->next;
        if (!s->first)
            s->tail = &s->first;
        s->completed++;
        for (int i = 0; i < op->nafter; i++)
            standin_stream_put(op->after[i].stream);
        free(op);
        pthread_cond_broadcast(&standin_cond);
    }
    stream_unlink(s);
    standin_stream_put(s);
    pthread_mutex_unlock(&standin_lock);
    return NULL;
}

/* Start the stream's thread, which takes no signals. */
static bool stream_start(struct CUstream_st *s)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;
    int error;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, &attr, stream_main, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    s->running = error == 0;
    s->refs += s->running;
    return s->running;
}

/* ------------------------------------------------------------------------ order */

static void operation_after(struct operation *op, const struct standin_point *point, const struct CUstream_st *own)
{
    if (!point || !point->stream || point->stream == own || standin_point_reached(point))
        return;
    op->after[op->nafter++] = *point;
    standin_stream_hold(point->stream);
}

/* Let the operation wait for what comes before it in a hardware queue, and become its end. */
static void queue_append(struct CUstream_st *s, struct operation *op)
{
    struct standin_queue_end *end;

    if (!standin_settings.queues)
        return;
    if (!s->context->queues)
        s->context->queues = calloc((size_t)PRIORITIES * standin_settings.queues, sizeof(*end));
    if (!s->context->queues)
        abort();
    end = &s->context->queues[-s->priority * standin_settings.queues + s->queue];
    operation_after(op, &end->last, s);
    standin_stream_put(end->last.stream);
    end->last = standin_stream_point(s);
    standin_stream_hold(s);
}

CUresult standin_submit(struct CUstream_st *stream, void (*work)(void *arg, struct CUstream_st *), void *arg,
                        const struct standin_point *after, struct standin_point *end, bool wait)
{
    struct CUctx_st *context = stream->context;
    struct standin_point point;
    struct operation *op;
    CUresult error;
    int n = 4;

    pthread_mutex_lock(&standin_lock);
    if (stream->capturing || context->sticky || (!stream->running && !stream_start(stream))) {
        error = context->sticky ? context->sticky : CUDA_ERROR_OUT_OF_MEMORY;
        error = stream->capturing ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : error;
        pthread_mutex_unlock(&standin_lock);
        work(arg, NULL);
        return error;
    }
    for (struct CUstream_st *s = streams; s; s = s->next)
        n++;
    op = calloc(1, sizeof(*op) + n * sizeof(op->after[0]));
    if (!op)
        abort();
    op->work = work;
    op->arg = arg;
    operation_after(op, after, stream);
    if (stream == context->legacy) {
        for (struct CUstream_st *s = streams; s; s = s->next)
            if (s->context == context && !(s->flags & CU_STREAM_NON_BLOCKING) && is_pending(s))
                operation_after(op, &(struct standin_point){s, s->submitted}, stream);
    } else if (!(stream->flags & CU_STREAM_NON_BLOCKING))
        operation_after(op, &(struct standin_point){context->legacy, context->legacy->submitted}, stream);
    stream->submitted++;
    queue_append(stream, op);
    *stream->tail = op;
    stream->tail = &op->next;
    point = standin_stream_point(stream);
    if (end) {
        *end = point;
        standin_stream_hold(stream);
    }
    pthread_cond_broadcast(&standin_cond);
    error = wait ? standin_point_wait(&point) : CUDA_SUCCESS;
    pthread_mutex_unlock(&standin_lock);
    return error;
}

/* Wait for a point, and drop the hold on its stream. */
static CUresult point_wait_put(struct standin_point point)
{
    CUresult error;

    while (!standin_point_reached(&point))
        pthread_cond_wait(&standin_cond, &standin_lock);
    error = point.stream->context->sticky;
    standin_stream_put(point.stream);
    return error;
}

CUresult standin_point_wait(const struct standin_point *point)
{
    standin_stream_hold(point->stream);
    return point_wait_put(*point);
}

void standin_context_idle(struct CUctx_st *context)
{
    struct standin_point *points;
    int n = 0;

    for (struct CUstream_st *s = streams; s; s = s->next)
        n++;
    points = calloc(n + 1, sizeof(*points));
    if (!points)
        abort();
    n = 0;
    for (struct CUstream_st *s = streams; s; s = s->next)
        if (s->context == context && is_pending(s)) {
            points[n++] = standin_stream_point(s);
            standin_stream_hold(s);
        }
    while (n--)
        point_wait_put(points[n]);
    free(points);
}

/* ------------------------------------------------------------------------ handles */

static struct CUstream_st *stream_create(struct CUctx_st *context, unsigned flags, int priority)
{
    struct CUstream_st *s = calloc(1, sizeof(*s));

    if (!s)
        abort();
    *s = (struct CUstream_st){.context = context, .flags = flags, .refs = 1, .priority = priority, .next = streams};
    s->tail = &s->first;
    s->queue = standin_settings.queues ? (int)(created % standin_settings.queues) : 0;
    s->random = standin_settings.seed * 1000003 + created++ + (uint64_t)getpid() * 7919;
    streams = s;
    return s;
}

struct CUstream_st *standin_stream_legacy(struct CUctx_st *context) { return stream_create(context, 0, 0); }

CUresult standin_stream_of(CUstream handle, struct CUstream_st **stream)
{
    struct CUctx_st *context = standin_context();
    bool own = handle == RK_CUDA_STREAM_PER_THREAD;

    *stream = NULL;
    if (!context && (!handle || handle == RK_CUDA_STREAM_LEGACY || own))
        return CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_lock(&standin_lock);
    if (!handle || handle == RK_CUDA_STREAM_LEGACY)
        *stream = context->legacy;
    for (struct CUstream_st *s = streams; s && !*stream; s = s->next)
        if (own ? s->per_thread && s->context == context && pthread_equal(s->owner, pthread_self())
                : s == handle && !s->destroyed && s != s->context->legacy)
            *stream = s;
    if (own && !*stream) {
        *stream = stream_create(context, 0, 0);
        (*stream)->per_thread = true;
        (*stream)->owner = pthread_self();
    }
    pthread_mutex_unlock(&standin_lock);
    return *stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

int standin_leaked_streams(void)
{
    int n = 0;

    for (struct CUstream_st *s = streams; s; s = s->next)
        n += s != s->context->legacy && !s->per_thread && !s->destroyed;
    return n;
}

CUresult standin_StreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    if (!stream || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING))
        return CUDA_ERROR_INVALID_VALUE;
    priority = priority > 0 ? 0 : priority < 1 - PRIORITIES ? 1 - PRIORITIES : priority;
    pthread_mutex_lock(&standin_lock);
    *stream = stream_create(standin_context(), flags, priority);
    pthread_mutex_unlock(&standin_lock);
    return CUDA_SUCCESS;
}

CUresult standin_StreamDestroy(CUstream stream)
{
    struct CUstream_st *s;
    CUresult error = standin_stream_of(stream, &s);

    if (error || s == s->context->legacy || s->per_thread)
        return error ? error : CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&standin_lock);
    s->destroyed = true; /* its thread ends after the last operation */
    if (!is_pending(s))
        stream_unlink(s);
    pthread_cond_broadcast(&standin_cond);
    standin_stream_put(s);
    pthread_mutex_unlock(&standin_lock);
    return CUDA_SUCCESS;
}

CUresult standin_StreamQuery(CUstream stream)
{
    struct CUstream_st *s;
    CUresult error = standin_stream_of(stream, &s);

    if (error)
        return error;
    pthread_mutex_lock(&standin_lock);
    error = is_pending(s) ? CUDA_ERROR_NOT_READY : s->context->sticky;
    error = s->capturing ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : error;
    pthread_mutex_unlock(&standin_lock);
    return error;
}

CUresult standin_StreamSynchronize(CUstream stream)
{
    struct CUstream_st *s;
    CUresult error = standin_stream_of(stream, &s);

    if (error)
        return error;
    pthread_mutex_lock(&standin_lock);
    error = s->capturing ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                         : standin_point_wait(&(struct standin_point){s, s->submitted});
    pthread_mutex_unlock(&standin_lock);
    return error;
}

CUresult standin_StreamGetCtx(CUstream stream, CUcontext *context)
{
    struct CUstream_st *s;
    CUresult error = standin_stream_of(stream, &s);

    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    if (!error)
        *context = s->context;
    return error;
}

CUresult standin_StreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    struct CUstream_st *s;
    CUresult error = standin_stream_of(stream, &s);

    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    if (!error) {
        pthread_mutex_lock(&standin_lock);
        *status = s->capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
        pthread_mutex_unlock(&standin_lock);
    }
    return error;
}

CUresult standin_capture(CUstream stream, int capture)
{
    struct CUstream_st *s;
    CUresult error = standin_stream_of(stream, &s);

    if (!error) {
        pthread_mutex_lock(&standin_lock);
        s->capturing = capture != 0;
        pthread_mutex_unlock(&standin_lock);
    }
    return error;
}

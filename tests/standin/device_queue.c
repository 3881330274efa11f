/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_queue.c: start operations in the order of streams, compare with a model.
 *
 *   --random N      N programs of several streams: each step fills a buffer, starts an operation, fills the buffer again
 *   --threads N     each stream has a thread of its own
 *   --create S      rank_queue_create returns that status
 *   --rules         arguments, depth, capture, a request started in two ways
 *   --left          rank_finalize with starts that have not been reached
 *   --refuse        the driver refuses two appends
 *   --broken        the stream of rank 0 fails
 *   --kill          the last rank dies while the streams of the others wait for it
 */
#include "tests/mp/mp.h"
#include "lib/mem/cuda/cuda_driver.h"
#include "tests/standin/device_memory.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STREAMS = 3, STEPS = 40, SIZES = 4, KINDS = 4, MOST = 300000, SHARERS = 4, SHARED_STARTS = 60 };
static const int64_t sizes[SIZES] = {1, 100, 12000, MOST};
static const double death_limit_s = 1.5;

#define MUST(name, ...) MP_CHECK_EQ(rk_cuda.name(__VA_ARGS__), CUDA_SUCCESS)

/* What a step does between the filling of its input and the copy of its output. */
enum { ALLREDUCE, RING, BCAST, OPERATIONS };

/* Input and output in device or pinned host memory. */
struct pair {
    void *in, *out;
    bool on_host[2];
};

struct work {
    rank_request_t reqs[2]; /* RING: receive, send */
    int nreqs;
};

/* A stream, with its queue, buffers and requests. */
struct lane {
    const struct mp *mp;
    rank_team_t team;
    rank_queue_t queue;
    CUcontext context;
    CUstream stream;
    uint64_t random;   /* the same on all ranks */
    uint64_t own;      /* differs between ranks */
    struct pair pairs[KINDS];
    CUdeviceptr scratch;
    struct work work[KINDS][SIZES][OPERATIONS];
    unsigned char *log, expected[STEPS * 2]; /* first and last byte of each result */
    int steps;
};

static void *host_alloc(size_t bytes)
{
    void *p;

    MUST(MemHostAlloc, &p, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    memset(p, 0, bytes);
    return p;
}

static void *buffer_alloc(bool on_host)
{
    CUdeviceptr at;

    if (on_host)
        return host_alloc(MOST);
    MUST(MemAlloc, &at, MOST);
    return (void *)(uintptr_t)at;
}

static void buffer_free(void *ptr, bool on_host)
{
    if (on_host)
        MUST(MemFreeHost, ptr);
    else
        MUST(MemFree, (CUdeviceptr)(uintptr_t)ptr);
}

static CUdeviceptr address(const void *ptr)
{
    return (CUdeviceptr)(uintptr_t)ptr;
}

static rank_queue_t queue_of(CUstream stream, int32_t depth)
{
    rank_queue_opts_t opts = RANK_QUEUE_OPTS_INIT;
    rank_queue_t queue;

    opts.stream = stream;
    opts.depth = depth;
    MP_OK(rank_queue_create(RANK_TEAM_NULL, &opts, &queue));
    return queue;
}

static void stream_open(CUstream *stream)
{
    MUST(StreamCreateWithPriority, stream, CU_STREAM_NON_BLOCKING, 0);
}

/* ------------------------------------------------------------------------- a lane */

static void work_init(struct lane *l, int k, int s, int operation)
{
    struct work *w = &l->work[k][s][operation];
    const struct pair *p = &l->pairs[k];
    int64_t n = sizes[s];
    int rank = l->mp->rank, size = l->mp->size;

    w->nreqs = operation == RING ? 2 : 1;
    if (operation == ALLREDUCE) {
        MP_OK(rank_allreduce_init(p->in, p->out, n, RANK_UINT8, RANK_SUM, l->team, &w->reqs[0]));
    } else if (operation == BCAST) {
        MP_OK(rank_bcast_init(rank == s % size ? p->in : p->out, n, RANK_UINT8, s % size, l->team, &w->reqs[0]));
    } else {
        MP_OK(rank_recv_init(p->out, n, RANK_UINT8, (rank + size - 1) % size, k, l->team, &w->reqs[0]));
        MP_OK(rank_ssend_init(p->in, n, RANK_UINT8, (rank + 1) % size, k, l->team, &w->reqs[1]));
    }
}

static void lane_open(struct lane *l, const struct mp *mp, uint64_t seed, int index, CUcontext context)
{
    *l = (struct lane){.mp = mp, .random = seed * 31 + (uint64_t)index, .own = seed * 17 + (uint64_t)(index + mp->rank * 8), .context = context};
    MP_OK(rank_team_dup(mp->world, &l->team));
    stream_open(&l->stream);
    l->queue = queue_of(l->stream, (int32_t)(4 + mp_below(&l->own, 60)));
    MUST(MemAlloc, &l->scratch, MOST);
    l->log = host_alloc(sizeof(l->expected));
    for (int k = 0; k < KINDS; k++) {
        for (int side = 0; side < 2; side++) {
            l->pairs[k].on_host[side] = mp_below(&l->own, 3) == 0;
            *(side ? &l->pairs[k].out : &l->pairs[k].in) = buffer_alloc(l->pairs[k].on_host[side]);
        }
        for (int s = 0; s < SIZES; s++) {
            for (int o = 0; o < OPERATIONS; o++)
                work_init(l, k, s, o);
        }
    }
}

static void lane_close(struct lane *l)
{
    MP_OK(rank_queue_free(&l->queue));
    MP_CHECK(l->queue == RANK_QUEUE_NULL);
    MUST(StreamSynchronize, l->stream);
    for (int k = 0; k < KINDS; k++) {
        for (int s = 0; s < SIZES; s++) {
            for (int o = 0; o < OPERATIONS; o++) {
                for (int i = 0; i < l->work[k][s][o].nreqs; i++) {
                    MP_OK(rank_wait(&l->work[k][s][o].reqs[i], NULL));
                    MP_OK(rank_request_free(&l->work[k][s][o].reqs[i]));
                }
            }
        }
        buffer_free(l->pairs[k].in, l->pairs[k].on_host[0]);
        buffer_free(l->pairs[k].out, l->pairs[k].on_host[1]);
    }
    MUST(MemFree, l->scratch);
    MUST(MemFreeHost, l->log);
    MUST(StreamDestroy, l->stream);
    MP_OK(rank_team_free(&l->team));
}

/* Set bytes of any memory, in the stream's order. */
static void lane_fill(struct lane *l, void *to, bool on_host, unsigned char value, int64_t n)
{
    if (!on_host) {
        MUST(MemsetD8Async, address(to), value, (size_t)n, l->stream);
        return;
    }
    MUST(MemsetD8Async, l->scratch, value, (size_t)n, l->stream);
    MUST(MemcpyDtoHAsync, to, l->scratch, (size_t)n, l->stream);
}

static void lane_log(struct lane *l, int at, const struct pair *p, int64_t offset)
{
    MUST(MemcpyAsync, address(l->log + at), address(p->out) + (CUdeviceptr)offset, 1, l->stream);
}

static void lane_start(struct lane *l, rank_request_t *req)
{
    rank_status_t st = rank_start_on(req, l->queue);

    for (; st == RANK_ERR_AGAIN; st = rank_start_on(req, l->queue))
        usleep(20);
    MP_OK(st);
}

/* The value that a rank fills its input with. */
static unsigned char value_of(int step, int rank, uint64_t salt)
{
    return (unsigned char)(salt + (uint64_t)(step * 7 + rank * 13 + 1));
}

static unsigned char value_expected(const struct lane *l, int step, int operation, int s, uint64_t salt)
{
    int size = l->mp->size, sum = 0;

    if (operation == RING)
        return value_of(step, (l->mp->rank + size - 1) % size, salt);
    if (operation == BCAST)
        return value_of(step, s % size, salt);
    for (int r = 0; r < size; r++)
        sum += value_of(step, r, salt);
    return (unsigned char)sum;
}

static void lane_step(struct lane *l, int step)
{
    int k = (int)mp_below(&l->random, KINDS), s = (int)mp_below(&l->random, SIZES), o = (int)mp_below(&l->random, OPERATIONS);
    uint64_t salt = mp_random(&l->random);
    const struct pair *p = &l->pairs[k];
    struct work *w = &l->work[k][s][o];
    int64_t n = sizes[s];
    bool roots = o == BCAST && l->mp->rank == s % l->mp->size;

    lane_fill(l, p->in, p->on_host[0], value_of(step, l->mp->rank, salt), n);
    lane_fill(l, p->out, p->on_host[1], roots ? value_expected(l, step, o, s, salt) : 0, n);
    if (o == RING) {
        int first = l->mp->rank == 0 ? 1 : 0; /* rank 0 sends first: the ring begins there */

        if (l->mp->size == 1)
            MP_OK(rank_start(&w->reqs[0]));
        for (int i = 0; i < 2; i++) {
            if (l->mp->size > 1 || (first + i) % 2 == 1)
                lane_start(l, &w->reqs[(first + i) % 2]);
        }
        if (l->mp->size == 1)
            MP_OK(rank_wait(&w->reqs[0], NULL));
    } else {
        lane_start(l, &w->reqs[0]);
    }
    lane_fill(l, p->in, p->on_host[0], 99, n); /* the operation is over */
    lane_log(l, step * 2, p, 0);
    lane_log(l, step * 2 + 1, p, n - 1);
    l->expected[step * 2] = l->expected[step * 2 + 1] = value_expected(l, step, o, s, salt);
    if (mp_below(&l->own, 4) == 0) {
        for (int i = 0; i < w->nreqs; i++)
            MP_OK(rank_wait(&w->reqs[i], NULL));
    }
    if (mp_below(&l->own, 8) == 0)
        MUST(StreamSynchronize, l->stream);
}

static void lane_check(struct lane *l)
{
    MUST(StreamSynchronize, l->stream);
    for (int i = 0; i < l->steps; i++) {
        if (l->log[2 * i] != l->expected[2 * i] || l->log[2 * i + 1] != l->expected[2 * i + 1])
            mp_fail(__FILE__, __LINE__, "seed %llu: the result of step %d is %d..%d, not %d", (unsigned long long)l->mp->seed, i,
                    l->log[2 * i], l->log[2 * i + 1], l->expected[2 * i]);
    }
}

static void *lane_run(void *arg)
{
    struct lane *l = arg;

    MUST(CtxSetCurrent, l->context);
    for (; l->steps < STEPS; l->steps++)
        lane_step(l, l->steps);
    lane_check(l);
    return NULL;
}

static void test_random(const struct mp *mp, int64_t programs, bool threads)
{
    static struct lane lanes[STREAMS];
    pthread_t ids[STREAMS];
    CUcontext context;

    MUST(CtxGetCurrent, &context);
    for (int64_t p = 0; p < programs; p++) {
        uint64_t seed = mp->seed + (uint64_t)p;
        int n = 1 + (int)mp_below(&seed, STREAMS);

        for (int i = 0; i < n; i++)
            lane_open(&lanes[i], mp, seed, i, context);
        for (int i = 0; i < n && threads; i++)
            MP_CHECK_EQ(pthread_create(&ids[i], NULL, lane_run, &lanes[i]), 0);
        for (int i = 0; i < n && threads; i++)
            pthread_join(ids[i], NULL);
        for (int step = 0; step < STEPS && !threads; step++) {
            for (int i = 0; i < n; i++)
                lane_step(&lanes[i], lanes[i].steps++);
        }
        for (int i = 0; i < n; i++) {
            lane_check(&lanes[i]);
            lane_close(&lanes[i]);
        }
        mp_barrier(mp->world);
    }
}

/* -------------------------------------------------------------------------- rules */

static void create_refused(const rank_queue_opts_t *opts, rank_team_t team, rank_status_t want)
{
    rank_queue_t queue = RANK_QUEUE_NULL;

    MP_STATUS(rank_queue_create(team, opts, &queue), want);
    MP_CHECK(queue == RANK_QUEUE_NULL);
}

static void test_arguments(const struct mp *mp, CUstream stream)
{
    rank_queue_opts_t good = RANK_QUEUE_OPTS_INIT, bad;
    rank_queue_t queue = RANK_QUEUE_NULL;
    rank_request_t req;
    int64_t x = 1;

    good.stream = stream;
    create_refused(NULL, RANK_TEAM_NULL, RANK_ERR_ARG);
    create_refused(&good, mp->world, RANK_ERR_NOT_SUPPORTED);
    bad = good, bad.size = 8;
    create_refused(&bad, RANK_TEAM_NULL, RANK_ERR_ARG);
    bad = good, bad.depth = -1;
    create_refused(&bad, RANK_TEAM_NULL, RANK_ERR_COUNT);
    bad = good, bad.depth = 65537;
    create_refused(&bad, RANK_TEAM_NULL, RANK_ERR_COUNT);
    bad = good, bad.threads = 1;
    create_refused(&bad, RANK_TEAM_NULL, RANK_ERR_NOT_SUPPORTED);
    for (uintptr_t i = 0; i < 3; i++) { /* default streams */
        bad = good, bad.stream = (void *)i;
        create_refused(&bad, RANK_TEAM_NULL, RANK_ERR_NOT_SUPPORTED);
    }
    bad = good, bad.stream = &x;
    create_refused(&bad, RANK_TEAM_NULL, RANK_ERR_ARG);
    MP_STATUS(rank_queue_create(RANK_TEAM_NULL, &good, NULL), RANK_ERR_ARG);
    MP_STATUS(rank_queue_free(&queue), RANK_ERR_HANDLE);
    MP_STATUS(rank_queue_free(NULL), RANK_ERR_ARG);

    MP_OK(rank_queue_create(RANK_TEAM_NULL, &good, &queue));
    MP_STATUS(rank_start_on(NULL, queue), RANK_ERR_ARG);
    MP_OK(rank_send_init(&x, 1, RANK_INT64, RANK_PROC_NULL, 0, mp->world, &req));
    MP_STATUS(rank_start_on(&req, RANK_QUEUE_NULL), RANK_ERR_HANDLE);
    MP_OK(rank_start(&req));
    MP_STATUS(rank_start_on(&req, queue), RANK_ERR_STATE);
    MP_OK(rank_wait(&req, NULL));
    MP_OK(rank_start_on(&req, queue));
    MP_OK(rank_start_on(&req, queue));
    MP_STATUS(rank_start(&req), RANK_ERR_STATE);
    MP_OK(rank_wait(&req, NULL));
    MP_OK(rank_start(&req));
    MP_OK(rank_wait(&req, NULL));
    MP_OK(rank_request_free(&req));
    MP_OK(rank_irecv(&x, 1, RANK_INT64, RANK_PROC_NULL, 0, mp->world, &req));
    MP_STATUS(rank_start_on(&req, queue), RANK_ERR_HANDLE); /* not persistent */
    MP_OK(rank_wait(&req, NULL));
    MP_OK(rank_queue_free(&queue));
}

/* Nothing is reached while the stream waits for a word of this program. */
static void hold_stream(CUstream stream, uint64_t *word, uint64_t until)
{
    MUST(StreamWaitValue64, stream, address(word), until, CU_STREAM_WAIT_VALUE_GEQ);
}

static void go_on(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static void test_depth(const struct mp *mp, CUstream stream)
{
    uint64_t *word = host_alloc(64);
    int32_t out[8] = {0}, in = mp->rank;
    rank_queue_t queue = queue_of(stream, 3);
    rank_request_t send, recv;
    rank_envelope_t e;
    int done = 1;

    MP_OK(rank_send_init(&in, 1, RANK_INT32, mp->rank, 5, mp->world, &send));
    MP_OK(rank_recv_init(out, 1, RANK_INT32, RANK_ANY_SOURCE, 5, mp->world, &recv));
    for (uint64_t round = 1; round < 4; round++) {
        hold_stream(stream, word, round);
        MP_OK(rank_start_on(&send, queue));
        MP_OK(rank_start_on(&recv, queue));
        MP_OK(rank_start_on(&send, queue));
        MP_STATUS(rank_start_on(&recv, queue), RANK_ERR_AGAIN);
        MP_OK(rank_test(&send, &done, NULL));
        MP_CHECK_EQ(done, 0);
        MP_OK(rank_cancel(&send));
        go_on(word, round);
        while (rank_start_on(&recv, queue) == RANK_ERR_AGAIN)
            usleep(50);
        MP_OK(rank_wait(&recv, &e));
        MP_CHECK_EQ(e.source, mp->rank);
        MP_CHECK_EQ(e.count, 1);
        MP_CHECK_EQ(out[0], mp->rank);
        MP_OK(rank_wait(&send, NULL));
    }
    MP_OK(rank_request_free(&send));
    MP_OK(rank_request_free(&recv));
    MP_OK(rank_queue_free(&queue));
    MUST(StreamSynchronize, stream);
    MUST(MemFreeHost, word);
}

static _Atomic int called;

struct refused_call {
    rank_queue_t queue;
    rank_request_t req;
};

static void count_call(const rank_envelope_t *envelope, void *arg)
{
    struct refused_call *r = arg;

    MP_STATUS(rank_start_on(&r->req, r->queue), RANK_ERR_STATE);
    called += envelope->status == RANK_OK ? 1 : 100;
}

/* A request of two queues, a callback, and a request that is freed before its start is reached. */
static void test_two_queues(const struct mp *mp, CUstream *streams)
{
    uint64_t *word = host_alloc(64);
    rank_queue_t q[2] = {queue_of(streams[0], 0), queue_of(streams[1], 0)};
    rank_request_t barrier, send;
    struct refused_call refused;
    int64_t x = 7, y = 0;

    MP_OK(rank_barrier_init(mp->world, &barrier));
    hold_stream(streams[0], word, 1);
    MP_OK(rank_start_on(&barrier, q[0]));
    MP_OK(rank_start_on(&barrier, q[1])); /* begins after the other */
    refused.queue = q[1];
    MP_OK(rank_send_init(&x, 1, RANK_INT64, RANK_PROC_NULL, 6, mp->world, &refused.req));
    MP_OK(rank_on_done(&barrier, count_call, &refused));
    MP_STATUS(rank_start_on(&barrier, q[1]), RANK_ERR_STATE);
    MP_CHECK_EQ(rk_cuda.StreamQuery(streams[1]), CUDA_ERROR_NOT_READY);
    MP_OK(rank_send_init(&x, 1, RANK_INT64, mp->rank, 6, mp->world, &send));
    MP_OK(rank_start_on(&send, q[0]));
    MP_OK(rank_request_free(&send));
    MP_CHECK_EQ(called, 0);
    go_on(word, 1);
    MP_OK(rank_recv(&y, 1, RANK_INT64, mp->rank, 6, mp->world, NULL));
    MP_CHECK_EQ(y, 7);
    MUST(StreamSynchronize, streams[1]);
    while (called == 0)
        MP_OK(rank_progress());
    MP_CHECK_EQ(called, 1);
    MP_OK(rank_start_on(&barrier, q[1]));
    MP_OK(rank_wait(&barrier, NULL));
    MP_OK(rank_request_free(&barrier));
    MP_OK(rank_request_free(&refused.req));
    MP_OK(rank_queue_free(&q[0]));
    MP_OK(rank_queue_free(&q[1]));
    MUST(StreamSynchronize, streams[0]);
    MUST(MemFreeHost, word);
}

static void test_capture(const struct mp *mp, CUstream stream)
{
    CUresult (*capture)(CUstream, int);
    rank_queue_opts_t opts = RANK_QUEUE_OPTS_INIT;
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *symbol;
    rank_queue_t queue;
    rank_request_t req;

    MP_CHECK(lib);
    if (!(symbol = dlsym(lib, "standin_capture"))) /* a card captures by a call that the library does not need */
        return;
    queue = queue_of(stream, 0);
    memcpy(&capture, &symbol, sizeof(symbol));
    MP_OK(rank_barrier_init(mp->world, &req));
    MP_CHECK_EQ(capture(stream, 1), CUDA_SUCCESS);
    opts.stream = stream;
    create_refused(&opts, RANK_TEAM_NULL, RANK_ERR_NOT_SUPPORTED);
    MP_STATUS(rank_start_on(&req, queue), RANK_ERR_NOT_SUPPORTED);
    MP_OK(rank_wait(&req, NULL)); /* it is not started */
    MP_CHECK_EQ(capture(stream, 0), CUDA_SUCCESS);
    MP_OK(rank_start_on(&req, queue));
    MP_OK(rank_queue_free(&queue));
    MP_OK(rank_wait(&req, NULL));
    MP_OK(rank_request_free(&req));
    dlclose(lib);
}

struct sharer {
    const struct mp *mp;
    rank_queue_t queue;
    int index;
};

/* The stream receives what this thread has sent to itself. */
static void *share_queue(void *arg)
{
    const struct sharer *s = arg;
    rank_request_t send, recv;
    int64_t in[SHARED_STARTS], out = -1;
    rank_status_t st;

    MP_OK(rank_recv_init(&out, 1, RANK_INT64, s->mp->rank, 100 + s->index, s->mp->world, &recv));
    for (int i = 0; i < SHARED_STARTS; i++) {
        in[i] = i;
        MP_OK(rank_isend(&in[i], 1, RANK_INT64, s->mp->rank, 100 + s->index, s->mp->world, &send));
        while ((st = rank_start_on(&recv, s->queue)) == RANK_ERR_AGAIN)
            usleep(20);
        MP_OK(st);
        if (i % 3 == s->index % 3) {
            MP_OK(rank_wait(&recv, NULL));
            MP_CHECK_EQ(out, i);
        }
        MP_OK(rank_wait(&send, NULL));
    }
    MP_OK(rank_wait(&recv, NULL));
    MP_CHECK_EQ(out, SHARED_STARTS - 1);
    MP_OK(rank_request_free(&recv));
    return NULL;
}

/* Threads start on one queue, and on a second one of the same stream. */
static void test_shared_queue(const struct mp *mp, CUstream stream)
{
    rank_queue_t q[2] = {queue_of(stream, 5), queue_of(stream, 0)};
    struct sharer sharers[SHARERS];
    pthread_t ids[SHARERS];

    for (int i = 0; i < SHARERS; i++) {
        sharers[i] = (struct sharer){mp, q[i == 0], i};
        MP_CHECK_EQ(pthread_create(&ids[i], NULL, share_queue, &sharers[i]), 0);
    }
    for (int i = 0; i < SHARERS; i++)
        pthread_join(ids[i], NULL);
    for (int i = 0; i < 2; i++)
        MP_OK(rank_queue_free(&q[i]));
}

/* The default stream waits for a blocking stream, which waits for a copy of the library to memory that it has not seen. */
static void test_default_stream(const struct mp *mp)
{
    uint64_t *word = host_alloc(64);
    CUdeviceptr in, out, other;
    rank_request_t req;
    rank_queue_t queue;
    CUstream stream;
    int32_t got = 0;

    MUST(StreamCreateWithPriority, &stream, 0, 0);
    queue = queue_of(stream, 0);
    MUST(MemAlloc, &in, 4);
    MUST(MemAlloc, &out, 4);
    MUST(MemAlloc, &other, 4);
    MP_OK(rank_allreduce_init((void *)(uintptr_t)in, (void *)(uintptr_t)out, 1, RANK_INT32, RANK_SUM, mp->world, &req));
    hold_stream(stream, word, 1);
    MUST(MemsetD8Async, in, 1, 4, stream);
    MP_OK(rank_start_on(&req, queue));
    MUST(MemsetD8Async, other, 0, 4, NULL);
    go_on(word, 1);
    MUST(StreamSynchronize, NULL);
    MUST(Memcpy, address(&got), out, 4);
    MP_CHECK_EQ(got, mp->size * 0x01010101);
    MP_OK(rank_wait(&req, NULL));
    MP_OK(rank_request_free(&req));
    MP_OK(rank_queue_free(&queue));
    MUST(MemFree, in);
    MUST(MemFree, out);
    MUST(MemFree, other);
    MUST(StreamDestroy, stream);
    MUST(MemFreeHost, word);
}

static void test_rules(struct mp *mp)
{
    CUstream streams[2];

    for (int i = 0; i < 2; i++)
        stream_open(&streams[i]);
    mp_case(mp, "arguments");
    test_arguments(mp, streams[0]);
    mp_case(mp, "depth");
    test_depth(mp, streams[0]);
    mp_case(mp, "two queues");
    test_two_queues(mp, streams);
    mp_case(mp, "a queue of several threads");
    test_shared_queue(mp, streams[0]);
    mp_case(mp, "default stream");
    test_default_stream(mp);
    mp_case(mp, "capture");
    test_capture(mp, streams[0]);
    for (int i = 0; i < 2; i++)
        MUST(StreamDestroy, streams[i]);
}

/* ------------------------------------------------------------------------- faults */

static void test_create(CUstream stream, rank_status_t want)
{
    rank_queue_opts_t opts = RANK_QUEUE_OPTS_INIT;

    opts.stream = stream;
    create_refused(&opts, RANK_TEAM_NULL, want);
}

/* The stream goes on when the library ends. */
static void test_left(struct mp *mp, CUstream stream)
{
    uint64_t *word = host_alloc(64);
    rank_queue_t queue = queue_of(stream, 0);
    rank_request_t req;

    MP_OK(rank_barrier_init(mp->world, &req));
    hold_stream(stream, word, 1);
    for (int i = 0; i < 3; i++)
        MP_OK(rank_start_on(&req, queue));
    MP_OK(rank_finalize());
    MP_STATUS(rank_start_on(&req, queue), RANK_ERR_STATE);
    MP_STATUS(rank_queue_free(&queue), RANK_ERR_STATE);
    go_on(word, 1);
    MUST(StreamSynchronize, stream);
    MUST(MemFreeHost, word);
    puts("mp: done");
}

/* As STANDIN_FAIL sets: the second start, and the fourth one after its number is in the stream. */
static void test_refuse(const struct mp *mp, CUstream stream)
{
    uint64_t *word = host_alloc(64);
    rank_queue_t queue = queue_of(stream, 0);
    rank_request_t reqs[6];

    hold_stream(stream, word, 1);
    for (int i = 0; i < 6; i++) {
        bool refused = i == 1 || i == 3;

        MP_OK(rank_send_init(NULL, 0, RANK_BYTE, RANK_PROC_NULL, 0, mp->world, &reqs[i]));
        MP_STATUS(rank_start_on(&reqs[i], queue), refused ? RANK_ERR_DEVICE : RANK_OK);
        if (refused)
            MP_OK(rank_start(&reqs[i])); /* it is not started */
    }
    go_on(word, 1);
    for (int i = 0; i < 6; i++) {
        MP_OK(rank_wait(&reqs[i], NULL));
        MP_OK(rank_request_free(&reqs[i]));
    }
    MP_OK(rank_queue_free(&queue));
    MUST(StreamSynchronize, stream);
    MUST(MemFreeHost, word);
}

/* What rank 0's stream does not reach any more fails, for collectives on all ranks. */
static void test_broken(struct mp *mp, CUstream stream)
{
    uint64_t *word = host_alloc(64);
    rank_queue_t queue = queue_of(stream, 0);
    rank_request_t req;
    rank_status_t want = mp->rank == 0 ? RANK_ERR_DEVICE : RANK_ERR_COLLECTIVE;
    rank_team_t team;

    MP_OK(rank_team_dup(mp->world, &team));
    MP_OK(rank_barrier_init(team, &req));
    if (mp->rank == 0)
        hold_stream(stream, word, 1);
    MP_OK(rank_start_on(&req, queue));
    MP_OK(rank_start_on(&req, queue));
    if (mp->rank == 0)
        MP_CHECK_EQ(rk_cuda.CtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS); /* as STANDIN_FAIL sets */
    MP_STATUS(rank_wait(&req, NULL), want);
    if (mp->rank == 0)
        MP_STATUS(rank_start_on(&req, queue), RANK_ERR_DEVICE);
    MP_STATUS(rank_queue_free(&queue), want);
    MP_OK(rank_request_free(&req));
    MP_OK(rank_team_free(&team));
    if (mp->rank != 0)
        MUST(MemFreeHost, word);
}

static void test_kill(struct mp *mp, CUstream stream)
{
    int victim = mp->size - 1;
    rank_queue_t queue = queue_of(stream, 0);
    rank_request_t reqs[2];
    double begun;
    CUdeviceptr at;
    rank_status_t st;

    MUST(MemAlloc, &at, MOST);
    MP_OK(rank_recv_init((void *)(uintptr_t)at, MOST, RANK_BYTE, victim, 0, mp->world, &reqs[0]));
    MP_OK(rank_allreduce_init(RANK_IN_PLACE, (void *)(uintptr_t)at, 1000, RANK_INT64, RANK_SUM, mp->world, &reqs[1]));
    mp_barrier(mp->world);
    if (mp->rank == victim) { /* once all others have started */
        for (int r = 0; r < victim; r++)
            MP_OK(rank_recv(NULL, 0, RANK_BYTE, r, 1, mp->world, NULL));
        raise(SIGKILL);
    }
    MP_OK(rank_start_on(&reqs[mp->rank % 2], queue));
    MP_OK(rank_start_on(&reqs[mp->rank % 2], queue));
    MP_OK(rank_send(NULL, 0, RANK_BYTE, victim, 1, mp->world));
    begun = mp_now();
    MUST(StreamSynchronize, stream);
    if (mp_now() - begun > death_limit_s)
        mp_fail(__FILE__, __LINE__, "the stream waited for %.1f s", mp_now() - begun);
    st = rank_wait(&reqs[mp->rank % 2], NULL);
    MP_STATUS(st, RANK_ERR_PEER_DEAD);
    MP_STATUS(rank_queue_free(&queue), RANK_ERR_PEER_DEAD);
    for (int i = 0; i < 2; i++)
        MP_OK(rank_request_free(&reqs[i]));
    MUST(MemFree, at);
}

int main(int argc, char **argv)
{
    int64_t level = mp_option(argc, argv, "--level", RANK_THREAD_MULTIPLE), random = mp_option(argc, argv, "--random", 0);
    rank_status_t create = (rank_status_t)mp_option(argc, argv, "--create", 0);
    bool kill = mp_flag(argc, argv, "--kill");
    bool broken = mp_flag(argc, argv, "--broken"), left = mp_flag(argc, argv, "--left");
    const char *rank = getenv("PMIX_RANK");
    CUstream stream;
    struct mp mp;

    if (broken && rank && strcmp(rank, "0") == 0) /* the stand-in reads it at the first call */
        setenv("STANDIN_FAIL", "CtxSynchronize:1:CUDA_ERROR_ILLEGAL_ADDRESS", 1);
    mp_start_level(&mp, &argc, argv, (rank_thread_level_t)level);
    device_memory(mp.rank);
    stream_open(&stream);
    if (random)
        test_random(&mp, mp_rounds(random), mp_flag(argc, argv, "--threads"));
    else if (mp_flag(argc, argv, "--rules"))
        test_rules(&mp);
    else if (left)
        test_left(&mp, stream);
    else if (mp_flag(argc, argv, "--refuse"))
        test_refuse(&mp, stream);
    else if (broken)
        test_broken(&mp, stream);
    else if (kill)
        test_kill(&mp, stream);
    else
        test_create(stream, create);
    if (!broken || mp.rank != 0)
        MUST(StreamDestroy, stream);
    MP_CHECK(device_memory_is_current());
    device_memory_end();
    if (kill)
        mp_end_survivor(&mp);
    else if (!left)
        mp_end(&mp);
    return 0;
}

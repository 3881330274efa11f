/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_stream_test.c: check the order of work in the stand-in for libcuda.
 *
 * No GPU takes part. A random program runs with delays, and a kernel that the C++ compiler has built.
 */
#include "tests/standin/standin_run.h"

#include <time.h>

enum { WORDS = 64, STREAMS = 4, STEPS = 3000 };

static CUstream stream_new(unsigned flags)
{
    CUstream stream;

    OK(StreamCreateWithPriority(&stream, flags, 0));
    return stream;
}

/* Become true within 20 seconds? */
static bool comes(bool (*condition)(void *), void *arg)
{
    for (int i = 0; i < 20000 && !condition(arg); i++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    return condition(arg);
}

static bool is_idle(void *stream) { return cu.StreamQuery(stream) == CUDA_SUCCESS; }

static bool stays_busy(CUstream stream)
{
    nanosleep(&(struct timespec){0, 5000000}, NULL);
    return cu.StreamQuery(stream) == CUDA_ERROR_NOT_READY;
}

/*
 * Copy words in any stream. Operations that touch a word one after the other are ordered by their stream or by an
 * event, others are not: the result is that of the program in sequence.
 */
static void random_program(void)
{
    uint64_t model[WORDS], result[WORDS];
    CUstream stream[STREAMS];
    CUevent event[STREAMS];
    int last[WORDS];
    CUdeviceptr words;

    run_start();
    srand(20);
    OK(MemAlloc(&words, sizeof(model)));
    for (int i = 0; i < WORDS; i++) {
        model[i] = (uint64_t)rand() << 32 | (unsigned)rand();
        last[i] = -1;
    }
    OK(Memcpy(words, (uintptr_t)model, sizeof(model)));
    OK(CtxSynchronize());
    for (int i = 0; i < STREAMS; i++) {
        stream[i] = stream_new(CU_STREAM_NON_BLOCKING);
        OK(EventCreate(&event[i], CU_EVENT_DISABLE_TIMING));
    }
    for (int step = 0; step < STEPS; step++) {
        int s = rand() % STREAMS, n = 1 + rand() % 4, to = rand() % (WORDS - n + 1), from = rand() % (WORDS - n + 1);

        for (int k = 0; k < 2 * n; k++) {
            int word = k < n ? to + k : from + k - n;

            if (last[word] >= 0 && last[word] != s) {
                OK(EventRecord(event[last[word]], stream[last[word]]));
                OK(StreamWaitEvent(stream[s], event[last[word]], 0));
            }
            last[word] = s;
        }
        if (rand() % 8 == 0) {
            OK(MemsetD8Async(words + 8 * to, (unsigned char)step, 8 * n, stream[s]));
            memset(model + to, (unsigned char)step, 8 * n);
        } else {
            OK(MemcpyDtoDAsync(words + 8 * to, words + 8 * from, 8 * n, stream[s]));
            memmove(model + to, model + from, 8 * n);
        }
    }
    OK(CtxSynchronize());
    OK(Memcpy((uintptr_t)result, words, sizeof(result)));
    CHECK(memcmp(model, result, sizeof(model)) == 0);
    for (int i = 0; i < STREAMS; i++) {
        OK(StreamDestroy(stream[i]));
        OK(EventDestroy(event[i]));
    }
    OK(MemFree(words));
    run_stop();
}

/* A stream that waits holds up the NULL stream and what comes after that in blocking streams, and nothing else. */
static void null_stream(void)
{
    CUstream waits, later, apart;
    CUdeviceptr dev;
    uint64_t *word;

    run_start();
    waits = stream_new(0);
    later = stream_new(0);
    apart = stream_new(CU_STREAM_NON_BLOCKING);
    OK(MemAlloc(&dev, 64));
    OK(MemHostAlloc((void **)&word, 64, 0));
    OK(StreamWaitValue64(waits, (uintptr_t)word, 5, CU_STREAM_WAIT_VALUE_GEQ));
    OK(MemsetD8Async(dev, 1, 8, later));
    CHECK(comes(is_idle, later));
    OK(MemsetD8Async(dev, 2, 8, NULL));
    OK(MemsetD8Async(dev, 3, 8, later));
    OK(MemsetD8Async(dev + 8, 4, 8, apart));
    CHECK(comes(is_idle, apart));
    CHECK(stays_busy(waits) && stays_busy(NULL) && stays_busy(later));
    OK(Memcpy(dev + 16, dev + 8, 8)); /* device to device: the host does not wait */
    __atomic_store_n(word, 6, __ATOMIC_RELEASE);
    OK(MemcpyDtoHAsync(word, dev, 8, later));
    OK(StreamSynchronize(later));
    CHECK(*word == 0x0303030303030303);
    OK(StreamSynchronize(NULL));
    OK(Memcpy((uintptr_t)word, dev + 16, 8));
    CHECK(*word == 0x0404040404040404);
    OK(StreamWaitValue64(apart, (uintptr_t)word, 1, CU_STREAM_WAIT_VALUE_EQ)); /* the NULL stream passes it */
    OK(MemsetD8Async(dev, 5, 8, NULL));
    CHECK(comes(is_idle, NULL) && stays_busy(apart));
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
    OK(CtxSynchronize());
    OK(StreamDestroy(waits));
    OK(StreamDestroy(later));
    OK(StreamDestroy(apart));
    OK(MemFree(dev));
    OK(MemFreeHost(word));
    run_stop();
}

/* Host and streams pass a ticket by words, which lie in pinned, managed and device memory. */
static void words_pass(void)
{
    CUstream a, b;
    CUdeviceptr dev, managed;
    uint64_t *host, seen;
    CUevent event;

    run_start();
    a = stream_new(CU_STREAM_NON_BLOCKING);
    b = stream_new(CU_STREAM_NON_BLOCKING);
    OK(EventCreate(&event, 0));
    OK(EventQuery(event));
    OK(MemAlloc(&dev, 8));
    OK(MemAllocManaged(&managed, 8, CU_MEM_ATTACH_GLOBAL));
    OK(MemHostAlloc((void **)&host, 16, 0));
    FAILS(INVALID_VALUE, StreamWaitValue64(a, (uintptr_t)host + 4, 1, 0));
    FAILS(INVALID_VALUE, StreamWriteValue64(a, (uintptr_t)&seen, 1, 0)); /* not pinned */
    for (uint64_t turn = 1; turn <= 20; turn++) {
        OK(StreamWaitValue64(a, (uintptr_t)host, turn, CU_STREAM_WAIT_VALUE_GEQ));
        OK(StreamWriteValue64(a, dev, turn, 0));
        OK(StreamWaitValue64(b, dev, turn, CU_STREAM_WAIT_VALUE_EQ));
        OK(StreamWriteValue64(b, managed, turn, 0));
        OK(StreamWriteValue64(b, (uintptr_t)(host + 1), turn, 0));
        OK(EventRecord(event, b));
        FAILS(NOT_READY, EventQuery(event));
        CHECK(__atomic_load_n(host + 1, __ATOMIC_ACQUIRE) == turn - 1);
        __atomic_store_n(host, turn, __ATOMIC_RELEASE);
        OK(EventSynchronize(event));
        CHECK(__atomic_load_n(host + 1, __ATOMIC_ACQUIRE) == turn && *(uint64_t *)(uintptr_t)managed == turn);
    }
    OK(Memcpy((uintptr_t)&seen, dev, 8));
    CHECK(seen == 20);
    OK(StreamDestroy(a));
    OK(StreamDestroy(b));
    OK(EventDestroy(event));
    OK(MemFree(dev));
    OK(MemFree(managed));
    OK(MemFreeHost(host));
    run_stop();
}

/* Streams that share the only hardware queue wait for each other, except at another priority. */
static void queue_shared(void)
{
    CUstream waits, same, high;
    CUdeviceptr dev;
    uint64_t *word;

    run_start();
    waits = stream_new(CU_STREAM_NON_BLOCKING);
    same = stream_new(CU_STREAM_NON_BLOCKING);
    OK(StreamCreateWithPriority(&high, CU_STREAM_NON_BLOCKING, -1));
    OK(MemAlloc(&dev, 64));
    OK(MemHostAlloc((void **)&word, 64, 0));
    OK(StreamWaitValue64(waits, (uintptr_t)word, 1, CU_STREAM_WAIT_VALUE_GEQ));
    OK(MemsetD8Async(dev, 1, 8, same));
    OK(MemsetD8Async(dev, 1, 8, high));
    CHECK(comes(is_idle, high) && stays_busy(same));
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
    OK(StreamSynchronize(same));
    OK(StreamDestroy(waits));
    OK(StreamDestroy(same));
    OK(StreamDestroy(high));
    OK(MemFree(dev));
    OK(MemFreeHost(word));
    run_stop();
}

static void memops_missing(void)
{
    CUstream stream;
    CUstreamCaptureStatus status;
    uint64_t *word;
    int can;

    run_start();
    stream = stream_new(CU_STREAM_NON_BLOCKING);
    OK(MemHostAlloc((void **)&word, 8, 0));
    OK(DeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 0));
    CHECK(!can);
    FAILS(NOT_SUPPORTED, StreamWriteValue64(stream, (uintptr_t)word, 1, 0));
    CHECK(cu.capture(stream, 1) == CUDA_SUCCESS);
    OK(StreamIsCapturing(stream, &status));
    CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    FAILS(STREAM_CAPTURE_UNSUPPORTED, StreamSynchronize(stream));
    CHECK(cu.capture(stream, 0) == CUDA_SUCCESS);
    OK(StreamSynchronize(stream));
    OK(StreamDestroy(stream));
    OK(MemFreeHost(word));
    run_stop();
}

/* ------------------------------------------------------------------------ kernels */

struct scale_args {
    float *out;
    const float *in[2];
    size_t n;
    float factor;
};

static char image[4096];

static void kernel_runs(void)
{
    enum { N = 1000 };
    struct scale_args args = {.n = N, .factor = 2};
    void *params[] = {&args};
    float host[N];
    CUdeviceptr mine, peers;
    CUmodule module;
    CUfunction scale;
    CUstream stream;
    int can;

    run_start();
    FAILS(NO_BINARY_FOR_GPU, ModuleLoadData(&module, "\x7f""ELF"));
    OK(ModuleLoadData(&module, image));
    FAILS(NOT_FOUND, ModuleGetFunction(&scale, module, "other"));
    OK(ModuleGetFunction(&scale, module, "scale"));
    stream = stream_new(CU_STREAM_NON_BLOCKING);
    OK(MemAlloc(&mine, sizeof(host)));
    OK(CtxPushCurrent(contexts[1]));
    OK(MemAlloc(&peers, sizeof(host)));
    FAILS(INVALID_HANDLE, LaunchKernel(scale, 4, 1, 1, 64, 1, 1, 0, stream, params, NULL));
    OK(CtxPopCurrent(NULL));
    for (int i = 0; i < N; i++)
        host[i] = (float)i;
    OK(MemcpyHtoDAsync(mine, host, sizeof(host), stream));
    OK(MemcpyDtoDAsync(peers, mine, sizeof(host), stream)); /* a copy needs no peer access */
    args.in[0] = (const float *)(uintptr_t)mine;
    args.in[1] = (const float *)(uintptr_t)peers;
    args.out = (float *)(uintptr_t)mine;
    OK(DeviceCanAccessPeer(&can, 0, 1));
    CHECK(can);
    OK(CtxEnablePeerAccess(contexts[1], 0));
    FAILS(PEER_ACCESS_ALREADY_ENABLED, CtxEnablePeerAccess(contexts[1], 0));
    OK(LaunchKernel(scale, 4, 1, 1, 64, 1, 1, 0, stream, params, NULL));
    args.n = 0; /* the driver has copied the parameters */
    OK(MemcpyDtoHAsync(host, mine, sizeof(host), stream));
    for (int i = 0; i < N; i++)
        CHECK(host[i] == 4 * (float)i); /* the copy to pageable memory was waited for */
    OK(ModuleUnload(module));
    OK(StreamDestroy(stream));
    OK(MemFree(mine));
    OK(MemFree(peers));
    run_stop();
}

/* Memory of a peer without access corrupts the context. */
static void kernel_faults(void)
{
    struct scale_args args = {.n = 1};
    void *params[] = {&args};
    CUdeviceptr peers, more;
    CUmodule module;
    CUfunction scale;

    run_start();
    OK(ModuleLoadData(&module, image));
    OK(ModuleGetFunction(&scale, module, "scale"));
    OK(CtxPushCurrent(contexts[1]));
    OK(MemAlloc(&peers, 8));
    OK(CtxPopCurrent(NULL));
    args.out = (float *)(uintptr_t)peers;
    OK(LaunchKernel(scale, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    FAILS(ILLEGAL_ADDRESS, StreamSynchronize(NULL));
    FAILS(ILLEGAL_ADDRESS, MemAlloc(&more, 8));
    OK(CtxSetCurrent(contexts[1]));
    OK(MemAlloc(&more, 8)); /* of that device alone */
}

static void standin_streams_in_order(void **state)
{
    (void)state;
    RUN(random_program, "STANDIN_SEED=7", "STANDIN_DELAY=500", NULL);
    RUN(random_program, "STANDIN_QUEUES=2", NULL);
}

static void standin_null_stream(void **state)
{
    (void)state;
    RUN(null_stream, "STANDIN_SEED=3", NULL);
}

static void standin_values_waited_for(void **state)
{
    (void)state;
    RUN(words_pass, "STANDIN_SEED=5", NULL);
    RUN(memops_missing, "STANDIN_MEMOPS=off", NULL);
}

static void standin_hardware_queue(void **state)
{
    (void)state;
    RUN(queue_shared, "STANDIN_QUEUES=1", NULL);
}

static void standin_kernels(void **state)
{
    const char *top = getenv("top_builddir");
    FILE *object;

    (void)state;
    snprintf(image, sizeof(image), "standin:%s/tests/standin/scale_kernel.so", top ? top : ".");
    object = fopen(strchr(image, ':') + 1, "r");
    if (!object || fgetc(object) == EOF) /* no C++ compiler */
        skip();
    fclose(object);
    RUN(kernel_runs, "STANDIN_GPUS=2", NULL);
    RUN(kernel_faults, "STANDIN_GPUS=2", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(standin_streams_in_order), cmocka_unit_test(standin_null_stream),
        cmocka_unit_test(standin_values_waited_for), cmocka_unit_test(standin_hardware_queue),
        cmocka_unit_test(standin_kernels),
    };

    return cmocka_run_group_tests_name("stand-in for libcuda, no GPU: streams", tests, NULL, NULL);
}

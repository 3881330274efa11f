/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_rates.c: measure copies and kernels of one device, in one process.
 *
 *   device_rates [-q]
 *
 * A record a figure (gpu_record.h). Copies are the limits that run.sh compares calls of ranks with; a figure of a kernel has
 * its own limit. Each is the median of several samples. -q: small sizes.
 */
#include "tests/gpu/gpu_record.h"

#include "bench/harness_stats.h"
#include "lib/mem/cuda/kind_cuda.h"

#include <stdint.h>

enum { SAMPLES = 9, BATCH = 8, KERNEL_SAMPLES = 9 };

static const double kernel_limit = 0.85; /* of the copy's rate */

static CUstream stream;

enum direction { ON_DEVICE, TO_HOST, TO_DEVICE };

/* Seconds of a copy: by itself, with its event, or as one of many in a row. */
static double copy_seconds(enum direction d, CUdeviceptr device, CUdeviceptr other, void *host, size_t bytes, int batch)
{
    double sample[SAMPLES];
    CUevent event;

    GPU_MUST(EventCreate, &event, CU_EVENT_DISABLE_TIMING);
    for (int i = -1; i < SAMPLES; i++) { /* the first one warms up */
        double start = gpu_seconds();
        CUresult r;

        for (int k = 0; k < batch; k++) {
            if (d == ON_DEVICE)
                GPU_MUST(MemcpyDtoDAsync, other, device, bytes, stream);
            else if (d == TO_HOST)
                GPU_MUST(MemcpyDtoHAsync, host, device, bytes, stream);
            else
                GPU_MUST(MemcpyHtoDAsync, device, host, bytes, stream);
        }
        GPU_MUST(EventRecord, event, stream);
        while ((r = rk_cuda.EventQuery(event)) == CUDA_ERROR_NOT_READY)
            ;
        if (r != CUDA_SUCCESS)
            gpu_end("EventQuery", r);
        if (i >= 0)
            sample[i] = (gpu_seconds() - start) / batch;
    }
    GPU_MUST(EventDestroy, event);
    return bench_stats_of(sample, SAMPLES).median;
}

/* "copy on the device, 1048576 B" */
static void record_copy(const char *what, size_t bytes, double seconds)
{
    char name[128];

    snprintf(name, sizeof(name), "%s, %zu B", what, bytes);
    if (bytes < 1 << 16)
        record_value(name, true, seconds * 1e6, "us", "");
    else
        record_value(name, true, (double)bytes / seconds * 1e-9, "GB/s", "");
}

static void measure_small(void)
{
    static const size_t sizes[] = {8, 64, 512, 4096};
    CUdeviceptr a, b;
    void *host;

    GPU_MUST(MemAlloc, &a, 4096);
    GPU_MUST(MemAlloc, &b, 4096);
    GPU_MUST(MemHostAlloc, &host, 4096, CU_MEMHOSTALLOC_PORTABLE);
    for (size_t i = 0; i < RK_ARRAY_LEN(sizes); i++) {
        record_copy("copy on the device", sizes[i], copy_seconds(ON_DEVICE, a, b, host, sizes[i], 1));
        record_copy("copies to the host and back", sizes[i],
                    copy_seconds(TO_HOST, a, b, host, sizes[i], 1) + copy_seconds(TO_DEVICE, a, b, host, sizes[i], 1));
    }
    GPU_MUST(MemFreeHost, host);
    GPU_MUST(MemFree, a);
    GPU_MUST(MemFree, b);
}

static void measure_large(const size_t *sizes, int n)
{
    for (int i = 0; i < n; i++) {
        CUdeviceptr a, b;
        void *host;

        if (rk_cuda.MemAlloc(&a, sizes[i]) != CUDA_SUCCESS)
            break;
        if (rk_cuda.MemAlloc(&b, sizes[i]) != CUDA_SUCCESS) {
            GPU_MUST(MemFree, a);
            break;
        }
        record_copy("copy on the device", sizes[i], copy_seconds(ON_DEVICE, a, b, NULL, sizes[i], BATCH));
        if (sizes[i] <= 64 << 20) {
            GPU_MUST(MemHostAlloc, &host, sizes[i], CU_MEMHOSTALLOC_PORTABLE);
            record_copy("copy to the host", sizes[i], copy_seconds(TO_HOST, a, b, host, sizes[i], BATCH));
            record_copy("copy to the device", sizes[i], copy_seconds(TO_DEVICE, a, b, host, sizes[i], BATCH));
            GPU_MUST(MemFreeHost, host);
        }
        GPU_MUST(MemFree, a);
        GPU_MUST(MemFree, b);
    }
}

static double kernel_seconds(CUdeviceptr memory, size_t bytes, int k, rank_dtype_t dtype, size_t size)
{
    const void *src[RK_KIND_OPERANDS];
    double sample[KERNEL_SAMPLES];

    for (int j = 0; j < k; j++)
        src[j] = (const void *)(uintptr_t)(memory + (CUdeviceptr)j * bytes);
    for (int i = -1; i < KERNEL_SAMPLES; i++) {
        double start = gpu_seconds();

        if (rk_kind_cuda.reduce((void *)(uintptr_t)(memory + RK_KIND_OPERANDS * (CUdeviceptr)bytes), src, k, bytes / size, dtype, RANK_SUM, 0) !=
            RANK_OK)
            return 0;
        if (i >= 0)
            sample[i] = gpu_seconds() - start;
    }
    return bench_stats_of(sample, KERNEL_SAMPLES).median;
}

/* A sum of k arrays loads k and stores one; a copy loads one and stores one. */
static void measure_kernels(size_t bytes)
{
    static const struct {
        const char *name;
        rank_dtype_t dtype;
        size_t size;
    } types[] = {{"f32", RANK_F32, 4}, {"bf16", RANK_BF16, 2}};
    static const int operands[] = {2, 4, 8};
    CUdeviceptr memory;
    double copy;
    char name[128];

    if (rk_cuda.MemAlloc(&memory, (RK_KIND_OPERANDS + 1) * bytes) != CUDA_SUCCESS) {
        record_text("kernels", "skip", "out of device memory");
        return;
    }
    copy = 2 * (double)bytes / copy_seconds(ON_DEVICE, memory, memory + bytes, NULL, bytes, 1);
    for (size_t t = 0; t < RK_ARRAY_LEN(types); t++) {
        for (size_t i = 0; i < RK_ARRAY_LEN(operands); i++) {
            int k = operands[i];
            double seconds = kernel_seconds(memory, bytes, k, types[t].dtype, types[t].size);
            double ratio = seconds > 0 ? (k + 1) * (double)bytes / seconds / copy : 0;

            snprintf(name, sizeof(name), "kernel: sum of %d arrays, %s, %zu B", k, types[t].name, bytes);
            if (seconds > 0)
                printf("%s\t%s\t%.4g\tof the copy's rate\t%.4g GB/s\t%g\n", name, ratio >= kernel_limit ? "pass" : "fail", ratio,
                       (k + 1) * (double)bytes / seconds * 1e-9, kernel_limit);
            else
                record_text(name, "skip", "no kernel");
        }
    }
    GPU_MUST(MemFree, memory);
}

int main(int argc, char **argv)
{
    static const size_t large[] = {1 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30}, quick[] = {1 << 16, 1 << 20};
    bool is_quick = argc > 1 && strcmp(argv[1], "-q") == 0;
    char why[512];

    gpu_open(0);
    if (rk_kind_cuda.open(true, why, sizeof(why)) != RANK_OK) {
        record_text("kernels", "fail", why);
        return 1;
    }
    GPU_MUST(StreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, 0);
    measure_small();
    measure_large(is_quick ? quick : large, is_quick ? RK_ARRAY_LEN(quick) : RK_ARRAY_LEN(large));
    measure_kernels(is_quick ? 1 << 16 : 256 << 20);
    GPU_MUST(StreamDestroy, stream);
    rk_kind_cuda.close();
    gpu_close();
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_record.h: print the records that run.sh collects, and use a device for them.
 *
 * A record is a line: name, status (pass, fail, skip), value or "-", unit or "-", text; separated by tabs.
 * Where no device is, a program prints one skipped record and ends with 77.
 */
#ifndef RK_TESTS_GPU_RECORD_H
#define RK_TESTS_GPU_RECORD_H

#include "lib/mem/cuda/cuda_driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { GPU_SKIPPED = 77 };

static inline void record_value(const char *name, bool passed, double value, const char *unit, const char *text)
{
    printf("%s\t%s\t%.6g\t%s\t%s\n", name, passed ? "pass" : "fail", value, unit, text);
    fflush(stdout);
}

static inline void record_text(const char *name, const char *status, const char *text)
{
    printf("%s\t%s\t-\t-\t%s\n", name, status, text);
    fflush(stdout);
}

/* The record of the process, for calls that end it. */
static const char *gpu_probe = "device";

__attribute__((noreturn)) static inline void gpu_end(const char *call, CUresult r)
{
    char text[256], line[512];

    snprintf(line, sizeof(line), "cu%s: %s", call, rk_cuda_error_text(r, text, sizeof(text)));
    record_text(gpu_probe, "fail", line);
    _exit(1);
}

/* A call of the driver; a failure is the record of the process, which ends. */
#define GPU_MUST(name, ...)                                                                                       \
    do {                                                                                                          \
        CUresult result_ = rk_cuda.name(__VA_ARGS__);                                                             \
        if (result_ != CUDA_SUCCESS)                                                                              \
            gpu_end(#name, result_);                                                                              \
    } while (0)

static int gpu_device = -1; /* the one of gpu_open */

/* Make the primary context of a device current. Ends the process where there is none. */
static inline CUdevice gpu_open(int ordinal)
{
    CUcontext context;
    CUdevice device;
    char why[512];
    int n = 0;

    if (rk_cuda_load(true, why, sizeof(why)) != RANK_OK) {
        record_text(gpu_probe, "skip", why);
        _exit(GPU_SKIPPED);
    }
    GPU_MUST(DeviceGetCount, &n);
    if (n == 0) {
        record_text(gpu_probe, "skip", "the driver finds no device");
        _exit(GPU_SKIPPED);
    }
    GPU_MUST(DeviceGet, &device, ordinal % n);
    GPU_MUST(DevicePrimaryCtxRetain, &context, device);
    GPU_MUST(CtxSetCurrent, context);
    gpu_device = device;
    return device;
}

static inline void gpu_close(void)
{
    if (gpu_device >= 0) {
        GPU_MUST(CtxSetCurrent, NULL);
        GPU_MUST(DevicePrimaryCtxRelease, gpu_device);
    }
}

static inline double gpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif

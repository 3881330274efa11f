/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_run.h: run scenes of the stand-in, each in a process of its own.
 *
 * A scene ends by exit, so that leaks fail it. Settings are "NAME=VALUE", up to a NULL.
 */
#ifndef TESTS_STANDIN_RUN_H
#define TESTS_STANDIN_RUN_H

#include "tests/unit/unit.h"

#include "lib/mem/cuda/cuda_calls.h"
#include "lib/mem/cuda/cuda_types.h"

#include <dlfcn.h>
#include <stdbool.h>

#define RUN_POINTER(name, need, version, result, params, args) result(*name) params;
static struct {
    RK_CUDA_CALLS(RUN_POINTER)
    CUresult (*capture)(CUstream, int);
    unsigned long (*calls)(const char *);
} cu;
static CUcontext contexts[16];

/* In a scene: end it with the line's number if the condition is false. */
#define CHECK(condition)                                                                                          \
    do {                                                                                                          \
        if (!(condition)) {                                                                                       \
            fprintf(stderr, "# %s:%d: %s\n", __FILE__, __LINE__, #condition);                                     \
            _exit(3);                                                                                             \
        }                                                                                                         \
    } while (0)
#define OK(call)                                                                                                  \
    do {                                                                                                          \
        CUresult got_ = cu.call;                                                                                  \
        if (got_) {                                                                                               \
            fprintf(stderr, "# %s:%d: cu%s returns %d\n", __FILE__, __LINE__, #call, (int)got_);                  \
            _exit(3);                                                                                             \
        }                                                                                                         \
    } while (0)
#define FAILS(error, call)                                                                                        \
    do {                                                                                                          \
        CUresult got_ = cu.call;                                                                                  \
        if (got_ != CUDA_ERROR_##error) {                                                                         \
            fprintf(stderr, "# %s:%d: cu%s returns %d, not %s\n", __FILE__, __LINE__, #call, (int)got_, #error);  \
            _exit(3);                                                                                             \
        }                                                                                                         \
    } while (0)

/* Load the stand-in and find its calls, as the library does. */
static inline void run_load(void)
{
    const char *top = getenv("top_builddir");
    char path[4096];
    void *lib;
    CUresult (*find)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
    CUdriverProcAddressQueryResult found;

#ifdef RK_ON_CARD
    snprintf(path, sizeof(path), "libcuda.so.1");
    (void)top;
#else
    snprintf(path, sizeof(path), "%s/tests/standin/.libs/libcuda.so.1", top ? top : ".");
#endif
    lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        fprintf(stderr, "# %s\n", dlerror());
    CHECK(lib);
    *(void **)&find = dlsym(lib, "cuGetProcAddress_v2");
    *(void **)&cu.capture = dlsym(lib, "standin_capture");
    *(void **)&cu.calls = dlsym(lib, "standin_calls");
#ifdef RK_ON_CARD
    CHECK(find);
#else
    CHECK(find && cu.capture && cu.calls);
#endif
#define RUN_FIND(name, need, version, result, params, args)                                                       \
    if (find("cu" #name, (void **)&cu.name, version, 0, &found) != CUDA_SUCCESS) /* of a later driver */          \
        cu.name = NULL;                                                                                           \
    CHECK((cu.name != NULL) == (found == CU_GET_PROC_ADDRESS_SUCCESS));
    RK_CUDA_CALLS(RUN_FIND)
}

/* Initialize, and make the first device's context current. */
static inline void run_start(void)
{
    int n;

    run_load();
    OK(Init(0));
    OK(DeviceGetCount(&n));
    for (int i = 0; i < n; i++)
        OK(DevicePrimaryCtxRetain(&contexts[i], i));
    OK(CtxSetCurrent(contexts[0]));
}

static inline void run_stop(void)
{
    int n;

    OK(DeviceGetCount(&n));
    for (int i = 0; i < n; i++)
        OK(DevicePrimaryCtxRelease(i));
}

static inline pid_t run_fork(void (*scene)(void), const char *const *settings)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        alarm(120);
        for (; settings && *settings; settings++)
            putenv((char *)*settings);
        scene();
        exit(0);
    }
    assert_true(pid > 0);
    return pid;
}

/* Run a scene with settings, the last of which is NULL. */
#define RUN(scene, ...) assert_int_equal(unit_reap(run_fork(scene, (const char *const[]){__VA_ARGS__})), 0)

#endif

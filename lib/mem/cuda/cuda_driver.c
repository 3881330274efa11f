/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_driver.c: load the CUDA driver, find its calls, describe its errors. */
#include "lib/mem/cuda/cuda_driver.h"
#include "lib/base/arg_error.h"
#include "lib/base/log.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { REQUIRED, OPTIONAL };

struct rk_cuda_driver rk_cuda;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool loaded, initialized;

static const struct driver_call {
    const char *name;
    int need, since;
    size_t at;
} calls[] = {
#define DRIVER_CALL(name, need, since, result, params, args) {"cu" #name, need, since, offsetof(struct rk_cuda_driver, name)},
    RK_CUDA_CALLS(DRIVER_CALL)
#undef DRIVER_CALL
};

/* Of drivers before CUDA 12, which have no result of the search. */
typedef CUresult find_call_fn(const char *symbol, void **address, int version, cuuint64_t flags);

struct finder {
    void *library;
    find_call_fn *before_12;
};

static void finder_open(struct finder *f, void *library)
{
    void *find = dlsym(library, "cuGetProcAddress_v2"), *older = dlsym(library, "cuGetProcAddress");

    *f = (struct finder){.library = library};
    memcpy(&rk_cuda.GetProcAddress, &find, sizeof(find));
    memcpy(&f->before_12, &older, sizeof(older));
}

static void *finder_find(const struct finder *f, const char *name, int since)
{
    CUdriverProcAddressQueryResult found;
    void *address = NULL;
    CUresult r;

    if (rk_cuda.GetProcAddress)
        r = rk_cuda.GetProcAddress(name, &address, since, CU_GET_PROC_ADDRESS_DEFAULT, &found);
    else
        r = f->before_12(name, &address, since, CU_GET_PROC_ADDRESS_DEFAULT);
    return r == CUDA_SUCCESS ? address : NULL;
}

static rank_status_t driver_find_calls(void *library, char *why, size_t room)
{
    struct finder finder;

    finder_open(&finder, library);
    if (!rk_cuda.GetProcAddress && !finder.before_12) {
        snprintf(why, room, "the CUDA driver has no call cuGetProcAddress; it must be of CUDA 11.3 or newer");
        return RANK_ERR_NOT_SUPPORTED;
    }
    for (size_t i = 0; i < RK_ARRAY_LEN(calls); i++) {
        const struct driver_call *c = &calls[i];
        void *address;

        if (c->at == offsetof(struct rk_cuda_driver, GetProcAddress))
            continue;
        address = finder_find(&finder, c->name, c->since);
        memcpy((char *)&rk_cuda + c->at, &address, sizeof(address));
        if (rk_cuda.DriverGetVersion && !rk_cuda.version)
            rk_cuda.DriverGetVersion(&rk_cuda.version);
        if (address || c->need == OPTIONAL)
            continue;
        snprintf(why, room, "the CUDA driver (version %d.%d) has no call %s of version %d.%d; install a newer driver", rk_cuda.version / 1000,
                 rk_cuda.version % 1000 / 10, c->name, c->since / 1000, c->since % 1000 / 10);
        return RANK_ERR_NOT_SUPPORTED;
    }
    return RANK_OK;
}

static rank_status_t driver_load(char *why, size_t room)
{
    void *library = loaded ? NULL : dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const char *reason = loaded || library ? NULL : dlerror();
    rank_status_t st;

    if (loaded)
        return RANK_OK;
    if (!library) {
        snprintf(why, room, "cannot load the CUDA driver: %s", reason ? reason : "libcuda.so.1");
        return RANK_ERR_NOT_SUPPORTED;
    }
    st = driver_find_calls(library, why, room);
    loaded = !st;
    return st;
}

static rank_status_t driver_init(char *why, size_t room)
{
    char text[256];
    CUresult r = initialized ? CUDA_SUCCESS : rk_cuda.Init(0);
    int n = 0;

    if (initialized)
        return RANK_OK;
    if (r == CUDA_SUCCESS)
        r = rk_cuda.DeviceGetCount(&n);
    if (r == CUDA_ERROR_NO_DEVICE || (r == CUDA_SUCCESS && n == 0)) {
        snprintf(why, room, "the CUDA driver (version %d.%d) finds no device; check CUDA_VISIBLE_DEVICES", rk_cuda.version / 1000,
                 rk_cuda.version % 1000 / 10);
        return RANK_ERR_NOT_SUPPORTED;
    }
    if (r != CUDA_SUCCESS) {
        snprintf(why, room, "the CUDA driver (version %d.%d) cannot be initialized: %s", rk_cuda.version / 1000,
                 rk_cuda.version % 1000 / 10, rk_cuda_error_text(r, text, sizeof(text)));
        return RANK_ERR_DEVICE;
    }
    initialized = true;
    return RANK_OK;
}

rank_status_t rk_cuda_load(bool init, char *why, size_t room)
{
    rank_status_t st;

    pthread_mutex_lock(&lock);
    st = driver_load(why, room);
    if (!st && init)
        st = driver_init(why, room);
    pthread_mutex_unlock(&lock);
    return st;
}

rank_status_t rk_cuda_init(void)
{
    char why[512];
    rank_status_t st = rk_cuda_load(true, why, sizeof(why));

    if (st)
        rk_fail(st, "%s", why);
    return st;
}

const char *rk_cuda_error_text(CUresult result, char *text, size_t room)
{
    const char *name = NULL, *meaning = NULL;

    if (rk_cuda.GetErrorName(result, &name) != CUDA_SUCCESS || !name)
        name = "error";
    if (rk_cuda.GetErrorString(result, &meaning) != CUDA_SUCCESS || !meaning)
        meaning = "unknown to this driver";
    snprintf(text, room, "%s (%d): %s", name, (int)result, meaning);
    return text;
}

RK_COLD rank_status_t rk_cuda_failed(const char *call, CUresult result)
{
    static bool reported;
    char text[256];

    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        rk_info("%s: out of device memory", call);
        return rk_fail_silent(RANK_ERR_NO_MEMORY, "%s: out of device memory", call);
    }
    rk_cuda_error_text(result, text, sizeof(text));
    if (__atomic_exchange_n(&reported, true, __ATOMIC_RELAXED)) {
        rk_debug("%s failed: %s", call, text);
        return rk_fail_silent(RANK_ERR_DEVICE, "%s failed: %s", call, text);
    }
    return rk_fail(RANK_ERR_DEVICE, "%s failed: %s; an earlier kernel or copy of this process may be the cause. Calls with "
                   "device memory return an error", call, text);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda_driver.h: call the CUDA driver, which is loaded at run time.
 *
 * Room: device memory of CUDA: the driver's calls, its contexts and streams, the kind of memory.
 * Callers: the core, through struct rk_kind (lib/mem/kind.h) of the module librank-cuda.so.
 * Never: initializes CUDA for a program that has not (RANK_CUDA=auto); changes the current context of the caller.
 * Tests: tests/standin.
 *
 * No toolkit is needed, neither to build nor to run. Each call has the address that the driver gives for the version of
 * its prototype (cuda_calls.h). An optional call is NULL in a driver without it.
 */
#ifndef RK_MEM_CUDA_DRIVER_H
#define RK_MEM_CUDA_DRIVER_H

#include "lib/base/compiler.h"
#include "lib/mem/cuda/cuda_calls.h"
#include "lib/mem/cuda/cuda_types.h"
#include "lib/rank.h"

#include <stdbool.h>

/* The driver's calls, without "cu": rk_cuda.MemAlloc. Valid after rk_cuda_load. */
struct rk_cuda_driver {
    int version; /* 12040: CUDA 12.4 */
#define RK_CUDA_FIELD(name, need, since, result, params, args) result(*name) params;
    RK_CUDA_CALLS(RK_CUDA_FIELD)
#undef RK_CUDA_FIELD
};

extern struct rk_cuda_driver rk_cuda;

/*
 * Load libcuda.so.1 and find its calls. It stays loaded, and later calls return at once. init: initialize CUDA, too.
 * On error why gets a line that names the reason. Thread-safe.
 */
rank_status_t rk_cuda_load(bool init, char *why, size_t room);

/* Initialize CUDA, if the program has not. Logs an error. */
rank_status_t rk_cuda_init(void);

/* Has an optional call an address? */
#define RK_CUDA_HAS(name) (rk_cuda.name != NULL)

/*
 * Call the driver, and log the first call that fails. RANK_ERR_NO_MEMORY: out of device memory;
 * RANK_ERR_DEVICE: any other error. An error of an earlier kernel or copy comes here, too, and again in later calls.
 */
#define RK_CUDA_CALL(name, ...) rk_cuda_check("cu" #name, rk_cuda.name(__VA_ARGS__))

RK_COLD rank_status_t rk_cuda_failed(const char *call, CUresult result);
RK_INLINE rank_status_t rk_cuda_check(const char *call, CUresult result)
{
    return rk_likely(result == CUDA_SUCCESS) ? RANK_OK : rk_cuda_failed(call, result);
}

/* Name and meaning of a result, as the driver describes it; in room bytes at text. Returns text. */
const char *rk_cuda_error_text(CUresult result, char *text, size_t room);

#endif

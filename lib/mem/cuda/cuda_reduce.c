/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda_reduce.c: load reduction kernels and launch them.
 *
 * A device gets the module at its first reduction. All operands must be reachable in the primary context of the device
 * of dst: memory of that device, or imported for it.
 */
#include "lib/mem/cuda/cuda_reduce.h"
#include "lib/base/log.h"
#include "lib/mem/cuda/cuda_alloc.h"
#include "lib/mem/cuda/cuda_context.h"
#include "lib/mem/cuda/cuda_reduction.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { BLOCKS_PER_PROCESSOR = 8, CHUNK = 16 };

static const struct type_name {
    rank_dtype_t dtype;
    const char *name, *without_sign; /* which kernels are that type's */
} types[] = {
    {RANK_BYTE, "uint8", "uint8"},
    {RANK_INT8, "int8", "uint8"},
    {RANK_INT16, "int16", "uint16"},
    {RANK_INT32, "int32", "uint32"},
    {RANK_INT64, "int64", "uint64"},
    {RANK_UINT8, "uint8", "uint8"},
    {RANK_UINT16, "uint16", "uint16"},
    {RANK_UINT32, "uint32", "uint32"},
    {RANK_UINT64, "uint64", "uint64"},
    {RANK_F16, "f16", "f16"},
    {RANK_BF16, "bf16", "bf16"},
    {RANK_F32, "f32", "f32"},
    {RANK_F64, "f64", "f64"},
    {RANK_F32_COMPLEX, "c32", "c32"},
    {RANK_F64_COMPLEX, "c64", "c64"},
    {RANK_PAIR_INT32, "pair_int32", ""},
    {RANK_PAIR_INT64, "pair_int64", ""},
    {RANK_PAIR_F32, "pair_f32", ""},
    {RANK_PAIR_F64, "pair_f64", ""},
};

/* MIN and MAX depend on the sign; pairs have the operations of pairs only. */
static const struct op_name {
    rank_op_t op;
    const char *name;
    bool by_sign;
} ops[] = {
    {RANK_SUM, "sum", false},
    {RANK_PROD, "prod", false},
    {RANK_MIN, "min", true},
    {RANK_MAX, "max", true},
    {RANK_AVG, "sum", false},
    {RANK_LAND, "land", false},
    {RANK_LOR, "lor", false},
    {RANK_LXOR, "lxor", false},
    {RANK_BAND, "band", false},
    {RANK_BOR, "bor", false},
    {RANK_BXOR, "bxor", false},
    {RANK_MINLOC, "minloc", true},
    {RANK_MAXLOC, "maxloc", true},
};

/* Of each device. The lock is held from loading to launch, so that no kernel is unloaded between. */
static struct kernels {
    CUmodule module;
    bool refused; /* the driver has no use for the image */
    int blocks;   /* of a grid, at most */
    CUfunction of[RK_ARRAY_LEN(types)][RK_ARRAY_LEN(ops)];
} kernels[RK_CUDA_DEVICES_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* In the device's context. */
static rank_status_t kernels_load(struct kernels *k, int device)
{
    int processors = 0;
    char text[256];
    CUdevice handle;
    CUresult r;

    if (k->module)
        return RANK_OK;
    if (k->refused)
        return RANK_ERR_NOT_SUPPORTED;
    r = rk_cuda.ModuleLoadData(&k->module, rk_cuda_image);
    if (r != CUDA_SUCCESS) {
        k->module = NULL;
        k->refused = true;
        rk_info("device %d runs no reduction kernels (%s): %s", device, rk_cuda_image_text,
                rk_cuda_error_text(r, text, sizeof(text)));
        return RANK_ERR_NOT_SUPPORTED;
    }
    if (rk_cuda.DeviceGet(&handle, device) == CUDA_SUCCESS)
        rk_cuda.DeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, handle);
    k->blocks = (processors > 0 ? processors : 1) * BLOCKS_PER_PROCESSOR;
    return RANK_OK;
}

/* NULL: there is none. */
static CUfunction kernels_find(struct kernels *k, rank_dtype_t dtype, rank_op_t op)
{
    size_t t = 0, o = 0;
    char name[64];

    while (t < RK_ARRAY_LEN(types) && types[t].dtype != dtype)
        t++;
    while (o < RK_ARRAY_LEN(ops) && ops[o].op != op)
        o++;
    if (t == RK_ARRAY_LEN(types) || o == RK_ARRAY_LEN(ops))
        return NULL;
    if (k->of[t][o])
        return k->of[t][o];
    snprintf(name, sizeof(name), "rk_reduce_%s_%s", ops[o].by_sign ? types[t].name : types[t].without_sign, ops[o].name);
    if (rk_cuda.ModuleGetFunction(&k->of[t][o], k->module, name) != CUDA_SUCCESS)
        k->of[t][o] = NULL;
    return k->of[t][o];
}

/* Device with the memory in its primary context; -1: in none, as memory of a context that the program has created. */
static rank_status_t operand_device(const void *ptr, struct rk_cuda_pointer *p, int *device)
{
    rank_status_t st = rk_cuda_pointer(ptr, p);

    *device = rk_cuda_imported_for(ptr);
    if (st || *device >= 0)
        return st;
    if (p->on_device && (!p->context || rk_cuda_is_primary(p->context, p->device)))
        *device = p->device;
    return RANK_OK;
}

/* Launch, and wait. In the device's context, with the lock. */
static rank_status_t reduce_run(struct kernels *k, CUstream stream, struct rk_cuda_reduction *r, rank_dtype_t dtype, rank_op_t op,
                                CUresult *result, const char **call)
{
    size_t bytes = r->n * (dtype & 0xff), blocks = (bytes / CHUNK + 2 * CHUNK + RK_CUDA_BLOCK - 1) / RK_CUDA_BLOCK;
    CUfunction kernel = kernels_find(k, dtype, op);
    void *params[] = {r};

    if (!kernel)
        return RANK_ERR_NOT_SUPPORTED;
    if (r->n == 0)
        return RANK_OK;
    if (blocks > (size_t)k->blocks)
        blocks = (size_t)k->blocks;
    *call = "cuLaunchKernel";
    *result = rk_cuda.LaunchKernel(kernel, (unsigned)blocks, 1, 1, RK_CUDA_BLOCK, 1, 1, 0, stream, params, NULL);
    if (*result == CUDA_SUCCESS) {
        *call = "cuStreamSynchronize";
        *result = rk_cuda.StreamSynchronize(stream);
    }
    return RANK_OK;
}

rank_status_t rk_cuda_reduce(void *dst, const void *const *src, int k, size_t n, rank_dtype_t dtype, rank_op_t op, int by)
{
    struct rk_cuda_reduction r = {.dst = dst, .n = n, .k = k, .by = op == RANK_AVG ? by : 0};
    struct rk_cuda_pointer of[1 + RK_CUDA_OPERANDS];
    const char *call = NULL;
    CUresult result = CUDA_SUCCESS;
    rank_status_t st;
    int device, other;

    st = operand_device(dst, &of[0], &device);
    for (int i = 0; i < k && !st; i++) {
        r.src[i] = src[i];
        st = operand_device(src[i], &of[1 + i], &other);
        if (!st && other != device)
            device = -1;
    }
    if (!st && (device < 0 || device >= RK_CUDA_DEVICES_MAX))
        st = RANK_ERR_NOT_SUPPORTED;
    for (int turn = 0; turn < 2 && !st; turn++) {
        CUstream stream;

        st = rk_cuda_enter_primary(device, &stream);
        if (st)
            return st;
        for (int i = 0; i <= k && !st; i++)
            st = rk_cuda_settle(i ? src[i - 1] : dst, &of[i]);
        pthread_mutex_lock(&lock);
        if (!st)
            st = kernels_load(&kernels[device], device);
        if (!st)
            st = reduce_run(&kernels[device], stream, &r, dtype, op, &result, &call);
        if (rk_cuda_is_stale(result))
            kernels[device] = (struct kernels){0};
        pthread_mutex_unlock(&lock);
        rk_cuda_leave();
        if (!rk_cuda_is_stale(result))
            break;
        rk_cuda_forget(device);
    }
    return st ? st : rk_cuda_check(call, result);
}

void rk_cuda_unload_kernels(void)
{
    for (int i = 0; i < RK_CUDA_DEVICES_MAX; i++) {
        struct kernels *k = &kernels[i];

        if (k->module && rk_cuda_enter_primary(i, NULL) == RANK_OK) {
            rk_cuda.ModuleUnload(k->module);
            rk_cuda_leave();
        }
        *k = (struct kernels){0};
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_module.c: run kernels built by the C++ compiler, in stream order.
 *
 * An image is the text "standin:FILE": a shared object built with cuda_shim.h. With STANDIN_KERNELS any image is
 * that file's. A kernel has one parameter, a structure; each of its aligned words that lies in the arena of device
 * addresses is translated.
 */
#include "tests/standin/standin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PARAM_MAX = 4096 };
static const char prefix[] = "standin:";

/* Run the kernel with this parameter, or return the parameter's size if it is NULL. */
typedef size_t kernel_call(void *param, const unsigned grid[3], const unsigned block[3]);

struct CUmod_st {
    struct CUmod_st *next;
    struct CUctx_st *context;
    void *object;
    struct CUfunc_st *functions;
};

struct CUfunc_st {
    struct CUfunc_st *next;
    struct CUctx_st *context;
    kernel_call *call;
};

struct launch {
    kernel_call *call;
    unsigned grid[3], block[3];
    size_t size;
    uint64_t param[PARAM_MAX / sizeof(uint64_t)];
};

static struct CUmod_st *modules;

CUresult standin_ModuleLoadData(CUmodule *module, const void *image)
{
    char path[512];
    struct CUmod_st *m;

    if (!module || !image)
        return CUDA_ERROR_INVALID_VALUE;
    if (standin_settings.kernels)
        snprintf(path, sizeof(path), "%s", standin_settings.kernels);
    else if (strncmp(image, prefix, sizeof(prefix) - 1) == 0)
        snprintf(path, sizeof(path), "%.*s", (int)strcspn((const char *)image + sizeof(prefix) - 1, "\n"),
                 (const char *)image + sizeof(prefix) - 1);
    else
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    m = calloc(1, sizeof(*m));
    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;
    m->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!m->object) {
        fprintf(stderr, "stand-in for libcuda: %s\n", dlerror());
        free(m);
        return CUDA_ERROR_INVALID_IMAGE;
    }
    m->context = standin_context();
    pthread_mutex_lock(&standin_lock);
    m->next = modules;
    modules = m;
    pthread_mutex_unlock(&standin_lock);
    *module = m;
    return CUDA_SUCCESS;
}

CUresult standin_ModuleUnload(CUmodule module)
{
    struct CUmod_st **p;

    pthread_mutex_lock(&standin_lock);
    for (p = &modules; *p && *p != module; p = &(*p)->next) {
    }
    if (*p) {
        standin_context_idle(module->context);
        for (p = &modules; *p != module; p = &(*p)->next) {
        }
        *p = module->next;
    } else
        module = NULL;
    pthread_mutex_unlock(&standin_lock);
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    for (struct CUfunc_st *f = module->functions, *next; f; f = next) {
        next = f->next;
        free(f);
    }
    dlclose(module->object);
    free(module);
    return CUDA_SUCCESS;
}

CUresult standin_ModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    char symbol[256];
    struct CUfunc_st *f;
    void *call;

    if (!function || !module || !name)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(symbol, sizeof(symbol), "%s_standin", name);
    call = dlsym(module->object, symbol);
    if (!call)
        return CUDA_ERROR_NOT_FOUND;
    f = malloc(sizeof(*f));
    if (!f)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&standin_lock);
    *f = (struct CUfunc_st){module->functions, module->context, (kernel_call *)call};
    module->functions = f;
    pthread_mutex_unlock(&standin_lock);
    *function = f;
    return CUDA_SUCCESS;
}

/* Translate the pointers in the parameter. Returns false if one may not be used; it may be the end of a range. */
static bool launch_translate(struct launch *l, const struct CUctx_st *context)
{
    for (size_t i = 0; i < l->size / sizeof(uint64_t); i++) {
        const struct standin_range *r;

        if (!standin_in_arena(l->param[i]))
            continue;
        r = standin_range_find(l->param[i]);
        if (!r)
            r = standin_range_find(l->param[i] - 1);
        if (!r || !standin_accessible(r, context))
            return false;
        l->param[i] += standin_shadow;
    }
    return true;
}

static void launch_work(void *arg, struct CUstream_st *stream)
{
    struct launch *l = arg;

    if (stream) {
        struct CUctx_st *context = standin_stream_context(stream);
        bool ok;

        pthread_mutex_lock(&standin_lock);
        ok = launch_translate(l, context);
        if (!ok && !context->sticky)
            context->sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
        pthread_mutex_unlock(&standin_lock);
        if (ok)
            l->call(l->param, l->grid, l->block);
    }
    free(l);
}

CUresult standin_LaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                              unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **params,
                              void **extra)
{
    uint64_t threads = (uint64_t)block_x * block_y * block_z;
    struct CUstream_st *s;
    struct launch *l;
    CUresult error = standin_stream_of(stream, &s);

    if (error)
        return error;
    if (!function || function->context != standin_context() || standin_stream_context(s) != standin_context())
        return CUDA_ERROR_INVALID_HANDLE;
    if (!params || extra || !grid_x || !grid_y || !grid_z || !threads || threads > 1024 || shared > 48 << 10)
        return CUDA_ERROR_INVALID_VALUE;
    l = calloc(1, sizeof(*l));
    if (!l)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *l = (struct launch){function->call, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z},
                         function->call(NULL, NULL, NULL), {0}};
    if (l->size > PARAM_MAX) {
        free(l);
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(l->param, params[0], l->size);
    return standin_submit(s, launch_work, l, NULL, NULL, false);
}

int standin_leaked_modules(void)
{
    int n = 0;

    for (struct CUmod_st *m = modules; m; m = m->next)
        n++;
    return n;
}

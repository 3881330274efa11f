/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_pointer.c: report and set the attributes of pointers.
 */
#include "tests/standin/standin.h"

/* Store the value of an attribute in its own type. */
#define STORE(type, x) (*(type *)value = (x), CUDA_SUCCESS)

/* Attributes of a reserved address that is not mapped. */
static CUresult unmapped_attribute(void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    CUdeviceptr base;
    size_t size;

    if (!standin_area_find(ptr, &base, &size))
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return STORE(CUdeviceptr, base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return STORE(size_t, size);
    case CU_POINTER_ATTRIBUTE_MAPPED: return STORE(int, 0);
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUdevice range_device(const struct standin_range *r)
{
    if (r->kind == STANDIN_VMM)
        return r->block->device;
    return r->context->device;
}

static bool is_host(const struct standin_range *r) { return r->kind == STANDIN_HOST || r->kind == STANDIN_REGISTERED; }

/* Return CUDA_ERROR_INVALID_VALUE if the pointer is none of the driver's, or has no such attribute. */
static CUresult pointer_attribute(void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    struct standin_range *r = standin_range_find(ptr);
    CUdeviceptr base;
    size_t size;
    bool ours;

    if (!r)
        return unmapped_attribute(value, attribute, ptr);
    base = r->base;
    size = r->size;
    ours = !is_host(r) && r->kind != STANDIN_MANAGED;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: return STORE(CUcontext, r->context);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        return STORE(unsigned, is_host(r) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return STORE(CUdeviceptr, ptr);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        return ours ? CUDA_ERROR_INVALID_VALUE : STORE(void *, (void *)(uintptr_t)ptr);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return STORE(int, r->sync_memops);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: return STORE(unsigned long long, r->id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return STORE(int, r->kind == STANDIN_MANAGED);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return STORE(int, range_device(r));
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        return STORE(int, r->kind == STANDIN_ALLOC && standin_settings.ipc);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        standin_area_find(ptr, &base, &size);
        return STORE(CUdeviceptr, base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        standin_area_find(ptr, &base, &size);
        return STORE(size_t, size);
    case CU_POINTER_ATTRIBUTE_MAPPED: return STORE(int, 1);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        return STORE(uint64_t, r->kind == STANDIN_VMM ? r->block->types : 0);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: return STORE(int, ours);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        if (!standin_context())
            return CUDA_ERROR_INVALID_CONTEXT;
        return STORE(unsigned, standin_accessible(r, standin_context()) ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
                                                                        : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return STORE(void *, NULL);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: return STORE(size_t, r->size);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: return STORE(CUdeviceptr, r->base);
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: return STORE(unsigned long long, r->block ? r->block->id : r->id);
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

/* What an attribute has for a pointer that the driver does not manage. */
static CUresult default_attribute(void *value, CUpointer_attribute attribute)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return STORE(void *, NULL);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: return STORE(CUdeviceptr, 0);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: return STORE(size_t, 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: return STORE(unsigned long long, 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return STORE(int, -2); /* CU_DEVICE_INVALID */
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS: return CUDA_ERROR_INVALID_VALUE;
    default: return STORE(int, 0);
    }
}

CUresult standin_PointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    CUresult error;

    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&standin_lock);
    error = pointer_attribute(value, attribute, ptr);
    pthread_mutex_unlock(&standin_lock);
    return error;
}

CUresult standin_PointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **values, CUdeviceptr ptr)
{
    CUresult error = CUDA_SUCCESS;

    if (!count || !attributes || !values)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&standin_lock);
    for (unsigned i = 0; i < count && !error; i++)
        if (pointer_attribute(values[i], attributes[i], ptr) != CUDA_SUCCESS)
            error = default_attribute(values[i], attributes[i]);
    pthread_mutex_unlock(&standin_lock);
    return error;
}

CUresult standin_PointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    struct standin_range *r;
    CUresult error = CUDA_SUCCESS;

    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&standin_lock);
    r = standin_range_find(ptr);
    if (!r || is_host(r) || r->kind == STANDIN_MANAGED)
        error = CUDA_ERROR_INVALID_VALUE;
    else if (r->kind == STANDIN_VMM)
        error = CUDA_ERROR_NOT_SUPPORTED;
    else
        r->sync_memops = *(const unsigned *)value != 0;
    pthread_mutex_unlock(&standin_lock);
    return error;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_cuda.c: let UCX move the memory of the stand-in, as UCX with CUDA does.
 *
 * Preloaded. UCX reports CUDA memory, and a buffer that is passed as such is accessed where the stand-in can. Each such
 * buffer is counted; UCX_CUDA_TRACE prints the count at exit.
 */
#include "tests/standin/standin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

static unsigned long passed;

/* UCX's own function, or the stand-in's. */
static void *find_in(const char *library, const char *name)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD), *found = handle ? dlsym(handle, name) : NULL;

    if (!found) {
        fprintf(stderr, "ucx_cuda: no %s in %s\n", name, library);
        abort();
    }
    dlclose(handle);
    return found;
}

#define UCX_CALL(name, ...) ((__typeof__(name) *)find_in("libucp.so.0", #name))(__VA_ARGS__)

static void *accessible_address(const void *buffer, const ucp_request_param_t *param, ucp_request_param_t *own)
{
    void *(*address)(CUdeviceptr);
    void *call;

    *own = *param;
    if (!(param->op_attr_mask & UCP_OP_ATTR_FIELD_MEMORY_TYPE) || param->memory_type != UCS_MEMORY_TYPE_CUDA)
        return (void *)(uintptr_t)buffer;
    own->memory_type = UCS_MEMORY_TYPE_HOST;
    __atomic_fetch_add(&passed, 1, __ATOMIC_RELAXED);
    call = find_in("libcuda.so.1", "standin_host_address");
    memcpy(&address, &call, sizeof(address));
    return address((CUdeviceptr)(uintptr_t)buffer);
}

STANDIN_EXPORT ucs_status_t ucp_context_query(ucp_context_h context, ucp_context_attr_t *attr)
{
    ucs_status_t st = UCX_CALL(ucp_context_query, context, attr);

    if (attr->field_mask & UCP_ATTR_FIELD_MEMORY_TYPES)
        attr->memory_types |= 1u << UCS_MEMORY_TYPE_CUDA;
    return st;
}

STANDIN_EXPORT ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h ep, unsigned id, const void *header, size_t header_length, const void *buffer,
                                                size_t count, const ucp_request_param_t *param)
{
    ucp_request_param_t own;
    void *at = accessible_address(buffer, param, &own);

    return UCX_CALL(ucp_am_send_nbx, ep, id, header, header_length, at, count, &own);
}

STANDIN_EXPORT ucs_status_ptr_t ucp_am_recv_data_nbx(ucp_worker_h worker, void *desc, void *buffer, size_t count,
                                                     const ucp_request_param_t *param)
{
    ucp_request_param_t own;
    void *at = accessible_address(buffer, param, &own);

    return UCX_CALL(ucp_am_recv_data_nbx, worker, desc, at, count, &own);
}

__attribute__((destructor)) static void print_passed(void)
{
    if (getenv("UCX_CUDA_TRACE") && passed)
        fprintf(stderr, "ucx_cuda: UCX has accessed %lu buffers of devices\n", passed);
}

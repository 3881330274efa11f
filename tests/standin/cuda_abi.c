/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda_abi.c: check lib/mem/cuda against the headers of the toolkit.
 *
 * cuda_abi.sh compiles it. The enumerations come from cuda.h, the structures stand under names of their own.
 */
#include <assert.h>
#include <cuda.h>
#include <cudaTypedefs.h>

#define RK_CUDA_NO_ENUMS
#define CUdevice own_CUdevice
#undef CUdeviceptr
#define CUdeviceptr own_CUdeviceptr
#define CUmemGenericAllocationHandle own_CUmemGenericAllocationHandle
#define cuuint64_t own_cuuint64_t
#define CUcontext own_CUcontext
#define CUmodule own_CUmodule
#define CUfunction own_CUfunction
#define CUstream own_CUstream
#define CUevent own_CUevent
#define CUuuid own_CUuuid
#define CUipcMemHandle own_CUipcMemHandle
#define CUmemLocation own_CUmemLocation
#define CUmemAllocationProp own_CUmemAllocationProp
#define CUmemAccessDesc own_CUmemAccessDesc
#include "lib/mem/cuda/cuda_types.h"
#undef CUdevice
#undef CUdeviceptr
#undef CUmemGenericAllocationHandle
#undef cuuint64_t
#undef CUcontext
#undef CUmodule
#undef CUfunction
#undef CUstream
#undef CUevent
#undef CUuuid
#undef CUipcMemHandle
#undef CUmemLocation
#undef CUmemAllocationProp
#undef CUmemAccessDesc
#include "lib/mem/cuda/cuda_calls.h"

#define SAME_VALUE(name, value) static_assert((int)name == (value), #name);
#define SAME_VALUES(type, list) \
    list(SAME_VALUE) static_assert(sizeof(type) == sizeof(enum { list(OWN_ENUMERATOR) }), #type);
#define OWN_ENUMERATOR(name, value) own_##name = value,
RK_CUDA_ENUMS(SAME_VALUES)
RK_CUDA_FLAGS(SAME_VALUE)

#define SAME_TYPE(type) static_assert(__builtin_types_compatible_p(type, own_##type), #type)
SAME_TYPE(CUdevice);
SAME_TYPE(CUdeviceptr);
SAME_TYPE(CUmemGenericAllocationHandle);
SAME_TYPE(CUcontext);
SAME_TYPE(CUmodule);
SAME_TYPE(CUfunction);
SAME_TYPE(CUstream);
SAME_TYPE(CUevent);
SAME_TYPE(cuuint64_t);

#define SAME_SIZE(type) static_assert(sizeof(type) == sizeof(own_##type), #type)
#define SAME_FIELD(type, field)                                                                                   \
    static_assert(offsetof(type, field) == offsetof(own_##type, field) &&                                         \
                      sizeof(((type *)0)->field) == sizeof(((own_##type *)0)->field),                             \
                  #type "." #field)
SAME_SIZE(CUuuid);
SAME_SIZE(CUipcMemHandle);
SAME_SIZE(CUmemLocation);
SAME_FIELD(CUmemLocation, id);
SAME_SIZE(CUmemAccessDesc);
SAME_FIELD(CUmemAccessDesc, flags);
SAME_SIZE(CUmemAllocationProp);
SAME_FIELD(CUmemAllocationProp, requestedHandleTypes);
SAME_FIELD(CUmemAllocationProp, location);
SAME_FIELD(CUmemAllocationProp, win32HandleMetaData);
SAME_FIELD(CUmemAllocationProp, allocFlags);
SAME_FIELD(CUmemAllocationProp, allocFlags.gpuDirectRDMACapable);
SAME_FIELD(CUmemAllocationProp, allocFlags.usage);

#define SAME_CALL(name, need, version, result, params, args)                                                      \
    static_assert(__builtin_types_compatible_p(result(*) params, PFN_cu##name##_v##version), "cu" #name);
RK_CUDA_CALLS(SAME_CALL)

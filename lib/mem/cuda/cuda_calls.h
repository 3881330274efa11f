/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda_calls.h: list the calls of the CUDA driver that the library uses.
 *
 * A row: X(name without "cu", need, version, result, (parameters), (arguments)).
 * - need: REQUIRED or OPTIONAL, a token to paste. Without an optional call a feature is refused or takes another way.
 * - version: of the prototype, as cuGetProcAddress takes it. That refuses a version later than the driver's.
 * GetProcAddress itself comes by dlsym: cuGetProcAddress_v2, or cuGetProcAddress without the last parameter.
 *
 * Only type names of cuda_types.h occur here. tests/standin/cuda_abi.c checks rows and types against cuda.h.
 */
#ifndef RK_MEM_CUDA_CALLS_H
#define RK_MEM_CUDA_CALLS_H

#define RK_CUDA_CALLS(X) \
    RK_CUDA_CALLS_START(X) \
    RK_CUDA_CALLS_CONTEXT(X) \
    RK_CUDA_CALLS_MEMORY(X) \
    RK_CUDA_CALLS_VMM(X) \
    RK_CUDA_CALLS_STREAM(X) \
    RK_CUDA_CALLS_KERNEL(X)

#define RK_CUDA_CALLS_START(X) \
    X(Init, REQUIRED, 2000, CUresult, (unsigned flags), (flags)) \
    X(DriverGetVersion, REQUIRED, 2020, CUresult, (int *version), (version)) \
    X(GetProcAddress, REQUIRED, 12000, CUresult, \
      (const char *symbol, void **address, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *found), \
      (symbol, address, version, flags, found)) \
    X(GetErrorName, REQUIRED, 6000, CUresult, (CUresult error, const char **text), (error, text)) \
    X(GetErrorString, REQUIRED, 6000, CUresult, (CUresult error, const char **text), (error, text)) \
    X(DeviceGet, REQUIRED, 2000, CUresult, (CUdevice *device, int ordinal), (device, ordinal)) \
    X(DeviceGetCount, REQUIRED, 2000, CUresult, (int *count), (count)) \
    X(DeviceGetName, REQUIRED, 2000, CUresult, (char *name, int room, CUdevice device), (name, room, device)) \
    X(DeviceGetUuid, OPTIONAL, 11040, CUresult, (CUuuid *uuid, CUdevice device), (uuid, device)) \
    X(DeviceGetAttribute, REQUIRED, 2000, CUresult, \
      (int *value, CUdevice_attribute attribute, CUdevice device), (value, attribute, device)) \
    X(DeviceTotalMem, REQUIRED, 3020, CUresult, (size_t *bytes, CUdevice device), (bytes, device)) \
    X(DeviceGetPCIBusId, REQUIRED, 4010, CUresult, (char *id, int room, CUdevice device), (id, room, device)) \
    X(DeviceCanAccessPeer, REQUIRED, 4000, CUresult, \
      (int *can, CUdevice device, CUdevice peer), (can, device, peer))

#define RK_CUDA_CALLS_CONTEXT(X) \
    X(DevicePrimaryCtxRetain, REQUIRED, 7000, CUresult, (CUcontext *context, CUdevice device), (context, device)) \
    X(DevicePrimaryCtxRelease, REQUIRED, 11000, CUresult, (CUdevice device), (device)) \
    X(DevicePrimaryCtxGetState, REQUIRED, 7000, CUresult, \
      (CUdevice device, unsigned *flags, int *active), (device, flags, active)) \
    X(CtxGetCurrent, REQUIRED, 4000, CUresult, (CUcontext *context), (context)) \
    X(CtxSetCurrent, REQUIRED, 4000, CUresult, (CUcontext context), (context)) \
    X(CtxPushCurrent, REQUIRED, 4000, CUresult, (CUcontext context), (context)) \
    X(CtxPopCurrent, REQUIRED, 4000, CUresult, (CUcontext *context), (context)) \
    X(CtxGetDevice, REQUIRED, 2000, CUresult, (CUdevice *device), (device)) \
    X(CtxSynchronize, REQUIRED, 2000, CUresult, (void), ()) \
    X(CtxEnablePeerAccess, REQUIRED, 4000, CUresult, (CUcontext peer, unsigned flags), (peer, flags)) \
    X(CtxGetStreamPriorityRange, REQUIRED, 5050, CUresult, (int *least, int *greatest), (least, greatest))

#define RK_CUDA_CALLS_MEMORY(X) \
    X(MemAlloc, REQUIRED, 3020, CUresult, (CUdeviceptr *ptr, size_t bytes), (ptr, bytes)) \
    X(MemFree, REQUIRED, 3020, CUresult, (CUdeviceptr ptr), (ptr)) \
    X(MemAllocManaged, REQUIRED, 6000, CUresult, \
      (CUdeviceptr *ptr, size_t bytes, unsigned flags), (ptr, bytes, flags)) \
    X(MemHostAlloc, REQUIRED, 2020, CUresult, (void **ptr, size_t bytes, unsigned flags), (ptr, bytes, flags)) \
    X(MemFreeHost, REQUIRED, 2000, CUresult, (void *ptr), (ptr)) \
    X(MemHostRegister, REQUIRED, 6050, CUresult, (void *ptr, size_t bytes, unsigned flags), (ptr, bytes, flags)) \
    X(MemHostUnregister, REQUIRED, 4000, CUresult, (void *ptr), (ptr)) \
    X(MemHostGetDevicePointer, REQUIRED, 3020, CUresult, \
      (CUdeviceptr *device, void *ptr, unsigned flags), (device, ptr, flags)) \
    X(MemGetAddressRange, REQUIRED, 3020, CUresult, \
      (CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr), (base, bytes, ptr)) \
    X(MemGetInfo, REQUIRED, 3020, CUresult, (size_t *available, size_t *total), (available, total)) \
    X(PointerGetAttribute, REQUIRED, 4000, CUresult, \
      (void *value, CUpointer_attribute attribute, CUdeviceptr ptr), (value, attribute, ptr)) \
    X(PointerGetAttributes, REQUIRED, 7000, CUresult, \
      (unsigned count, CUpointer_attribute *attributes, void **values, CUdeviceptr ptr), \
      (count, attributes, values, ptr)) \
    X(PointerSetAttribute, REQUIRED, 6000, CUresult, \
      (const void *value, CUpointer_attribute attribute, CUdeviceptr ptr), (value, attribute, ptr)) \
    X(IpcGetMemHandle, OPTIONAL, 4010, CUresult, (CUipcMemHandle *handle, CUdeviceptr ptr), (handle, ptr)) \
    X(IpcOpenMemHandle, OPTIONAL, 11000, CUresult, \
      (CUdeviceptr *ptr, CUipcMemHandle handle, unsigned flags), (ptr, handle, flags)) \
    X(IpcCloseMemHandle, OPTIONAL, 4010, CUresult, (CUdeviceptr ptr), (ptr))

#define RK_CUDA_CALLS_VMM(X) \
    X(MemCreate, REQUIRED, 10020, CUresult, \
      (CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *prop, unsigned long long flags), \
      (handle, bytes, prop, flags)) \
    X(MemRelease, REQUIRED, 10020, CUresult, (CUmemGenericAllocationHandle handle), (handle)) \
    X(MemAddressReserve, REQUIRED, 10020, CUresult, \
      (CUdeviceptr *ptr, size_t bytes, size_t alignment, CUdeviceptr hint, unsigned long long flags), \
      (ptr, bytes, alignment, hint, flags)) \
    X(MemAddressFree, REQUIRED, 10020, CUresult, (CUdeviceptr ptr, size_t bytes), (ptr, bytes)) \
    X(MemMap, REQUIRED, 10020, CUresult, \
      (CUdeviceptr ptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags), \
      (ptr, bytes, offset, handle, flags)) \
    X(MemUnmap, REQUIRED, 10020, CUresult, (CUdeviceptr ptr, size_t bytes), (ptr, bytes)) \
    X(MemSetAccess, REQUIRED, 10020, CUresult, \
      (CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *desc, size_t count), (ptr, bytes, desc, count)) \
    X(MemGetAllocationGranularity, REQUIRED, 10020, CUresult, \
      (size_t *bytes, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option), \
      (bytes, prop, option)) \
    X(MemRetainAllocationHandle, OPTIONAL, 11000, CUresult, \
      (CUmemGenericAllocationHandle *handle, void *ptr), (handle, ptr)) \
    X(MemExportToShareableHandle, OPTIONAL, 10020, CUresult, \
      (void *shared, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type, unsigned long long flags), \
      (shared, handle, type, flags)) \
    X(MemImportFromShareableHandle, OPTIONAL, 10020, CUresult, \
      (CUmemGenericAllocationHandle *handle, void *shared, CUmemAllocationHandleType type), (handle, shared, type)) \
    X(MemGetHandleForAddressRange, OPTIONAL, 11070, CUresult, \
      (void *handle, CUdeviceptr ptr, size_t bytes, CUmemRangeHandleType type, unsigned long long flags), \
      (handle, ptr, bytes, type, flags))

#define RK_CUDA_CALLS_STREAM(X) \
    X(Memcpy, REQUIRED, 4000, CUresult, (CUdeviceptr to, CUdeviceptr from, size_t bytes), (to, from, bytes)) \
    X(MemcpyAsync, REQUIRED, 4000, CUresult, \
      (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), (to, from, bytes, stream)) \
    X(MemcpyHtoDAsync, REQUIRED, 3020, CUresult, \
      (CUdeviceptr to, const void *from, size_t bytes, CUstream stream), (to, from, bytes, stream)) \
    X(MemcpyDtoHAsync, REQUIRED, 3020, CUresult, \
      (void *to, CUdeviceptr from, size_t bytes, CUstream stream), (to, from, bytes, stream)) \
    X(MemcpyDtoDAsync, REQUIRED, 3020, CUresult, \
      (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), (to, from, bytes, stream)) \
    X(MemsetD8Async, REQUIRED, 3020, CUresult, \
      (CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream), (to, value, bytes, stream)) \
    X(StreamCreateWithPriority, REQUIRED, 5050, CUresult, \
      (CUstream *stream, unsigned flags, int priority), (stream, flags, priority)) \
    X(StreamDestroy, REQUIRED, 4000, CUresult, (CUstream stream), (stream)) \
    X(StreamQuery, REQUIRED, 2000, CUresult, (CUstream stream), (stream)) \
    X(StreamSynchronize, REQUIRED, 2000, CUresult, (CUstream stream), (stream)) \
    X(StreamWaitEvent, REQUIRED, 3020, CUresult, \
      (CUstream stream, CUevent event, unsigned flags), (stream, event, flags)) \
    X(StreamIsCapturing, OPTIONAL, 10000, CUresult, \
      (CUstream stream, CUstreamCaptureStatus *status), (stream, status)) \
    X(StreamGetCtx, REQUIRED, 9020, CUresult, (CUstream stream, CUcontext *context), (stream, context)) \
    X(StreamWaitValue64, OPTIONAL, 11070, CUresult, \
      (CUstream stream, CUdeviceptr ptr, cuuint64_t value, unsigned flags), (stream, ptr, value, flags)) \
    X(StreamWriteValue64, OPTIONAL, 11070, CUresult, \
      (CUstream stream, CUdeviceptr ptr, cuuint64_t value, unsigned flags), (stream, ptr, value, flags)) \
    X(EventCreate, REQUIRED, 2000, CUresult, (CUevent *event, unsigned flags), (event, flags)) \
    X(EventDestroy, REQUIRED, 4000, CUresult, (CUevent event), (event)) \
    X(EventRecord, REQUIRED, 2000, CUresult, (CUevent event, CUstream stream), (event, stream)) \
    X(EventQuery, REQUIRED, 2000, CUresult, (CUevent event), (event)) \
    X(EventSynchronize, REQUIRED, 2000, CUresult, (CUevent event), (event))

#define RK_CUDA_CALLS_KERNEL(X) \
    X(ModuleLoadData, REQUIRED, 2000, CUresult, (CUmodule *module, const void *image), (module, image)) \
    X(ModuleUnload, REQUIRED, 2000, CUresult, (CUmodule module), (module)) \
    X(ModuleGetFunction, REQUIRED, 2000, CUresult, \
      (CUfunction *function, CUmodule module, const char *name), (function, module, name)) \
    X(LaunchKernel, REQUIRED, 4000, CUresult, \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
       unsigned block_z, unsigned shared, CUstream stream, void **params, void **extra), \
      (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, params, extra))

#endif

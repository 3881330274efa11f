/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_device.c: number the devices, and keep each thread's stack of contexts.
 */
#include "tests/standin/standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { STACK = 16, UUID_TEXT = 41 /* "GPU-" and 36 characters, with the zero */ };

struct standin_device standin_devices[STANDIN_DEVICES];
int standin_ndevices;

static _Thread_local struct CUctx_st *stack[STACK];
static _Thread_local int depth;

/* ------------------------------------------------------------------------ devices */

static void uuid_print(const CUuuid *uuid, char text[UUID_TEXT])
{
    int n = snprintf(text, UUID_TEXT, "GPU-");

    for (int i = 0; i < 16; i++)
        n += snprintf(text + n, UUID_TEXT - n, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                      (unsigned char)uuid->bytes[i]);
}

static bool uuid_parse(const char *text, size_t len, CUuuid *uuid)
{
    size_t n = 0;

    if (len >= 4 && strncmp(text, "GPU-", 4) == 0)
        text += 4, len -= 4;
    for (size_t i = 0; i < len;) {
        unsigned byte;

        if (text[i] == '-') {
            i++;
            continue;
        }
        if (n == 16 || i + 2 > len || sscanf(text + i, "%2x", &byte) != 1)
            return false;
        uuid->bytes[n++] = (char)byte;
        i += 2;
    }
    return n == 16;
}

/* Return the i-th word of a list, or NULL. */
static const char *list_word(const char *list, int i, size_t *len)
{
    for (; list && *list; i--) {
        *len = strcspn(list, ",");
        if (i == 0)
            return list;
        list += *len + (list[*len] == ',');
    }
    return NULL;
}

static bool describe_device(struct standin_device *d, int i)
{
    size_t len;
    const char *pci = list_word(getenv("STANDIN_PCI"), i, &len), *uuid;

    *d = (struct standin_device){.physical = i, .bus = 0x10 + 0x10 * (unsigned)i};
    if (pci && sscanf(pci, "%x:%x:%x", &d->domain, &d->bus, &d->slot) != 3) {
        d->domain = 0;
        if (sscanf(pci, "%x:%x", &d->bus, &d->slot) != 2)
            return false;
    }
    memcpy(d->uuid.bytes, "standin", 7);
    d->uuid.bytes[12] = (char)(d->domain >> 8);
    d->uuid.bytes[13] = (char)d->domain;
    d->uuid.bytes[14] = (char)d->bus;
    d->uuid.bytes[15] = (char)d->slot;
    uuid = list_word(getenv("STANDIN_UUID"), i, &len);
    return !uuid || uuid_parse(uuid, len, &d->uuid);
}

static int compare_pci(const void *a, const void *b)
{
    const struct standin_device *x = a, *y = b;

    if (x->domain != y->domain)
        return x->domain < y->domain ? -1 : 1;
    if (x->bus != y->bus)
        return x->bus < y->bus ? -1 : 1;
    return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* Return the device that a word of CUDA_VISIBLE_DEVICES names, by number or the beginning of its UUID, or -1. */
static int visible_device(const struct standin_device *all, int n, const char *word, size_t len)
{
    char *end;
    long number = strtol(word, &end, 10);
    int found = -1;

    if (end == word + len && len > 0)
        return number >= 0 && number < n ? (int)number : -1;
    for (int i = 0; i < n && len > 4; i++) {
        char text[UUID_TEXT];

        uuid_print(&all[i].uuid, text);
        if (strncasecmp(text, word, len) != 0)
            continue;
        if (found >= 0)
            return -1;
        found = i;
    }
    return found;
}

CUresult standin_find_devices(void)
{
    struct standin_device all[STANDIN_DEVICES];
    const char *text = getenv("STANDIN_GPUS"), *list = getenv("CUDA_VISIBLE_DEVICES");
    const char *order = getenv("CUDA_DEVICE_ORDER"), *word;
    int n = text && *text ? atoi(text) : 1;
    bool taken[STANDIN_DEVICES] = {false};
    size_t len;

    n = n < 0 ? 0 : n > STANDIN_DEVICES ? STANDIN_DEVICES : n;
    for (int i = 0; i < n; i++)
        if (!describe_device(&all[i], i)) {
            fprintf(stderr, "stand-in for libcuda: STANDIN_PCI or STANDIN_UUID is not understood\n");
            return CUDA_ERROR_UNKNOWN;
        }
    if (order && strcmp(order, "PCI_BUS_ID") == 0)
        qsort(all, n, sizeof(all[0]), compare_pci);
    standin_ndevices = 0;
    if (!list) {
        memcpy(standin_devices, all, n * sizeof(all[0]));
        standin_ndevices = n;
    }
    for (int i = 0; (word = list_word(list, i, &len)); i++) {
        int d = visible_device(all, n, word, len);

        if (d < 0)
            break;
        if (taken[d]) { /* a device may not stand twice */
            standin_ndevices = 0;
            break;
        }
        taken[d] = true;
        standin_devices[standin_ndevices++] = all[d];
    }
    for (int i = 0; i < standin_ndevices; i++)
        standin_devices[i].primary.device = i;
    return standin_ndevices ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUdevice standin_ordinal(int physical)
{
    for (int i = 0; i < standin_ndevices; i++)
        if (standin_devices[i].physical == physical)
            return i;
    return -1;
}

bool standin_can_peer(CUdevice a, CUdevice b) { return a == b || standin_settings.peer; }

static bool is_device(CUdevice device) { return device >= 0 && device < standin_ndevices; }

CUresult standin_DeviceGet(CUdevice *device, int ordinal)
{
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult standin_DeviceGetCount(int *count)
{
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = standin_ndevices;
    return CUDA_SUCCESS;
}

CUresult standin_DeviceGetName(char *name, int room, CUdevice device)
{
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!name || room <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, room, "stand-in %d", standin_devices[device].physical);
    return CUDA_SUCCESS;
}

CUresult standin_DeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!uuid)
        return CUDA_ERROR_INVALID_VALUE;
    *uuid = standin_devices[device].uuid;
    return CUDA_SUCCESS;
}

CUresult standin_DeviceTotalMem(size_t *bytes, CUdevice device)
{
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = standin_settings.memory;
    return CUDA_SUCCESS;
}

CUresult standin_DeviceGetPCIBusId(char *id, int room, CUdevice device)
{
    const struct standin_device *d;

    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    d = &standin_devices[device];
    if (!id || room < 13)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(id, room, "%04X:%02X:%02X.0", d->domain, d->bus, d->slot);
    return CUDA_SUCCESS;
}

CUresult standin_DeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    if (!is_device(device) || !is_device(peer))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!can)
        return CUDA_ERROR_INVALID_VALUE;
    *can = device != peer && standin_can_peer(device, peer);
    return CUDA_SUCCESS;
}

CUresult standin_DeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    const struct standin_device *d;

    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    d = &standin_devices[device];
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 4; break;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: *value = (int)d->bus; break;
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID: *value = (int)d->slot; break;
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID: *value = (int)d->domain; break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 4 << 20; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *value = 2048; break;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: *value = 2; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED: *value = 1; break;
    case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED: *value = standin_settings.vmm; break;
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: *value = standin_settings.vmm; break;
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
        *value = standin_settings.vmm && standin_settings.ipc_fd;
        break;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR: *value = standin_settings.memops; break;
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID: *value = 0; break;
    default: *value = 0; break;
    }
    return CUDA_SUCCESS;
}

/* ------------------------------------------------------------------------ contexts */

struct CUctx_st *standin_context(void) { return depth ? stack[depth - 1] : NULL; }

bool standin_is_corrupting(CUresult error)
{
    switch (error) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT: return true;
    default: return error >= CUDA_ERROR_HARDWARE_STACK_ERROR && error <= CUDA_ERROR_LAUNCH_FAILED;
    }
}

int standin_leaked_contexts(void)
{
    int n = 0;

    for (int i = 0; i < standin_ndevices; i++)
        n += (int)standin_devices[i].primary.retained;
    return n;
}

CUresult standin_DevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&standin_lock);
    *context = &standin_devices[device].primary;
    if (!(*context)->legacy)
        (*context)->legacy = standin_stream_legacy(*context);
    (*context)->retained++;
    pthread_mutex_unlock(&standin_lock);
    return CUDA_SUCCESS;
}

CUresult standin_DevicePrimaryCtxRelease(CUdevice device)
{
    CUresult error = CUDA_SUCCESS;

    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&standin_lock);
    if (standin_devices[device].primary.retained == 0)
        error = CUDA_ERROR_INVALID_CONTEXT;
    else
        standin_devices[device].primary.retained--;
    pthread_mutex_unlock(&standin_lock);
    return error;
}

CUresult standin_DevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!flags || !active)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&standin_lock);
    *flags = 0;
    *active = standin_devices[device].primary.retained > 0;
    pthread_mutex_unlock(&standin_lock);
    return CUDA_SUCCESS;
}

CUresult standin_CtxGetCurrent(CUcontext *context)
{
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    *context = standin_context();
    return CUDA_SUCCESS;
}

/* Is it a primary context, which are all there are? */
static bool is_context(const struct CUctx_st *context)
{
    for (int i = 0; i < standin_ndevices; i++)
        if (context == &standin_devices[i].primary)
            return true;
    return false;
}

CUresult standin_CtxSetCurrent(CUcontext context)
{
    if (context && !is_context(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!context)
        depth -= depth > 0;
    else
        stack[depth ? depth - 1 : depth++] = context;
    return CUDA_SUCCESS;
}

CUresult standin_CtxPushCurrent(CUcontext context)
{
    if (!is_context(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (depth == STACK)
        return CUDA_ERROR_INVALID_VALUE;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult standin_CtxPopCurrent(CUcontext *context)
{
    if (!depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (context)
        *context = stack[depth];
    return CUDA_SUCCESS;
}

CUresult standin_CtxGetDevice(CUdevice *device)
{
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = standin_context()->device;
    return CUDA_SUCCESS;
}

CUresult standin_CtxSynchronize(void)
{
    struct CUctx_st *context = standin_context();
    CUresult error;

    pthread_mutex_lock(&standin_lock);
    standin_context_idle(context);
    error = context->sticky;
    pthread_mutex_unlock(&standin_lock);
    return error;
}

CUresult standin_CtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    struct CUctx_st *context = standin_context();
    CUresult error = CUDA_SUCCESS;

    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_context(peer) || peer == context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!standin_can_peer(context->device, peer->device))
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    pthread_mutex_lock(&standin_lock);
    if (context->peers[peer->device])
        error = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    context->peers[peer->device] = true;
    pthread_mutex_unlock(&standin_lock);
    return error;
}

CUresult standin_CtxGetStreamPriorityRange(int *least, int *greatest)
{
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -2;
    return CUDA_SUCCESS;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* device_memory.h: use device memory as a program does, by the driver's own calls. */
#ifndef RK_TESTS_STANDIN_DEVICE_MEMORY_H
#define RK_TESTS_STANDIN_DEVICE_MEMORY_H

#include "lib/mem/kind.h"

/*
 * Memory of device rank % number of devices, in its primary context, which becomes current. Aborts without a driver.
 * Its alloc takes turns between the sorts below. Its copy is cuMemcpy, which the library does not call.
 */
const struct rk_kind *device_memory(int rank);

enum device_memory_sort {
    DEVICE_PLAIN,     /* cuMemAlloc */
    DEVICE_SHAREABLE, /* VMM, a mapping for each 2 MiB, which descriptors can share */
    DEVICE_PRIVATE    /* the same, which nothing can share */
};
/* Where the driver has no VMM, all are of cuMemAlloc. Freed by the kind's free. */
void *device_memory_alloc(enum device_memory_sort sort, size_t bytes);

/* Does the driver count its calls, as the stand-in does? */
bool device_memory_counts(void);

/* Calls of the driver so far in this process, by name without "cu"; 0 if it does not count them. */
long device_memory_calls(const char *name);

/* Mappings that the library has, of own and of other ranks' memory, if all calls of the driver have succeeded. 0 as above. */
long device_memory_mapped(void);

/* Is the context that device_memory has made current still current? */
bool device_memory_is_current(void);

/* Release the context. All memory must be freed. */
void device_memory_end(void);

#endif

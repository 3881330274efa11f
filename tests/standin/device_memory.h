/* SPDX-License-Identifier: BSD-3-Clause */
/* device_memory.h: use device memory as a program does, by the driver's own calls. */
#ifndef RK_TESTS_STANDIN_DEVICE_MEMORY_H
#define RK_TESTS_STANDIN_DEVICE_MEMORY_H

#include "lib/mem/kind.h"

/*
 * Memory of device rank % number of devices, in its primary context, which becomes current. Aborts without a driver.
 * Its alloc takes turns between cuMemAlloc and VMM memory. Its copy is cuMemcpy, which the library does not call.
 */
const struct rk_kind *device_memory(int rank);

/* Is the context that device_memory has made current still current? */
bool device_memory_is_current(void);

/* Release the context. All memory must be freed. */
void device_memory_end(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_paths.h: describe how processes reach each other's device memory. */
#ifndef RK_MEM_CUDA_PATHS_H
#define RK_MEM_CUDA_PATHS_H

#include <stddef.h>

/* One line about messages from device memory between ranks of this host. Makes a context on device 0 meanwhile. */
void rk_cuda_describe_paths(char *text, size_t room);

#endif

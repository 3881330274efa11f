/* SPDX-License-Identifier: BSD-3-Clause */
/* shm_region.h: size the channel's regions of the node's segment. */
#ifndef RK_CHANNEL_SHM_SHM_REGION_H
#define RK_CHANNEL_SHM_SHM_REGION_H

#include <stddef.h>

size_t rk_shm_region_bytes(int nlocal);  /* fifos */
size_t rk_shm_exports_bytes(int nlocal); /* tables of exported device memory */

#endif

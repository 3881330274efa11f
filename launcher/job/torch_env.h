/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * torch_env.h: set the variables of PyTorch and similar programs.
 *
 * Each rank gets RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE. Rank 0 listens
 * at MASTER_ADDR and MASTER_PORT, and the other ranks connect to it.
 */
#ifndef XR_LAUNCHER_JOB_TORCH_ENV_H
#define XR_LAUNCHER_JOB_TORCH_ENV_H

#include <stdbool.h>
#include <stdint.h>

#define XR_TORCH_VARS 4 /* of each rank */

/* Return whether s (NAME or NAME=value) is one of them. */
bool xr_torch_own(const char *s);

/* Remove from a job's environment what each rank sets itself. */
void xr_torch_job(char **env);

/* Format a rank's own variables. Each of out holds at least 32 bytes. */
void xr_torch_rank(uint32_t rank, uint32_t size, uint32_t local_rank, uint32_t local_size,
                   char *const out[XR_TORCH_VARS]);

#endif

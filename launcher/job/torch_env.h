/*
 * torch_env.h: what PyTorch's programs, and those like them, find each other by.
 *
 * Each rank gets RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE; rank 0
 * listens at MASTER_ADDR and MASTER_PORT, and the others come to it.
 */
#ifndef XR_LAUNCHER_JOB_TORCH_ENV_H
#define XR_LAUNCHER_JOB_TORCH_ENV_H

#include <stdbool.h>
#include <stdint.h>

#define XR_TORCH_VARS 4 /* of each rank */

/* Is s (NAME or NAME=value) one of them? */
bool xr_torch_own(const char *s);

/* Take out of a job's environment what each rank shall have of its own. */
void xr_torch_job(char **env);

/* A rank's own. Each of out holds 32 bytes at least. */
void xr_torch_rank(uint32_t rank, uint32_t size, uint32_t local_rank, uint32_t local_size,
                   char *const out[XR_TORCH_VARS]);

#endif

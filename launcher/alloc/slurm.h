/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slurm.h: read the Slurm allocation that xrun was started in.
 *
 * Its nodes and slots are read in hostfile.c, as those of other resource managers;
 * here is what srun needs to start agents.
 */
#ifndef XR_LAUNCHER_ALLOC_SLURM_H
#define XR_LAUNCHER_ALLOC_SLURM_H

#include "launcher/alloc/hostlist.h"

/* Return whether all these hosts are nodes of the allocation, and srun exists. */
bool xr_slurm_has(const struct xr_hostlist *hosts);

/*
 * Return Slurm's name of the node on which this process runs as a part of its job. NULL: it does not, as in the
 * shell of salloc.
 */
const char *xr_slurm_node(void);

/*
 * Return the environment of an srun that starts agents, without the options that salloc or sbatch hand down in
 * variables for the user's own srun. library_path: LD_LIBRARY_PATH, or NULL. Caller frees with xr_strv_free.
 */
char **xr_slurm_environ(const char *library_path);

#endif

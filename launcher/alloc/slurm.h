/*
 * slurm.h: what Slurm says of the allocation that xrun was started in.
 *
 * Its nodes and slots are read with those of other resource managers
 * (hostfile.c); here is what is needed to start agents on them with srun.
 */
#ifndef XR_LAUNCHER_ALLOC_SLURM_H
#define XR_LAUNCHER_ALLOC_SLURM_H

#include "launcher/alloc/hostlist.h"

/* Are all these hosts nodes of the allocation, and is there an srun? */
bool xr_slurm_has(const struct xr_hostlist *hosts);

/* How Slurm calls the node that this process runs on as a part of its job; NULL: it does not, as in the shell that
 * salloc starts. */
const char *xr_slurm_node(void);

/*
 * The environment for an srun that starts agents: without the options that
 * Slurm hands down in variables from salloc or sbatch, which are meant for the
 * user's own. library_path: LD_LIBRARY_PATH, or NULL. Free it with xr_strings_free.
 */
char **xr_slurm_environ(const char *library_path);

#endif

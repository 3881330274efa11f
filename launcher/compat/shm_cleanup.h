/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_cleanup.h: remove files that killed MPI programs leave.
 *
 * Two kinds: a folder for each job, which its ranks get as their folder for
 * temporary files, and segments in /dev/shm with names that only MPI libraries use.
 * A segment counts if a process of the job was seen to have it mapped or open, or if
 * its name holds the job's. Others stay, as those of ranks that were killed together
 * with their agent.
 */
#ifndef XR_LAUNCHER_COMPAT_SHM_CLEANUP_H
#define XR_LAUNCHER_COMPAT_SHM_CLEANUP_H

#include "lib/rank.h"

#include <stdbool.h>

struct xr_shm_cleanup;

/* job: its id. Chooses the folder's name; the first user creates the folder. */
rank_status_t xr_shm_cleanup_create(const char *job, struct xr_shm_cleanup **out);
void xr_shm_cleanup_destroy(struct xr_shm_cleanup *shm_cleanup);

const char *xr_shm_cleanup_folder(const struct xr_shm_cleanup *shm_cleanup);

/* The processes below this one are about to be killed: record their files. No-op if NULL. */
void xr_shm_cleanup_note(struct xr_shm_cleanup *shm_cleanup);
/* They have ended: remove the files. pmi1: some may have used PMI-1, as MPICH does. No-op if NULL. */
void xr_shm_cleanup_remove(struct xr_shm_cleanup *shm_cleanup, bool pmi1);

#endif

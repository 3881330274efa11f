/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_cleanup.h: remove files that killed MPI programs leave.
 *
 * Two kinds: a folder for each job, whose name the libraries get; and segments in
 * /dev/shm with names that only MPI libraries use. A segment counts if a process
 * of the job has mapped it or it names the job. If the agent was killed with its
 * processes, segments count that were made since the job began, are the user's,
 * and are in use by no process of this machine.
 */
#ifndef XR_LAUNCHER_COMPAT_SHM_CLEANUP_H
#define XR_LAUNCHER_COMPAT_SHM_CLEANUP_H

#include "lib/rank.h"

#include <stdbool.h>
#include <time.h>

struct xr_leftovers;

/* job: its id. Chooses the folder's name; the first user creates the folder. */
rank_status_t xr_leftovers_create(const char *job, struct xr_leftovers **out);
void xr_leftovers_destroy(struct xr_leftovers *leftovers);

const char *xr_leftovers_folder(const struct xr_leftovers *leftovers);

/* The processes below this one are about to be killed: record their files. No-op if NULL. */
void xr_leftovers_note(struct xr_leftovers *leftovers);
/* They continue after the record and may make more files, found later like unrecorded ones. No-op if NULL. */
void xr_leftovers_expect(struct xr_leftovers *leftovers);
/* They have ended: remove the files. pmi1: some may have used PMI-1, as MPICH does. No-op if NULL. */
void xr_leftovers_remove(struct xr_leftovers *leftovers, bool pmi1);

/* Return the time before a job begins, on the clock of file times. */
struct timespec xr_leftovers_now(void);
/* All processes of a job ended without a record: remove what was made since then. May take 0.1 s. */
void xr_leftovers_remove_unheld(const struct timespec *since);

#endif

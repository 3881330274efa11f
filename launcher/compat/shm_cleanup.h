/*
 * shm_cleanup.h: files that MPI libraries make and do not live to remove.
 *
 * Two kinds: a folder for each job, which is told to them and goes with the
 * job; and segments in /dev/shm under names that are known to be a library's
 * own, of which those count that a process of the job has mapped, or that
 * name the job. Where nobody could look at the processes, because their agent
 * was killed and they with it, those count that were made since the job began,
 * are the user's, and are held by no process of this machine: whatever lives
 * holds its segments from the moment in which it makes them.
 */
#ifndef XR_LAUNCHER_COMPAT_SHM_CLEANUP_H
#define XR_LAUNCHER_COMPAT_SHM_CLEANUP_H

#include "lib/rank.h"

#include <stdbool.h>
#include <time.h>

struct xr_leftovers;

/* job: its id. The folder's name is chosen; it is made by who uses it. */
rank_status_t xr_leftovers_create(const char *job, struct xr_leftovers **out);
void xr_leftovers_destroy(struct xr_leftovers *leftovers);

const char *xr_leftovers_folder(const struct xr_leftovers *leftovers);

/* The processes below this one are about to be killed: note what they have. NULL is fine. */
void xr_leftovers_note(struct xr_leftovers *leftovers);
/* They go on once they have been looked at, and may make more, which are then found as those are that nobody noted. NULL is fine. */
void xr_leftovers_expect(struct xr_leftovers *leftovers);
/* They are gone: remove it. pmi1: some may have spoken that, as MPICH does. NULL is fine. */
void xr_leftovers_remove(struct xr_leftovers *leftovers, bool pmi1);

/* The time, as files have it, before a job begins. */
struct timespec xr_leftovers_now(void);
/* All processes of a job are gone, and nobody has noted what they had: remove what was made since then. May take 0.1 s. */
void xr_leftovers_remove_unheld(const struct timespec *since);

#endif

/*
 * leftovers.h: files that MPI libraries make and do not live to remove.
 *
 * Two kinds: a folder for each job, which is told to them and goes with the
 * job; and segments in /dev/shm under names that are known to be a library's
 * own, of which those count that a process of the job has mapped, or that
 * name the job.
 */
#ifndef RK_LAUNCHER_LEFTOVERS_H
#define RK_LAUNCHER_LEFTOVERS_H

#include "lib/rank.h"

#include <stdbool.h>

struct rk_leftovers;

/* job: its id. The folder's name is chosen; it is made by who uses it. */
rank_status_t rk_leftovers_create(const char *job, struct rk_leftovers **out);
void rk_leftovers_destroy(struct rk_leftovers *leftovers);

const char *rk_leftovers_folder(const struct rk_leftovers *leftovers);

/* The processes below this one are about to be killed: note what they have. NULL is fine. */
void rk_leftovers_note(struct rk_leftovers *leftovers);
/* They are gone: remove it. pmi1: some may have spoken that, as MPICH does. NULL is fine. */
void rk_leftovers_remove(struct rk_leftovers *leftovers, bool pmi1);

#endif

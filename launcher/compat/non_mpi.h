/*
 * non_mpi.h: can it be known that a program will never be an MPI program?
 */
#ifndef XR_LAUNCHER_COMPAT_NON_MPI_H
#define XR_LAUNCHER_COMPAT_NON_MPI_H

#include "launcher/job/job.h"

#include <stdbool.h>

/*
 * True for a program that uses no library but the C library, holds no word of
 * PMI, and nothing by which it could execute another program, load another
 * library or show all of its variables. Many tools are so (true, hostname,
 * sleep, cat), and are started in large numbers; they are spared what only
 * clients of PMIx and MPI libraries need. In doubt, false.
 * env: what it will be started with.
 */
bool xr_plain(const char *program, char *const *env);
/* Are all programs of the job so? */
bool xr_plain_job(const struct xr_job *job);

#endif

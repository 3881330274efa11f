/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rundir.h: keep the status sockets of this user's jobs in a directory.
 *
 * The directory is $XDG_RUNTIME_DIR/xrun or /tmp/xrun-UID. A socket has the job's
 * name and is removed with the job. If all processes of a job were killed, the next
 * xrun that lists the directory removes its socket.
 */
#ifndef XR_LAUNCHER_MONITOR_RUNDIR_H
#define XR_LAUNCHER_MONITOR_RUNDIR_H

#include <stdbool.h>

/* Return a socket that listens under the job's name, for this user only; -1 with errno on failure. */
int xr_rundir_listen(const char *job);
/* Remove it, stale sockets of other jobs, and the directory if it is empty then. */
void xr_rundir_remove(const char *job);

/* Call fn for each job that listens, with a connection to it, which fn closes. */
void xr_rundir_each(void (*fn)(void *arg, const char *job, int fd), void *arg);

#endif

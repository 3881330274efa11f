/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rundir.h: where the sockets are at which xruns of this user answer: a
 * directory of his own, $XDG_RUNTIME_DIR/xrun or /tmp/xrun-UID.
 *
 * A socket has the job's name. It is removed with its job; one that was left
 * behind, because everything of the job was killed, is removed by the next that
 * looks.
 */
#ifndef XR_LAUNCHER_MONITOR_RUNDIR_H
#define XR_LAUNCHER_MONITOR_RUNDIR_H

#include <stdbool.h>

/* A socket that listens under the job's name, only for this user; -1 with errno set. */
int xr_rundir_listen(const char *job);
/* Remove it, the directory if it is empty then, and what others have left behind. */
void xr_rundir_remove(const char *job);

/* Call fn for each job that listens, with a connection to it, which fn closes. */
void xr_rundir_each(void (*fn)(void *arg, const char *job, int fd), void *arg);

#endif

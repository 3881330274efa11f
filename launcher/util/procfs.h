/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * procfs.h: read files, first child and environment of a process.
 */
#ifndef XR_LAUNCHER_UTIL_PROCFS_H
#define XR_LAUNCHER_UTIL_PROCFS_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Call fn with the path of each mapped or open file until it returns false. A file with several mappings is
 * repeated. No-op if the process is gone or another user's.
 */
void xr_maps_each(pid_t pid, bool (*fn)(void *arg, const char *path), void *arg);

/* Copy the value of a variable that the process was started with. Returns false if it is unset or unreadable. */
bool xr_proc_variable(pid_t pid, const char *name, char *out, size_t len);

/* Return its first child, or 0 if it has none or the kernel does not report it. */
pid_t xr_maps_child(pid_t pid);

#endif

/*
 * procfs.h: what a process has mapped and open, its first child, and its environment.
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

/* The value of a variable that the process was started with. Returns false if it has none, or cannot be read. */
bool xr_proc_variable(pid_t pid, const char *name, char *out, size_t len);

/* The first of its children, or 0; 0, too, where the kernel does not tell. */
pid_t xr_maps_child(pid_t pid);

#endif

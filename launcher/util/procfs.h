/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * procfs.h: read state, children, files and environment of a process.
 *
 * All functions fail, or do nothing, if the process is gone or another user's.
 */
#ifndef XR_LAUNCHER_UTIL_PROCFS_H
#define XR_LAUNCHER_UTIL_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The part of /proc/PID/stat that the launcher uses. See proc(5). */
struct xr_procfs_stat {
    char state; /* R, S, D, T, t, Z, X ... */
    pid_t parent;
    uint64_t ticks; /* CPU time, in units of sysconf(_SC_CLK_TCK) */
    bool ended;     /* dead or zombie, with all threads: a main thread that called pthread_exit is a zombie, too */
    bool ending;    /* exits already, or SIGKILL is pending */
};

bool xr_procfs_stat(pid_t pid, struct xr_procfs_stat *out);

/* Read /proc/PID/FILE as a string, cut at len. Returns false if it is empty or unreadable. */
bool xr_procfs_read(pid_t pid, const char *file, char *out, size_t len);

/* Store the first children of the main thread, at most max. Returns their number; 0 if the kernel reports none. */
size_t xr_procfs_children(pid_t pid, pid_t *children, size_t max);

/*
 * Call fn with the path of each mapped or open file until it returns false. A file with several mappings is
 * repeated.
 */
void xr_procfs_each_file(pid_t pid, bool (*fn)(void *arg, const char *path), void *arg);

/* Copy the value of a variable that the process was started with. Returns false if it is unset or unreadable. */
bool xr_procfs_variable(pid_t pid, const char *name, char *out, size_t len);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proc_tree.h: find and end all descendants of this process.
 *
 * The caller is a child subreaper, so all descendants stay in its tree, even
 * behind shells and daemons.
 */
#ifndef XR_LAUNCHER_EXEC_PROC_TREE_H
#define XR_LAUNCHER_EXEC_PROC_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Send sig to every descendant except the processes in keep and their descendants. Returns the number of
 * receivers.
 */
int xr_proc_tree_signal(int sig, const pid_t *keep, size_t nkeep);

/* Kill and reap descendants until none is left or ms have passed. Returns true if none is left. */
bool xr_proc_tree_end(int ms, const pid_t *keep, size_t nkeep);

/* Return all descendants except zombies. Caller frees. *n may be 0. */
pid_t *xr_proc_tree_all(size_t *n);

/* Return the current children of this process. Caller frees. *n may be 0. */
pid_t *xr_proc_tree_children(size_t *n);

#endif

/*
 * proc_tree.h: find and end all processes that come from this one.
 *
 * The caller is a child subreaper, so whatever its descendants start stays in
 * its tree, even behind shells and daemons.
 */
#ifndef XR_LAUNCHER_EXEC_PROC_TREE_H
#define XR_LAUNCHER_EXEC_PROC_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Send sig to every descendant, but for the processes in keep and those below them. Returns how
 * many got it. */
int xr_descend_signal(int sig, const pid_t *keep, size_t nkeep);

/*
 * Kill and reap descendants until none is left, or until ms have passed.
 * Returns true if none is left.
 */
bool xr_descend_end(int ms, const pid_t *keep, size_t nkeep);

/* All descendants but zombies; the caller frees. *n may be 0. */
pid_t *xr_descend_all(size_t *n);

/* The children that this process has now; the caller frees. *n may be 0. */
pid_t *xr_descend_children(size_t *n);

#endif

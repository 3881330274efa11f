/*
 * spawn_affinity.h: the thread that starts bound ranks keeps off their cores.
 *
 * It waits for each until the program is being executed, and is woken by that
 * child. The kernel likes to wake it on the child's core, although others are
 * idle, and there it stands behind the program until that waits for the first
 * time: 3 ms and more until the next rank is started.
 */
#ifndef XR_LAUNCHER_EXEC_SPAWN_AFFINITY_H
#define XR_LAUNCHER_EXEC_SPAWN_AFFINITY_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

struct xr_aside {
    cpu_set_t *all, *rest; /* where it may run; without what ranks have so far. NULL: it stays where it is */
    size_t size;
    bool last; /* there are no others left */
};

/* Nothing that fails matters: then the thread runs where it did. */
void xr_aside_open(struct xr_aside *aside);
/* Before a rank is started there: to the cores that no rank has yet, or, if there are none, to the rank's own. NULL: it
 * is not bound, and shall inherit all cores. */
void xr_aside_keep_off(struct xr_aside *aside, const cpu_set_t *cpus, size_t size);
/* Run everywhere again. Twice is fine. */
void xr_aside_close(struct xr_aside *aside);

#endif

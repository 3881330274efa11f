/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spawn_affinity.h: keep the thread that starts bound ranks off their cores.
 *
 * The child wakes it when the program is executed. The kernel prefers to wake it
 * on the child's core, even if others are idle. There it waits until the program
 * first blocks, which delays the next rank by 3 ms and more.
 */
#ifndef XR_LAUNCHER_EXEC_SPAWN_AFFINITY_H
#define XR_LAUNCHER_EXEC_SPAWN_AFFINITY_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

struct xr_spawn_affinity {
    cpu_set_t *all, *rest; /* allowed cores; the same without those of ranks so far. NULL: no change */
    size_t size;
    bool last; /* no free cores are left */
};

/* Failures are ignored: the thread then stays where it is. */
void xr_spawn_affinity_open(struct xr_spawn_affinity *affinity);
/*
 * Call before a rank is started on cpus. Moves to the cores that no rank has yet, or, if there are none, to the
 * rank's own. NULL: the rank is not bound, and must inherit all cores.
 */
void xr_spawn_affinity_keep_off(struct xr_spawn_affinity *affinity, const cpu_set_t *cpus, size_t size);
/* Allow all cores again. May be called twice. */
void xr_spawn_affinity_close(struct xr_spawn_affinity *affinity);

#endif

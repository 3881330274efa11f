/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spawn_proc.h: start a process quickly, and report exactly why if it fails.
 *
 * Room: start, find, limit and end processes; their environment.
 * Called by: agent, alloc, bootstrap, cli, compat, frontend, job, main.c.
 * Never: handles a host, a job or a connection.
 * Tests: tests/launcher/unit/launcher_test.c, environ.sh, leader_exits.sh.
 */
#ifndef XR_LAUNCHER_EXEC_SPAWN_PROC_H
#define XR_LAUNCHER_EXEC_SPAWN_PROC_H

#include "launcher/exec/rlimits.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct xr_spawn {
    const char *program;
    char *const *argv;
    char *const *env;
    const char *wdir;
    int fd[4];             /* become 0, 1, 2, 3; the last may be -1: none */
    const cpu_set_t *cpus; /* NULL: not bound */
    size_t cpus_size;
    bool terminal;   /* fd[0] is a terminal: make it the child's controlling terminal */
    uint64_t nofile; /* soft limit of open files; 0: unchanged */
    const struct xr_rlimits *limits; /* NULL: unchanged */
};

/* State of a thread that spawns: a stack for the children to start on, and descriptors with low numbers. */
struct xr_spawner {
    void *stack; /* unchanged if opening fails */
    int null, slot[4];
};

/* Returns -1 with errno set on failure. Needs no close: it lives as long as the process. */
int xr_spawner_open(struct xr_spawner *spawner);

/*
 * Start a process. The child leads its own process group (with a terminal, its own session), has only spec->fd
 * open, and is killed when the calling thread ends. Returns its pid, or -1 with errno set and *step naming what
 * failed. *pidfd is -1 if the kernel has none.
 */
pid_t xr_spawn(const struct xr_spawn *spec, struct xr_spawner *spawner, int *pidfd,
               const char **step);

#endif

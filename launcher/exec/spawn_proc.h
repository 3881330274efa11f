/*
 * spawn_proc.h: start a process quickly, and learn exactly why if it fails.
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
    bool terminal;   /* fd[0] is one: make it the child's controlling terminal */
    uint64_t nofile; /* soft limit of open files; 0: as it is */
    const struct xr_ulimits *limits; /* NULL: as they are */
};

/* What a thread needs to spawn: a stack for the children to begin on, and descriptors with low
 * numbers. */
struct xr_spawner {
    void *stack; /* not touched where opening fails */
    int null, slot[4];
};

/* -1 with errno set. There is no need to close it: it lives as long as the process. */
int xr_spawner_open(struct xr_spawner *spawner);

/*
 * The child is the leader of a process group (with a terminal, of a session) of its own, has no open files but
 * spec->fd, and is killed when the calling thread ends. Returns its pid, or -1
 * with errno set and *step naming what failed. *pidfd is -1 where the kernel
 * has none.
 */
pid_t xr_spawn(const struct xr_spawn *spec, struct xr_spawner *spawner, int *pidfd,
               const char **step);

#endif

/*
 * spawn.h: start a process quickly, and learn exactly why if it fails.
 */
#ifndef RK_LAUNCHER_SPAWN_H
#define RK_LAUNCHER_SPAWN_H

#include <sched.h>
#include <stdint.h>
#include <sys/types.h>

struct rk_spawn {
    const char *program;
    char *const *argv;
    char *const *env;
    const char *wdir;
    int fd[3];             /* become 0, 1, 2 */
    const cpu_set_t *cpus; /* NULL: not bound */
    size_t cpus_size;
    uint64_t nofile; /* soft limit of open files; 0: as it is */
};

/* A stack for children to begin on, one for each thread that spawns: what rk_spawn wants. NULL: no
 * memory. There is no need to give it back. */
void *rk_spawn_stack(void);

/*
 * The child is the leader of a process group of its own and is killed when the
 * calling thread ends. Returns its pid, or -1 with errno set and *step naming
 * what failed. *pidfd is -1 where the kernel has none.
 */
pid_t rk_spawn(const struct rk_spawn *spec, void *stack, int *pidfd, const char **step);

#endif

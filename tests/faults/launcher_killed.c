/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launcher_killed.c: kill the launcher while ranks hold shared memory.
 * By signal 9; mp.sh checks that nothing is left.
 *
 *   --target xrun|agent|supervisor|both|ranks|all   (supervisor: what stands between the two)
 */
#include "tests/mp/mp.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A process's name and parent; 0 if there is none. */
static pid_t parent_of(pid_t pid, char name[64])
{
    char path[64], line[512], *p, *q;
    long ppid = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    f = fopen(path, "re");
    if (!f)
        return 0;
    if (fgets(line, sizeof(line), f) && (p = strchr(line, '(')) && (q = strrchr(line, ')'))) {
        ppid = strtol(q + 4, NULL, 10);
        *q = '\0';
        snprintf(name, 64, "%s", p + 1);
    }
    fclose(f);
    return (pid_t)ppid;
}

/* The launcher's processes above us: the agent is the nearest, xrun itself the farthest one of that
 * name, whatever is between them. */
static void find_launcher(pid_t *agent, pid_t *supervisor, pid_t *xrun)
{
    char name[64] = "";
    pid_t pid = getppid(), up;

    *agent = pid;
    *supervisor = *xrun = 0;
    for (; pid > 1; pid = up) {
        up = parent_of(pid, name);
        if (strcmp(name, "xrun") == 0) {
            *xrun = pid;
            return;
        }
        if (pid != *agent)
            *supervisor = pid;
    }
    mp_fail(__FILE__, __LINE__, "no process named xrun above this one");
}

int main(int argc, char **argv)
{
    const char *target = "all";
    struct mp mp;
    rank_mem_t mem;
    void *p;
    int64_t pid = getpid(), *pids;

    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--target") == 0)
            target = argv[i + 1];
    }
    mp_start(&mp, &argc, argv);
    mp_case(&mp, target);
    MP_OK(rank_alloc(mp.world, RANK_MEM_HOST, 1 << 20, &p, &mem));
    pids = calloc((size_t)mp.size, sizeof(*pids));
    if (mp.rank == 0) {
        pid_t agent, supervisor, xrun;
        find_launcher(&agent, &supervisor, &xrun);
        for (int r = 1; r < mp.size; r++)
            MP_OK(rank_recv(&pids[r], 1, RANK_INT64, r, 1, mp.world, NULL));
        if (supervisor && (strcmp(target, "supervisor") == 0 || strcmp(target, "both") == 0 ||
                       strcmp(target, "all") == 0))
            kill(supervisor, SIGKILL);
        if (strcmp(target, "agent") == 0 || strcmp(target, "both") == 0 || strcmp(target, "all") == 0)
            kill(agent, SIGKILL);
        if (strcmp(target, "xrun") == 0 || strcmp(target, "both") == 0 || strcmp(target, "all") == 0)
            kill(xrun, SIGKILL);
        if (strcmp(target, "ranks") == 0 || strcmp(target, "all") == 0) {
            for (int r = 1; r < mp.size; r++)
                kill((pid_t)pids[r], SIGKILL);
            kill(getpid(), SIGKILL);
        }
    } else {
        /* Half of us make no further call, which might be needed to move a plain send on. */
        MP_OK(rank_ssend(&pid, 1, RANK_INT64, 0, 1, mp.world));
    }
    /* Half of us idle in the library, half outside: both must go. Neither returns while the job
     * lives; a death among us makes the wait end, and then we wait to be cleaned up. */
    if (mp.rank % 2)
        rank_recv(&pid, 1, RANK_INT64, 0, 2, mp.world, NULL);
    for (;;)
        pause();
}

/*
 * massacre.c: kill -9 of the launcher's processes, or of everything, while ranks hold shared memory;
 * nothing may be left, which mp.sh looks for.
 *
 *   --whom xrun|agent|both|ranks|all
 */
#include "tests/mp/mp.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pid_t parent_of(pid_t pid)
{
    char path[64], line[512], *p;
    long ppid = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    f = fopen(path, "re");
    if (f) {
        if (fgets(line, sizeof(line), f) && (p = strrchr(line, ')')) && strlen(p) > 4)
            ppid = strtol(p + 4, NULL, 10);
        fclose(f);
    }
    return (pid_t)ppid;
}

int main(int argc, char **argv)
{
    const char *whom = "all";
    struct mp mp;
    rank_mem_t mem;
    void *p;
    int64_t pid = getpid(), *pids;

    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--whom") == 0)
            whom = argv[i + 1];
    }
    mp_start(&mp, &argc, argv);
    mp_case(&mp, whom);
    MP_OK(rank_alloc(mp.world, RANK_MEM_HOST, 1 << 20, 0, &p, &mem));
    pids = calloc((size_t)mp.size, sizeof(*pids));
    if (mp.rank == 0) {
        pid_t agent = getppid(), xrun = parent_of(agent);
        for (int r = 1; r < mp.size; r++)
            MP_OK(rank_recv(&pids[r], 1, RANK_INT64, r, 1, mp.world, NULL));
        if (strcmp(whom, "agent") == 0 || strcmp(whom, "both") == 0 || strcmp(whom, "all") == 0)
            kill(agent, SIGKILL);
        if (strcmp(whom, "xrun") == 0 || strcmp(whom, "both") == 0 || strcmp(whom, "all") == 0)
            kill(xrun, SIGKILL);
        if (strcmp(whom, "ranks") == 0 || strcmp(whom, "all") == 0) {
            for (int r = 1; r < mp.size; r++)
                kill((pid_t)pids[r], SIGKILL);
            kill(getpid(), SIGKILL);
        }
    } else {
        MP_OK(rank_send(&pid, 1, RANK_INT64, 0, 1, mp.world));
    }
    /* Half of us idle in the library, half outside: both must go. Neither returns while the job
     * lives; a death among us makes the wait end, and then we wait to be cleaned up. */
    if (mp.rank % 2)
        rank_recv(&pid, 1, RANK_INT64, 0, 2, mp.world, NULL);
    for (;;)
        pause();
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * death_last_output.c: show each whole line that a rank printed before its end.
 *
 *   --then kill|exit|leave|hang   (leave: exit 0 without rank_finalize)
 */
#include "tests/mp/mp.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct mp mp;

    mp_start(&mp, &argc, argv);
    mp_case(&mp, "last words");
    if (mp.rank == mp.size - 1) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        /* no flush; the time is for death_exit_code.sh */
        printf("last words of rank %d at %lld us\n", mp.rank,
               (long long)t.tv_sec * 1000000 + t.tv_nsec / 1000);
        for (int i = 1; i + 1 < argc; i++) {
            if (strcmp(argv[i], "--then") == 0 && strcmp(argv[i + 1], "kill") == 0)
                kill(getpid(), SIGKILL);
            if (strcmp(argv[i], "--then") == 0 && strcmp(argv[i + 1], "exit") == 0)
                _exit(5);
            if (strcmp(argv[i], "--then") == 0 && strcmp(argv[i + 1], "leave") == 0)
                _exit(0);
        }
    }
    if (mp.rank == 0 && mp.size > 1) /* one waits in the library, the others outside */
        rank_recv(&mp.size, 1, RANK_INT32, mp.size - 1, 1, mp.world, NULL);
    for (;;)
        pause();
}

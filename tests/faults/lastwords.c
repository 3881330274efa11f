/*
 * lastwords.c: a whole line that was printed is seen, whatever happens to the rank next.
 *
 *   --then kill|exit|hang
 */
#include "tests/mp/mp.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct mp mp;

    mp_start(&mp, &argc, argv);
    mp_case(&mp, "last words");
    if (mp.rank == mp.size - 1) {
        printf("last words of rank %d\n", mp.rank); /* no flush */
        for (int i = 1; i + 1 < argc; i++) {
            if (strcmp(argv[i], "--then") == 0 && strcmp(argv[i + 1], "kill") == 0)
                kill(getpid(), SIGKILL);
            if (strcmp(argv[i], "--then") == 0 && strcmp(argv[i + 1], "exit") == 0)
                _exit(5);
        }
    }
    for (;;)
        pause();
}

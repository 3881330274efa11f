/*
 * mute.c: rank 0 waits for rank 1, which says nothing, for the script tests/elsewhere/mute.sh.
 *
 *   mute [--met]     they have spoken before
 *
 * Rank 1 says "ready" and its pid, and waits outside the library for SIGUSR1; then it sends. Rank 0 says with which
 * status its receive has ended.
 */
#include "lib/rank.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    rank_team_t world;
    rank_status_t st;
    sigset_t usr1;
    int word = 7, sig;

    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, NULL);
    if (rank_init(NULL))
        return 2;
    world = rank_world();
    if (argc > 1 && strcmp(argv[1], "--met") == 0 && rank_barrier(world))
        return 3;
    if (rank_team_rank(world) == 1) {
        printf("ready %d\n", (int)getpid());
        fflush(stdout);
        sigwait(&usr1, &sig);
        st = rank_send(&word, sizeof(word), RANK_BYTE, 0, 1, world);
    } else {
        st = rank_recv(&word, sizeof(word), RANK_BYTE, 1, 1, world, NULL);
        printf("ended: %s\n", rank_status_string(st));
        fflush(stdout);
    }
    if (st)
        _exit(5); /* the launcher may wait for those who are lost */
    rank_finalize();
    return 0;
}

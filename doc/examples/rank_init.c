/*
 * rank_init.c: start the library for several threads.
 *
 * Run: xrun -n 2 ./rank_init
 * Prints: 2 ranks, thread level 3
 */
#include <rank.h>

#include <stdio.h>

int main(void)
{
    rank_init_opts_t opts = RANK_INIT_OPTS_INIT;
    rank_status_t status;

    opts.thread_level = RANK_THREAD_MULTIPLE;
    status = rank_init(&opts);
    if (status != RANK_OK) {
        fprintf(stderr, "rank_init: %s\n", rank_status_string(status));
        return 1;
    }
    if (rank_team_rank(rank_world()) == 0)
        printf("%d ranks, thread level %d\n", rank_team_size(rank_world()), rank_thread_level());
    return rank_finalize() == RANK_OK ? 0 : 1;
}

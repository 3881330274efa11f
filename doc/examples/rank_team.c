/*
 * rank_team.c: split the world into even and odd ranks.
 *
 * Run: xrun -n 4 ./rank_team
 * Prints: rank 0 is 0 of 2
 * Prints: rank 1 is 0 of 2
 * Prints: rank 2 is 1 of 2
 * Prints: rank 3 is 1 of 2
 */
#include <rank.h>

#include <stdio.h>

static void must(rank_status_t status)
{
    if (status != RANK_OK)
        rank_abort(1, rank_status_string(status));
}

int main(void)
{
    rank_team_t half;

    must(rank_init(NULL));

    int rank = rank_team_rank(rank_world());
    must(rank_team_split(rank_world(), rank % 2, rank, &half));
    printf("rank %d is %d of %d\n", rank, rank_team_rank(half), rank_team_size(half));
    must(rank_team_free(&half));
    must(rank_finalize());
    return 0;
}

/*
 * rank.c: sum one number of each rank.
 *
 * Run: xrun -n 4 ./rank
 * Prints: sum 6
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
    must(rank_init(NULL));

    int64_t mine = rank_team_rank(rank_world()), sum = 0;
    must(rank_allreduce(&mine, &sum, 1, RANK_INT64, RANK_SUM, rank_world()));
    if (mine == 0)
        printf("sum %lld\n", (long long)sum);
    must(rank_finalize());
    return 0;
}

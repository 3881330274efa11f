/*
 * rank_coll_init.c: sum in every step of a loop, with one request.
 *
 * Run: xrun -n 3 ./rank_coll_init
 * Prints: step 0: 3, step 1: 6, step 2: 9
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
    int64_t mine = 0, sum = 0;
    rank_request_t request;

    must(rank_init(NULL));

    int rank = rank_team_rank(rank_world());
    must(rank_allreduce_init(&mine, &sum, 1, RANK_INT64, RANK_SUM, rank_world(), &request));
    for (int step = 0; step < 3; step++) {
        mine = (step + 1) * rank;
        must(rank_start(&request));
        must(rank_wait(&request, NULL));
        if (rank == 0)
            printf("step %d: %d%s", step, (int)sum, step < 2 ? ", " : "\n");
    }
    must(rank_request_free(&request));
    must(rank_finalize());
    return 0;
}

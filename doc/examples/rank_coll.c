/*
 * rank_coll.c: broadcast, gather, and sum in place.
 *
 * Run: xrun -n 3 ./rank_coll
 * Prints: gathered 10 11 12, sum 33
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
    enum { MAX = 16 };
    int64_t base = 0, all[MAX] = {0};

    must(rank_init(NULL));

    int rank = rank_team_rank(rank_world()), size = rank_team_size(rank_world());
    if (size > MAX)
        rank_abort(1, "too many ranks");
    if (rank == 0)
        base = 10;
    must(rank_bcast(&base, 1, RANK_INT64, 0, rank_world()));

    int64_t mine = base + rank, sum = mine;
    must(rank_gather(&mine, all, 1, RANK_INT64, 0, rank_world()));
    must(rank_allreduce(RANK_IN_PLACE, &sum, 1, RANK_INT64, RANK_SUM, rank_world()));
    if (rank == 0) {
        printf("gathered");
        for (int i = 0; i < size; i++)
            printf(" %d", (int)all[i]);
        printf(", sum %d\n", (int)sum);
    }
    must(rank_finalize());
    return 0;
}

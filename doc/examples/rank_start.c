/*
 * rank_start.c: repeat one exchange between two ranks.
 *
 * Run: xrun -n 2 ./rank_start
 * Prints: rank 0 has 10
 * Prints: rank 1 has 10
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
    int64_t mine = 1, other = 0, sum = 0;
    rank_request_t exchange[2];

    must(rank_init(NULL));

    int peer = 1 - rank_team_rank(rank_world());
    must(rank_send_init(&mine, 1, RANK_INT64, peer, 0, rank_world(), &exchange[0]));
    must(rank_recv_init(&other, 1, RANK_INT64, peer, 0, rank_world(), &exchange[1]));
    for (int round = 0; round < 4; round++) {
        must(rank_startall(2, exchange));
        must(rank_waitall(2, exchange, NULL));
        sum += other;
        mine++;
    }
    printf("rank %d has %d\n", 1 - peer, (int)sum);
    must(rank_request_free(&exchange[0]));
    must(rank_request_free(&exchange[1]));
    must(rank_finalize());
    return 0;
}

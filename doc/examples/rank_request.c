/*
 * rank_request.c: receive from all other ranks at the same time.
 *
 * Run: xrun -n 4 ./rank_request
 * Prints: received 1 4 9
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

    must(rank_init(NULL));

    int rank = rank_team_rank(rank_world()), size = rank_team_size(rank_world());
    if (rank == 0 && size <= MAX) {
        rank_request_t requests[MAX];
        int64_t squares[MAX];

        for (int peer = 1; peer < size; peer++)
            must(rank_irecv(&squares[peer], 1, RANK_INT64, peer, 0, rank_world(), &requests[peer]));
        must(rank_waitall(size - 1, &requests[1], NULL));
        printf("received");
        for (int peer = 1; peer < size; peer++)
            printf(" %d", (int)squares[peer]);
        printf("\n");
    } else if (rank > 0) {
        int64_t square = rank * rank;
        must(rank_send(&square, 1, RANK_INT64, 0, 0, rank_world()));
    }
    must(rank_finalize());
    return 0;
}

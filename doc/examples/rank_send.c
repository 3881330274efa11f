/*
 * rank_send.c: pass a number from rank 0 to rank 1.
 *
 * Run: xrun -n 2 ./rank_send
 * Prints: rank 1 received 42 from rank 0
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
    enum { TAG = 7 };
    int64_t value = 42;
    rank_envelope_t envelope;

    must(rank_init(NULL));
    switch (rank_team_rank(rank_world())) {
    case 0:
        must(rank_send(&value, 1, RANK_INT64, 1, TAG, rank_world()));
        break;
    case 1:
        value = 0;
        must(rank_recv(&value, 1, RANK_INT64, RANK_ANY_SOURCE, TAG, rank_world(), &envelope));
        printf("rank 1 received %d from rank %d\n", (int)value, envelope.source);
        break;
    }
    must(rank_finalize());
    return 0;
}

/*
 * rank_atomic.c: take tickets from a counter at rank 0.
 *
 * Run: xrun -n 3 ./rank_atomic
 * Prints: 3 tickets were taken
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
    void *ptr;
    rank_mem_t mem;
    int64_t one = 1, ticket;

    must(rank_init(NULL));
    must(rank_alloc(rank_world(), RANK_MEM_HOST, sizeof(ticket), &ptr, &mem));
    must(rank_atomic(RANK_AMO_FETCH_ADD, RANK_INT64, &one, 0, mem, 0, &ticket));
    if (ticket < 0 || ticket >= rank_team_size(rank_world()))
        rank_abort(1, "a ticket is out of range");
    must(rank_barrier(rank_world()));
    if (rank_team_rank(rank_world()) == 0)
        printf("%d tickets were taken\n", (int)*(int64_t *)ptr);
    must(rank_free(&mem));
    must(rank_finalize());
    return 0;
}

/*
 * rank_put.c: write to the memory of the next rank.
 *
 * Run: xrun -n 3 ./rank_put
 * Prints: rank 0 has 2
 * Prints: rank 1 has 0
 * Prints: rank 2 has 1
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

    must(rank_init(NULL));

    int rank = rank_team_rank(rank_world()), size = rank_team_size(rank_world());
    int next = (rank + 1) % size;
    int64_t value = rank;
    must(rank_alloc(rank_world(), RANK_MEM_HOST, sizeof(value), &ptr, &mem));
    must(rank_put(&value, sizeof(value), next, mem, 0));
    must(rank_flush(mem, next));
    must(rank_barrier(rank_world()));
    printf("rank %d has %d\n", rank, (int)*(int64_t *)ptr);
    must(rank_free(&mem));
    must(rank_finalize());
    return 0;
}

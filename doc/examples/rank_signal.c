/*
 * rank_signal.c: put data with a signal, and wait for it.
 *
 * Run: xrun -n 2 ./rank_signal
 * Prints: rank 1 has 42
 */
#include <rank.h>

#include <stddef.h>
#include <stdio.h>

static void must(rank_status_t status)
{
    if (status != RANK_OK)
        rank_abort(1, rank_status_string(status));
}

struct slot {
    int64_t value;
    uint64_t signal;
};

int main(void)
{
    void *ptr;
    rank_mem_t mem;
    int64_t value = 42;

    must(rank_init(NULL));
    must(rank_alloc(rank_world(), RANK_MEM_HOST, sizeof(struct slot), &ptr, &mem));
    if (rank_team_rank(rank_world()) == 0) {
        must(rank_put_signal(&value, sizeof(value), 1, mem, offsetof(struct slot, value), mem,
                             offsetof(struct slot, signal), 1, RANK_SIGNAL_SET));
        must(rank_flush(mem, 1));
    } else {
        must(rank_signal_wait(mem, offsetof(struct slot, signal), RANK_CMP_EQ, 1, 0, NULL));
        printf("rank 1 has %d\n", (int)((struct slot *)ptr)->value);
    }
    must(rank_free(&mem));
    must(rank_finalize());
    return 0;
}

/*
 * rank_mem.c: give a peer the key to memory of this rank.
 *
 * Run: xrun -n 2 ./rank_mem
 * Prints: rank 1 wrote 42
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
    unsigned char key[RANK_RKEY_MAX];
    int64_t value = 0, answer = 42;
    rank_envelope_t envelope;
    rank_mem_t mem;

    must(rank_init(NULL));
    if (rank_team_rank(rank_world()) == 0) {
        size_t len = sizeof(key);
        must(rank_reg(&value, sizeof(value), &mem));
        must(rank_rkey_pack(mem, key, &len));
        must(rank_send(key, (int64_t)len, RANK_BYTE, 1, 0, rank_world()));
        must(rank_barrier(rank_world()));
        printf("rank 1 wrote %d\n", (int)value);
        must(rank_dereg(&mem));
    } else {
        must(rank_recv(key, sizeof(key), RANK_BYTE, 0, 0, rank_world(), &envelope));
        must(rank_rkey_open(rank_world(), 0, key, (size_t)envelope.bytes, &mem));
        must(rank_put(&answer, sizeof(answer), 0, mem, 0));
        must(rank_flush(mem, 0));
        must(rank_rkey_close(&mem));
        must(rank_barrier(rank_world()));
    }
    must(rank_finalize());
    return 0;
}

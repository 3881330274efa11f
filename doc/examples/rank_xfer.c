/*
 * rank_xfer.c: write two blocks to the next rank, and notify it.
 *
 * Run: xrun -n 2 ./rank_xfer
 * Prints: rank 0 has 1, 10 after notice 5
 * Prints: rank 1 has 0, 0 after notice 5
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
    int64_t values[2], *mine;
    rank_envelope_t from;
    rank_request_t req;
    void *ptr;
    rank_mem_t mem;

    must(rank_init(NULL));

    int rank = rank_team_rank(rank_world()), size = rank_team_size(rank_world());
    int next = (rank + 1) % size;
    must(rank_alloc(rank_world(), RANK_MEM_HOST, 1024, &ptr, &mem));
    mine = ptr;
    values[0] = rank;
    values[1] = rank * 10;
    rank_block_t blocks[2] = {{&values[0], 8, mem, 0}, {&values[1], 8, mem, 512}};
    rank_notice_t notice = {5, NULL, 0};
    must(rank_xfer(RANK_XFER_WRITE, blocks, 2, next, rank_world(), &notice, &req));
    must(rank_recv(NULL, 0, RANK_BYTE, RANK_ANY_SOURCE, RANK_ANY_TAG, rank_world(), &from));
    printf("rank %d has %d, %d after notice %d\n", rank, (int)mine[0], (int)mine[64], (int)from.tag);
    must(rank_wait(&req, NULL));
    must(rank_free(&mem));
    must(rank_finalize());
    return 0;
}

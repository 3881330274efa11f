/*
 * rank_device.c: print the GPU and NIC of each rank on standard error.
 *
 * Run: xrun -n 2 ./rank_device
 * Prints: rank 0 has cores
 * Prints: rank 1 has cores
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
    rank_device_t mine = RANK_DEVICE_INIT;

    must(rank_init(NULL));
    must(rank_device_query(&mine));

    int rank = rank_team_rank(rank_world());
    printf("rank %d has %s\n", rank, mine.cpus[0] ? "cores" : "no cores");
    if (mine.ngpus) /* then cudaSetDevice(mine.gpu[0].ordinal) */
        fprintf(stderr, "rank %d has GPU %s: %s, %s\n", rank, mine.gpu[0].pci, mine.gpu[0].path, mine.gpu[0].reason);
    if (mine.nnics)
        fprintf(stderr, "rank %d has NIC %s: %s, %s\n", rank, mine.nic[0].name, mine.nic[0].path, mine.nic[0].reason);
    must(rank_finalize());
    return 0;
}

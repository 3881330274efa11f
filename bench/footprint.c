/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * footprint.c: measure the memory that the library costs a rank.
 * Its proportional share (PSS), after init and after a message from all to all. Prints the
 * mean over ranks in KiB. Built for librank or MPI.
 */
#include <stdio.h>
#include <stdlib.h>

#ifdef BENCH_MPI
#include <mpi.h>
#else
#include "lib/rank.h"
#endif

static long pss_kib(void)
{
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    long v = -1;

    if (!f)
        return -1;
    while (v < 0 && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "Pss: %ld", &v) != 1)
            v = -1;
    }
    fclose(f);
    return v;
}

int main(int argc, char **argv)
{
    int me, n, *in;
    long long mine[2], all[2];

#ifdef BENCH_MPI
    MPI_Request *req;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
#else
    rank_request_t *req;
    (void)argc;
    (void)argv;
    if (rank_init(NULL))
        return 1;
    me = rank_team_rank(rank_world());
    n = rank_team_size(rank_world());
#endif
    req = malloc(2 * (size_t)n * sizeof(*req));
    in = malloc((size_t)n * sizeof(int));
    if (!req || !in)
        return 1;
#ifdef BENCH_MPI
    MPI_Barrier(MPI_COMM_WORLD);
    mine[0] = pss_kib();
    for (int i = 0; i < n; i++)
        MPI_Irecv(&in[i], 1, MPI_INT, i, 1, MPI_COMM_WORLD, &req[i]);
    for (int i = 0; i < n; i++)
        MPI_Isend(&me, 1, MPI_INT, i, 1, MPI_COMM_WORLD, &req[n + i]);
    MPI_Waitall(2 * n, req, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    mine[1] = pss_kib();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Reduce(mine, all, 2, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
#else
    rank_barrier(rank_world());
    mine[0] = pss_kib();
    for (int i = 0; i < n; i++) {
        if (rank_irecv(&in[i], 1, RANK_INT32, i, 1, rank_world(), &req[i]))
            return 1;
    }
    for (int i = 0; i < n; i++) {
        if (rank_isend(&me, 1, RANK_INT32, i, 1, rank_world(), &req[n + i]))
            return 1;
    }
    if (rank_waitall(2 * n, req, NULL))
        return 1;
    rank_barrier(rank_world());
    mine[1] = pss_kib();
    rank_barrier(rank_world());
    if (rank_reduce(mine, all, 2, RANK_INT64, RANK_SUM, 0, rank_world()))
        return 1;
#endif
    if (me == 0)
        printf("init_kib %lld contact_kib %lld\n", all[0] / n, all[1] / n);
    free(req);
    free(in);
#ifdef BENCH_MPI
    MPI_Finalize();
    return 0;
#else
    return rank_finalize();
#endif
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* initfin.c: start, join and leave: the cost of start-up, for librank or MPI. */
#ifdef BENCH_MPI
#include <mpi.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    return 0;
}
#else
#include "lib/rank.h"

int main(void)
{
    return rank_init(NULL) || rank_finalize();
}
#endif

/* mpi_inside.c: a program with an MPI's first function in itself. It may stay for some milliseconds. */
#include <stdlib.h>
#include <time.h>

int MPI_Init(int *argc, char ***argv);

int MPI_Init(int *argc, char ***argv)
{
    (void)argv;
    return *argc < 0;
}

int main(int argc, char **argv)
{
    long ms = argc > 1 ? atol(argv[1]) : 0;
    const struct timespec stay = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&stay, NULL);
    return MPI_Init(&argc, &argv);
}

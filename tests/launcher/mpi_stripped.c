/* mpi_stripped.c: a program with the texts of an MPI in itself, as one that has been stripped. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc > 1 && getenv("PMI_FD") && getenv("MPIR_CVAR_OF_NOBODY"))
        printf("MPI_Finalize failed in %s\n", argv[0]);
    return 0;
}

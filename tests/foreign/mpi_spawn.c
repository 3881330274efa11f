/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi_spawn.c: an MPI program that spawns others, and knows nothing of xrun.
 *
 * spawn N: the world spawns N more of this program; all merge and compute.
 * spawn nothing: a program that is not there is an error that comes back.
 * spawn name: two ranks meet by a published name.
 * spawn die: a spawned rank dies, and all must end.
 */
#include <mpi.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static int wrong(const char *what, long is, long should)
{
    fprintf(stderr, "spawn: rank %d of %d: %s is %ld, not %ld\n", rank, size, what, is, should);
    MPI_Abort(MPI_COMM_WORLD, 99);
    return 1;
}

/* Parents first: the order of the ranks is known, and a sum over them. */
static int compute(MPI_Comm between, int is_child)
{
    MPI_Comm both;
    long mine, sum = -1, n;
    int me, all, other;

    MPI_Comm_remote_size(between, &other);
    MPI_Intercomm_merge(between, is_child, &both);
    MPI_Comm_rank(both, &me);
    MPI_Comm_size(both, &all);
    if (all != size + other)
        return wrong("the size of both", all, size + other);
    if (me != rank + (is_child ? other : 0))
        return wrong("the rank in both", me, rank + (is_child ? other : 0));
    mine = (long)me * me;
    n = all;
    for (int i = 0; i < 10; i++) {
        MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, both);
        if (sum != (n - 1) * n * (2 * n - 1) / 6)
            return wrong("the sum", sum, (n - 1) * n * (2 * n - 1) / 6);
    }
    MPI_Comm_free(&both);
    return 0;
}

static int parent(char *self, const char *what, int n)
{
    char *args[] = {(char *)(size_t)what, NULL};
    int *codes = calloc((size_t)n, sizeof(*codes));
    MPI_Comm between;

    MPI_Comm_spawn(self, args, n, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between, codes);
    for (int i = 0; i < n; i++) {
        if (codes[i] != MPI_SUCCESS)
            return wrong("an error code", codes[i], MPI_SUCCESS);
    }
    free(codes);
    if (compute(between, 0))
        return 1;
    if (strcmp(what, "die") == 0)
        MPI_Barrier(between);
    MPI_Comm_disconnect(&between);
    return 0;
}

static int child(MPI_Comm between, const char *what)
{
    if (compute(between, 1))
        return 1;
    if (strcmp(what, "die") == 0) {
        if (rank == 0)
            raise(SIGKILL);
        MPI_Barrier(between);
    }
    MPI_Comm_disconnect(&between);
    return 0;
}

static int nothing(void)
{
    int codes[2] = {MPI_SUCCESS, MPI_SUCCESS}, rc;
    MPI_Comm between = MPI_COMM_NULL;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    rc = MPI_Comm_spawn((char *)(size_t)"/nowhere/nothing", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                        &between, codes);
    if (rc == MPI_SUCCESS && (between != MPI_COMM_NULL || codes[0] == MPI_SUCCESS))
        return wrong("the status of what cannot be", rc, MPI_ERR_SPAWN);
    return MPI_Barrier(MPI_COMM_WORLD) != MPI_SUCCESS;
}

static int name(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm between, alone;
    int got = -1;

    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &alone);
    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Publish_name((char *)(size_t)"a place to meet", MPI_INFO_NULL, port);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        MPI_Lookup_name((char *)(size_t)"a place to meet", MPI_INFO_NULL, port);
    if (rank == 0)
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, alone, &between);
    else
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, alone, &between);
    MPI_Sendrecv(&rank, 1, MPI_INT, 0, 0, &got, 1, MPI_INT, 0, 0, between, MPI_STATUS_IGNORE);
    if (got != 1 - rank)
        return wrong("what the other sent", got, 1 - rank);
    MPI_Comm_disconnect(&between);
    if (rank == 0) {
        MPI_Unpublish_name((char *)(size_t)"a place to meet", MPI_INFO_NULL, port);
        MPI_Close_port(port);
    }
    MPI_Comm_free(&alone);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    MPI_Comm from;
    int rc;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&from);
    if (from != MPI_COMM_NULL)
        rc = child(from, what);
    else if (strcmp(what, "nothing") == 0)
        rc = nothing();
    else if (strcmp(what, "name") == 0)
        rc = name();
    else if (strcmp(what, "die") == 0)
        rc = parent(argv[0], what, 2);
    else
        rc = parent(argv[0], what, atoi(what));
    MPI_Finalize();
    if (rank == 0 && from == MPI_COMM_NULL && !rc)
        printf("%s: %d ranks are right\n", what, size);
    return rc;
}

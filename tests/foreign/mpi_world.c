/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi_world.c: run MPI calls, as any MPI program, without anything of xrun. The
 * first argument names them; each checks its result and rank 0 prints it.
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
    fprintf(stderr, "world: rank %d of %d: %s is %ld, not %ld\n", rank, size, what, is, should);
    MPI_Abort(MPI_COMM_WORLD, 99);
    return 1;
}

/* Every rank has a number of its own: the sum of their squares shows it. */
static int hello(void)
{
    long mine = (long)rank * rank, sum = -1, n = size;

    MPI_Reduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0 && sum != (n - 1) * n * (2 * n - 1) / 6)
        return wrong("the sum", sum, (n - 1) * n * (2 * n - 1) / 6);
    return 0;
}

/* A token goes round three times, each adds one. */
static int ring(void)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size, token = 0;

    for (int round = 0; round < 3; round++) {
        if (rank == 0 && size > 1)
            MPI_Send(&token, 1, MPI_INT, next, round, MPI_COMM_WORLD);
        if (size > 1)
            MPI_Recv(&token, 1, MPI_INT, before, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        token++;
        if (rank != 0)
            MPI_Send(&token, 1, MPI_INT, next, round, MPI_COMM_WORLD);
    }
    if (rank == 0 && token != 3 * size)
        return wrong("the token", token, 3L * size);
    return 0;
}

/* Small and large, the large of which MPI libraries move in another way. */
static int allreduce(void)
{
    static long in[40000], out[40000];
    const int counts[] = {1, 100, 40000};

    /* Many ranks that spin on few cores take half a minute for the last, of which they show no more than few ranks do. */
    for (int k = 0; k < (size > 8 ? 2 : 3); k++) {
        for (int i = 0; i < counts[k]; i++)
            in[i] = (long)rank + i;
        MPI_Allreduce(in, out, counts[k], MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < counts[k]; i++) {
            long should = (long)size * (size - 1) / 2 + (long)size * i;
            if (out[i] != should)
                return wrong("a sum", out[i], should);
        }
    }
    return 0;
}

/* Those of one host share memory, and see each other's there. */
static int split_shared(void)
{
    const char *local = getenv("XRUN_LOCAL_SIZE");
    int n, me, *mine, *other, unit, here = local ? atoi(local) : size;
    MPI_Comm node;
    MPI_Win win;
    MPI_Aint bytes;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &n);
    MPI_Comm_rank(node, &me);
    if (n != here)
        return wrong("the number of ranks that share memory", n, here);
    MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, node, &mine, &win);
    MPI_Win_fence(0, win);
    *mine = 1000 + me;
    MPI_Win_fence(0, win);
    MPI_Win_shared_query(win, (me + 1) % n, &bytes, &unit, &other);
    if (*other != 1000 + (me + 1) % n)
        return wrong("the neighbour's number", *other, 1000 + (me + 1) % n);
    MPI_Win_free(&win);
    MPI_Comm_free(&node);
    return 0;
}

extern char **environ;

/* As if no launcher had started this process. */
static void forget_launcher(void)
{
    char **to = environ;

    for (char **from = environ; *from; from++) {
        if (strncmp(*from, "PMI", 3) != 0 && strncmp(*from, "MPI", 3) != 0 &&
            strncmp(*from, "OMPI_", 5) != 0)
            *to++ = *from;
    }
    *to = NULL;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "hello";
    int bad = 0;

    if (strcmp(what, "alone") == 0)
        forget_launcher();
    if (strcmp(what, "never") == 0 && strcmp(getenv("XRUN_RANK"), "1") == 0)
        return atoi(argv[2]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(what, "hello") == 0)
        bad = hello();
    else if (strcmp(what, "ring") == 0)
        bad = ring();
    else if (strcmp(what, "allreduce") == 0)
        bad = allreduce();
    else if (strcmp(what, "split") == 0)
        bad = split_shared();
    else if (strcmp(what, "abort") == 0 && rank == size - 1)
        MPI_Abort(MPI_COMM_WORLD, 7);
    else if (strcmp(what, "leave") == 0 && rank == size - 1)
        _exit(0); /* without MPI_Finalize */
    else if (strcmp(what, "die") == 0 && rank == size - 1)
        raise(9);
    else if (strcmp(what, "alone") == 0 && argc > 2)
        sleep((unsigned)atoi(argv[2]));
    if (strcmp(what, "wait") == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            printf("all wait\n");
            fflush(stdout);
        }
        pause();
    }
    if (strcmp(what, "abort") == 0 || strcmp(what, "leave") == 0 || strcmp(what, "die") == 0)
        pause(); /* until a signal ends it */
    if (rank == 0 && !bad)
        printf("%s: %d ranks are right\n", what, size);
    MPI_Finalize();
    return bad;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crash.c: let rank 1 crash. See crash_stack.sh.
 *
 *   crash.mp null|overflow|abort|vfork
 */
#include "lib/rank.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int depth;

__attribute__((noinline)) static void write_to_null(int *at)
{
    *(volatile int *)at = 1;
}

/* Not a tail call: the stack is to overflow. */
__attribute__((noinline)) static int recurse_deeply(int n)
{
    volatile char frame[4096];

    frame[0] = (char)n;
    depth = n;
    return depth < 0 ? 0 : recurse_deeply(n + 1) + frame[0];
}

/* The child shares the memory of its parent, which crashes too. */
__attribute__((noinline)) static void crash_after_child(void)
{
    pid_t child = vfork();

    if (child == 0) {
        raise(SIGSEGV);
        _exit(1);
    }
    waitpid(child, NULL, 0);
    write_to_null(NULL);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "null";
    int got;

    if (rank_init(NULL))
        return 2;
    if (rank_team_rank(rank_world()) == 1) {
        if (strcmp(how, "overflow") == 0)
            printf("%d\n", recurse_deeply(0));
        else if (strcmp(how, "abort") == 0)
            abort();
        else if (strcmp(how, "vfork") == 0)
            crash_after_child();
        else
            write_to_null(NULL);
    }
    rank_recv(&got, 1, RANK_INT32, 1, 0, rank_world(), NULL); /* xrun ends this rank */
    return 3;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hang_job.c: make ranks wait for each other, or for one that is busy elsewhere.
 *
 *   hang_job ring        each rank receives from the next, for ever
 *   hang_job sleep S     the last rank sleeps for S seconds, then sends to the others
 *   hang_job compute S   the last rank computes for S seconds, then sends to the others
 *   hang_job thread S    each rank computes for S seconds in a second thread, while it receives from the next
 */
#include "lib/rank.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void must(rank_status_t st, const char *what)
{
    if (st == RANK_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, rank_status_string(st));
    exit(1);
}

static void compute(int seconds)
{
    volatile unsigned n = 0;
    time_t end = time(NULL) + seconds;

    while (time(NULL) < end)
        n++;
}

static void *compute_beside(void *arg)
{
    compute(*(int *)arg);
    exit(0); /* the receive never ends */
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "ring";
    int me, size, seconds = argc > 2 ? atoi(argv[2]) : 0;
    int32_t word = 0;
    pthread_t thread;

    must(rank_init(NULL), "rank_init");
    me = rank_team_rank(rank_world());
    size = rank_team_size(rank_world());
    must(rank_barrier(rank_world()), "rank_barrier"); /* connects the ranks */
    printf("ready\n");
    fflush(stdout);
    if (strcmp(how, "thread") == 0)
        pthread_create(&thread, NULL, compute_beside, &seconds);
    if (strcmp(how, "ring") == 0 || strcmp(how, "thread") == 0) {
        must(rank_recv(&word, 1, RANK_INT32, (me + 1) % size, 0, rank_world(), NULL), "rank_recv");
    } else if (me < size - 1) {
        must(rank_recv(&word, 1, RANK_INT32, size - 1, 0, rank_world(), NULL), "rank_recv");
    } else {
        if (strcmp(how, "sleep") == 0)
            sleep((unsigned)seconds);
        else
            compute(seconds);
        for (int r = 0; r < me; r++)
            must(rank_send(&word, 1, RANK_INT32, r, 0, rank_world()), "rank_send");
    }
    must(rank_finalize(), "rank_finalize");
    return 0;
}

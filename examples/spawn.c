/* SPDX-License-Identifier: BSD-3-Clause */
/* spawn.c: start workers at run time, and hand out work until none is left.
 *   xcc spawn.c -o spawn && xrun -n 1 ./spawn 4 */
#include <rank.h>

#include <stdio.h>
#include <stdlib.h>

enum { JOBS = 100, TAG = 1 };

/* Every call here ends the program if it fails. */
static void must(rank_status_t st, const char *what)
{
    if (!st)
        return;
    fprintf(stderr, "spawn: %s: %s\n", what, rank_status_string(st));
    rank_abort(1, what);
}

/* Answers numbers with their squares, until it gets a negative one. */
static void work(rank_team_t family)
{
    int64_t job = 0;

    while (job >= 0) {
        must(rank_recv(&job, 1, RANK_INT64, 0, TAG, family, NULL), "receive");
        if (job < 0)
            break;
        job *= job;
        must(rank_send(&job, 1, RANK_INT64, 0, TAG, family), "send");
    }
}

static void hand_out(int workers, rank_team_t family)
{
    int64_t next = 0, sum = 0, answer, end = -1;
    rank_envelope_t from;

    for (int w = 1; w <= workers; w++, next++)
        must(rank_send(&next, 1, RANK_INT64, w, TAG, family), "send");
    for (int left = JOBS; left > 0; left--) {
        must(rank_recv(&answer, 1, RANK_INT64, RANK_ANY_SOURCE, TAG, family, &from), "receive");
        sum += answer;
        if (next < JOBS)
            must(rank_send(&next, 1, RANK_INT64, from.source, TAG, family), "send");
        next++;
    }
    for (int w = 1; w <= workers; w++)
        must(rank_send(&end, 1, RANK_INT64, w, TAG, family), "send");
    printf("%d workers: the sum of squares below %d is %lld\n", workers, JOBS, (long long)sum);
}

int main(int argc, char **argv)
{
    int workers = argc > 1 ? atoi(argv[1]) : 2, parents;
    rank_spawn_params_t params = RANK_SPAWN_PARAMS_INIT;
    rank_team_t family;

    params.program = argv[0];
    params.n = workers;
    must(rank_init(NULL), "rank_init");
    must(rank_parent(&family, &parents), "rank_parent");
    if (family) {
        work(family);
    } else if (rank_team_size(rank_world()) > 1 || workers < 1 || workers > JOBS) {
        fprintf(stderr, "spawn: start it with one rank, and 1 to %d workers\n", JOBS);
        rank_abort(2, "usage");
    } else {
        must(rank_spawn(&params, 0, rank_world(), &family), "rank_spawn");
        hand_out(workers, family);
    }
    must(rank_team_free(&family), "rank_team_free");
    return rank_finalize() ? 1 : 0;
}

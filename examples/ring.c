/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.c: pass a token round all ranks; each adds its own number.
 *
 *     xcc ring.c -o ring && xrun -n 4 ring [laps]
 *
 * Also the simplest speed test there is: one hop is one message.
 */
#include <rank.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Errors are not expected here: end the job. */
static void must(rank_status_t st, const char *what)
{
    char text[128];

    if (!st)
        return;
    snprintf(text, sizeof(text), "ring: %s: %s", what, rank_status_string(st));
    rank_abort(1, text);
}

int main(int argc, char **argv)
{
    int64_t token = 0, expected;
    char *end = NULL;
    long laps = argc > 1 ? strtol(argv[1], &end, 10) : 1000;
    int me, size, next, previous;
    double start;

    must(rank_init(NULL), "rank_init");
    me = rank_team_rank(rank_world());
    size = rank_team_size(rank_world());
    next = (me + 1) % size;
    previous = (me + size - 1) % size;
    if (argc > 2 || laps < 1 || (end && *end)) {
        if (me == 0)
            fprintf(stderr, "usage: ring [laps]\n");
        rank_finalize();
        return 2;
    }

    must(rank_barrier(rank_world()), "rank_barrier");
    start = seconds();
    for (long lap = 0; lap < laps; lap++) {
        int64_t leaving = token;
        rank_request_t arrival;

        must(rank_irecv(&token, 1, RANK_INT64, previous, 0, rank_world(), &arrival), "rank_irecv");
        if (me == 0) /* here each lap starts and ends */
            must(rank_send(&leaving, 1, RANK_INT64, next, 0, rank_world()), "rank_send");
        must(rank_wait(&arrival, NULL), "rank_wait");
        if (me != 0) {
            token += me;
            must(rank_send(&token, 1, RANK_INT64, next, 0, rank_world()), "rank_send");
        }
    }
    if (me == 0) {
        double hop = (seconds() - start) / ((double)laps * size);

        expected = laps * ((int64_t)size * (size - 1) / 2);
        printf("%ld laps round %d ranks: token %" PRId64 " (%s), %.2f us a hop\n", laps, size,
               token, token == expected ? "right" : "WRONG", 1e6 * hop);
        if (token != expected)
            rank_abort(1, "ring: the token came back wrong");
    }
    must(rank_finalize(), "rank_finalize");
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * thread_rate.c: count messages a second of several threads, and of one.
 *
 *   xrun -n 2 bench/thread_rate [T [SAMPLES]] thread t of rank 0 to thread t of rank 1, windows of 64 messages
 *
 * T threads (2) and one thread take turns, SAMPLES (7) times each; messages of 8 bytes. Prints the medians and their
 * ratio. T is 0: one thread at RANK_THREAD_SERIALIZED, where nothing is locked.
 */
#include "lib/rank.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { T_MAX = 32, WINDOW = 64, SAMPLES_MAX = 101, TURNS = 2000 };

struct worker {
    pthread_t id;
    pthread_barrier_t *start;
    rank_team_t team;
    int t, rank;
};

static void thread_rate_must(rank_status_t st, const char *what)
{
    if (st) {
        fprintf(stderr, "bench/thread_rate: %s: %s\n", what, rank_status_string(st));
        rank_abort(1, what);
    }
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void to_the_other(struct worker *w)
{
    uint64_t buf[WINDOW], token = 0;
    rank_request_t req[WINDOW];
    int peer = 1 - w->rank;

    memset(buf, 0, sizeof(buf));
    for (int i = 0; i < TURNS; i++) {
        for (int k = 0; k < WINDOW; k++) {
            if (w->rank == 0)
                thread_rate_must(rank_isend(&buf[k], 1, RANK_UINT64, peer, w->t, w->team, &req[k]), "isend");
            else
                thread_rate_must(rank_irecv(&buf[k], 1, RANK_UINT64, peer, w->t, w->team, &req[k]), "irecv");
        }
        thread_rate_must(rank_waitall(WINDOW, req, NULL), "waitall");
        if (w->rank == 0)
            thread_rate_must(rank_recv(&token, 1, RANK_UINT64, peer, T_MAX + w->t, w->team, NULL), "recv");
        else
            thread_rate_must(rank_send(&token, 1, RANK_UINT64, peer, T_MAX + w->t, w->team), "send");
    }
}

static void *thread_rate_work(void *arg)
{
    struct worker *w = arg;

    pthread_barrier_wait(w->start);
    if (w->rank < 2)
        to_the_other(w);
    pthread_barrier_wait(w->start);
    return NULL;
}

/* Millions of messages a second. */
static double thread_rate_sample(struct worker *workers, int n)
{
    pthread_barrier_t start;
    double t;

    pthread_barrier_init(&start, NULL, (unsigned)n);
    thread_rate_must(rank_barrier(rank_world()), "barrier");
    for (int i = 0; i < n; i++) {
        workers[i].start = &start;
        if (i && pthread_create(&workers[i].id, NULL, thread_rate_work, &workers[i])) {
            fprintf(stderr, "bench/thread_rate: no thread could be made\n");
            exit(1);
        }
    }
    t = now();
    thread_rate_work(&workers[0]);
    t = now() - t;
    for (int i = 1; i < n; i++)
        pthread_join(workers[i].id, NULL);
    pthread_barrier_destroy(&start);
    return (double)n * TURNS * WINDOW / t * 1e-6;
}

static int thread_rate_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof(*v), thread_rate_by_value);
    return v[n / 2];
}

int main(int argc, char **argv)
{
    rank_init_opts_t opts = RANK_INIT_OPTS_INIT;
    int n = argc > 1 ? atoi(argv[1]) : 2, samples = argc > 2 ? atoi(argv[2]) : 7;
    double one[SAMPLES_MAX], many[SAMPLES_MAX];
    struct worker w[T_MAX];

    opts.thread_level = RANK_THREAD_MULTIPLE;
    if (n < 0 || n > T_MAX || samples < 1 || samples > SAMPLES_MAX) {
        fprintf(stderr, "bench/thread_rate: 0 to %d threads, 1 to %d samples\n", T_MAX, SAMPLES_MAX);
        return 2;
    }
    if (n == 0) {
        opts.thread_level = RANK_THREAD_SERIALIZED;
        n = 1;
    }
    thread_rate_must(rank_init(&opts), "init");
    if (rank_team_size(rank_world()) < 2)
        rank_abort(2, "bench/thread_rate: needs 2 ranks");
    for (int t = 0; t < n; t++) {
        w[t] = (struct worker){.t = t, .rank = rank_team_rank(rank_world())};
        thread_rate_must(rank_team_dup(rank_world(), &w[t].team), "dup");
    }
    for (int i = 0; i < samples; i++) {
        one[i] = thread_rate_sample(w, 1);
        many[i] = thread_rate_sample(w, n);
    }
    if (w[0].rank == 0) {
        double a = median(one, samples), b = median(many, samples);
        printf("1 thread %.2f M/s, %d threads %.2f M/s, ratio %.2f\n", a, n, b, b / a);
    }
    for (int t = 0; t < n; t++)
        thread_rate_must(rank_team_free(&w[t].team), "free");
    thread_rate_must(rank_finalize(), "finalize");
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_rate.c: count messages a second, of one pair and of several pairs.
 * And of ranks that each time send to another one.
 *
 * Messages are sent by windows, and a byte comes back for each, as in the OSU
 * benchmarks' message rate. Where there are several pairs, a sample is long:
 * it begins with a barrier and the slowest pair's time counts.
 */
#include "bench/bench.h"

#include <stdlib.h>

enum { ROUNDS = 64, LONG_SAMPLE = 5000 };

/* n windows to a peer, or (to < 0) from one. */
static double windows(struct bench_run *run, int n, int to, int from)
{
    size_t bytes = (size_t)run->bytes;
    int w = run->inflight;
    double t = bench_now_us();

    for (int i = 0; i < n; i++) {
        if (to >= 0) {
            bench_write(run, run->sbuf, run->bytes * w);
            for (int k = 0; k < w; k++)
                be_isend(run->sbuf + (size_t)k * bytes, bytes, to, BE_TAG_DATA, &run->reqs[k]);
            be_waitall(w, run->reqs);
            bench_await(to);
        } else {
            for (int k = 0; k < w; k++)
                be_irecv(run->rbuf + (size_t)k * bytes, bytes, from, BE_TAG_DATA, &run->reqs[k]);
            be_waitall(w, run->reqs);
            bench_read(run, run->rbuf, run->bytes * w);
            bench_notify(from);
        }
    }
    return (bench_now_us() - t) / n / w;
}

static double rate_sample(struct bench_run *run, int n)
{
    return be_rank() == 0 ? windows(run, n, 1, -1) : windows(run, n, -1, 0);
}

static int64_t rate_check(struct bench_run *run)
{
    return bench_exchange_wrong(run, 1 - be_rank());
}

/* ------------------------------------------------------------------ several pairs */

static int pairs_of(const struct bench_run *run)
{
    return run->opts->pairs == BENCH_AUTO ? be_size() / 2 : (int)run->opts->pairs;
}

/* The first ranks send, each to the one that is as many ranks further; -1: takes no part. */
static int pair_peer(const struct bench_run *run)
{
    int pairs = pairs_of(run), me = be_rank();

    return me < pairs ? me + pairs : me < 2 * pairs ? me - pairs : -1;
}

static double mrate_sample(struct bench_run *run, int n)
{
    int peer = pair_peer(run);

    run->lanes = pairs_of(run);
    be_barrier();
    if (peer < 0)
        return 0;
    return peer > be_rank() ? windows(run, n, peer, -1) : windows(run, n, -1, peer);
}

static int64_t mrate_check(struct bench_run *run)
{
    int peer = pair_peer(run);

    return peer < 0 ? 0 : bench_exchange_wrong(run, peer);
}

/* ------------------------------------------------------------------- random pairs */

/* Of each round: all ranks draw the same cards, and keep their own partner's. */
struct drawn {
    int partner[ROUNDS]; /* -1: an odd one, which waits */
    int round;
};

static void bench_rate_draw(struct bench_run *run)
{
    struct drawn *d = calloc(1, sizeof(*d));
    int n = be_size(), *deck = calloc((size_t)n, sizeof(*deck));
    uint64_t seed = 42;

    if (!d || !deck)
        be_abort(1, "out of memory for the random pairs");
    for (int r = 0; r < ROUNDS; r++) {
        for (int i = 0; i < n; i++)
            deck[i] = i;
        for (int i = n - 1; i > 0; i--) {
            int j, t = deck[i];
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            j = (int)((seed >> 33) % (uint64_t)(i + 1));
            deck[i] = deck[j];
            deck[j] = t;
        }
        d->partner[r] = -1;
        for (int i = 0; i + 1 < n; i += 2) {
            if (deck[i] == be_rank())
                d->partner[r] = deck[i + 1];
            else if (deck[i + 1] == be_rank())
                d->partner[r] = deck[i];
        }
    }
    free(deck);
    run->state = d;
}

static int64_t bench_rate_forget(struct bench_run *run)
{
    free(run->state);
    run->state = NULL;
    return 0;
}

/* A message to this round's partner and one from it, without another rank's part. */
static double random_sample(struct bench_run *run, int n)
{
    struct drawn *d = run->state;
    size_t bytes = (size_t)run->bytes;
    double t;

    run->lanes = be_size() / 2 * 2;
    be_barrier();
    t = bench_now_us();
    for (int i = 0; i < n; i++) {
        int peer = d->partner[d->round++ % ROUNDS];
        if (peer < 0)
            continue;
        bench_write(run, run->sbuf, run->bytes);
        be_irecv(run->rbuf, bytes, peer, BE_TAG_DATA, &run->reqs[0]);
        be_isend(run->sbuf, bytes, peer, BE_TAG_DATA, &run->reqs[1]);
        be_waitall(2, run->reqs);
        bench_read(run, run->rbuf, run->bytes);
    }
    return (bench_now_us() - t) / n;
}

/* All of one turn through the rounds. */
static int64_t random_check(struct bench_run *run)
{
    struct drawn *d = run->state;
    int64_t wrong = 0;

    for (int i = 0; i < ROUNDS; i++) {
        int peer = d->partner[d->round++ % ROUNDS];
        if (peer >= 0)
            wrong += bench_exchange_wrong(run, peer);
    }
    return wrong;
}

const struct bench_entry bench_rate[] = {
    {.name = "rate", .doc = "messages a second, one pair", .table = BENCH_RATE, .most = 65536,
     .sample = rate_sample, .check = rate_check},
    {.name = "mrate", .doc = "messages a second, several pairs at once (--pairs)",
     .table = BENCH_RATE, .all = true, .most = 65536, .sample_us = LONG_SAMPLE,
     .sample = mrate_sample, .check = mrate_check},
    {.name = "random_pairs", .doc = "messages a second where each goes to another rank",
     .table = BENCH_RATE, .all = true, .most = 65536, .sample_us = LONG_SAMPLE, .one_by_one = true,
     .begin = bench_rate_draw, .end = bench_rate_forget, .sample = random_sample, .check = random_check},
    {.name = NULL},
};

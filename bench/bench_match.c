/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_match.c: measure the latency of a message among many that wait.
 *
 * A ping-pong of 8 bytes, as in lat, while on both sides there are as many receives
 * that were posted before, or messages without a receive yet, as the
 * size says. They have tags of their own and are matched, and verified, at the
 * end. The same once more where all receives are from any source.
 */
#include "bench/bench.h"

#include <stdlib.h>

/* MPI promises tags up to 32767; beyond, some share one, which order sorts out. */
enum { MANY_TAGS = 30000 };

struct crowd {
    int64_t n;
    int from; /* the source that receives name */
    uint64_t *in, *out;
    be_request_t *reqs; /* n receives, n sends */
};

static uint64_t bench_match_word_of(int rank, int64_t i)
{
    return (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u + (uint64_t)rank;
}

static struct crowd *gather_crowd(struct bench_run *run, bool any)
{
    struct crowd *c = calloc(1, sizeof(*c));
    size_t n = (size_t)run->bytes + 1;

    if (be_rank() > 1) {
        free(c);
        return NULL;
    }
    if (!c || !(c->in = calloc(n, sizeof(*c->in))) || !(c->out = calloc(n, sizeof(*c->out))) ||
        !(c->reqs = calloc(2 * n, sizeof(*c->reqs))))
        be_abort(1, "out of memory for the queue");
    c->n = run->bytes;
    c->from = any ? BE_ANY : 1 - be_rank();
    for (int64_t i = 0; i < c->n; i++)
        c->out[i] = bench_match_word_of(be_rank(), i);
    run->state = c;
    return c;
}

static void bench_match_post(struct crowd *c)
{
    for (int64_t i = 0; i < c->n; i++)
        be_irecv(&c->in[i], 8, c->from, BE_TAG_QUEUE + (int)(i % MANY_TAGS), &c->reqs[i]);
}

static void send_all(struct crowd *c)
{
    for (int64_t i = 0; i < c->n; i++)
        be_isend(&c->out[i], 8, 1 - be_rank(), BE_TAG_QUEUE + (int)(i % MANY_TAGS),
                 &c->reqs[c->n + i]);
}

static void bench_match_begin(struct bench_run *run, bool any, void (*some)(struct crowd *))
{
    struct crowd *c = gather_crowd(run, any);

    if (c)
        some(c);
}

static void posted_begin(struct bench_run *run) { bench_match_begin(run, false, bench_match_post); }
static void unexpected_begin(struct bench_run *run) { bench_match_begin(run, false, send_all); }
static void any_posted_begin(struct bench_run *run) { bench_match_begin(run, true, bench_match_post); }
static void any_unexpected_begin(struct bench_run *run) { bench_match_begin(run, true, send_all); }

static int64_t bench_match_finish(struct bench_run *run, void (*rest)(struct crowd *))
{
    struct crowd *c = run->state;
    int64_t wrong = 0;

    if (!c)
        return 0;
    rest(c);
    be_waitall((int)(2 * c->n), c->reqs);
    for (int64_t i = 0; i < c->n; i++)
        wrong += c->in[i] != bench_match_word_of(1 - be_rank(), i);
    free(c->in);
    free(c->out);
    free(c->reqs);
    free(c);
    run->state = NULL;
    return wrong;
}

static int64_t posted_end(struct bench_run *run)
{
    return bench_match_finish(run, send_all);
}

static int64_t unexpected_end(struct bench_run *run)
{
    return bench_match_finish(run, bench_match_post);
}

static double match_sample(struct bench_run *run, int n)
{
    int peer = 1 - be_rank(), from = ((const struct crowd *)run->state)->from;
    double t = bench_now_us();

    for (int i = 0; i < n; i++) {
        if (be_rank() == 0) {
            bench_write(run, run->sbuf, 8);
            be_send(run->sbuf, 8, peer, BE_TAG_DATA);
        }
        be_recv(run->rbuf, 8, from, BE_TAG_DATA);
        bench_read(run, run->rbuf, 8);
        if (be_rank() == 1) {
            bench_write(run, run->sbuf, 8);
            be_send(run->sbuf, 8, peer, BE_TAG_DATA);
        }
    }
    return (bench_now_us() - t) / n / 2;
}

static int64_t match_check(struct bench_run *run)
{
    return bench_exchange_wrong(run, 1 - be_rank());
}

const struct bench_entry bench_match[] = {
    {.name = "matchq_posted", .doc = "latency behind that many posted receives",
     .table = BENCH_DEPTH, .begin = posted_begin, .end = posted_end, .sample = match_sample,
     .check = match_check},
    {.name = "matchq_unexpected", .doc = "latency behind that many messages without a receive",
     .table = BENCH_DEPTH, .begin = unexpected_begin, .end = unexpected_end,
     .sample = match_sample, .check = match_check},
    {.name = "matchq_any_posted", .doc = "the same, all receives from any source", .table = BENCH_DEPTH,
     .begin = any_posted_begin, .end = posted_end, .sample = match_sample, .check = match_check},
    {.name = "matchq_any_unexpected", .doc = "the same, all receives from any source", .table = BENCH_DEPTH,
     .begin = any_unexpected_begin, .end = unexpected_end, .sample = match_sample, .check = match_check},
    {.name = NULL},
};

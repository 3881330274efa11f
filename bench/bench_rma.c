/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_rma.c: measure one-sided operations of rank 0 on rank 1's window.
 * Puts, gets and atomic additions; latencies, bandwidths and rates.
 *
 * A new operation is a function for one piece of the window (one_...), its
 * completion (be_flush_...), a check, and rows of the table at the end.
 *
 * The latency of what fetches is that of data which rank 1 has just written:
 * pieces lie in cache lines of their own, in an order that no prefetcher
 * guesses, and each operation has its data before the next begins.
 */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------ one piece of the window */

static void one_put(struct bench_run *run, int64_t at)
{
    be_put(run->window, run->sbuf + at, (size_t)run->bytes, 1, (size_t)at);
}

static void one_get(struct bench_run *run, int64_t at)
{
    be_get(run->window, run->rbuf + at, (size_t)run->bytes, 1, (size_t)at);
}

static void one_fetch_add(struct bench_run *run, int64_t at)
{
    be_fetch_add(run->window, 1, 1, (size_t)at, (int64_t *)(run->rbuf + at));
}

/* All of a window on one counter, as a program that counts does. */
static void counter_fetch_add(struct bench_run *run, int64_t at)
{
    be_fetch_add(run->window, 1, 1, 0, (int64_t *)(run->rbuf + at));
}

static void counter_add(struct bench_run *run, int64_t at)
{
    (void)at;
    be_add(run->window, 1, 1, 0);
}

static void counter_swap(struct bench_run *run, int64_t at)
{
    be_swap(run->window, (const int64_t *)(run->sbuf + at), 1, 0, (int64_t *)(run->rbuf + at));
}

/* Each finds what the one before has left there; the first of a window sees to that. */
static void counter_compare_swap(struct bench_run *run, int64_t at)
{
    const int64_t *value = (const int64_t *)(run->sbuf + at);

    if (at == 0)
        counter_swap(run, 0);
    else
        be_compare_swap(run->window, value - 1, value, 1, 0, (int64_t *)(run->rbuf + at));
}

/* ------------------------------------------------------------------------------ rates */

/* Inlined into one function per operation, so that the call in the loop is direct. Rank 1 has
 * written its window before, and reads it after each iteration. */
static inline __attribute__((always_inline)) double
rate(struct bench_run *run, int n, void (*one)(struct bench_run *, int64_t),
     void (*complete)(struct be_window *, int))
{
    int w = run->inflight, rounds = run->entry->rounds;
    int64_t all = run->stride * w;
    double t, sum = 0;

    for (int i = 0; i < n; i++) {
        if (be_rank() == 1) {
            bench_write(run, run->window_base, all);
            be_window_sync(run->window);
            bench_notify(0);
            bench_await(0);
            be_window_sync(run->window);
            bench_read(run, run->window_base, all);
            continue;
        }
        bench_write(run, run->sbuf, all);
        bench_await(1);
        t = bench_now_us();
        for (int r = 0; r < rounds; r++) {
            for (int k = 0; k < w; k++)
                one(run, k * run->stride);
            complete(run->window, 1);
        }
        sum += bench_now_us() - t;
        bench_read(run, run->rbuf, all);
        bench_notify(1);
    }
    return sum / n / rounds / w;
}

static double put_rate_sample(struct bench_run *r, int n) { return rate(r, n, one_put, be_flush_puts); }
static double get_rate_sample(struct bench_run *r, int n) { return rate(r, n, one_get, be_flush_gets); }
static double add_rate_sample(struct bench_run *r, int n) { return rate(r, n, counter_add, be_flush_puts); }

static double fetch_add_rate_sample(struct bench_run *r, int n)
{
    return rate(r, n, counter_fetch_add, be_flush_gets);
}

static double swap_rate_sample(struct bench_run *r, int n) { return rate(r, n, counter_swap, be_flush_gets); }

static double compare_swap_rate_sample(struct bench_run *r, int n)
{
    return rate(r, n, counter_compare_swap, be_flush_gets);
}

/* -------------------------------------------------------------------------- latencies */

/* The places of a window in an order that is the same everywhere. */
static void shuffle(struct bench_run *run)
{
    int n = run->inflight, *order = calloc((size_t)n, sizeof(*order));
    uint64_t seed = 11;

    if (!order)
        be_abort(1, "out of memory for the order of the pieces");
    for (int i = 0; i < n; i++) {
        int j;
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        j = (int)((seed >> 33) % (uint64_t)(i + 1));
        order[i] = order[j];
        order[j] = i;
    }
    run->state = order;
}

static int64_t bench_rma_forget(struct bench_run *run)
{
    free(run->state);
    run->state = NULL;
    return 0;
}

/* One after the other, each completed, on lines that rank 1 has just written. */
static inline __attribute__((always_inline)) double
fetching(struct bench_run *run, int n, void (*one)(struct bench_run *, int64_t))
{
    const int *order = run->state;
    int w = run->inflight;
    bool far = bench_is_far(run, run->rbuf);
    double t, sum = 0;

    for (int i = 0; i < n; i++) {
        int64_t at = 0, high = 0;
        if (be_rank() == 1) {
            /* Piece by piece: a long memset may leave nothing in this core's cache. */
            for (int k = 0; k < w; k++)
                bench_write(run, run->window_base + order[k] * run->stride, run->bytes);
            be_window_sync(run->window);
            bench_notify(0);
            bench_await(0);
            continue;
        }
        bench_await(1);
        t = bench_now_us();
        for (int k = 0; k < w; k++) {
            /* Which one is next hangs on what came (nothing that is written has the highest bit
             * of a byte), or the processor would fetch many lines at a time. */
            at = (order[k] + high) * run->stride;
            one(run, at);
            be_flush_gets(run->window, 1);
            high = far ? 0 : (unsigned char)run->rbuf[at] >> 7;
        }
        sum += bench_now_us() - t;
        bench_read(run, run->rbuf, run->stride * w);
        bench_notify(1);
    }
    return sum / n / w;
}

static double get_lat_sample(struct bench_run *r, int n) { return fetching(r, n, one_get); }
static double fetch_add_lat_sample(struct bench_run *r, int n) { return fetching(r, n, one_fetch_add); }

/* ------------------------------------------------------------------- puts, bandwidth */

/* Rank 0 puts a window of pieces and completes them; rank 1 then reads them. */
static double put_some(struct bench_run *run, int n, int inflight, bool together)
{
    size_t bytes = (size_t)run->bytes;
    double t = bench_now_us(), sum = 0;

    for (int i = 0; i < n; i++) {
        if (be_rank() == 0) {
            bench_write(run, run->sbuf, run->bytes * inflight);
            if (!together)
                t = bench_now_us();
            for (int k = 0; k < inflight; k++)
                be_put(run->window, run->sbuf + (size_t)k * bytes, bytes, 1, (size_t)k * bytes);
            be_flush_puts(run->window, 1);
            if (!together)
                sum += bench_now_us() - t;
        }
        if (together)
            continue;
        if (be_rank() == 0) {
            bench_notify(1);
            bench_await(1);
        } else {
            bench_await(0);
            be_window_sync(run->window);
            bench_read(run, run->window_base, run->bytes * inflight);
            bench_notify(0);
        }
    }
    if (!together)
        return sum / n;
    t = bench_now_us() - t;
    if (be_rank() == 0)
        bench_notify(1);
    else
        bench_await(0);
    return t / n;
}

static double put_lat_sample(struct bench_run *run, int n)
{
    return put_some(run, n, 1, run->bytes <= BENCH_SMALL);
}

static double put_bw_sample(struct bench_run *run, int n)
{
    return put_some(run, n, run->inflight, false) / run->inflight;
}

static double get_bw_sample(struct bench_run *run, int n)
{
    size_t bytes = (size_t)run->bytes;
    double t, sum = 0;

    for (int i = 0; i < n; i++) {
        if (be_rank() == 0) {
            bench_await(1);
            t = bench_now_us();
            for (int k = 0; k < run->inflight; k++)
                be_get(run->window, run->rbuf + (size_t)k * bytes, bytes, 1, (size_t)k * bytes);
            be_flush_gets(run->window, 1);
            sum += bench_now_us() - t;
            bench_read(run, run->rbuf, run->bytes * run->inflight);
            bench_notify(1);
        } else {
            bench_write(run, run->window_base, run->bytes * run->inflight);
            be_window_sync(run->window);
            bench_notify(0);
            bench_await(0);
        }
    }
    return sum / n / run->inflight;
}

/* ----------------------------------------------------------------------------- checks */

static int64_t bench_rma_put_check(struct bench_run *run)
{
    int64_t wrong;

    if (be_rank() == 0) {
        bench_pattern(run, 0, run->sbuf, run->bytes);
        be_put(run->window, run->sbuf, (size_t)run->bytes, 1, 0);
        be_flush_puts(run->window, 1);
        bench_notify(1);
        bench_await(1); /* until it is checked, the next check must not put over it */
        return 0;
    }
    bench_await(0);
    be_window_sync(run->window);
    wrong = bench_pattern_wrong(run, 0, run->window_base, run->bytes);
    bench_notify(0);
    return wrong;
}

static int64_t bench_rma_get_check(struct bench_run *run)
{
    int64_t wrong = 0;

    if (be_rank() == 1) {
        bench_pattern(run, 1, run->window_base, run->bytes);
        be_window_sync(run->window);
        bench_notify(0);
        bench_await(0);
        return 0;
    }
    bench_await(1);
    bench_clear(run, run->rbuf, 0, run->bytes);
    be_get(run->window, run->rbuf, (size_t)run->bytes, 1, 0);
    be_flush_gets(run->window, 1);
    wrong = bench_pattern_wrong(run, 1, run->rbuf, run->bytes);
    bench_notify(1);
    return wrong;
}

/* Both ranks count up one counter at once: no addition is lost, and what each fetches only grows. */
static int64_t counted_wrong(struct bench_run *run, bool fetch)
{
    enum { TIMES = 500 };
    int64_t start = (int64_t)run->turn << 20, last = start - 1, got = 0, wrong = 0;

    if (be_rank() == 1) {
        memcpy(run->window_base, &start, sizeof(start));
        be_window_sync(run->window);
        bench_notify(0);
    } else {
        bench_await(1);
    }
    for (int i = 0; i < TIMES; i++) {
        if (!fetch) {
            be_add(run->window, 3, 1, 0);
            continue;
        }
        be_fetch_add(run->window, 3, 1, 0, &got);
        be_flush_gets(run->window, 1);
        wrong += got <= last || (got - start) % 3 != 0;
        last = got;
    }
    be_flush_puts(run->window, 1);
    if (be_rank() == 0) {
        bench_notify(1);
        bench_await(1);
        return wrong;
    }
    bench_await(0);
    be_window_sync(run->window);
    be_get(run->window, &got, sizeof(got), 1, 0);
    be_flush_gets(run->window, 1);
    bench_notify(0);
    return wrong + (got != start + 2 * 3 * TIMES);
}

static int64_t fetch_add_check(struct bench_run *run)
{
    return counted_wrong(run, true);
}

static int64_t add_check(struct bench_run *run)
{
    return counted_wrong(run, false);
}

/* The counter is 0 before either rank touches it. */
static void counter_from_zero(struct bench_run *run)
{
    if (be_rank() == 1) {
        memset(run->window_base, 0, sizeof(int64_t));
        be_window_sync(run->window);
        bench_notify(0);
    } else {
        bench_await(1);
    }
}

/* Both ranks hand tokens in: what each gets back, and what is there at the end, is each token once. */
static int64_t swap_check(struct bench_run *run)
{
    enum { TIMES = 500 };
    int64_t sum = 0, got = 0, theirs = 0, mine, all = (int64_t)TIMES * (2 * TIMES - 1);

    counter_from_zero(run);
    for (int i = 0; i < TIMES; i++) {
        mine = be_rank() * TIMES + i;
        be_swap(run->window, &mine, 1, 0, &got);
        be_flush_gets(run->window, 1);
        sum += got;
    }
    if (be_rank() == 0) {
        be_send(&sum, sizeof(sum), 1, BE_TAG_CTL);
        bench_await(1);
        return 0;
    }
    be_recv(&theirs, sizeof(theirs), 0, BE_TAG_CTL);
    be_get(run->window, &got, sizeof(got), 1, 0);
    be_flush_gets(run->window, 1);
    bench_notify(0);
    return sum + theirs + got != all;
}

/* Both count up by trying: nothing is lost. */
static int64_t compare_swap_check(struct bench_run *run)
{
    enum { TIMES = 200 };
    int64_t seen, next, got = 0;

    counter_from_zero(run);
    for (int i = 0; i < TIMES; i++) {
        do {
            seen = got;
            next = seen + 1;
            be_compare_swap(run->window, &seen, &next, 1, 0, &got);
            be_flush_gets(run->window, 1);
        } while (got != seen);
    }
    if (be_rank() == 0) {
        bench_notify(1);
        bench_await(1);
        return 0;
    }
    bench_await(0);
    be_get(run->window, &got, sizeof(got), 1, 0);
    be_flush_gets(run->window, 1);
    bench_notify(0);
    return got != 2 * TIMES;
}

/* Windows in an iteration of a rate: between two checks of the data. */
enum { ROUNDS = 16 };

const struct bench_entry bench_rma[] = {
    {.name = "put_lat", .doc = "a put and its completion at the target", .table = BENCH_LATENCY,
     .one_sided = true, .sample = put_lat_sample, .check = bench_rma_put_check},
    {.name = "put_bw", .doc = "bandwidth of many puts", .table = BENCH_BANDWIDTH,
     .one_sided = true, .outside = true, .sample = put_bw_sample, .both = bench_both_put,
     .queued = bench_queue_put, .check = bench_rma_put_check, .check_all = bench_queue_put_check},
    {.name = "put_rate", .doc = "puts a second", .table = BENCH_RATE, .one_sided = true,
     .outside = true, .rounds = ROUNDS, .most = 4096, .sample = put_rate_sample,
     .check = bench_rma_put_check},
    {.name = "get_lat", .doc = "a get, complete, of what the target has just written",
     .table = BENCH_LATENCY, .one_sided = true, .outside = true, .apart = true,
     .begin = shuffle, .end = bench_rma_forget, .sample = get_lat_sample, .check = bench_rma_get_check,
     .fetches = true},
    {.name = "get_bw", .doc = "bandwidth of many gets", .table = BENCH_BANDWIDTH,
     .one_sided = true, .outside = true, .sample = get_bw_sample, .both = bench_both_get,
     .queued = bench_queue_get, .check = bench_rma_get_check, .check_all = bench_queue_get_check, .fetches = true},
    {.name = "get_rate", .doc = "gets a second", .table = BENCH_RATE, .one_sided = true,
     .outside = true, .rounds = ROUNDS, .most = 4096, .sample = get_rate_sample,
     .check = bench_rma_get_check, .fetches = true},
    {.name = "atomics_fetch_add_lat", .on_host = "atomics", .doc = "a fetching addition to what the target has just written",
     .table = BENCH_LATENCY, .one_sided = true, .outside = true, .apart = true, .least = 8,
     .most = 8, .begin = shuffle, .end = bench_rma_forget, .sample = fetch_add_lat_sample, .check = fetch_add_check},
    {.name = "atomics_fetch_add_rate", .on_host = "atomics", .doc = "fetching additions a second, one counter",
     .table = BENCH_RATE, .one_sided = true, .outside = true, .rounds = ROUNDS, .least = 8,
     .most = 8, .sample = fetch_add_rate_sample, .check = fetch_add_check},
    {.name = "atomics_add_rate", .on_host = "atomics", .doc = "additions a second, one counter", .table = BENCH_RATE,
     .one_sided = true, .outside = true, .rounds = ROUNDS, .least = 8, .most = 8,
     .sample = add_rate_sample, .check = add_check},
    {.name = "atomics_swap_rate", .on_host = "atomics", .doc = "swaps a second, one word", .table = BENCH_RATE, .one_sided = true,
     .outside = true, .rounds = ROUNDS, .least = 8, .most = 8, .sample = swap_rate_sample, .check = swap_check},
    {.name = "atomics_compare_swap_rate", .on_host = "atomics", .doc = "compare-and-swaps a second, one word, all of which swap",
     .table = BENCH_RATE, .one_sided = true, .outside = true, .rounds = ROUNDS, .least = 8, .most = 8,
     .sample = compare_swap_rate_sample, .check = compare_swap_check},
    {.name = NULL},
};

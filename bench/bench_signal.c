/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_signal.c: measure data that is put with a signal behind it, to and fro.
 *
 * Each side waits for the word that the other writes, reads the data and answers. The word lies in a line of its own, or
 * (near) behind the data in the same one. MPI has no such call: its backend puts, flushes and sets the word.
 */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

enum { APART = 128, WORD = 8 };

/* Where the word lies; the window has room behind the data. */
static size_t bench_signal_apart(const struct bench_run *run)
{
    return (size_t)(run->bytes + APART - 1) / APART * APART;
}

static size_t near(const struct bench_run *run)
{
    return (size_t)(run->bytes + WORD - 1) / WORD * WORD;
}

/* The value that was given last; both ranks have the same. */
static void bench_signal_begin(struct bench_run *run)
{
    run->state = calloc(1, sizeof(uint64_t));
    if (!run->state)
        be_abort(1, "out of memory for the signal's value");
    memset(run->window_base, 0, bench_signal_apart(run) + APART);
    be_window_sync(run->window);
    be_barrier();
}

static int64_t bench_signal_end(struct bench_run *run)
{
    free(run->state);
    run->state = NULL;
    return 0;
}

static inline __attribute__((always_inline)) void bench_signal_give(struct bench_run *run, size_t word, uint64_t value)
{
    be_put_signal(run->window, run->sbuf, (size_t)run->bytes, 1 - be_rank(), 0, word, value);
}

/* Small data is written and read in the time, as that of a message is; of other data each iteration is timed by itself. */
static inline __attribute__((always_inline)) double to_and_fro(struct bench_run *run, int n, size_t word)
{
    uint64_t *value = run->state, v = *value;
    bool inside = bench_inside(run);
    double t = bench_now_us(), sum = 0;

    for (int i = 0; i < n; i++) {
        v++;
        if (be_rank() == 0) {
            bench_write(run, run->sbuf, run->bytes);
            if (!inside) {
                bench_await(1);
                t = bench_now_us();
            }
            bench_signal_give(run, word, v);
            be_signal_wait(run->window, word, v, 1);
            if (!inside)
                sum += bench_now_us() - t;
            bench_read(run, run->window_base, run->bytes);
            continue;
        }
        if (!inside) {
            bench_write(run, run->sbuf, run->bytes);
            bench_notify(0);
        }
        be_signal_wait(run->window, word, v, 0);
        if (inside) {
            bench_read(run, run->window_base, run->bytes);
            bench_write(run, run->sbuf, run->bytes);
        }
        bench_signal_give(run, word, v);
        if (!inside)
            bench_read(run, run->window_base, run->bytes);
    }
    *value = v;
    return (inside ? bench_now_us() - t : sum) / n / 2;
}

static double apart_sample(struct bench_run *run, int n) { return to_and_fro(run, n, bench_signal_apart(run)); }
static double near_sample(struct bench_run *run, int n) { return to_and_fro(run, n, near(run)); }

static int64_t checked(struct bench_run *run, size_t word)
{
    uint64_t v = ++*(uint64_t *)run->state;
    int64_t wrong;

    bench_pattern(run, be_rank(), run->sbuf, run->bytes);
    if (be_rank() == 0)
        bench_signal_give(run, word, v);
    be_signal_wait(run->window, word, v, 1 - be_rank());
    wrong = bench_pattern_wrong(run, 1 - be_rank(), run->window_base, run->bytes);
    if (be_rank() == 1)
        bench_signal_give(run, word, v);
    return wrong;
}

static int64_t apart_check(struct bench_run *run) { return checked(run, bench_signal_apart(run)); }
static int64_t near_check(struct bench_run *run) { return checked(run, near(run)); }

const struct bench_entry bench_signal[] = {
    {.name = "put_signal_lat", .signals = true, .doc = "half of a put with a signal and one back", .table = BENCH_LATENCY,
     .one_sided = true, .window = 1, .begin = bench_signal_begin, .end = bench_signal_end, .sample = apart_sample, .check = apart_check},
    {.name = "put_signal_near_lat", .signals = true, .doc = "the same, data and signal in one cache line", .table = BENCH_LATENCY,
     .one_sided = true, .window = 1, .least = 8, .most = 8, .begin = bench_signal_begin, .end = bench_signal_end, .sample = near_sample,
     .check = near_check},
    {.name = NULL},
};

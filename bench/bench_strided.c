/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_strided.c: measure puts and gets of equal blocks.
 * They lie apart at the target, as columns of a matrix do, and together here.
 */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 64, GAP = 0x5a };

struct shape {
    size_t block, count, rest; /* rest: bytes behind the last whole block, moved by themselves */
};

static struct shape shape_of(const struct bench_run *run)
{
    size_t bytes = (size_t)run->bytes, block = bytes < BLOCK ? bytes : BLOCK;
    size_t count = block ? bytes / block : 0;

    return (struct shape){block, count, bytes - block * count};
}

/* Message k of a window. */
static void bench_strided_put(struct bench_run *run, int k)
{
    struct shape s = shape_of(run);
    const char *from = run->sbuf + k * run->bytes;
    size_t to = 2 * (size_t)k * (size_t)run->bytes;

    be_put_strided(run->window, from, s.block, s.count, 2 * s.block, 1, to);
    if (s.rest)
        be_put(run->window, from + s.block * s.count, s.rest, 1, to + 2 * s.block * s.count);
}

static void get(struct bench_run *run, int k)
{
    struct shape s = shape_of(run);
    char *to = run->rbuf + k * run->bytes;
    size_t from = 2 * (size_t)k * (size_t)run->bytes;

    be_get_strided(run->window, to, s.block, s.count, 2 * s.block, 1, from);
    if (s.rest)
        be_get(run->window, to + s.block * s.count, s.rest, 1, from + 2 * s.block * s.count);
}

static double put_sample(struct bench_run *run, int n)
{
    int64_t all = run->bytes * run->inflight;
    double t, sum = 0;

    for (int i = 0; i < n; i++) {
        if (be_rank() == 1) {
            bench_await(0);
            be_window_sync(run->window);
            bench_read(run, run->window_base, 2 * all);
            bench_notify(0);
            continue;
        }
        bench_write(run, run->sbuf, all);
        t = bench_now_us();
        for (int k = 0; k < run->inflight; k++)
            bench_strided_put(run, k);
        be_flush_puts(run->window, 1);
        sum += bench_now_us() - t;
        bench_notify(1);
        bench_await(1);
    }
    return sum / n / run->inflight;
}

static double get_sample(struct bench_run *run, int n)
{
    int64_t all = run->bytes * run->inflight;
    double t, sum = 0;

    for (int i = 0; i < n; i++) {
        if (be_rank() == 1) {
            bench_write(run, run->window_base, 2 * all);
            be_window_sync(run->window);
            bench_notify(0);
            bench_await(0);
            continue;
        }
        bench_await(1);
        t = bench_now_us();
        for (int k = 0; k < run->inflight; k++)
            get(run, k);
        be_flush_gets(run->window, 1);
        sum += bench_now_us() - t;
        bench_read(run, run->rbuf, all);
        bench_notify(1);
    }
    return sum / n / run->inflight;
}

/* Between bytes in a row and the blocks of the window. */
static void bench_strided_spread(struct bench_run *run, char *row, bool out)
{
    struct shape s = shape_of(run);
    char *window = bench_host_begin(run, run->window_base, 2 * run->bytes), *host = bench_host_begin(run, row, run->bytes), *from = host;

    for (size_t i = 0; i <= s.count; i++) {
        char *at = window + 2 * s.block * i;
        size_t n = i < s.count ? s.block : s.rest;
        memcpy(out ? at : from, out ? from : at, n);
        from += n;
    }
    bench_host_end(run, run->window_base, window, 2 * run->bytes, out);
    bench_host_end(run, row, host, run->bytes, !out);
}

static int64_t bench_strided_put_check(struct bench_run *run)
{
    struct shape s = shape_of(run);
    int64_t wrong;
    char *window;

    if (be_rank() == 0) {
        bench_await(1);
        bench_pattern(run, 0, run->sbuf, run->bytes);
        bench_strided_put(run, 0);
        be_flush_puts(run->window, 1);
        bench_notify(1);
        bench_await(1);
        return 0;
    }
    bench_clear(run, run->window_base, GAP, 2 * run->bytes);
    be_window_sync(run->window);
    bench_notify(0);
    bench_await(0);
    be_window_sync(run->window);
    bench_strided_spread(run, run->rbuf, false);
    wrong = bench_pattern_wrong(run, 0, run->rbuf, run->bytes);
    window = bench_host_begin(run, run->window_base, 2 * run->bytes);
    for (size_t i = 0; i < s.count; i++) {
        for (size_t k = s.block; k < 2 * s.block; k++)
            wrong += window[2 * s.block * i + k] != GAP;
    }
    bench_host_end(run, run->window_base, window, 2 * run->bytes, false);
    bench_notify(0);
    return wrong;
}

static int64_t bench_strided_get_check(struct bench_run *run)
{
    int64_t wrong;

    if (be_rank() == 1) {
        bench_pattern(run, 1, run->sbuf, run->bytes);
        bench_strided_spread(run, run->sbuf, true);
        be_window_sync(run->window);
        bench_notify(0);
        bench_await(0);
        return 0;
    }
    bench_await(1);
    bench_clear(run, run->rbuf, 0, run->bytes);
    get(run, 0);
    be_flush_gets(run->window, 1);
    wrong = bench_pattern_wrong(run, 1, run->rbuf, run->bytes);
    bench_notify(1);
    return wrong;
}

const struct bench_entry bench_strided[] = {
    {.name = "put_strided_bw", .doc = "bandwidth of puts of 64 B blocks that lie 128 B apart", .table = BENCH_BANDWIDTH,
     .one_sided = true, .outside = true, .window = 2, .sample = put_sample, .check = bench_strided_put_check},
    {.name = "get_strided_bw", .doc = "bandwidth of gets of such blocks", .table = BENCH_BANDWIDTH,
     .one_sided = true, .outside = true, .window = 2, .sample = get_sample, .fetches = true, .check = bench_strided_get_check},
    {.name = NULL},
};

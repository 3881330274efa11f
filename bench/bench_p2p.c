/*
 * bench_p2p.c: between rank 0 and rank 1: latency and bandwidth of messages,
 * puts and gets. The other ranks wait outside.
 *
 * Small latencies are ping-pongs; a large message is timed one way: the
 * receiver says that it is ready, the sender sends and waits for a byte back,
 * whose own way is taken off. So its writing and reading stay outside.
 */
#include "bench/bench.h"

#include <string.h>

static bool small(const struct bench_run *run)
{
    return run->bytes <= BENCH_SMALL;
}

static void tell(int peer)
{
    char c = 1;

    be_send(&c, 1, peer, BE_TAG_CTL);
}

static void hear(int peer)
{
    char c;

    be_recv(&c, 1, peer, BE_TAG_CTL);
}

/* ------------------------------------------------------------------- messages */

static double ping_pong(struct bench_run *run, int n)
{
    size_t bytes = (size_t)run->bytes;
    double t = bench_now_us();

    if (be_rank() == 0) {
        for (int i = 0; i < n; i++) {
            bench_write(run, run->sbuf, run->bytes);
            be_send(run->sbuf, bytes, 1, BE_TAG_DATA);
            be_recv(run->rbuf, bytes, 1, BE_TAG_DATA);
            bench_read(run, run->rbuf, run->bytes);
        }
    } else {
        for (int i = 0; i < n; i++) {
            be_recv(run->rbuf, bytes, 0, BE_TAG_DATA);
            bench_read(run, run->rbuf, run->bytes);
            bench_write(run, run->sbuf, run->bytes);
            be_send(run->sbuf, bytes, 0, BE_TAG_DATA);
        }
    }
    return (bench_now_us() - t) / n / 2;
}

/* A window of messages one way, then a byte back. */
static double one_way(struct bench_run *run, int n, int inflight)
{
    size_t bytes = (size_t)run->bytes;
    double t, sum = 0;

    for (int i = 0; i < n; i++) {
        if (be_rank() == 0) {
            bench_write(run, run->sbuf, run->bytes * inflight);
            hear(1);
            t = bench_now_us();
            for (int k = 0; k < inflight; k++)
                be_isend(run->sbuf + (size_t)k * bytes, bytes, 1, BE_TAG_DATA, &run->reqs[k]);
            be_waitall(inflight, run->reqs);
            hear(1);
            sum += bench_now_us() - t - run->ack_us;
        } else {
            for (int k = 0; k < inflight; k++)
                be_irecv(run->rbuf + (size_t)k * bytes, bytes, 0, BE_TAG_DATA, &run->reqs[k]);
            tell(0);
            be_waitall(inflight, run->reqs);
            tell(0);
            bench_read(run, run->rbuf, run->bytes * inflight);
        }
    }
    return sum / n;
}

static double lat_sample(struct bench_run *run, int n)
{
    return small(run) ? ping_pong(run, n) : one_way(run, n, 1);
}

static double bw_sample(struct bench_run *run, int n)
{
    return one_way(run, n, run->inflight) / run->inflight;
}

static int64_t message_check(struct bench_run *run)
{
    size_t bytes = (size_t)run->bytes;

    if (be_rank() == 0) {
        bench_pattern(run, 0, run->sbuf, run->bytes);
        be_send(run->sbuf, bytes, 1, BE_TAG_DATA);
        be_recv(run->rbuf, bytes, 1, BE_TAG_DATA);
        return bench_pattern_wrong(run, 1, run->rbuf, run->bytes);
    }
    be_recv(run->rbuf, bytes, 0, BE_TAG_DATA);
    bench_pattern(run, 1, run->sbuf, run->bytes);
    be_send(run->sbuf, bytes, 0, BE_TAG_DATA);
    return bench_pattern_wrong(run, 0, run->rbuf, run->bytes);
}

/* ------------------------------------------------------------------ one-sided */

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
            tell(1);
            hear(1);
        } else {
            hear(0);
            be_window_sync(run->window);
            bench_read(run, run->window_base, run->bytes * inflight);
            tell(0);
        }
    }
    if (!together)
        return sum / n;
    t = bench_now_us() - t;
    if (be_rank() == 0)
        tell(1);
    else
        hear(0);
    return t / n;
}

static double put_lat_sample(struct bench_run *run, int n)
{
    return put_some(run, n, 1, small(run));
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
            hear(1);
            t = bench_now_us();
            for (int k = 0; k < run->inflight; k++)
                be_get(run->window, run->rbuf + (size_t)k * bytes, bytes, 1, (size_t)k * bytes);
            be_flush_gets(run->window, 1);
            sum += bench_now_us() - t;
            bench_read(run, run->rbuf, run->bytes * run->inflight);
            tell(1);
        } else {
            bench_write(run, run->window_base, run->bytes * run->inflight);
            be_window_sync(run->window);
            tell(0);
            hear(0);
        }
    }
    return sum / n / run->inflight;
}

static int64_t put_check(struct bench_run *run)
{
    int64_t wrong;

    if (be_rank() == 0) {
        bench_pattern(run, 0, run->sbuf, run->bytes);
        be_put(run->window, run->sbuf, (size_t)run->bytes, 1, 0);
        be_flush_puts(run->window, 1);
        tell(1);
        hear(1); /* until it is looked at, the next check must not put over it */
        return 0;
    }
    hear(0);
    be_window_sync(run->window);
    wrong = bench_pattern_wrong(run, 0, run->window_base, run->bytes);
    tell(0);
    return wrong;
}

static int64_t get_check(struct bench_run *run)
{
    int64_t wrong = 0;

    if (be_rank() == 1) {
        bench_pattern(run, 1, run->window_base, run->bytes);
        be_window_sync(run->window);
        tell(0);
        hear(0);
        return 0;
    }
    hear(1);
    memset(run->rbuf, 0, (size_t)run->bytes);
    be_get(run->window, run->rbuf, (size_t)run->bytes, 1, 0);
    be_flush_gets(run->window, 1);
    wrong = bench_pattern_wrong(run, 1, run->rbuf, run->bytes);
    tell(1);
    return wrong;
}

const struct bench_entry bench_p2p[] = {
    {.name = "lat", .doc = "one-way latency of a message", .table = BENCH_LATENCY,
     .sample = lat_sample, .check = message_check},
    {.name = "bw", .doc = "bandwidth of many messages in flight", .table = BENCH_BANDWIDTH,
     .sample = bw_sample, .check = message_check},
    {.name = "put_lat", .doc = "a put and its completion at the target", .table = BENCH_LATENCY,
     .one_sided = true, .sample = put_lat_sample, .check = put_check},
    {.name = "put_bw", .doc = "bandwidth of many puts", .table = BENCH_BANDWIDTH,
     .one_sided = true, .sample = put_bw_sample, .check = put_check},
    {.name = "get_bw", .doc = "bandwidth of many gets", .table = BENCH_BANDWIDTH,
     .one_sided = true, .sample = get_bw_sample, .check = get_check},
    {.name = NULL},
};

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_p2p.c: measure latency and bandwidth of messages between ranks 0 and 1.
 * The other ranks wait outside.
 *
 * Small latencies are ping-pongs; a large message is timed one way: the
 * receiver signals that it is ready, the sender sends and waits for a byte back, and the
 * time of that byte is subtracted. So writing and reading the data stay outside.
 */
#include "bench/bench.h"

static bool small(const struct bench_run *run)
{
    return run->bytes <= BENCH_SMALL;
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
            bench_await(1);
            t = bench_now_us();
            for (int k = 0; k < inflight; k++)
                be_isend(run->sbuf + (size_t)k * bytes, bytes, 1, BE_TAG_DATA, &run->reqs[k]);
            be_waitall(inflight, run->reqs);
            bench_await(1);
            sum += bench_now_us() - t - run->ack_us;
        } else {
            for (int k = 0; k < inflight; k++)
                be_irecv(run->rbuf + (size_t)k * bytes, bytes, 0, BE_TAG_DATA, &run->reqs[k]);
            bench_notify(0);
            be_waitall(inflight, run->reqs);
            bench_notify(0);
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

int64_t bench_exchange_wrong(struct bench_run *run, int peer)
{
    size_t bytes = (size_t)run->message;

    if (be_rank() < peer) {
        bench_pattern(run, be_rank(), run->sbuf, run->message);
        be_send(run->sbuf, bytes, peer, BE_TAG_DATA);
        be_recv(run->rbuf, bytes, peer, BE_TAG_DATA);
        return bench_pattern_wrong(run, peer, run->rbuf, run->message);
    }
    be_recv(run->rbuf, bytes, peer, BE_TAG_DATA);
    bench_pattern(run, be_rank(), run->sbuf, run->message);
    be_send(run->sbuf, bytes, peer, BE_TAG_DATA);
    return bench_pattern_wrong(run, peer, run->rbuf, run->message);
}

static int64_t message_check(struct bench_run *run)
{
    return bench_exchange_wrong(run, 1 - be_rank());
}

/* Windows both ways at once; then each side reports that it has all. */
static double both_ways(struct bench_run *run, int n)
{
    size_t bytes = (size_t)run->bytes;
    int peer = 1 - be_rank(), w = run->inflight;
    double t, sum = 0;

    run->lanes = 2;
    for (int i = 0; i < n; i++) {
        bench_write(run, run->sbuf, run->bytes * w);
        for (int k = 0; k < w; k++)
            be_irecv(run->rbuf + (size_t)k * bytes, bytes, peer, BE_TAG_DATA, &run->reqs[k]);
        if (be_rank() == 0) {
            bench_notify(1);
            bench_await(1);
        } else {
            bench_await(0);
            bench_notify(0);
        }
        t = bench_now_us();
        for (int k = 0; k < w; k++)
            be_isend(run->sbuf + (size_t)k * bytes, bytes, peer, BE_TAG_DATA, &run->reqs[w + k]);
        be_waitall(2 * w, run->reqs);
        bench_notify(peer);
        bench_await(peer);
        sum += bench_now_us() - t - run->ack_us;
        bench_read(run, run->rbuf, run->bytes * w);
    }
    return sum / n / w;
}

const struct bench_entry bench_p2p[] = {
    {.name = "lat", .doc = "one-way latency of a message", .table = BENCH_LATENCY,
     .sample = lat_sample, .check = message_check},
    {.name = "bw", .doc = "bandwidth of many messages in flight", .table = BENCH_BANDWIDTH,
     .outside = true, .sample = bw_sample, .both = both_ways, .queued = bench_queue_send, .check = message_check,
     .check_all = bench_queue_send_check},
    {.name = "bibw", .doc = "bandwidth of many messages in flight in both directions",
     .table = BENCH_BANDWIDTH, .outside = true, .sample = both_ways, .both = both_ways, .check = message_check},
    {.name = NULL},
};

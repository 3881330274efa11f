/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_wait.c: measure computing beside a message, and the cost of a wait.
 */
#include "bench/bench.h"
#include "bench/harness_stats.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

/* ------------------------------------------------------------------------- overlap */

enum { PURE_RUNS = 31 };

/* A message one way, both sides computing between its start and the wait for it; then a byte back. */
static double transfer(struct bench_run *run, double us)
{
    size_t bytes = (size_t)run->bytes;
    double t = 0;

    if (be_rank() == 0) {
        bench_write(run, run->sbuf, run->bytes);
        bench_await(1);
        t = bench_now_us();
        be_isend(run->sbuf, bytes, 1, BE_TAG_DATA, run->reqs);
        bench_compute(us);
        be_waitall(1, run->reqs);
        bench_await(1);
        return bench_now_us() - t - run->ack_us;
    }
    be_irecv(run->rbuf, bytes, 0, BE_TAG_DATA, run->reqs);
    bench_notify(0);
    bench_compute(us);
    be_waitall(1, run->reqs);
    bench_notify(0);
    bench_read(run, run->rbuf, run->bytes);
    return 0;
}

/* The transfer's own time, which is then also that of the computation: both ranks hold it. */
static void overlap_begin(struct bench_run *run)
{
    double *pure = calloc(1, sizeof(*pure)), v[PURE_RUNS];

    if (!pure)
        be_abort(1, "out of memory");
    run->state = pure;
    if (be_rank() > 1)
        return;
    for (int i = -PURE_RUNS / 2; i < PURE_RUNS; i++)
        v[i < 0 ? 0 : i] = transfer(run, 0);
    *pure = bench_stats_of(v, PURE_RUNS).median;
    if (be_rank() == 0)
        be_send(pure, sizeof(*pure), 1, BE_TAG_CTL);
    else
        be_recv(pure, sizeof(*pure), 0, BE_TAG_CTL);
}

static int64_t overlap_end(struct bench_run *run)
{
    free(run->state);
    run->state = NULL;
    return 0;
}

static double overlap_sample(struct bench_run *run, int n)
{
    double pure = *(double *)run->state, sum = 0, hidden;

    for (int i = 0; i < n; i++)
        sum += transfer(run, pure);
    sum /= n;
    hidden = pure > 0 ? 100 * (1 - (sum - pure) / pure) : 0;
    run->extra = hidden < 0 ? 0 : hidden > 100 ? 100 : hidden;
    return sum;
}

static int64_t wait_check(struct bench_run *run)
{
    return bench_exchange_wrong(run, 1 - be_rank());
}

/* ---------------------------------------------------------------------------- wake */

static double processor_us(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* Rank 1 waits for a message for as long as the size gives; its reply has the cost of that. */
static double wake_sample(struct bench_run *run, int n)
{
    enum { AWAKE = 500 }; /* the sender has been up for as many us: its own waking is not measured */
    int64_t sleep = run->bytes > AWAKE ? run->bytes - AWAKE : 0;
    struct timespec idle = {sleep / 1000000, sleep % 1000000 * 1000};
    double t, cpu, share = 0, sum = 0;

    for (int i = 0; i < n; i++) {
        if (be_rank() == 0) {
            bench_await(1);
            t = bench_now_us();
            nanosleep(&idle, NULL);
            bench_compute((double)run->bytes - (bench_now_us() - t));
            t = bench_now_us();
            be_send(run->sbuf, 8, 1, BE_TAG_DATA);
            be_recv(&cpu, sizeof(cpu), 1, BE_TAG_DATA);
            sum += bench_now_us() - t - run->ack_us;
            share += cpu;
        } else {
            bench_notify(0);
            t = bench_now_us();
            cpu = processor_us();
            be_recv(run->rbuf, 8, 0, BE_TAG_DATA);
            cpu = 100 * (processor_us() - cpu) / (bench_now_us() - t);
            be_send(&cpu, sizeof(cpu), 0, BE_TAG_DATA);
        }
    }
    run->extra = share / n;
    return sum / n;
}

const struct bench_entry bench_wait[] = {
    {.name = "overlap", .doc = "a message during which both ranks compute, and how much that hides",
     .table = BENCH_LATENCY, .single = true, .outside = true, .least = 4096,
     .extra = {"overlap_pct", "Hidden (%)"}, .begin = overlap_begin, .end = overlap_end,
     .sample = overlap_sample, .check = wait_check},
    {.name = "wake", .doc = "latency to a rank that has waited so long, and what waiting costs it",
     .table = BENCH_IDLE, .single = true, .extra = {"waiting_cpu_pct", "Processor (%)"},
     .sample = wake_sample, .check = wait_check},
    {.name = NULL},
};

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * harness.h: share the run of one command line among the files of the harness.
 *
 *   harness.c          the command line, and the benchmarks it names
 *   harness_measure.c  one benchmark, size by size: how often, how long, and whether it is right
 *   harness_print.c    what is printed of it
 *   harness_columns.c  its columns for messages, after perftest
 *   harness_limits.c   whether it is within --limit-bw and --limit-lat
 *   harness_records.c  and written as JSON and CSV
 *   harness_setting.c  where: hosts, placement, transport, device, date
 */
#ifndef RK_BENCH_HARNESS_H
#define RK_BENCH_HARNESS_H

#include "bench/bench.h"
#include "bench/harness_records.h"
#include "bench/harness_setting.h"
#include "bench/harness_stats.h"

#include <limits.h>

/* Samples of a size: ever, in 100 ms of its time, the same with --hist, and at least. */
enum { FRAME_MAX_SAMPLES = 1 << 24, FRAME_TIME_SAMPLES = 20000, FRAME_HIST_SAMPLES = 200000, FRAME_MIN_SAMPLES = 10 };
/* Fewer have no 99th percentile: it is the largest of them. */
enum { FRAME_P99_SAMPLES = 100 };

struct frame {
    struct bench_opts opts;
    struct bench_records records;
    struct bench_setting setting;
    char library[128], host[HOST_NAME_MAX + 1];
    const struct bench_entry *few; /* the last one of which few samples have been reported */
    double *samples, *extras; /* room for as many as the next */
    int64_t room;
    int64_t wrong; /* of all */
    struct frame_missed {
        char first[200]; /* the size, the value and the limit */
        int64_t sizes;
    } missed; /* --limit-bw, --limit-lat */
};

/* Rank 0 does. */
static inline bool frame_speaks(void)
{
    return be_rank() == 0;
}

/* Every rank calls it: all types, operations, roots and sizes that the options name. */
void frame_run_entry(struct frame *f, const struct bench_entry *e);

/* Once: where all this is measured. */
void frame_print_setting(const struct frame *f);
void frame_print_head(const struct frame *f, const struct bench_entry *e);
/* In place of all sizes: none of them would do. */
void frame_print_nothing(const struct bench_run *run, int64_t min, int64_t max);

/* What came of one size. */
struct frame_result {
    struct bench_stats s;
    double alg, bus;     /* GB/s, of all messages that move at a time */
    double peak, average; /* GB/s likewise: of the shortest sample, of all */
    double rate;         /* of these, messages a second */
    double extra;        /* median */
    int64_t iters, samples, wrong;
    int64_t operations;  /* messages and the like in all iterations, one way */
};

/* Prints the row and writes the record. */
void frame_print_size(struct frame *f, const struct bench_run *run, const struct frame_result *res);
/* The columns of ib_write_bw for bandwidths, of ib_write_lat for latencies. */
void frame_print_columns(const struct frame *f, const struct bench_entry *e);
void frame_print_columns_row(const struct bench_run *run, const struct frame_result *res, const char *wrong);
/* Count a size that misses a limit. */
void frame_check_limits(struct frame *f, const struct bench_run *run, const struct frame_result *res);
/* Print what has missed, at the end. Returns true if anything has. */
bool frame_print_missed(const struct frame *f);
/* All samples of the size, which are sorted. */
void frame_print_hist(const struct frame *f, const struct frame_result *res, size_t n);

#endif

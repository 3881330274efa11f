/* SPDX-License-Identifier: BSD-3-Clause */
/* harness_hist.h: print the distribution of times, a line for each power of 2 ns. */
#ifndef RK_BENCH_HARNESS_HIST_H
#define RK_BENCH_HARNESS_HIST_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { BENCH_HIST_BUCKETS = 48 };

/* Bucket 0 is below 1 ns, bucket i > 0 from 2^(i-1) ns to below 2^i ns; the last holds all above, too. */
struct bench_hist {
    uint64_t count[BENCH_HIST_BUCKETS], n;
};

int bench_hist_bucket(double us);
void bench_hist_add(struct bench_hist *hist, double us);

/* From the first bucket that has some to the last, each line behind "# ". Nothing where n is 0. */
void bench_hist_print(const struct bench_hist *hist, FILE *out);

#endif

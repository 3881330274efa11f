/* SPDX-License-Identifier: BSD-3-Clause */
/* harness_stats.h: summarize many samples. */
#ifndef RK_BENCH_HARNESS_STATS_H
#define RK_BENCH_HARNESS_STATS_H

#include <stddef.h>

struct bench_stats {
    double min, median, p99, p999, max, mean, stdev;
};

/* Sorts v. The median of an even number is the mean of the middle two; p99 is the smallest value
 * that at least 99 % of all do not exceed, p999 of 99.9 %. stdev is of all, around the mean. All 0 where n is 0. */
struct bench_stats bench_stats_of(double *v, size_t n);

#endif

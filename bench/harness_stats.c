/* SPDX-License-Identifier: BSD-3-Clause */
/* harness_stats.c: see harness_stats.h. */
#include "bench/harness_stats.h"

#include <math.h>
#include <stdlib.h>

static int harness_stats_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

struct bench_stats bench_stats_of(double *v, size_t n)
{
    struct bench_stats s = {0, 0, 0, 0, 0, 0, 0};

    if (n == 0)
        return s;
    qsort(v, n, sizeof(*v), harness_stats_ascending);
    s.min = v[0];
    s.max = v[n - 1];
    s.median = n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
    s.p99 = v[(n * 99 + 99) / 100 - 1];
    s.p999 = v[(n * 999 + 999) / 1000 - 1];
    for (size_t i = 0; i < n; i++)
        s.mean += v[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        s.stdev += (v[i] - s.mean) * (v[i] - s.mean) / (double)n;
    s.stdev = sqrt(s.stdev);
    return s;
}

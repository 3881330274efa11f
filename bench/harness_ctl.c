/* SPDX-License-Identifier: BSD-3-Clause */
/* harness_ctl.c: see harness_ctl.h. */
#include "bench/harness_ctl.h"

#include "bench/backend.h"
#include "bench/harness_options.h"

#include <stdlib.h>
#include <string.h>

void bench_ctl_bcast(void *buf, size_t bytes)
{
    if (be_rank()) {
        be_recv(buf, bytes, 0, BE_TAG_CTL);
        return;
    }
    for (int r = 1; r < be_size(); r++)
        be_send(buf, bytes, r, BE_TAG_CTL);
}

void bench_ctl_gather(const void *mine, size_t bytes, void *all)
{
    if (be_rank()) {
        be_send(mine, bytes, 0, BE_TAG_CTL);
        return;
    }
    memcpy(all, mine, bytes);
    for (int r = 1; r < be_size(); r++)
        be_recv((char *)all + (size_t)r * bytes, bytes, r, BE_TAG_CTL);
}

int64_t bench_ctl_sum(int64_t value)
{
    int64_t other;

    if (be_rank()) {
        be_send(&value, sizeof(value), 0, BE_TAG_CTL);
        return value;
    }
    for (int r = 1; r < be_size(); r++) {
        be_recv(&other, sizeof(other), r, BE_TAG_CTL);
        value += other;
    }
    return value;
}

void bench_ctl_combine(double *v, size_t n, int average)
{
    double *other;

    if (be_rank()) {
        if (average != BENCH_RANK0)
            be_send(v, n * sizeof(*v), 0, BE_TAG_CTL);
        return;
    }
    if (average == BENCH_RANK0)
        return;
    other = malloc(n * sizeof(*v));
    if (!other)
        be_abort(1, "out of memory for the samples of another rank");
    for (int r = 1; r < be_size(); r++) {
        be_recv(other, n * sizeof(*v), r, BE_TAG_CTL);
        for (size_t i = 0; i < n; i++) {
            if (average == BENCH_AVG)
                v[i] += other[i];
            else if (average == BENCH_MIN ? other[i] < v[i] : other[i] > v[i])
                v[i] = other[i];
        }
    }
    for (size_t i = 0; average == BENCH_AVG && i < n; i++)
        v[i] /= be_size();
    free(other);
}

void bench_ctl_meet(void)
{
    char go = 0;

    bench_ctl_sum(0);
    bench_ctl_bcast(&go, 1);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* harness_hist.c: see harness_hist.h. */
#include "bench/harness_hist.h"

enum { BAR = 50 };

int bench_hist_bucket(double us)
{
    double ns = us * 1e3;
    int i = 0;

    while (i < BENCH_HIST_BUCKETS - 1 && ns >= (double)((uint64_t)1 << i))
        i++;
    return i;
}

void bench_hist_add(struct bench_hist *hist, double us)
{
    hist->count[bench_hist_bucket(us)]++;
    hist->n++;
}

/* The edge below bucket i, in words of three digits: "64 ns", "1.02 us", "16.8 ms". */
static const char *edge(int i, char *out, size_t len)
{
    static const char *const unit[] = {"ns", "us", "ms", "s"};
    double v = i ? (double)((uint64_t)1 << (i - 1)) : 0;
    int u = 0;

    for (; v >= 1000 && u < 3; u++)
        v /= 1000;
    snprintf(out, len, "%.3g %s", v, unit[u]);
    return out;
}

void bench_hist_print(const struct bench_hist *hist, FILE *out)
{
    int first = 0, last = BENCH_HIST_BUCKETS - 1;
    uint64_t most = 0;
    char from[16], to[16];

    if (!hist->n)
        return;
    while (!hist->count[first])
        first++;
    while (!hist->count[last])
        last--;
    for (int i = first; i <= last; i++)
        most = hist->count[i] > most ? hist->count[i] : most;
    for (int i = first; i <= last; i++) {
        /* One that has any shows a mark. */
        int bar = (int)((hist->count[i] * BAR + most - 1) / most);
        fprintf(out, "# %8s - %8s %9llu %6.2f %% ", edge(i, from, sizeof(from)),
                i == BENCH_HIST_BUCKETS - 1 ? "" : edge(i + 1, to, sizeof(to)),
                (unsigned long long)hist->count[i], 100.0 * (double)hist->count[i] / (double)hist->n);
        for (int k = 0; k < bar; k++)
            fputc('#', out);
        fputc('\n', out);
    }
}

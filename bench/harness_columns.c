/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * harness_columns.c: print messages and one-sided operations as perftest does.
 *
 * The names, the order and the units are those of ib_write_bw and ib_write_lat, so that what parses those parses these.
 * Columns of our own stand behind them.
 */
#include "bench/harness.h"

#include <stdio.h>

/* In the unit that the options name. */
static double columns_bandwidth(const struct bench_opts *o, double gbyte)
{
    return o->gbits ? gbyte * 8 : gbyte * 1e9 / (1 << 20);
}

void frame_print_columns(const struct frame *f, const struct bench_entry *e)
{
    const char *unit = f->opts.gbits ? "Gb/sec" : "MiB/sec";
    char peak[32], average[32];

    if (e->table == BENCH_BANDWIDTH) {
        snprintf(peak, sizeof(peak), "BW peak[%s]", unit);
        snprintf(average, sizeof(average), "BW average[%s]", unit);
        printf(" %-10s %-14s %-17s %-20s %-14s %7s\n", "#bytes", "#iterations", peak, average, "MsgRate[Mpps]", "#wrong");
        return;
    }
    printf(" %-10s %-12s %-12s %-12s %-15s %-12s %-13s %-20s %-22s", "#bytes", "#iterations", "t_min[usec]", "t_max[usec]",
           "t_typical[usec]", "t_avg[usec]", "t_stdev[usec]", "99% percentile[usec]", "99.9% percentile[usec]");
    if (e->extra[1])
        printf(" %13s", e->extra[1]);
    printf(" %7s\n", "#wrong");
}

void frame_print_columns_row(const struct bench_run *run, const struct frame_result *res, const char *wrong)
{
    const struct bench_stats *s = &res->s;
    const struct bench_opts *o = run->opts;

    if (run->entry->table == BENCH_BANDWIDTH) {
        double average = columns_bandwidth(o, res->average);
        int digits = o->gbits && average < 0.1 ? 6 : 2;

        printf(" %-10lld %-14lld %-17.*f %-20.*f %-14.6f %7s\n", (long long)run->bytes, (long long)res->operations, digits,
               columns_bandwidth(o, res->peak), digits, average, s->mean > 0 ? run->lanes / s->mean : 0, wrong);
        return;
    }
    printf(" %-10lld %-12lld %-12.3f %-12.3f %-15.3f %-12.3f %-13.3f %-20.3f %-22.3f", (long long)run->bytes,
           (long long)res->operations, s->min, s->max, s->median, s->mean, s->stdev, s->p99, s->p999);
    if (run->entry->extra[0])
        printf(" %13.2f", res->extra);
    printf(" %7s\n", wrong);
}

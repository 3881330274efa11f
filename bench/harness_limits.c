/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * harness_limits.c: compare results with --limit-bw and --limit-lat.
 *
 * Each size that is measured has to be within the limit. The value is the one in the column "BW average" or "t_typical".
 */
#include "bench/harness.h"

#include <stdio.h>

void frame_check_limits(struct frame *f, const struct bench_run *run, const struct frame_result *res)
{
    const struct bench_opts *o = run->opts;
    enum bench_table table = run->entry->table;
    bool bw = table == BENCH_BANDWIDTH && o->limit_bw > 0 && res->average < o->limit_bw;
    bool lat = table == BENCH_LATENCY && o->limit_lat > 0 && res->s.median > o->limit_lat;

    if (!bw && !lat)
        return;
    if (f->missed.sizes++)
        return;
    snprintf(f->missed.first, sizeof(f->missed.first), "%s of %lld B: %.6g %s, %s %.6g", run->entry->name, (long long)run->bytes,
             bw ? res->average : res->s.median, bw ? "GB/s" : "us", bw ? "less than --limit-bw" : "more than --limit-lat",
             bw ? o->limit_bw : o->limit_lat);
}

bool frame_print_missed(const struct frame *f)
{
    if (!f->missed.sizes)
        return false;
    fprintf(stderr, "%s: %s", be_program, f->missed.first);
    if (f->missed.sizes > 1)
        fprintf(stderr, "; sizes that miss a limit: %lld", (long long)f->missed.sizes);
    fputc('\n', stderr);
    return true;
}

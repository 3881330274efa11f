/* frame_print.c: what is printed of a benchmark, and written as JSON. See frame.h. */
#include "config.h"

#include "bench/frame.h"

#include <stdio.h>

void frame_print_head(const struct frame *f, const struct bench_entry *e)
{
    const struct bench_opts *o = &f->opts;

    if (!frame_speaks())
        return;
    printf("# %s %s: %s, %d ranks on %s%s%s\n", be_program, e->name, f->library, be_size(), f->host,
           f->channel[0] ? ", by " : "", f->channel);
    if (o->untouched)
        printf("# buffers are not touched between iterations\n");
    else if (e->root)
        printf("# buffers are written before and read after each iteration, outside the timed part\n");
    else
        printf("# buffers are written before and read after each iteration: up to %d B inside the "
               "timed part, above it outside\n",
               BENCH_SMALL);
    if (e->table == BENCH_COLLECTIVE) {
        char word[32];
        printf("# time: median over iterations of %s; %s\n",
               bench_word("rank 0's|the mean over ranks|the minimum over ranks|"
                          "the maximum over ranks", o->average, word, sizeof(word)),
               e->root ? "each begins after a barrier" : "short ones in batches of 20 us");
        printf("#%11s %11s %10s %7s %5s %10s %10s %10s %8s %8s %7s\n", "size", "count", "type",
               "redop", "root", "time", "min", "p99", "algbw", "busbw", "#wrong");
        printf("#%11s %11s %10s %7s %5s %10s %10s %10s %8s %8s %7s\n", "(B)", "(elements)", "", "",
               "", "(us)", "(us)", "(us)", "(GB/s)", "(GB/s)", "");
    } else if (e->table == BENCH_LATENCY) {
        printf("# %-10s %14s %10s %10s %8s\n", "Size", "Latency (us)", "min", "p99", "#wrong");
    } else {
        printf("# %-10s %18s %14s %10s %8s\n", "Size", "Bandwidth (MB/s)", "Messages/s", "p99 (us)",
               "#wrong");
    }
}

static void print_row(const struct bench_run *run,
                      const struct bench_stats *s, double alg, double bus, int64_t wrong)
{
    const struct bench_entry *e = run->entry;
    char type[24], op[24], root[16], bad[24];

    snprintf(bad, sizeof(bad), "%lld", (long long)wrong);
    if (run->opts->check == 0)
        snprintf(bad, sizeof(bad), "N/A");
    if (e->table == BENCH_LATENCY) {
        printf("%-12lld %14.3f %10.3f %10.3f %8s\n", (long long)run->bytes, s->median, s->min,
               s->p99, bad);
        return;
    }
    if (e->table == BENCH_BANDWIDTH) {
        printf("%-12lld %18.2f %14.0f %10.3f %8s\n", (long long)run->bytes, alg * 1e3,
               s->median > 0 ? 1e6 / s->median : 0, s->p99, bad);
        return;
    }
    snprintf(root, sizeof(root), "%d", run->root);
    printf("%12lld %11lld %10s %7s %5s %10.3f %10.3f %10.3f %8.3f %8.3f %7s\n",
           (long long)run->bytes, (long long)run->count,
           e->dtype ? bench_word(bench_dtype_words, (int)run->dtype, type, sizeof(type)) : "none",
           e->op ? bench_word(bench_op_words, (int)run->op, op, sizeof(op)) : "none",
           e->root ? root : "-1", s->median, s->min, s->p99, alg, bus, bad);
}

static void write_record(struct frame *f, const struct bench_run *run, const struct bench_stats *s,
                         double alg, double bus, int64_t iters, int64_t wrong)
{
    struct bench_json *j = &f->json;
    char word[24];

    bench_json_begin(j);
    bench_json_text(j, "bench", run->entry->name);
    bench_json_int(j, "bytes", run->bytes);
    bench_json_int(j, "iters", iters);
    bench_json_real(j, "min_us", s->min);
    bench_json_real(j, "median_us", s->median);
    bench_json_real(j, "p99_us", s->p99);
    bench_json_real(j, "algbw_gbps", alg);
    bench_json_real(j, "busbw_gbps", bus);
    bench_json_int(j, "wrong", wrong);
    if (run->entry->dtype)
        bench_json_text(j, "type", bench_word(bench_dtype_words, (int)run->dtype, word, sizeof(word)));
    if (run->entry->op)
        bench_json_text(j, "redop", bench_word(bench_op_words, (int)run->op, word, sizeof(word)));
    if (run->entry->root)
        bench_json_int(j, "root", run->root);
    bench_json_text(j, "program", be_program);
    bench_json_text(j, "version", PACKAGE_VERSION);
    bench_json_text(j, "library", f->library);
    bench_json_text(j, "host", f->host);
    bench_json_int(j, "ranks", be_size());
    bench_json_text(j, "channel", f->channel);
    bench_json_text(j, "mem", run->opts->mem == BENCH_MEM_ALLOC ? "alloc" : "any");
    bench_json_bool(j, "untouched", run->opts->untouched);
    bench_json_end(j);
}

void frame_print_size(struct frame *f, const struct bench_run *run, const struct bench_stats *s,
                      double alg, double bus, int64_t iters, int64_t wrong)
{
    print_row(run, s, alg, bus, wrong);
    fflush(stdout);
    write_record(f, run, s, alg, bus, iters, wrong);
}

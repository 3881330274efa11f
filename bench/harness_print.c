/* harness_print.c: what is printed of a benchmark, and written as JSON. See harness.h. */
#include "config.h"

#include "bench/harness.h"
#include "bench/harness_hist.h"

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
    else if (e->root || e->outside)
        printf("# buffers are written before and read after each iteration, outside the timed part\n");
    else if (e->table == BENCH_DEPTH)
        printf("# messages of 8 B, written before and read after each iteration, inside the timed part\n");
    else if (e->table != BENCH_IDLE)
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
    } else if (e->table == BENCH_BANDWIDTH) {
        printf("# %-10s %18s %14s %10s %8s\n", "Size", "Bandwidth (MB/s)", "Messages/s", "p99 (us)",
               "#wrong");
    } else if (e->table == BENCH_RATE) {
        printf("# %-10s %18s %14s %10s %8s\n", "Size", "Messages/s", "Each (us)", "p99 (us)",
               "#wrong");
    } else {
        printf("# %-10s %14s %10s %10s", e->table == BENCH_DEPTH  ? "Depth"
                                         : e->table == BENCH_IDLE ? "Idle (us)"
                                                                  : "Size",
               "Latency (us)", "min", "p99");
        if (e->extra[1])
            printf(" %13s", e->extra[1]);
        printf(" %8s\n", "#wrong");
    }
}

void frame_print_nothing(const struct bench_run *run, int64_t min, int64_t max)
{
    char type[24];

    printf("# no size from %lld to %lld B is so much as one %s%s\n", (long long)min, (long long)max,
           bench_word(bench_dtype_words, (int)run->dtype, type, sizeof(type)), run->entry->pieces ? " for each rank" : "");
}

static void print_row(const struct bench_run *run, const struct frame_result *res)
{
    const struct bench_entry *e = run->entry;
    const struct bench_stats *s = &res->s;
    char type[24], op[24], root[16], bad[24];

    snprintf(bad, sizeof(bad), "%lld", (long long)res->wrong);
    if (run->opts->check == 0 && res->wrong == 0)
        snprintf(bad, sizeof(bad), "N/A");
    if (e->table == BENCH_BANDWIDTH || e->table == BENCH_RATE) {
        bool rate = e->table == BENCH_RATE;
        printf("%-12lld %18.*f %14.*f %10.3f %8s\n", (long long)run->bytes, rate ? 0 : 2,
               rate ? res->rate : res->alg * 1e3, rate ? 4 : 0, rate ? s->median : res->rate, s->p99,
               bad);
        return;
    }
    if (e->table != BENCH_COLLECTIVE) {
        printf("%-12lld %14.3f %10.3f %10.3f", (long long)run->bytes, s->median, s->min, s->p99);
        if (e->extra[0])
            printf(" %13.2f", res->extra);
        printf(" %8s\n", bad);
        return;
    }
    snprintf(root, sizeof(root), "%d", run->root);
    printf("%12lld %11lld %10s %7s %5s %10.3f %10.3f %10.3f %8.3f %8.3f %7s\n",
           (long long)run->bytes, (long long)run->count,
           e->dtype ? bench_word(bench_dtype_words, (int)run->dtype, type, sizeof(type)) : "none",
           e->op ? bench_word(bench_op_words, (int)run->op, op, sizeof(op)) : "none",
           e->root ? root : "-1", s->median, s->min, s->p99, res->alg, res->bus, bad);
}

static void write_record(struct frame *f, const struct bench_run *run,
                         const struct frame_result *res)
{
    const struct bench_stats *s = &res->s;
    struct bench_json *j = &f->json;
    char word[24];

    bench_json_begin(j);
    bench_json_text(j, "bench", run->entry->name);
    bench_json_int(j, "bytes", run->message);
    if (run->entry->table == BENCH_DEPTH)
        bench_json_int(j, "depth", run->bytes);
    if (run->entry->table == BENCH_IDLE)
        bench_json_int(j, "idle_us", run->bytes);
    bench_json_int(j, "iters", res->iters);
    bench_json_real(j, "min_us", s->min);
    bench_json_real(j, "median_us", s->median);
    bench_json_real(j, "p99_us", s->p99);
    bench_json_real(j, "p999_us", s->p999);
    bench_json_real(j, "max_us", s->max);
    bench_json_real(j, "algbw_gbps", res->alg);
    bench_json_real(j, "busbw_gbps", res->bus);
    bench_json_real(j, "messages_per_s", res->rate);
    if (run->entry->extra[0])
        bench_json_real(j, run->entry->extra[0], res->extra);
    if (run->opts->check == 0 && res->wrong == 0)
        bench_json_null(j, "wrong"); /* nobody has looked */
    else
        bench_json_int(j, "wrong", res->wrong);
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
    bench_json_text(j, "mem", run->opts->mem == BENCH_MEM_ALLOC ? "alloc" : run->opts->mem == BENCH_MEM_SHARED ? "shared" : "any");
    bench_json_bool(j, "untouched", run->opts->untouched);
    bench_json_end(j);
}

void frame_print_size(struct frame *f, const struct bench_run *run, const struct frame_result *res)
{
    print_row(run, res);
    fflush(stdout);
    write_record(f, run, res);
}

void frame_print_hist(const struct frame *f, const struct frame_result *res, size_t n)
{
    struct bench_hist hist = {.n = 0};

    for (size_t i = 0; i < n; i++)
        bench_hist_add(&hist, f->samples[i]);
    bench_hist_print(&hist, stdout);
    printf("# p50 %.3f, p99 %.3f, p99.9 %.3f, max %.3f us of %zu\n", res->s.median, res->s.p99,
           res->s.p999, res->s.max, n);
    fflush(stdout);
}

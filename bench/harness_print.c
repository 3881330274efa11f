/* SPDX-License-Identifier: BSD-3-Clause */
/* harness_print.c: print a benchmark, and fill the fields of its records. */
#include "config.h"

#include "bench/harness.h"
#include "bench/harness_hist.h"

#include <stdio.h>
#include <string.h>

void frame_print_setting(const struct frame *f)
{
    enum { SHOWN = 400 }; /* of a text that grows with the ranks; records have all */
    const struct bench_setting *s = &f->setting;

    if (!frame_speaks())
        return;
    printf("# %s, %s\n", s->date, f->library);
    printf("# hosts: %.*s%s\n", SHOWN, s->hosts, strlen(s->hosts) > SHOWN ? "..." : "");
    printf("# placement: %.*s%s\n", SHOWN, s->placement, strlen(s->placement) > SHOWN ? "..." : "");
    if (s->gpus[0])
        printf("# gpus: %.*s%s\n", SHOWN, s->gpus, strlen(s->gpus) > SHOWN ? "..." : "");
    if (s->nics[0])
        printf("# nics: %.*s%s\n", SHOWN, s->nics, strlen(s->nics) > SHOWN ? "..." : "");
    if (s->device[0])
        printf("# device: %s\n", s->device);
}

void frame_print_head(const struct frame *f, const struct bench_entry *e)
{
    const struct bench_opts *o = &f->opts;
    char where[sizeof(f->host)];

    if (!frame_speaks())
        return;
    if (f->setting.nhosts > 1)
        snprintf(where, sizeof(where), "%d hosts", f->setting.nhosts);
    else
        snprintf(where, sizeof(where), "%s", f->host);
    printf("# %s %s: %s, %d ranks on %s%s%s\n", be_program, e->name, f->library, be_size(), where,
           f->setting.channel[0] ? ", by " : "", f->setting.channel);
    if (o->depth > 0 && e->queued)
        printf("# at most %lld messages outstanding; an iteration is a message\n", (long long)o->depth);
    if (o->untouched)
        printf("# buffers are not touched between iterations\n");
    else if (e->root || e->outside)
        printf("# buffers are written before and read after each %s, outside the timed part\n", o->depth > 0 && e->queued ? "sample" : "iteration");
    else if (e->table == BENCH_DEPTH)
        printf("# messages of 8 B, written before and read after each iteration, inside the timed part\n");
    else if (e->table != BENCH_IDLE)
        printf("# buffers are written before and read after each iteration: up to %d B inside the "
               "timed part, above it outside\n",
               BENCH_SMALL);
    if (o->mem[0].sort == BE_CUDA || o->mem[1].sort == BE_CUDA || (e->one_sided && bench_target(o, e).sort == BE_CUDA))
        printf("# device memory is written before a size and verified after it, and not touched between iterations\n");
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
    } else if (e->table == BENCH_BANDWIDTH || e->table == BENCH_LATENCY) {
        frame_print_columns(f, e);
    } else if (e->table == BENCH_RATE) {
        printf("# %-10s %18s %14s %10s %8s\n", "Size", "Messages/s", "Each (us)", "p99 (us)",
               "#wrong");
    } else {
        printf("# %-10s %14s %10s %10s", e->table == BENCH_DEPTH ? "Depth" : "Idle (us)", "Latency (us)", "min", "p99");
        if (e->extra[1])
            printf(" %13s", e->extra[1]);
        printf(" %8s\n", "#wrong");
    }
}

void frame_print_nothing(const struct bench_run *run, int64_t min, int64_t max)
{
    char type[24];

    printf("# no size from %lld to %lld B is so much as one %s%s\n", (long long)min, (long long)max,
           bench_word(bench_dtype_words, (int)BENCH_INDEX(run->dtype), type, sizeof(type)),
           run->entry->pieces ? " for each rank" : "");
}

static void print_row(const struct bench_run *run, const struct frame_result *res)
{
    const struct bench_entry *e = run->entry;
    const struct bench_stats *s = &res->s;
    char type[24], op[24], root[16], bad[24];

    snprintf(bad, sizeof(bad), "%lld", (long long)res->wrong);
    if (run->opts->check == 0 && res->wrong == 0)
        snprintf(bad, sizeof(bad), "N/A");
    if (e->table == BENCH_BANDWIDTH || e->table == BENCH_LATENCY) {
        frame_print_columns_row(run, res, bad);
        return;
    }
    if (e->table == BENCH_RATE) {
        printf("%-12lld %18.0f %14.4f %10.3f %8s\n", (long long)run->bytes, res->rate, s->median, s->p99, bad);
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
           e->dtype ? bench_word(bench_dtype_words, (int)BENCH_INDEX(run->dtype), type, sizeof(type)) : "none",
           e->op ? bench_word(bench_op_words, (int)BENCH_INDEX(run->op), op, sizeof(op)) : "none",
           e->root ? root : "-1", s->median, s->min, s->p99, res->alg, res->bus, bad);
}

static struct bench_field text_field(const char *key, const char *text)
{
    return (struct bench_field){.key = key, .kind = BENCH_FIELD_TEXT, .text = text};
}

static struct bench_field int_field(const char *key, int64_t number)
{
    return (struct bench_field){.key = key, .kind = BENCH_FIELD_INT, .number = number};
}

static struct bench_field real_field(const char *key, double real)
{
    return (struct bench_field){.key = key, .kind = BENCH_FIELD_REAL, .real = real};
}

static struct bench_field field_if(bool there, struct bench_field field)
{
    field.kind = there ? field.kind : BENCH_FIELD_NONE;
    return field;
}

static bool has_extra(const struct bench_entry *e, const char *name)
{
    return e->extra[0] && strcmp(e->extra[0], name) == 0;
}

/* The word of --target that says where the window is. */
static void harness_print_target(const struct bench_run *run, char *out, size_t len)
{
    struct be_mem target = bench_target(run->opts, run->entry);

    if (!run->opts->target_auto)
        snprintf(out, len, "%s", run->opts->target_text);
    else if (target.sort == BE_CUDA && target.device >= 0)
        snprintf(out, len, "cuda:%d", target.device);
    else
        snprintf(out, len, "%s", target.sort == BE_CUDA ? "cuda" : "alloc");
}

static void harness_print_write_record(struct frame *f, const struct bench_run *run, const struct frame_result *res)
{
    const struct bench_entry *e = run->entry;
    const struct bench_stats *s = &res->s;
    char type[24], op[24];
    struct bench_field wrong = int_field("wrong", res->wrong);
    char target[24];

    harness_print_target(run, target, sizeof(target));

    if (run->opts->check == 0 && res->wrong == 0)
        wrong.kind = BENCH_FIELD_NULL; /* not checked */
    const struct bench_field field[] = {
        text_field("bench", e->name),
        int_field("bytes", run->message),
        field_if(e->list, int_field("blocks", run->opts->blocks)),
        field_if(e->table == BENCH_DEPTH, int_field("depth", run->bytes)),
        field_if(e->table == BENCH_IDLE, int_field("idle_us", run->bytes)),
        int_field("iters", res->iters),
        int_field("samples", res->samples),
        real_field("min_us", s->min),
        real_field("median_us", s->median),
        real_field("p99_us", s->p99),
        real_field("p999_us", s->p999),
        real_field("max_us", s->max),
        real_field("avg_us", s->mean),
        real_field("stdev_us", s->stdev),
        int_field("operations", res->operations),
        real_field("peak_gbyte_per_s", res->peak),
        real_field("average_gbyte_per_s", res->average),
        real_field("algbw_gbyte_per_s", res->alg),
        real_field("busbw_gbyte_per_s", res->bus),
        real_field("messages_per_s", res->rate),
        field_if(has_extra(e, "overlap_pct"), real_field("overlap_pct", res->extra)),
        field_if(has_extra(e, "waiting_cpu_pct"), real_field("waiting_cpu_pct", res->extra)),
        wrong,
        field_if(e->dtype, text_field("type", bench_word(bench_dtype_words, (int)BENCH_INDEX(run->dtype), type, sizeof(type)))),
        field_if(e->op, text_field("redop", bench_word(bench_op_words, (int)BENCH_INDEX(run->op), op, sizeof(op)))),
        field_if(e->root, int_field("root", run->root)),
        text_field("program", be_program),
        text_field("version", PACKAGE_VERSION),
        text_field("library", f->library),
        text_field("date", f->setting.date),
        text_field("host", f->host),
        text_field("hosts", f->setting.hosts),
        int_field("ranks", be_size()),
        text_field("placement", f->setting.placement),
        text_field("channel", f->setting.channel),
        text_field("device", f->setting.device),
        text_field("mem", run->opts->mem_text),
        field_if(e->one_sided, text_field("target", target)),
        field_if(f->setting.gpus[0], text_field("gpus", f->setting.gpus)),
        field_if(f->setting.nics[0], text_field("nics", f->setting.nics)),
        field_if(e->both != NULL, (struct bench_field){.key = "bidirectional", .kind = BENCH_FIELD_BOOL, .number = run->lanes == 2}),
        field_if(bench_queued(run), int_field("tx_depth", run->inflight)),
        {.key = "untouched", .kind = BENCH_FIELD_BOOL, .number = run->opts->untouched},
    };

    bench_records_add(&f->records, field, (int)(sizeof(field) / sizeof(field[0])));
}

void frame_print_size(struct frame *f, const struct bench_run *run, const struct frame_result *res)
{
    print_row(run, res);
    if (res->samples < FRAME_P99_SAMPLES && f->few != run->entry && run->entry->table != BENCH_BANDWIDTH) {
        printf("# p99 is the slowest of %lld samples, no percentile: it needs %d\n", (long long)res->samples, FRAME_P99_SAMPLES);
        f->few = run->entry;
    }
    fflush(stdout);
    harness_print_write_record(f, run, res);
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

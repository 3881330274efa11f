/*
 * frame.c: from the command line to the tables: which benchmarks, which sizes,
 * how often, what is printed. Everything that times is in bench_*.c.
 */
#include "config.h"

#include "bench/bench.h"
#include "bench/frame_ctl.h"
#include "bench/frame_json.h"
#include "bench/frame_stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_SAMPLES = 20000, MIN_SAMPLES = 10, INFLIGHT_BYTES = 32 << 20 };

struct frame {
    struct bench_opts opts;
    struct bench_json json;
    char library[128], host[64], channel[16];
    double *samples;
    int64_t wrong; /* of all */
};

static bool speaks(void)
{
    return be_rank() == 0;
}

/* ---------------------------------------------------------------------- measuring */

/* Rank 0 has decided. */
static int64_t agreed(int64_t v)
{
    bench_ctl_bcast(&v, sizeof(v));
    return v;
}

static bool takes_part(const struct bench_run *run)
{
    return run->entry->table == BENCH_COLLECTIVE || be_rank() < 2;
}

static double sample(struct bench_run *run, int n)
{
    return takes_part(run) ? run->entry->sample(run, n) : 0;
}

/* Warm up, and learn how long one iteration takes: twice as many until a quarter of the time is
 * over. */
static double warm_up(struct bench_run *run)
{
    double us = 0, budget = (double)run->opts->time / 4e3, start = bench_now_us();
    int64_t n = 1;

    if (run->opts->warmup != BENCH_AUTO) {
        if (run->opts->warmup > 0)
            us = sample(run, (int)run->opts->warmup);
        return us;
    }
    for (;;) {
        us = sample(run, (int)n);
        n = agreed(bench_now_us() - start < budget && n < (1 << 20) ? n * 2 : 0);
        if (n == 0)
            return us;
    }
}

static int measure(struct frame *f, struct bench_run *run)
{
    /* A bandwidth test's sample is a message's share of its window. */
    double us = warm_up(run) * run->inflight;
    int64_t batch = 1, n;

    /* A reading of the clock costs some 25 ns: short ones are timed by the batch. */
    if (bench_inside(run))
        batch = us > 0 && us < 20 ? (int64_t)(20 / us) + 1 : 1;
    if (run->opts->iters != BENCH_AUTO) {
        if (batch > run->opts->iters)
            batch = run->opts->iters;
        n = (run->opts->iters + batch - 1) / batch;
    } else {
        n = us > 0 ? (int64_t)((double)run->opts->time / 1e3 / us / (double)batch) : MIN_SAMPLES;
        n = n < MIN_SAMPLES ? MIN_SAMPLES : n;
    }
    n = n > MAX_SAMPLES ? MAX_SAMPLES : n;
    run->batch = batch = agreed(batch);
    n = agreed(n);
    bench_ctl_meet();
    for (int64_t i = 0; i < n; i++)
        f->samples[i] = sample(run, (int)batch);
    if (run->entry->table == BENCH_COLLECTIVE)
        bench_ctl_combine(f->samples, (size_t)n, run->opts->average);
    return (int)n;
}

static int64_t verify(struct bench_run *run)
{
    int64_t wrong = 0;

    for (int64_t i = 0; i < run->opts->check; i++) {
        run->turn = (uint64_t)i * 977 + (uint64_t)run->bytes; /* the same on all ranks */
        if (takes_part(run))
            wrong += run->entry->check(run);
    }
    return bench_ctl_sum(wrong);
}

/* ----------------------------------------------------------------------- printing */

static void print_head(const struct frame *f, const struct bench_entry *e)
{
    const struct bench_opts *o = &f->opts;

    if (!speaks())
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

static void print_row(const struct frame *f, const struct bench_run *run,
                      const struct bench_stats *s, double alg, double bus, int64_t wrong)
{
    const struct bench_entry *e = run->entry;
    char type[24], op[24], root[16], bad[24];

    (void)f;
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

/* ----------------------------------------------------------------------- one size */

struct buffers {
    struct be_memory *smem, *rmem;
};

static void *get_buffer(const struct frame *f, size_t bytes, struct be_memory **mem)
{
    void *p = NULL;

    *mem = NULL;
    bytes = bytes ? bytes : 1;
    if (f->opts.mem == BENCH_MEM_ALLOC) {
        *mem = be_memory_create(bytes, &p);
        if (!*mem)
            be_abort(1, "the library has no memory for the buffers");
    } else if (posix_memalign(&p, 4096, bytes)) {
        be_abort(1, "out of memory for the buffers");
    }
    memset(p, 0, bytes);
    return p;
}

static void one_size(struct frame *f, struct bench_run *run)
{
    const struct bench_entry *e = run->entry;
    struct be_memory *smem, *rmem;
    struct bench_stats s;
    size_t room = (size_t)run->bytes;
    int64_t wrong;
    double alg, bus;
    int n;

    run->inflight = 1;
    if (e->table == BENCH_BANDWIDTH) {
        int64_t fit = run->bytes ? INFLIGHT_BYTES / run->bytes : f->opts.window;
        run->inflight = (int)(fit < 1 ? 1 : fit < f->opts.window ? fit : f->opts.window);
        room *= (size_t)run->inflight;
    }
    run->sbuf = get_buffer(f, room, &smem);
    run->rbuf = get_buffer(f, room, &rmem);
    run->reqs = calloc((size_t)run->inflight, sizeof(*run->reqs));
    if (!run->reqs)
        be_abort(1, "out of memory for requests");
    if (e->one_sided) {
        void *base;
        run->window = be_window_create(room ? room : 1, &base);
        if (!run->window)
            be_abort(1, "the library has no memory for the window");
        run->window_base = base;
    }
    n = measure(f, run);
    wrong = verify(run);
    if (speaks()) {
        s = bench_stats_of(f->samples, (size_t)n);
        alg = s.median > 0 ? (double)run->bytes / s.median / 1e3 : 0;
        bus = e->bus ? alg * e->bus(be_size()) : alg;
        print_row(f, run, &s, alg, bus, wrong);
        fflush(stdout);
        write_record(f, run, &s, alg, bus, n * run->batch, wrong);
        f->wrong += wrong;
    }
    if (run->window)
        be_window_destroy(run->window);
    run->window = NULL;
    if (smem)
        be_memory_destroy(smem);
    else
        free(run->sbuf);
    if (rmem)
        be_memory_destroy(rmem);
    else
        free(run->rbuf);
    free(run->reqs);
}

/* One way of a byte: what an answer costs. */
static double ack_time(struct bench_run *run)
{
    char c[2] = {0, 0};
    double v[200], t;

    if (be_rank() > 1)
        return 0;
    for (int i = 0; i < 200; i++) {
        t = bench_now_us();
        for (int k = 0; k < 20; k++) {
            if (be_rank() == 0) {
                be_send(c, 1, 1, BE_TAG_DATA);
                be_recv(c + 1, 1, 1, BE_TAG_DATA);
            } else {
                be_recv(c + 1, 1, 0, BE_TAG_DATA);
                be_send(c, 1, 0, BE_TAG_DATA);
            }
        }
        v[i] = (bench_now_us() - t) / 40;
    }
    (void)run;
    return bench_stats_of(v, 200).median;
}

/* ----------------------------------------------------------------- one benchmark */

/* Sizes become whole blocks of whole elements. */
static bool fit_size(struct bench_run *run, int64_t size)
{
    int64_t es = rank_dtype_size(run->dtype), blocks = run->entry->pieces ? be_size() : 1;

    if (run->entry->table != BENCH_COLLECTIVE) {
        run->bytes = size;
        return true;
    }
    run->count = size / es / blocks;
    run->bytes = run->count * es * blocks;
    return run->count > 0 || size == 0 || !run->entry->dtype;
}

static void all_sizes(struct frame *f, struct bench_run *run)
{
    const struct bench_opts *o = &f->opts;
    bool coll = run->entry->table == BENCH_COLLECTIVE;
    int64_t min = o->min != BENCH_AUTO ? o->min : coll ? 8 : 1;
    int64_t max = o->max != BENCH_AUTO ? o->max : coll ? 1 << 20 : 4 << 20;
    int64_t *sizes, last = -1;
    int n;

    if (!run->entry->dtype && coll)
        min = max = 0;
    sizes = bench_sizes(min, max < min ? min : max, o->step, o->factor, &n);
    if (!sizes)
        be_abort(1, "out of memory");
    for (int i = 0; i < n; i++) {
        int64_t *counts = NULL, *displs = NULL;

        if (!fit_size(run, sizes[i]) || run->bytes == last)
            continue;
        last = run->bytes;
        if (run->entry->pieces == 2) {
            counts = calloc((size_t)be_size(), sizeof(int64_t));
            displs = calloc((size_t)be_size(), sizeof(int64_t));
            if (!counts || !displs)
                be_abort(1, "out of memory");
            for (int r = 0; r < be_size(); r++) {
                counts[r] = run->count;
                displs[r] = run->count * r;
            }
            run->blocks = be_blocks_create(counts, displs, be_size());
        }
        one_size(f, run);
        if (run->blocks)
            be_blocks_destroy(run->blocks);
        run->blocks = NULL;
        free(counts);
        free(displs);
    }
    free(sizes);
}

static void run_entry(struct frame *f, const struct bench_entry *e)
{
    const struct bench_opts *o = &f->opts;
    int dt0 = o->dtype, dt1 = o->dtype, op0 = o->op, op1 = o->op;
    int r0 = (int)o->root, r1 = (int)o->root;
    double ack;
    struct bench_run run = {.opts = o, .entry = e};

    if (!e->dtype)
        dt0 = dt1 = RANK_BYTE;
    else if (o->dtype == RANK_DTYPE_COUNT)
        dt0 = 0, dt1 = RANK_DTYPE_COUNT - 1;
    if (!e->op)
        op0 = op1 = RANK_SUM;
    else if (o->op == RANK_OP_COUNT)
        op0 = 0, op1 = RANK_OP_COUNT - 1;
    if (!e->root)
        r0 = r1 = 0;
    else if (o->root == BENCH_AUTO)
        r0 = 0, r1 = be_size() - 1;
    ack = e->table == BENCH_COLLECTIVE ? 0 : ack_time(&run);
    print_head(f, e);
    for (int d = dt0; d <= dt1; d++) {
        for (int op = op0; op <= op1; op++) {
            if (e->dtype && !be_dtype_supported((rank_dtype_t)d))
                continue;
            if (e->op && !be_op_supported((rank_op_t)op, (rank_dtype_t)d))
                continue;
            for (int root = r0; root <= r1; root++) {
                run = (struct bench_run){.opts = o, .entry = e, .dtype = (rank_dtype_t)d,
                                         .op = (rank_op_t)op, .root = root, .ack_us = ack};
                all_sizes(f, &run);
            }
        }
    }
}

/* ------------------------------------------------------------------------ the whole */

static const struct bench_entry *find(const char *name)
{
    const struct bench_entry *const tables[] = {bench_p2p, bench_coll};

    for (int t = 0; t < 2; t++) {
        for (const struct bench_entry *e = tables[t]; e->name; e++) {
            if (strcmp(e->name, name) == 0)
                return e;
        }
    }
    return NULL;
}

static const char *nearest(const char *name)
{
    const struct bench_entry *const tables[] = {bench_p2p, bench_coll};
    const char *best = NULL;
    int least = (int)strlen(name) / 2 + 1;

    for (int t = 0; t < 2; t++) {
        for (const struct bench_entry *e = tables[t]; e->name; e++) {
            int d = rk_edit_distance(e->name, name);
            if (d < least) {
                least = d;
                best = e->name;
            }
        }
    }
    return best;
}

static void list(FILE *out)
{
    const struct bench_entry *const tables[] = {bench_p2p, bench_coll};

    for (int t = 0; t < 2; t++) {
        for (const struct bench_entry *e = tables[t]; e->name; e++)
            fprintf(out, "  %-16s %s\n", e->name, e->doc);
    }
}

static void help(void)
{
    printf("usage: %s [options] benchmark...\n\nMeasures messages, one-sided operations and "
           "collectives. Benchmarks:\n",
           be_program);
    list(stdout);
    printf("Options:\n");
    bench_opts_print(stdout);
}

/* What is wrong with the command line, or NULL. Every rank comes to the same. */
static const char *mistake(const struct frame *f, char *err, size_t len)
{
    const struct bench_opts *o = &f->opts;

    for (int i = 0; i < o->names_n; i++) {
        const struct bench_entry *e = find(o->names[i]);
        if (!e) {
            const char *near = nearest(o->names[i]);
            snprintf(err, len, "unknown benchmark %s%s%s%s; --list names them", o->names[i],
                     near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
            return err;
        }
        if (e->table != BENCH_COLLECTIVE && be_size() < 2) {
            snprintf(err, len, "%s needs 2 ranks: xrun -n 2 %s %s", e->name, be_program, e->name);
            return err;
        }
    }
    if (o->names_n == 0) {
        snprintf(err, len, "no benchmark is named; --list names them");
        return err;
    }
    if (o->root >= be_size()) {
        snprintf(err, len, "--root %lld: there are %d ranks", (long long)o->root, be_size());
        return err;
    }
    return NULL;
}

/* One rank says it and ends with the code: from the others it would be the same line again. */
static int fail(const char *text)
{
    if (speaks())
        fprintf(stderr, "%s: %s\n", be_program, text);
    return speaks() ? 2 : 0;
}

/* What the command line asks for, on a library that is up. Returns the exit code. */
static int run(struct frame *f, int argc, char **argv)
{
    char err[512];

    if (bench_opts_parse(&f->opts, argc, argv, err, sizeof(err)))
        return fail(err);
    if (f->opts.help || f->opts.list) {
        if (speaks() && f->opts.help)
            help();
        else if (speaks())
            list(stdout);
        return 0;
    }
    if (mistake(f, err, sizeof(err)))
        return fail(err);
    be_library(f->library, sizeof(f->library));
    if (gethostname(f->host, sizeof(f->host) - 1))
        snprintf(f->host, sizeof(f->host), "unknown");
    snprintf(f->channel, sizeof(f->channel), "%s", be_channel(be_size() > 1 ? (be_rank() + 1) % be_size() : 0));
    f->samples = calloc(MAX_SAMPLES, sizeof(double));
    if (!f->samples)
        be_abort(1, "out of memory");
    if (speaks() && f->opts.json[0] && bench_json_open(&f->json, f->opts.json)) {
        snprintf(err, sizeof(err), "--json %s: %m", f->opts.json);
        be_abort(2, err);
    }
    for (int i = 0; i < f->opts.names_n; i++)
        run_entry(f, find(f->opts.names[i]));
    if (f->json.out && bench_json_close(&f->json)) {
        snprintf(err, sizeof(err), "--json %s: %m", f->opts.json);
        be_abort(1, err);
    }
    if (f->wrong)
        fprintf(stderr, "%s: %lld elements were wrong\n", be_program, (long long)f->wrong);
    return f->wrong ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct frame f = {.wrong = 0};
    int rc;

    be_init(&argc, &argv);
    rc = run(&f, argc, argv);
    free(f.samples);
    bench_opts_free(&f.opts);
    be_finalize();
    return rc;
}

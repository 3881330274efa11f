/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * harness_measure.c: measure and check one benchmark, size by size.
 * It decides how many iterations run, and when. All timing is in bench_*.c.
 */
#include "bench/harness.h"
#include "bench/harness_ctl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INFLIGHT_BYTES = 32 << 20 };
/* Of a queue in a sample at least: it is filled and emptied once. */
enum { QUEUE_TURNS = 8 };

/* Rank 0 has decided. */
static int64_t agreed(int64_t v)
{
    bench_ctl_bcast(&v, sizeof(v));
    return v;
}

static bool harness_measure_takes_part(const struct bench_run *run)
{
    return run->entry->table == BENCH_COLLECTIVE || run->entry->all || be_rank() < 2;
}

static double harness_measure_sample(struct bench_run *run, int n)
{
    const struct bench_opts *o = run->opts;

    if (!harness_measure_takes_part(run))
        return 0;
    if (bench_queued(run))
        return run->entry->queued(run, n);
    return o->both && run->entry->both ? run->entry->both(run, n) : run->entry->sample(run, n);
}

/* Warm up, and learn how long one iteration takes: twice as many until a quarter of the time is
 * over, or as many as given, of which the first are slower. */
static double warm_up(struct bench_run *run)
{
    double us = 0, later, budget = (double)run->opts->time / 4e3, start = bench_now_us();
    int64_t n = 1, asked = run->opts->warmup;

    if (asked != BENCH_AUTO) {
        if (asked / 2 > 0)
            us = harness_measure_sample(run, (int)(asked / 2));
        later = asked > 0 ? harness_measure_sample(run, (int)(asked - asked / 2)) : 0;
        return later < us ? later : us;
    }
    for (;;) {
        us = harness_measure_sample(run, (int)n);
        n = agreed(bench_now_us() - start < budget && n < (1 << 20) ? n * 2 : 0);
        if (n == 0)
            return us;
    }
}

static void harness_measure_make_room(struct frame *f, int64_t n)
{
    size_t more = n > f->room ? (size_t)(n - f->room) : 0;
    double *samples, *extras;

    if (!more)
        return;
    samples = realloc(f->samples, (size_t)n * sizeof(*samples));
    f->samples = samples ? samples : f->samples;
    extras = realloc(f->extras, (size_t)n * sizeof(*extras));
    f->extras = extras ? extras : f->extras;
    if (!samples || !extras)
        be_abort(1, "out of memory for the samples; -n sets fewer");
    /* No page is touched for the first time while others wait. */
    memset(samples + f->room, 0, more * sizeof(*samples));
    memset(extras + f->room, 0, more * sizeof(*extras));
    f->room = n;
}

static double harness_measure_take(struct frame *f, struct bench_run *run, int64_t i, int iterations)
{
    run->iters += iterations;
    f->samples[i] = harness_measure_sample(run, iterations);
    f->extras[i] = run->extra;
    return f->samples[i];
}

/* Decides by the first two counted iterations whether to skip the warm-up. Returns how many have been taken. */
static int64_t probe(struct frame *f, struct bench_run *run, double *us)
{
    int64_t n = run->opts->iters == 1 ? 1 : 2;

    harness_measure_make_room(f, n);
    for (int64_t i = 0; i < n; i++) {
        double t = harness_measure_take(f, run, i, 1);
        *us = i == 0 || t < *us ? t : *us;
    }
    return n;
}

/* How many iterations the time holds, where one takes so long. */
static int64_t within_time(const struct bench_run *run, double us)
{
    double each = run->entry->table == BENCH_IDLE ? us + (double)run->bytes : us;
    double n = each > 0 ? (double)run->opts->time / 1e3 / each : 0;

    return n < 1e12 ? (int64_t)n : 1000000000000;
}

/* The most samples where the time decides the number: a short one is not all that its iteration takes. */
static int64_t most_samples(const struct bench_opts *o)
{
    int64_t times = o->time / 100000000, n = o->hist ? FRAME_HIST_SAMPLES : FRAME_TIME_SAMPLES;

    return times > FRAME_MAX_SAMPLES / n ? FRAME_MAX_SAMPLES : times > 1 ? times * n : n;
}

/* Messages or other operations of so many iterations, one way. */
static int64_t harness_measure_operations(const struct bench_run *run, int64_t iters)
{
    return bench_queued(run) ? iters : iters * run->inflight * (run->entry->rounds ? run->entry->rounds : 1);
}

static int64_t harness_measure_measure(struct frame *f, struct bench_run *run)
{
    const struct bench_entry *e = run->entry;
    const struct bench_opts *o = run->opts;
    double us = warm_up(run), least_us = e->sample_us > 0 ? e->sample_us : 20;
    int64_t batch = 1, n, left, done = 0, min = e->table == BENCH_IDLE ? 3 : FRAME_MIN_SAMPLES;

    bench_ctl_meet();
    if (o->warmup == 0 || o->warmup == 1)
        done = probe(f, run, &us);
    us *= (double)harness_measure_operations(run, 1); /* a window's sample is a message's share of it */
    /* A reading of the clock costs some 25 ns: short ones are timed by the batch. */
    if ((bench_inside(run) && !o->hist) || bench_queued(run))
        batch = us > 0 && us < least_us ? (int64_t)(least_us / us) + 1 : 1;
    if (bench_queued(run) && batch < (int64_t)QUEUE_TURNS * run->inflight)
        batch = (int64_t)QUEUE_TURNS * run->inflight;
    if (o->iters != BENCH_AUTO) {
        left = o->iters - done;
        n = (left + batch - 1) / batch;
        n = n > FRAME_MAX_SAMPLES ? FRAME_MAX_SAMPLES : n;
    } else {
        n = within_time(run, us) / batch;
        n = n < min ? min : n > most_samples(o) ? most_samples(o) : n;
        left = n * batch;
    }
    left = agreed(left);
    n = agreed(n);
    harness_measure_make_room(f, done + n);
    bench_ctl_meet();
    for (int64_t i = 0; i < n; i++)
        harness_measure_take(f, run, done + i, (int)(left / n + (i < left % n)));
    n += done;
    if (e->table == BENCH_COLLECTIVE || e->all)
        bench_ctl_combine(f->samples, (size_t)n, e->all ? BENCH_MAX : o->average);
    return n;
}

static int64_t verify(struct bench_run *run)
{
    bool all = run->entry->check_all && (bench_queued(run) || run->opts->both);
    int64_t wrong = 0;

    for (int64_t i = 0; i < run->opts->check; i++) {
        run->turn = (uint64_t)i * 977 + (uint64_t)run->bytes; /* the same on all ranks */
        if (harness_measure_takes_part(run))
            wrong += all ? run->entry->check_all(run) : run->entry->check(run);
    }
    return bench_ctl_sum(wrong);
}

/* ----------------------------------------------------------------------- one size */

static void no_room(const char *subject, size_t bytes)
{
    char text[128];

    snprintf(text, sizeof(text), "%s no memory for %zu bytes (--maxbytes, --window)", subject, bytes);
    be_abort(1, text);
}

/* Device memory is written once, with bytes of numbers that are normal ones of every type. */
static void add_far(struct bench_run *run, void *base, size_t bytes)
{
    run->far[run->nfar++] = (struct bench_far){base, bytes};
    bench_clear(run, base, 0x38, (int64_t)bytes);
}

static void *get_buffer(struct bench_run *run, size_t bytes, struct be_mem where, struct be_memory **mem)
{
    void *p = NULL;

    *mem = NULL;
    bytes = bytes ? bytes : 1;
    if (where.sort != BE_MALLOC) {
        *mem = be_memory_create(bytes, where, &p);
        if (!*mem)
            no_room(be_needs_device(where) ? "the device has" : "the library has", bytes);
    } else if (posix_memalign(&p, 4096, bytes)) {
        no_room("there is", bytes);
    }
    if (where.sort == BE_CUDA)
        add_far(run, p, bytes);
    else
        memset(p, 0, bytes);
    return p;
}

/* How many messages a window has, where they lie, and how many bytes all of them need. */
static size_t lay_out(struct bench_run *run)
{
    enum { APART = 128 }; /* two lines: they are fetched in pairs */
    const struct bench_entry *e = run->entry;
    int64_t window = bench_queued(run) ? run->opts->depth : run->opts->window, fit;

    run->message = e->table == BENCH_DEPTH || e->table == BENCH_IDLE ? 8 : run->bytes;
    run->stride = e->apart ? (run->message + APART - 1) / APART * APART : run->message;
    run->inflight = 1;
    run->lanes = 1;
    if (bench_windowed(e) || bench_queued(run)) {
        fit = run->stride ? INFLIGHT_BYTES / run->stride : window;
        run->inflight = (int)(fit < 1 ? 1 : fit < window ? fit : window);
    }
    return (size_t)run->stride * (size_t)run->inflight;
}

static void conclude(struct frame *f, const struct bench_run *run, int64_t n, int64_t wrong)
{
    const struct bench_entry *e = run->entry;
    struct frame_result r = {.s = bench_stats_of(f->samples, (size_t)n), .iters = run->iters, .samples = n, .wrong = wrong,
                             .operations = harness_measure_operations(run, run->iters)};

    if (r.s.median > 0) {
        r.rate = run->lanes * 1e6 / r.s.median;
        r.alg = (double)run->message * run->lanes / r.s.median / 1e3;
    }
    if (r.s.mean > 0)
        r.average = (double)run->message * run->lanes / r.s.mean / 1e3;
    if (r.s.min > 0)
        r.peak = (double)run->message * run->lanes / r.s.min / 1e3;
    r.bus = e->bus ? r.alg * e->bus(be_size()) : r.alg;
    if (e->extra[0])
        r.extra = bench_stats_of(f->extras, (size_t)n).median;
    frame_print_size(f, run, &r);
    frame_check_limits(f, run, &r);
    if (run->opts->hist)
        frame_print_hist(f, &r, (size_t)n);
    f->wrong += wrong;
}

static void one_size(struct frame *f, struct bench_run *run)
{
    enum { BEHIND = 512 };
    const struct bench_entry *e = run->entry;
    struct be_memory *smem, *rmem;
    size_t room = lay_out(run);
    int64_t wrong, n;

    run->iters = 0;
    run->nfar = 0;
    run->sbuf = get_buffer(run, room, f->opts.mem[0], &smem);
    run->rbuf = get_buffer(run, room, f->opts.mem[1], &rmem);
    run->reqs = calloc(2 * (size_t)run->inflight, sizeof(*run->reqs));
    if (!run->reqs)
        be_abort(1, "out of memory for requests");
    if (e->one_sided) {
        void *base;
        if (e->window)
            room = room * (size_t)e->window + BEHIND;
        room = room ? room : 1;
        run->window = be_window_create(room, bench_target(&f->opts, e), &base);
        if (!run->window)
            no_room("the library has", room);
        if (bench_target(&f->opts, e).sort == BE_CUDA)
            add_far(run, base, room);
        run->window_base = base;
    }
    if (e->begin)
        e->begin(run);
    n = harness_measure_measure(f, run);
    wrong = verify(run);
    if (e->end)
        wrong += bench_ctl_sum(e->end(run));
    if (frame_speaks())
        conclude(f, run, n, wrong);
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
static double ack_time(void)
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

/* The least and the most where the user gives none; if they are equal, there is no other. */
static void default_sizes(const struct bench_opts *o, const struct bench_entry *e, int64_t *min, int64_t *max)
{
    static const int64_t of[][2] = {
        [BENCH_LATENCY] = {1, 4 << 20}, [BENCH_BANDWIDTH] = {1, 4 << 20},
        [BENCH_COLLECTIVE] = {8, 1 << 20}, [BENCH_RATE] = {1, 4096},
        [BENCH_DEPTH] = {1, 16384}, [BENCH_IDLE] = {1000, 1024000},
    };

    *min = e->least ? e->least : of[e->table][0];
    *max = e->most ? e->most : of[e->table][1];
    if (e->table == BENCH_COLLECTIVE && !e->dtype)
        *min = *max = 0;
    if (e->list)
        *min = *max = o->blocks * o->block;
}

static void all_sizes(struct frame *f, struct bench_run *run)
{
    int64_t last = -1, min, max, n = 0;
    const struct bench_opts *o = &f->opts;

    default_sizes(o, run->entry, &min, &max);
    if (min != max) {
        min = o->min != BENCH_AUTO ? o->min : min;
        max = o->max != BENCH_AUTO ? o->max : max;
    }
    for (int64_t size = min; size >= 0; size = bench_next_size(size, max, o->step, o->factor)) {
        int64_t *counts = NULL, *displs = NULL;

        if (!fit_size(run, size) || run->bytes == last)
            continue;
        last = run->bytes;
        n++;
        if (run->entry->pieces) {
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
    if (n == 0 && frame_speaks())
        frame_print_nothing(run, min, max);
}

void frame_run_entry(struct frame *f, const struct bench_entry *e)
{
    const struct bench_opts *o = &f->opts;
    int dt0 = o->dtype, dt1 = o->dtype, op0 = o->op, op1 = o->op;
    int r0 = (int)o->root, r1 = (int)o->root;
    double ack;
    struct bench_run run;

    if (!e->dtype)
        dt0 = dt1 = BENCH_INDEX(RANK_BYTE);
    else if (o->dtype == BENCH_DTYPES)
        dt0 = 0, dt1 = BENCH_DTYPES - 1;
    if (!e->op)
        op0 = op1 = BENCH_INDEX(RANK_SUM);
    else if (o->op == BENCH_OPS)
        op0 = 0, op1 = BENCH_OPS - 1;
    if (!e->root)
        r0 = r1 = 0;
    else if (o->root == BENCH_AUTO)
        r0 = 0, r1 = be_size() - 1;
    ack = e->table == BENCH_COLLECTIVE ? 0 : ack_time();
    frame_print_head(f, e);
    for (int d = dt0; d <= dt1; d++) {
        for (int op = op0; op <= op1; op++) {
            if (e->dtype && !be_dtype_supported(bench_dtype(d)))
                continue;
            if (e->op && !bench_has_op(e, bench_op(op), bench_dtype(d)))
                continue;
            for (int root = r0; root <= r1; root++) {
                run = (struct bench_run){.opts = o, .entry = e, .dtype = bench_dtype(d),
                                         .op = bench_op(op), .root = root, .ack_us = ack};
                all_sizes(f, &run);
            }
        }
    }
}


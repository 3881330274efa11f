/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * harness.c: run the benchmarks of a command line and sum up their results.
 * See harness.h.
 */
#include "bench/harness.h"
#include "bench/harness_ctl.h"
#include "bench/harness_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct bench_entry *const tables[] = {bench_p2p,  bench_rate, bench_match,
                                                   bench_wait, bench_rma,
                                                   bench_signal, bench_strided, bench_xfer, bench_coll,
                                                   bench_coll_forms};

/* Exit code: a size misses a limit. */
enum { HARNESS_MISSED = 3 };
enum { TABLES = sizeof(tables) / sizeof(tables[0]) };

/* The i-th benchmark that name means: its own, or, if it is the first word of some, all these
 * ("matchq": matchq_posted, matchq_unexpected). NULL: there are no more. */
static const struct bench_entry *harness_find(const char *name, int i)
{
    size_t len = strlen(name);

    for (int t = 0; t < TABLES; t++) {
        for (const struct bench_entry *e = tables[t]; e->name; e++) {
            if (strcmp(e->name, name) == 0)
                return i == 0 ? e : NULL;
        }
    }
    for (int t = 0; t < TABLES; t++) {
        for (const struct bench_entry *e = tables[t]; e->name; e++) {
            if (strncmp(e->name, name, len) == 0 && e->name[len] == '_' && i-- == 0)
                return e;
        }
    }
    return NULL;
}

/* The first benchmark whose help has that word ("bandwidth": bw), or else one with a similar name. NULL: there is none. */
static const char *harness_nearest(const char *name)
{
    const char *best = NULL, *about = NULL;
    int least = (int)strlen(name) / 2 + 1;

    for (int t = 0; t < TABLES; t++) {
        for (const struct bench_entry *e = tables[t]; e->name; e++) {
            int d = rk_edit_distance(e->name, name);
            if (d < least) {
                least = d;
                best = e->name;
            }
            if (!about && strlen(name) > 3 && strcasestr(e->doc, name))
                about = e->name;
        }
    }
    return about ? about : best;
}

static void harness_list(FILE *out)
{
    for (int t = 0; t < TABLES; t++) {
        for (const struct bench_entry *e = tables[t]; e->name; e++)
            fprintf(out, "  %-22s %s\n", e->name, e->doc);
    }
}

static void harness_help(void)
{
    printf("usage: %s [options] benchmark...\n\nMeasures messages, one-sided operations and "
           "collectives. Benchmarks:\n",
           be_program);
    harness_list(stdout);
    printf("Options:\n");
    bench_opts_print(stdout);
}

/* An option that a benchmark does not have, or a limit that no benchmark has. Returns false if there is none. */
static bool harness_misplaced(const struct bench_opts *o, char *err, size_t len)
{
    const struct bench_entry *e;
    bool bw = o->limit_bw > 0, lat = o->limit_lat > 0;

    for (int i = 0; i < o->names_n; i++) {
        for (int k = 0; (e = harness_find(o->names[i], k)); k++) {
            bw = bw && e->table != BENCH_BANDWIDTH;
            lat = lat && e->table != BENCH_LATENCY;
            if ((o->both && !e->both) || (o->depth > 0 && !e->queued)) {
                snprintf(err, len, "%s has no %s; bw, put_bw and get_bw have it", e->name,
                         o->both && !e->both ? "--bidirectional" : "--tx-depth");
                return true;
            }
        }
    }
    if (bw || lat)
        snprintf(err, len, bw ? "--limit-bw: no bandwidth is named, such as put_bw" : "--limit-lat: no latency is named, such as put_lat");
    return bw || lat;
}

/* What is wrong with the command line, or NULL. Every rank comes to the same. */
static const char *mistake(const struct frame *f, char *err, size_t len)
{
    const struct bench_opts *o = &f->opts;
    const struct bench_entry *e;

    for (int i = 0; i < o->names_n; i++) {
        e = harness_find(o->names[i], 0);
        if (!e) {
            const char *near = harness_nearest(o->names[i]);
            snprintf(err, len, "unknown benchmark %s%s%s%s; --list names them", o->names[i],
                     near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
            return err;
        }
        if (e->table != BENCH_COLLECTIVE && be_size() < 2) {
            snprintf(err, len, "%s needs 2 ranks: xrun -n 2 %s %s", e->name, be_program, e->name);
            return err;
        }
        if (e->op && o->dtype < BENCH_DTYPES && o->op < BENCH_OPS &&
            !bench_has_op(e, bench_op(o->op), bench_dtype(o->dtype))) {
            char op[32], type[32];
            snprintf(err, len, "%s: there is no %s of %s; -o names another, or all", e->name,
                     bench_word(bench_op_words, o->op, op, sizeof(op)), bench_word(bench_dtype_words, o->dtype, type, sizeof(type)));
            return err;
        }
    }
    for (int i = 0; i < o->names_n; i++) {
        for (int k = 0; (e = harness_find(o->names[i], k)); k++) {
            if (e->on_host && (o->target.sort == BE_CUDA || o->mem[0].sort == BE_CUDA || o->mem[1].sort == BE_CUDA))
                snprintf(err, len, "%s: %s work on host memory only; leave out --mem cuda and --target cuda", e->name, e->on_host);
            else if (e->signals && o->target.sort == BE_CUDA)
                snprintf(err, len, "%s: signals are in host memory only; leave out --target cuda", e->name);
            else
                continue;
            return err;
        }
    }
    if (o->names_n == 0) {
        snprintf(err, len, "no benchmark is named; --list names them");
        return err;
    }
    if (harness_misplaced(o, err, len))
        return err;
    if (o->hist && o->depth > 0) {
        snprintf(err, len, "--hist times each message alone; leave out --tx-depth");
        return err;
    }
    if (o->pairs > be_size() / 2) {
        snprintf(err, len, "--pairs %lld: there are %d ranks", (long long)o->pairs, be_size());
        return err;
    }
    if (o->hist && o->iters > FRAME_MAX_SAMPLES) {
        snprintf(err, len, "--hist keeps the time of each iteration: --iters %lld is more than %d", (long long)o->iters,
                 FRAME_MAX_SAMPLES);
        return err;
    }
    if (o->root >= be_size()) {
        snprintf(err, len, "--root %lld: there are %d ranks", (long long)o->root, be_size());
        return err;
    }
    return NULL;
}

/* One rank prints it and ends with the code: from the others it would be the same line again. */
static int harness_fail(const char *text)
{
    if (frame_speaks())
        fprintf(stderr, "%s: %s\n", be_program, text);
    return frame_speaks() ? 2 : 0;
}

/* Has all that was printed got there? Returns 0, or ends the job. */
static int harness_written(char *err, size_t len)
{
    if (fflush(stdout) || ferror(stdout)) {
        snprintf(err, len, "cannot write to the standard output: %m");
        be_abort(1, err);
    }
    return 0;
}

/* The words of a command line, in a row; cut where there is no room. */
static void harness_join(char *out, size_t len, char **words)
{
    size_t n = 0;

    out[0] = '\0';
    for (; *words && n < len; words++)
        n += (size_t)snprintf(out + n, len - n, "%s%s", n ? " " : "", *words);
}

/* Ranks that measure different things wait for each other for ever (xrun -n 1 rankbench lat : -n 1 rankbench bw). */
static void harness_agree(char **argv)
{
    char first[256], mine[sizeof(first)] = "", err[2 * sizeof(first) + 100];

    harness_join(mine, sizeof(mine), argv + 1);
    memcpy(first, mine, sizeof(first));
    bench_ctl_bcast(first, sizeof(first));
    if (strcmp(first, mine) == 0)
        return;
    snprintf(err, sizeof(err), "rank %d is to measure '%s' and rank 0 '%s': all ranks need the same words", be_rank(), mine, first);
    be_abort(2, err);
}

/* Load the device's driver before the library's init, if the command line is right and needs it. */
static void harness_prepare_device(int argc, char **argv)
{
    struct bench_opts opts;
    char err[512];

    if (!bench_opts_parse(&opts, argc, argv, err, sizeof(err)) && bench_opts_need_device(&opts) && !opts.help && !opts.list)
        be_device_prepare();
    bench_opts_free(&opts);
}

/* What keeps a rank from its device, at rank 0; "": nothing. */
static void harness_device_problem(const struct bench_opts *o, char *out, size_t len)
{
    enum { ROOM = 512 };
    const struct be_mem mem[] = {o->mem[0], o->mem[1], o->target};
    const char *const option[] = {"--mem", "--mem", "--target"};
    char mine[ROOM] = "", why[ROOM - 128], *all = frame_speaks() ? calloc((size_t)be_size(), ROOM) : NULL;

    for (int i = 0; i < 3 && !mine[0]; i++) {
        if (be_needs_device(mem[i]) && !be_device_usable(mem[i], why, sizeof(why)))
            snprintf(mine, sizeof(mine), "%s %.40s: %s", option[i], i < 2 ? o->mem_text : o->target_text, why);
    }
    if (frame_speaks() && !all)
        be_abort(1, "out of memory");
    bench_ctl_gather(mine, ROOM, all);
    out[0] = '\0';
    for (int r = 0; all && r < be_size() && !out[0]; r++)
        snprintf(out, len, "%s", all + (size_t)r * ROOM);
    free(all);
    bench_ctl_bcast(out, len);
}

/* Run what the command line names, after the library's init. Returns the exit code. */
static int harness_run(struct frame *f, int argc, char **argv)
{
    const struct bench_entry *e;
    const char *option;
    char err[512];
    bool missed;

    harness_agree(argv);
    if (bench_opts_parse(&f->opts, argc, argv, err, sizeof(err)))
        return harness_fail(err);
    if (f->opts.help || f->opts.list) {
        if (frame_speaks() && f->opts.help)
            harness_help();
        else if (frame_speaks())
            harness_list(stdout);
        return harness_written(err, sizeof(err));
    }
    if (mistake(f, err, sizeof(err)))
        return harness_fail(err);
    if (bench_opts_need_device(&f->opts)) {
        harness_device_problem(&f->opts, err, sizeof(err));
        if (err[0])
            return harness_fail(err);
    }
    be_library(f->library, sizeof(f->library));
    if (gethostname(f->host, sizeof(f->host)))
        snprintf(f->host, sizeof(f->host), "unknown");
    if (frame_speaks() && (option = bench_records_open(&f->records, f->opts.json, f->opts.csv))) {
        snprintf(err, sizeof(err), "%s %s: %m", option, strcmp(option, "--csv") == 0 ? f->opts.csv : f->opts.json);
        be_abort(2, err);
    }
    if (bench_setting_collect(&f->setting, f->opts.mem[0].sort == BE_ALLOC && f->opts.mem[1].sort == BE_ALLOC,
                              bench_opts_need_device(&f->opts)))
        be_abort(1, "out of memory for the description of hosts and devices");
    frame_print_setting(f);
    for (int i = 0; i < f->opts.names_n; i++) {
        for (int k = 0; (e = harness_find(f->opts.names[i], k)); k++)
            frame_run_entry(f, e);
    }
    if (frame_speaks() && (option = bench_records_close(&f->records))) {
        snprintf(err, sizeof(err), "%s %s: %m", option, strcmp(option, "--csv") == 0 ? f->opts.csv : f->opts.json);
        be_abort(1, err);
    }
    harness_written(err, sizeof(err));
    if (f->wrong)
        fprintf(stderr, "%s: %lld elements were wrong\n", be_program, (long long)f->wrong);
    missed = frame_print_missed(f);
    return f->wrong ? 1 : missed ? HARNESS_MISSED : 0;
}

int main(int argc, char **argv)
{
    struct frame f = {.wrong = 0};
    int rc;

    harness_prepare_device(argc, argv);
    if (harness_link(&argc, &argv))
        harness_prepare_device(argc, argv); /* by the words of the other side */
    else
        be_init(&argc, &argv);
    rc = harness_run(&f, argc, argv);
    free(f.samples);
    free(f.extras);
    bench_opts_free(&f.opts);
    bench_setting_free(&f.setting);
    be_finalize();
    return rc;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_coll_forms.c: measure an allreduce as a request. */
#include "bench/bench.h"
#include "bench/harness_stats.h"

#include <stdlib.h>
#include <string.h>

enum { PURE_CALLS = 31 };

/* What iallreduce_overlap has: the call's own time, which is then also that of the computation. */
struct forms {
    double pure_us;
    be_request_t req; /* of allreduce_persistent */
};

static void nonblocking(struct bench_run *r)
{
    be_request_t req;

    be_iallreduce(r->sbuf, r->rbuf, r->count, r->dtype, r->op, &req);
    be_waitall(1, &req);
}

static void persistent(struct bench_run *r)
{
    struct forms *f = r->state;

    be_start(&f->req);
    be_waitall(1, &f->req);
}

/* Inlined into one function a form, so that the call in the loop is direct. */
static inline __attribute__((always_inline)) double timed_form(struct bench_run *run, int n, void (*one)(struct bench_run *))
{
    int64_t bytes = run->count * rank_dtype_size(run->dtype);
    bool inside = bench_inside(run);
    double t = bench_now_us(), sum = 0;

    for (int i = 0; i < n; i++) {
        bench_write(run, run->sbuf, bytes);
        if (!inside) {
            be_barrier();
            t = bench_now_us();
        }
        one(run);
        if (!inside)
            sum += bench_now_us() - t;
        bench_read(run, run->rbuf, bytes);
    }
    return (inside ? bench_now_us() - t : sum) / n;
}

static double nonblocking_sample(struct bench_run *r, int n) { return timed_form(r, n, nonblocking); }
static double persistent_sample(struct bench_run *r, int n) { return timed_form(r, n, persistent); }

static int64_t sum_check(struct bench_run *run, void (*one)(struct bench_run *))
{
    bench_fill(run, be_size(), be_rank(), run->sbuf, 0, run->count);
    bench_clear(run, run->rbuf, 0x55, run->count * rank_dtype_size(run->dtype));
    one(run);
    return bench_wrong(run, be_size(), run->rbuf, 0, run->count);
}

static int64_t form_check(struct bench_run *run)
{
    return sum_check(run, nonblocking);
}

static int64_t restarted_check(struct bench_run *run)
{
    return sum_check(run, persistent);
}

static void forms_begin(struct bench_run *run)
{
    run->state = calloc(1, sizeof(struct forms));
    if (!run->state)
        be_abort(1, "out of memory");
}

static int64_t forms_end(struct bench_run *run)
{
    free(run->state);
    run->state = NULL;
    return 0;
}

static void persistent_begin(struct bench_run *run)
{
    struct forms *f;

    forms_begin(run);
    f = run->state;
    if (!be_allreduce_init(run->sbuf, run->rbuf, run->count, run->dtype, run->op, &f->req))
        be_abort(2, "this library has no persistent collectives");
}

static int64_t persistent_end(struct bench_run *run)
{
    struct forms *f = run->state;

    be_request_free(&f->req);
    return forms_end(run);
}

/* All begin together; each computes for so long between start and wait. */
static double overlapped(struct bench_run *run, double us)
{
    int64_t bytes = run->count * rank_dtype_size(run->dtype);
    be_request_t req;
    double t;

    bench_write(run, run->sbuf, bytes);
    be_barrier();
    t = bench_now_us();
    be_iallreduce(run->sbuf, run->rbuf, run->count, run->dtype, run->op, &req);
    bench_compute(us);
    be_waitall(1, &req);
    t = bench_now_us() - t;
    bench_read(run, run->rbuf, bytes);
    return t;
}

static void overlapped_begin(struct bench_run *run)
{
    struct forms *f;
    double v[PURE_CALLS], sum;

    forms_begin(run);
    f = run->state;
    for (int i = -PURE_CALLS / 2; i < PURE_CALLS; i++)
        v[i < 0 ? 0 : i] = overlapped(run, 0);
    f->pure_us = bench_stats_of(v, PURE_CALLS).median;
    be_allreduce(&f->pure_us, &sum, 1, RANK_F64, RANK_SUM);
    f->pure_us = sum / be_size();
}

static double overlapped_sample(struct bench_run *run, int n)
{
    double pure = ((struct forms *)run->state)->pure_us, sum = 0, hidden;

    for (int i = 0; i < n; i++)
        sum += overlapped(run, pure);
    sum /= n;
    hidden = pure > 0 ? 100 * (1 - (sum - pure) / pure) : 0;
    run->extra = hidden < 0 ? 0 : hidden > 100 ? 100 : hidden;
    return sum;
}

const struct bench_entry bench_coll_forms[] = {
    {.name = "iallreduce", .doc = "started, then waited for", .table = BENCH_COLLECTIVE, .dtype = true, .op = true,
     .sample = nonblocking_sample, .check = form_check},
    {.name = "allreduce_persistent", .doc = "made once, then started and waited for", .table = BENCH_COLLECTIVE, .dtype = true,
     .op = true, .begin = persistent_begin, .end = persistent_end, .sample = persistent_sample, .check = restarted_check},
    {.name = "iallreduce_overlap", .doc = "an iallreduce during which all ranks compute, and how much that hides",
     .table = BENCH_COLLECTIVE, .dtype = true, .op = true, .single = true, .extra = {"overlap_pct", "Hidden (%)"},
     .begin = overlapped_begin, .end = forms_end, .sample = overlapped_sample, .check = form_check},
    {.name = NULL},
};

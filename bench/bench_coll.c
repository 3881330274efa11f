/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_coll.c: measure the collectives.
 * Sizes are nccl-tests': the whole vector, of which each rank has a block where there are blocks.
 */
#include "bench/bench.h"

#include <string.h>

static int64_t block(const struct bench_run *run)
{
    return run->count * rank_dtype_size(run->dtype);
}

/* Bytes that this rank gives to one collective, and gets from it. */
static int64_t bytes_in(const struct bench_run *run)
{
    return run->entry->pieces & 1 ? block(run) * be_size() : block(run);
}

static int64_t bytes_out(const struct bench_run *run)
{
    return run->entry->pieces & 2 ? block(run) * be_size() : block(run);
}

static void one_barrier(struct bench_run *r)
{
    (void)r;
    be_barrier();
}

static void one_bcast(struct bench_run *r)
{
    be_bcast(be_rank() == r->root ? r->sbuf : r->rbuf, r->count, r->dtype, r->root);
}

static void one_reduce(struct bench_run *r)
{
    be_reduce(r->sbuf, r->rbuf, r->count, r->dtype, r->op, r->root);
}

static void one_allreduce(struct bench_run *r)
{
    be_allreduce(r->sbuf, r->rbuf, r->count, r->dtype, r->op);
}

static void one_gather(struct bench_run *r)
{
    be_gather(r->sbuf, r->rbuf, r->count, r->dtype, r->root);
}

static void one_allgather(struct bench_run *r)
{
    be_allgather(r->sbuf, r->rbuf, r->count, r->dtype);
}

static void one_allgatherv(struct bench_run *r)
{
    be_allgatherv(r->sbuf, r->rbuf, r->blocks, r->dtype);
}

static void one_scatter(struct bench_run *r)
{
    be_scatter(r->sbuf, r->rbuf, r->count, r->dtype, r->root);
}

static void one_reduce_scatter(struct bench_run *r)
{
    be_reduce_scatter(r->sbuf, r->rbuf, r->count, r->dtype, r->op);
}

static void one_alltoall(struct bench_run *r)
{
    be_alltoall(r->sbuf, r->rbuf, r->count, r->dtype);
}

static void one_gatherv(struct bench_run *r)
{
    be_gatherv(r->sbuf, r->rbuf, r->blocks, r->dtype, r->root);
}

static void one_scatterv(struct bench_run *r)
{
    be_scatterv(r->sbuf, r->rbuf, r->blocks, r->dtype, r->root);
}

static void one_alltoallv(struct bench_run *r)
{
    be_alltoallv(r->sbuf, r->rbuf, r->blocks, r->dtype);
}

static void one_reduce_scatterv(struct bench_run *r)
{
    be_reduce_scatterv(r->sbuf, r->rbuf, r->blocks, r->dtype, r->op);
}

static void one_scan(struct bench_run *r)
{
    be_scan(r->sbuf, r->rbuf, r->count, r->dtype, r->op);
}

static void one_exscan(struct bench_run *r)
{
    be_exscan(r->sbuf, r->rbuf, r->count, r->dtype, r->op);
}

/* Inlined into one function per collective, so that the call in the loop is direct. */
static inline __attribute__((always_inline)) double timed(struct bench_run *run, int n,
                                                          void (*one)(struct bench_run *))
{
    int64_t in = bytes_in(run), out = bytes_out(run);
    double t, sum = 0;

    if (bench_inside(run)) {
        t = bench_now_us();
        for (int i = 0; i < n; i++) {
            bench_write(run, run->sbuf, in);
            one(run);
            bench_read(run, run->rbuf, out);
        }
        return (bench_now_us() - t) / n;
    }
    for (int i = 0; i < n; i++) {
        bench_write(run, run->sbuf, in);
        be_barrier();
        t = bench_now_us();
        one(run);
        sum += bench_now_us() - t;
        bench_read(run, run->rbuf, out);
    }
    return sum / n;
}

static double barrier_sample(struct bench_run *r, int n) { return timed(r, n, one_barrier); }
static double bcast_sample(struct bench_run *r, int n) { return timed(r, n, one_bcast); }
static double reduce_sample(struct bench_run *r, int n) { return timed(r, n, one_reduce); }
static double allreduce_sample(struct bench_run *r, int n) { return timed(r, n, one_allreduce); }
static double gather_sample(struct bench_run *r, int n) { return timed(r, n, one_gather); }
static double allgather_sample(struct bench_run *r, int n) { return timed(r, n, one_allgather); }
static double allgatherv_sample(struct bench_run *r, int n) { return timed(r, n, one_allgatherv); }
static double scatter_sample(struct bench_run *r, int n) { return timed(r, n, one_scatter); }
static double reduce_scatter_sample(struct bench_run *r, int n) { return timed(r, n, one_reduce_scatter); }
static double alltoall_sample(struct bench_run *r, int n) { return timed(r, n, one_alltoall); }
static double gatherv_sample(struct bench_run *r, int n) { return timed(r, n, one_gatherv); }
static double scatterv_sample(struct bench_run *r, int n) { return timed(r, n, one_scatterv); }
static double alltoallv_sample(struct bench_run *r, int n) { return timed(r, n, one_alltoallv); }
static double reduce_scatterv_sample(struct bench_run *r, int n) { return timed(r, n, one_reduce_scatterv); }
static double scan_sample(struct bench_run *r, int n) { return timed(r, n, one_scan); }
static double exscan_sample(struct bench_run *r, int n) { return timed(r, n, one_exscan); }

/* ------------------------------------------------------------------------ checks */

static int64_t barrier_check(struct bench_run *run)
{
    one_barrier(run);
    return 0;
}

static int64_t bcast_check(struct bench_run *run)
{
    bool root = be_rank() == run->root;

    if (root)
        bench_pattern(run, run->root, run->sbuf, block(run));
    one_bcast(run);
    return bench_pattern_wrong(run, run->root, root ? run->sbuf : run->rbuf, block(run));
}

static int64_t reduction_check(struct bench_run *run, void (*one)(struct bench_run *), int64_t first,
                               bool has_result)
{
    int64_t all = run->entry->pieces & 1 ? run->count * be_size() : run->count;

    bench_fill(run, be_size(), be_rank(), run->sbuf, 0, all);
    bench_clear(run, run->rbuf, 0x55, block(run));
    one(run);
    return has_result ? bench_wrong(run, be_size(), run->rbuf, first, run->count) : 0;
}

static int64_t reduce_check(struct bench_run *run)
{
    return reduction_check(run, one_reduce, 0, be_rank() == run->root);
}

static int64_t allreduce_check(struct bench_run *run)
{
    return reduction_check(run, one_allreduce, 0, true);
}

static int64_t reduce_scatter_check(struct bench_run *run)
{
    return reduction_check(run, one_reduce_scatter, run->count * be_rank(), true);
}

static int64_t reduce_scatterv_check(struct bench_run *run)
{
    return reduction_check(run, one_reduce_scatterv, run->count * be_rank(), true);
}

static int64_t scan_check(struct bench_run *run)
{
    reduction_check(run, one_scan, 0, false);
    return bench_wrong_prefix(run, be_rank() + 1, be_size(), run->rbuf, 0, run->count);
}

static int64_t exscan_check(struct bench_run *run)
{
    reduction_check(run, one_exscan, 0, false);
    return be_rank() ? bench_wrong_prefix(run, be_rank(), be_size(), run->rbuf, 0, run->count) : 0;
}

/* Every rank's block, from its pattern. */
static int64_t blocks_wrong(const struct bench_run *run)
{
    int64_t wrong = 0;

    for (int r = 0; r < be_size(); r++)
        wrong += bench_pattern_wrong(run, r, run->rbuf + r * block(run), block(run));
    return wrong;
}

static int64_t gathering_check(struct bench_run *run, void (*one)(struct bench_run *), bool has_result)
{
    bench_pattern(run, be_rank(), run->sbuf, block(run));
    if (has_result)
        bench_clear(run, run->rbuf, 0, block(run) * be_size());
    one(run);
    return has_result ? blocks_wrong(run) : 0;
}

static int64_t gather_check(struct bench_run *run)
{
    return gathering_check(run, one_gather, be_rank() == run->root);
}

static int64_t allgather_check(struct bench_run *run)
{
    return gathering_check(run, one_allgather, true);
}

static int64_t allgatherv_check(struct bench_run *run)
{
    return gathering_check(run, one_allgatherv, true);
}

static int64_t gatherv_check(struct bench_run *run)
{
    return gathering_check(run, one_gatherv, be_rank() == run->root);
}

static int64_t scattering_check(struct bench_run *run, void (*one)(struct bench_run *))
{
    if (be_rank() == run->root) {
        for (int r = 0; r < be_size(); r++)
            bench_pattern(run, r, run->sbuf + r * block(run), block(run));
    }
    bench_clear(run, run->rbuf, 0, block(run));
    one(run);
    return bench_pattern_wrong(run, be_rank(), run->rbuf, block(run));
}

static int64_t scatter_check(struct bench_run *run)
{
    return scattering_check(run, one_scatter);
}

static int64_t scatterv_check(struct bench_run *run)
{
    return scattering_check(run, one_scatterv);
}

static int64_t exchange_check(struct bench_run *run, void (*one)(struct bench_run *))
{
    int64_t wrong = 0, n = be_size();

    for (int r = 0; r < n; r++)
        bench_pattern(run, be_rank() * (int)n + r, run->sbuf + r * block(run), block(run));
    bench_clear(run, run->rbuf, 0, block(run) * n);
    one(run);
    for (int r = 0; r < n; r++)
        wrong += bench_pattern_wrong(run, r * (int)n + be_rank(), run->rbuf + r * block(run),
                                     block(run));
    return wrong;
}

static int64_t alltoall_check(struct bench_run *run)
{
    return exchange_check(run, one_alltoall);
}

static int64_t alltoallv_check(struct bench_run *run)
{
    return exchange_check(run, one_alltoallv);
}

/* The load of the bus relative to the bytes: nccl-tests' doc/PERFORMANCE.md. */
static double twice_share(int n) { return 2.0 * (n - 1) / n; }
static double bench_coll_share(int n) { return (double)(n - 1) / n; }

const struct bench_entry bench_coll[] = {
    {.name = "barrier", .doc = "no data", .table = BENCH_COLLECTIVE, .sample = barrier_sample,
     .check = barrier_check},
    {.name = "bcast", .doc = "one to all", .table = BENCH_COLLECTIVE, .dtype = true, .root = true,
     .sample = bcast_sample, .check = bcast_check},
    {.name = "reduce", .doc = "all to one, combined", .table = BENCH_COLLECTIVE, .dtype = true,
     .op = true, .root = true, .sample = reduce_sample, .check = reduce_check},
    {.name = "allreduce", .doc = "all to all, combined", .table = BENCH_COLLECTIVE, .dtype = true,
     .op = true, .bus = twice_share, .sample = allreduce_sample, .check = allreduce_check},
    {.name = "gather", .doc = "all to one, side by side", .table = BENCH_COLLECTIVE, .dtype = true,
     .root = true, .pieces = 2, .bus = bench_coll_share, .sample = gather_sample, .check = gather_check},
    {.name = "allgather", .doc = "all to all, side by side", .table = BENCH_COLLECTIVE,
     .dtype = true, .pieces = 2, .bus = bench_coll_share, .sample = allgather_sample,
     .check = allgather_check},
    {.name = "allgatherv", .doc = "the same through counts and displacements",
     .table = BENCH_COLLECTIVE, .dtype = true, .pieces = 2, .bus = bench_coll_share,
     .sample = allgatherv_sample, .check = allgatherv_check},
    {.name = "scatter", .doc = "one to all, a block each", .table = BENCH_COLLECTIVE,
     .dtype = true, .root = true, .pieces = 1, .bus = bench_coll_share, .sample = scatter_sample,
     .check = scatter_check},
    {.name = "reduce_scatter", .doc = "combined, a block each", .table = BENCH_COLLECTIVE,
     .dtype = true, .op = true, .pieces = 1, .bus = bench_coll_share, .sample = reduce_scatter_sample,
     .check = reduce_scatter_check},
    {.name = "alltoall", .doc = "a block from each to each", .table = BENCH_COLLECTIVE,
     .dtype = true, .pieces = 3, .bus = bench_coll_share, .sample = alltoall_sample, .check = alltoall_check},
    {.name = "gatherv", .doc = "gather through counts and displacements", .table = BENCH_COLLECTIVE, .dtype = true,
     .root = true, .pieces = 2, .bus = bench_coll_share, .sample = gatherv_sample, .check = gatherv_check},
    {.name = "scatterv", .doc = "scatter through counts and displacements", .table = BENCH_COLLECTIVE, .dtype = true,
     .root = true, .pieces = 1, .bus = bench_coll_share, .sample = scatterv_sample, .check = scatterv_check},
    {.name = "alltoallv", .doc = "alltoall through counts and displacements", .table = BENCH_COLLECTIVE, .dtype = true,
     .pieces = 3, .bus = bench_coll_share, .sample = alltoallv_sample, .check = alltoallv_check},
    {.name = "reduce_scatterv", .doc = "reduce_scatter through counts", .table = BENCH_COLLECTIVE, .dtype = true,
     .op = true, .pieces = 1, .bus = bench_coll_share, .sample = reduce_scatterv_sample, .check = reduce_scatterv_check},
    {.name = "scan", .doc = "combined, up to each rank", .table = BENCH_COLLECTIVE, .dtype = true, .op = true,
     .prefixes = true, .sample = scan_sample, .check = scan_check},
    {.name = "exscan", .doc = "combined, below each rank", .table = BENCH_COLLECTIVE, .dtype = true, .op = true,
     .prefixes = true, .sample = exscan_sample, .check = exscan_check},
    {.name = NULL},
};

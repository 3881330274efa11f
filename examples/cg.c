/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cg.c: solve A x = b by conjugate gradients with a Jacobi preconditioner.
 *
 *     xcc cg.c mtx.c rows.c halo.c -lm -o cg && xrun -n 4 cg data/1138_bus.mtx
 *
 * A is symmetric positive definite, from a Matrix Market file that rank 0
 * reads. Its rows are spread over the ranks. b = A * 1, so that the solution
 * is known and the true error can be given. An iteration takes one exchange of
 * halo entries and two allreduces of a few bytes: a test of latency.
 */
#include "halo.h"

#include <float.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *file;
    double tolerance;
    int64_t max_iterations; /* 0: ten times the rows */
};

/* One rank's share of the problem. Vectors have rows.mine entries; p has the ghosts too. */
struct solver {
    struct rows a;
    struct halo halo;
    double *b, *x, *r, *z, *q, *p, *diagonal;
    double waiting; /* seconds in communication */
};

struct outcome {
    int64_t iterations;
    double residual; /* |r| / |b| as the iteration carries it along */
    double checked;  /* |b - A x| / |b| */
    double error;    /* largest |x_i - 1| */
    double seconds;
};

/* Communication does not fail here unless something is broken: end the job. */
static void must(rank_status_t st, const char *what)
{
    char text[128];

    if (!st)
        return;
    snprintf(text, sizeof(text), "cg: %s: %s", what, rank_status_string(st));
    rank_abort(1, text);
}

/* ------------------------------------------------------------------ vectors */

/* Sums of n numbers over all ranks. */
static void sum(struct solver *s, double *v, int n)
{
    double start = rank_wtime();

    must(rank_allreduce(RANK_IN_PLACE, v, n, RANK_F64, RANK_SUM, s->a.team), "rank_allreduce");
    s->waiting += rank_wtime() - start;
}

static double dot_here(const struct solver *s, const double *u, const double *v)
{
    double total = 0.0;

    for (int64_t i = 0; i < s->a.mine; i++)
        total += u[i] * v[i];
    return total;
}

/* out = A v; v has room for the ghosts, which are fetched first. */
static void multiply(struct solver *s, double *v, double *out)
{
    double start = rank_wtime();

    must(halo_exchange(&s->halo, v), "halo exchange");
    s->waiting += rank_wtime() - start;
    for (int64_t row = 0; row < s->a.mine; row++) {
        double total = 0.0;

        for (int64_t i = s->a.ptr[row]; i < s->a.ptr[row + 1]; i++)
            total += s->a.val[i] * v[s->a.col[i]];
        out[row] = total;
    }
}

/* --------------------------------------------------------------- the method */

static double *vector(int64_t n)
{
    double *v = calloc((size_t)n + 1, sizeof(*v));

    if (!v)
        must(RANK_ERR_NO_MEMORY, "vectors");
    return v;
}

/* Vectors, the diagonal, and b = A * 1. */
static void prepare(struct solver *s)
{
    int64_t n = s->a.mine;

    s->b = vector(n);
    s->x = vector(n);
    s->r = vector(n);
    s->z = vector(n);
    s->q = vector(n);
    s->diagonal = vector(n);
    s->p = vector(n + s->halo.ghosts);
    for (int64_t row = 0; row < n; row++) {
        s->p[row] = 1.0;
        for (int64_t i = s->a.ptr[row]; i < s->a.ptr[row + 1]; i++) {
            if (s->a.col[i] == row)
                s->diagonal[row] = s->a.val[i];
        }
    }
    multiply(s, s->p, s->b);
}

/* The residual b - A x by itself, and the distance to the known solution. Uses p and q. */
static void examine(struct solver *s, double norm_b, struct outcome *out)
{
    double squares = 0.0, worst = 0.0;

    memcpy(s->p, s->x, (size_t)s->a.mine * sizeof(*s->p));
    multiply(s, s->p, s->q);
    for (int64_t i = 0; i < s->a.mine; i++) {
        squares += (s->b[i] - s->q[i]) * (s->b[i] - s->q[i]);
        worst = fmax(worst, fabs(s->x[i] - 1.0));
    }
    sum(s, &squares, 1);
    must(rank_allreduce(&worst, &out->error, 1, RANK_F64, RANK_MAX, s->a.team), "rank_allreduce");
    out->checked = norm_b > 0.0 ? sqrt(squares) / norm_b : 0.0;
}

/* 0, or -1 with the reason in *why. Every rank comes to the same result, since all see the same
 * sums. */
static int solve(struct solver *s, const struct options *opts, struct outcome *out,
                 const char **why)
{
    int64_t limit = opts->max_iterations ? opts->max_iterations : 10 * s->a.n;
    double norm_b, pair[2]; /* r.z and r.r */

    for (int64_t i = 0; i < s->a.mine; i++) {
        s->r[i] = s->b[i];
        s->p[i] = s->z[i] = s->r[i] / s->diagonal[i];
    }
    pair[0] = dot_here(s, s->r, s->z);
    pair[1] = dot_here(s, s->r, s->r);
    sum(s, pair, 2);
    norm_b = sqrt(pair[1]);
    out->residual = norm_b > 0.0 ? 1.0 : 0.0;

    for (out->iterations = 0; !(out->residual <= opts->tolerance); out->iterations++) {
        double pq, alpha, beta, rz = pair[0];

        if (out->iterations == limit) {
            *why = "no convergence within the iterations allowed";
            return -1;
        }
        multiply(s, s->p, s->q);
        pq = dot_here(s, s->p, s->q);
        sum(s, &pq, 1);
        if (!(pq > 0.0)) {
            *why = "the matrix is not positive definite";
            return -1;
        }
        alpha = rz / pq;
        for (int64_t i = 0; i < s->a.mine; i++) {
            s->x[i] += alpha * s->p[i];
            s->r[i] -= alpha * s->q[i];
            s->z[i] = s->r[i] / s->diagonal[i];
        }
        pair[0] = dot_here(s, s->r, s->z);
        pair[1] = dot_here(s, s->r, s->r);
        sum(s, pair, 2);
        beta = pair[0] / rz;
        for (int64_t i = 0; i < s->a.mine; i++)
            s->p[i] = s->z[i] + beta * s->p[i];
        out->residual = sqrt(pair[1]) / norm_b;
    }
    examine(s, norm_b, out);
    return 0;
}

/* ------------------------------------------------------------------ output */

static void describe(const struct solver *s, const char *file)
{
    /* A minimum is the maximum of what is negated: one call for all three. */
    int64_t mine[3] = {s->a.ptr[s->a.mine], -s->a.ptr[s->a.mine], s->halo.ghosts}, most[3];

    must(rank_allreduce(mine, most, 3, RANK_INT64, RANK_MAX, s->a.team), "rank_allreduce");
    if (rank_team_rank(s->a.team) == 0)
        printf("%s: %" PRId64 " rows, %" PRId64 " nonzeros; %d rank%s with %" PRId64 " to %" PRId64
               " nonzeros, at most %" PRId64 " halo entries\n", file, s->a.n, s->a.entries,
               rank_team_size(s->a.team), rank_team_size(s->a.team) == 1 ? "" : "s", -most[1],
               most[0], most[2]);
}

static void report(const struct solver *s, const struct outcome *out)
{
    double mine = s->waiting, mean, most;

    must(rank_reduce(&mine, &mean, 1, RANK_F64, RANK_AVG, 0, s->a.team), "rank_reduce");
    must(rank_reduce(&mine, &most, 1, RANK_F64, RANK_MAX, 0, s->a.team), "rank_reduce");
    if (rank_team_rank(s->a.team) != 0)
        return;
    printf("  iterations       %" PRId64 "\n", out->iterations);
    printf("  residual         %.3e   relative; %.3e when computed anew\n", out->residual,
           out->checked);
    printf("  true error       %.3e   largest |x - 1|\n", out->error);
    printf("  time             %.6f s\n", out->seconds);
    printf("  in communication %.6f s   %.0f%%, mean of the ranks; the most %.6f s\n", mean,
           100.0 * mean / fmax(out->seconds, DBL_MIN), most);
}

/* ------------------------------------------------------------------ running */

static int run(const struct mtx *whole, const struct options *opts)
{
    struct solver s = {.waiting = 0.0};
    struct outcome out = {0};
    const char *why = NULL;
    double start;
    int result;

    must(rows_spread(whole, rank_world(), &s.a), "spreading the rows");
    must(halo_plan(&s.a, &s.halo), "planning the halo");
    describe(&s, opts->file);
    prepare(&s);

    must(rank_barrier(s.a.team), "rank_barrier");
    s.waiting = 0.0;
    start = rank_wtime();
    result = solve(&s, opts, &out, &why);
    out.seconds = rank_wtime() - start;
    if (result == 0)
        report(&s, &out);
    else if (rank_team_rank(s.a.team) == 0)
        fprintf(stderr, "cg: %s: %s (after %" PRId64 " iterations, relative residual %.3e)\n",
                opts->file, why, out.iterations, out.residual);

    double *vectors[] = {s.b, s.x, s.r, s.z, s.q, s.p, s.diagonal};
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
        free(vectors[i]);
    halo_free(&s.halo);
    rows_free(&s.a);
    return result;
}

/* Rank 0 reads; all learn whether it could. */
static int read_and_run(const struct options *opts)
{
    struct mtx whole = {0};
    char err[512];
    int me = rank_team_rank(rank_world()), result;
    int32_t failed = 0;

    if (me == 0 && mtx_read(opts->file, MTX_SYMMETRIC | MTX_DIAGONAL, &whole, err, sizeof(err))) {
        fprintf(stderr, "cg: %s\n", err);
        failed = 1;
    }
    must(rank_bcast(&failed, 1, RANK_INT32, 0, rank_world()), "rank_bcast");
    result = failed ? -1 : run(me == 0 ? &whole : NULL, opts);
    mtx_free(&whole);
    return result;
}

static int usage(void)
{
    if (rank_team_rank(rank_world()) == 0)
        fprintf(stderr, "usage: cg [--tolerance X] [--max-iterations N] FILE.mtx\n");
    return -1;
}

static int parse(int argc, char **argv, struct options *opts)
{
    static const struct option known[] = {
        {"tolerance", required_argument, NULL, 't'},
        {"max-iterations", required_argument, NULL, 'm'},
        {NULL, 0, NULL, 0},
    };
    char *end;
    int c;

    *opts = (struct options){.tolerance = 1e-10};
    opterr = 0;
    while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (c == 't')
            opts->tolerance = strtod(optarg, &end);
        else if (c == 'm')
            opts->max_iterations = strtoll(optarg, &end, 10);
        if (c == '?' || end == optarg || *end)
            return usage();
    }
    if (optind != argc - 1 || !(opts->tolerance > 0.0) || opts->max_iterations < 0)
        return usage();
    opts->file = argv[optind];
    return 0;
}

int main(int argc, char **argv)
{
    struct options opts;
    int result;

    must(rank_init(NULL), "rank_init");
    if (parse(argc, argv, &opts))
        result = 2;
    else
        result = read_and_run(&opts) ? 1 : 0;
    must(rank_finalize(), "rank_finalize");
    return result;
}

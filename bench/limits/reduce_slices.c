/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reduce_slices.c: add private buffers of two processes through cells of 4 KiB.
 *
 * Each copies its input, just written, into one of two cells and adds what the other has copied, so that both have the sum.
 * The cells stay in the caches next to the cores.
 */
#include "bench/limits/limit_bench.h"

enum { SAMPLES = 41, CELL = 4096, DEPTH = 2, WORDS = CELL / 8, SIZES = 4, MOST = 16 << 20 };

static const size_t size[SIZES] = {65536, 256 << 10, 1 << 20, MOST};

struct shared {
    struct limit_flag begun[2], in[2], out[2]; /* rounds; cells written, cells read */
    int samples;
    _Alignas(4096) double cell[2][DEPTH][WORDS];
};

struct part {
    struct shared *s;
    int me;
};

static void add_cells(double *restrict sum, const double *restrict a, const double *restrict b)
{
    for (int i = 0; i < WORDS; i++)
        sum[i] = a[i] + b[i];
}

/* One sum of bytes; *chunk counts the cells of all. */
static void sum_all(struct shared *s, int me, const double *in, double *sum, size_t bytes, uint64_t *chunk)
{
    int other = !me;

    for (size_t at = 0; at < bytes / 8; at += WORDS, ++*chunk) {
        double(*mine)[WORDS] = s->cell[me], (*theirs)[WORDS] = s->cell[other];

        if (*chunk >= DEPTH)
            limit_at_least(&s->out[other], *chunk - DEPTH + 1);
        memcpy(mine[*chunk % DEPTH], in + at, CELL);
        limit_set(&s->in[me], *chunk + 1);
        limit_at_least(&s->in[other], *chunk + 1);
        add_cells(sum + at, in + at, theirs[*chunk % DEPTH]);
        limit_set(&s->out[me], *chunk + 1);
    }
}

static void reduce_slices_part(void *arg)
{
    struct part *p = arg;
    struct shared *s = p->s;
    double *in = aligned_alloc(4096, MOST), *sum = aligned_alloc(4096, MOST), v[SAMPLES], t;
    uint64_t round = 0, chunk = 0;

    if (!in || !sum)
        limit_die("memory");
    memset(sum, 1, MOST);
    for (int k = 0; k < SIZES; k++) {
        char name[64];

        for (int i = 0; i < s->samples; i++) {
            double wrong = 0;

            for (size_t j = 0; j < size[k] / 8; j++)
                in[j] = (double)(j + (size_t)(p->me + i));
            limit_set(&s->begun[p->me], ++round);
            limit_at_least(&s->begun[!p->me], round);
            t = limit_ns();
            sum_all(s, p->me, in, sum, size[k], &chunk);
            v[i] = limit_ns() - t;
            for (size_t j = 0; j < size[k] / 8; j++)
                wrong += sum[j] != (double)(2 * j + 1 + 2 * (size_t)i);
            limit_check(wrong == 0);
        }
        snprintf(name, sizeof(name), "reduce_slices_%zu%s", size[k] < 1 << 20 ? size[k] >> 10 : size[k] >> 20, size[k] < 1 << 20 ? "K" : "M");
        if (p->me == 0)
            limit_print(name, limit_median(v, s->samples) / 1e3, "us", "private buffers, just written, added through cells by both");
    }
    free(in);
    free(sum);
}

int main(int argc, char **argv)
{
    struct shared *s = limit_shared(sizeof(*s));
    struct part here = {s, 0}, there = {s, 1};
    pid_t pid;

    s->samples = limit_quick(argc, argv) ? 3 : SAMPLES;
    pid = limit_fork(reduce_slices_part, &there);
    reduce_slices_part(&here);
    limit_join(pid);
    return 0;
}

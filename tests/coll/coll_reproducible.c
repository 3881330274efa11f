/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_reproducible.c: sum values in an order that shows in the bits.
 * They are the same on all ranks, every time, whatever arrives first.
 */
#include "tests/coll/mp_coll.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t hash(const void *p, size_t n)
{
    const unsigned char *b = p;
    uint64_t h = 1469598103934665603ull, word;

    for (; n >= sizeof(word); n -= sizeof(word), b += sizeof(word)) {
        memcpy(&word, b, sizeof(word));
        h = (h ^ word) * 1099511628211ull;
        h ^= h >> 32;
    }
    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * 1099511628211ull;
    return h;
}

/* Values of all magnitudes and signs. */
static void fill(struct coll_test *t, void *buf, rank_dtype_t d, int64_t count)
{
    uint64_t x = 4711 + (uint64_t)t->rank * 7919;

    for (int64_t i = 0; i < count; i++) {
        double m = (double)(int64_t)mp_random(&x) * 0x1p-63;
        struct value v = {0, ldexp(m, (int)mp_below(&x, 12) - 6), 0, 0};
        value_store(d, (char *)buf + (size_t)i * value_size(d), v);
    }
}

/* Ranks come at different times. */
static void dawdle(struct coll_test *t, uint64_t *own)
{
    struct timespec ns = {0, (long)mp_below(own, 200000)};

    if (mp_below(own, (uint64_t)t->size + 1) == 0)
        nanosleep(&ns, NULL);
}

static uint64_t one(struct coll_test *t, rank_dtype_t d, int64_t count, uint64_t *own)
{
    size_t bytes = (size_t)count * value_size(d);
    char *in = mp_alloc(bytes * (size_t)t->size), *out = mp_alloc(bytes);
    const char *one_tree = getenv("RANK_COLL_REPRODUCIBLE");
    uint64_t h[7] = {0}, first[3];
    int64_t *counts = mp_alloc((size_t)t->size * sizeof(int64_t));
    rank_request_t req;

    fill(t, in, d, count * t->size);
    for (int r = 0; r < t->size; r++)
        counts[r] = count * (r + 1) / t->size;
    for (int again = 0; again < 3; again++) {
        dawdle(t, own);
        memset(out, 0, bytes);
        MP_OK(rank_allreduce(in, out, count, d, RANK_SUM, t->team));
        if (again == 0)
            h[0] = hash(out, bytes);
        MP_CHECK_EQ(hash(out, bytes), h[0]);
        MP_OK(rank_iallreduce(in, out, count, d, RANK_AVG, t->team, &req));
        dawdle(t, own);
        MP_OK(rank_wait(&req, NULL));
        if (again == 0)
            h[1] = hash(out, bytes);
        MP_CHECK_EQ(hash(out, bytes), h[1]);
        dawdle(t, own);
        MP_OK(rank_reduce_scatter(in, out, count, d, RANK_SUM, t->team));
        if (again == 0)
            h[2] = hash(out, bytes);
        MP_CHECK_EQ(hash(out, bytes), h[2]);
        dawdle(t, own);
        MP_OK(rank_reduce(in, out, count, d, RANK_SUM, t->size / 2, t->team));
        if (again == 0)
            h[3] = hash(out, bytes);
        if (t->rank == t->size / 2)
            MP_CHECK_EQ(hash(out, bytes), h[3]);
        dawdle(t, own);
        memset(out, 0, bytes);
        MP_OK(rank_reduce_scatterv(in, out, counts, d, RANK_SUM, t->team));
        if (again == 0)
            h[4] = hash(out, (size_t)counts[t->rank] * value_size(d));
        MP_CHECK_EQ(hash(out, (size_t)counts[t->rank] * value_size(d)), h[4]);
        MP_OK(rank_scan(in, out, count, d, RANK_SUM, t->team));
        if (again == 0)
            h[5] = hash(out, bytes);
        MP_CHECK_EQ(hash(out, bytes), h[5]);
        dawdle(t, own);
        memset(out, 0, bytes);
        MP_OK(rank_exscan(in, out, count, d, RANK_SUM, t->team));
        if (again == 0)
            h[6] = hash(out, bytes);
        MP_CHECK_EQ(hash(out, bytes), h[6]);
        t->checks += 7;
    }
    memcpy(first, h, sizeof(first));
    MP_OK(rank_bcast(first, 3, RANK_UINT64, 0, t->team));
    MP_CHECK(first[0] == h[0] && first[1] == h[1]); /* all ranks have the same */
    MP_OK(rank_bcast(&h[3], 1, RANK_UINT64, t->size / 2, t->team));
    MP_CHECK(!one_tree || strcmp(one_tree, "on") != 0 || h[3] == h[0]);
    MP_OK(rank_allreduce(RANK_IN_PLACE, &h[2], 1, RANK_UINT64, RANK_BXOR, t->team));
    MP_OK(rank_allreduce(RANK_IN_PLACE, &h[4], 3, RANK_UINT64, RANK_BXOR, t->team));
    free(counts);
    free(in);
    free(out);
    return hash(h, sizeof(h));
}

void coll_bits(struct coll_test *t, bool print)
{
    static const rank_dtype_t types[] = {RANK_F32, RANK_F64, RANK_F16, RANK_BF16};
    static const int64_t counts[] = {1, 9, 300, 5000, 40000, 600000};
    uint64_t all = 0, own = t->mp->seed + (uint64_t)t->rank;
    int ncounts = t->full ? 6 : 5;

    /* All pairs with --full, else every other one: F64 and BF16 have the longest. */
    for (int d = 0; d < 4; d++) {
        for (int i = t->full ? 0 : (d + 1) % 2; i < ncounts; i += t->full ? 1 : 2)
            all = all * 31 + one(t, types[d], counts[i], &own);
    }
    if (print && t->rank == 0)
        printf("bits %016llx\n", (unsigned long long)all);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_data.c: check every byte of collectives that move data, and the barrier. */
#include "tests/coll/any_coll.h"
#include "tests/coll/mp_coll.h"

static void run(struct coll_test *t, enum any_kind kind, int64_t count, rank_dtype_t d, int root, bool in_place)
{
    struct any_coll c;

    any_coll_open(&c, t->team, kind, count, d, RANK_SUM, &t->seed);
    c.root = root;
    c.in_place = in_place;
    MP_OK(any_coll_start(&c));
    MP_OK(any_coll_finish(&c));
    any_coll_check(&c);
    any_coll_close(&c);
    t->checks++;
}

void coll_movers(struct coll_test *t)
{
    static const struct {
        int64_t count;
        rank_dtype_t d;
        bool full;
    } cases[] = {
        {0, RANK_F64, false},      {1, RANK_BYTE, false},     {1, RANK_F64, false},
        {7, RANK_F64, false},      {3, RANK_PAIR_F64, false}, {57, RANK_BYTE, false},
        {511, RANK_INT16, false},  {512, RANK_F64, false},    {513, RANK_F64, false},
        {4097, RANK_BYTE, false},  {4099, RANK_F32, false},   {9001, RANK_BYTE, false},
        {70001, RANK_BYTE, false}, {16384, RANK_BYTE, true},  {16385, RANK_BYTE, true},
        {33333, RANK_F64_COMPLEX, true},   {300007, RANK_BYTE, true}, {1 << 20, RANK_BYTE, true},
        {500009, RANK_F64, true},
    };
    static const enum any_kind kinds[] = {ANY_BCAST, ANY_GATHER, ANY_SCATTER, ANY_ALLGATHER, ANY_ALLGATHERV, ANY_GATHERV, ANY_SCATTERV,
                                          ANY_ALLTOALL, ANY_ALLTOALLV};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (cases[i].full && !t->full)
            continue;
        /* Short ones from every root, long ones from one or two. */
        for (int root = 0; root < t->size; root++) {
            size_t bytes = (size_t)cases[i].count * value_size(cases[i].d);

            if (bytes > 100 && root != (int)i % t->size && (!t->full || bytes > 10000))
                continue;
            for (size_t k = 0; k < 2 * sizeof(kinds) / sizeof(kinds[0]); k++)
                run(t, kinds[k / 2], cases[i].count, cases[i].d, root, k % 2);
        }
    }
}

/* Each rank writes the number of its next barrier before it enters; a rank that leaves sees the writes of all
 * others. */
void coll_barriers(struct coll_test *t)
{
    int rounds = t->full ? 2000 : 200;
    rank_request_t req;
    rank_mem_t mem;
    int64_t seen;
    void *ptr;

    MP_OK(rank_alloc(t->team, RANK_MEM_HOST, 64, &ptr, &mem));
    for (int64_t k = 1; k <= rounds; k++) {
        __atomic_store_n((int64_t *)ptr, k, __ATOMIC_RELEASE);
        if (coll_toss(t)) {
            MP_OK(rank_barrier(t->team));
        } else {
            MP_OK(rank_ibarrier(t->team, &req));
            MP_OK(rank_wait(&req, NULL));
        }
        for (int r = 0; r < t->size; r++) {
            MP_OK(rank_get(&seen, sizeof(seen), r, mem, 0));
            MP_CHECK(seen >= k && seen <= k + 1);
        }
        t->checks++;
    }
    MP_OK(rank_free(&mem));
}

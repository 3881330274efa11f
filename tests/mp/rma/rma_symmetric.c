/* SPDX-License-Identifier: BSD-3-Clause */
/* rma_symmetric.c: use symmetric memory: put, get, flush, atomics, pointers. */
#include "tests/mp/mp.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const int64_t sizes[] = {1, 7, 8, 64, 100, 4096, 4097, 65536, 1000001, 6000000};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* My part is zeroed, on a page, and not where another allocation is. */
static void fresh(struct mp *mp)
{
    rank_mem_t mem[3];
    char *p[3];

    for (int i = 0; i < 3; i++) {
        MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 10000, (void **)&p[i], &mem[i]));
        MP_CHECK(p[i] != NULL);
        MP_CHECK_EQ((uintptr_t)p[i] % 4096, 0);
        for (int k = 0; k < 10000; k++)
            MP_CHECK_EQ(p[i][k], 0);
        memset(p[i], i + 1, 10000);
    }
    for (int i = 0; i < 3; i++) {
        MP_CHECK(p[i][0] == i + 1 && p[i][9999] == i + 1);
        MP_OK(rank_free(&mem[i]));
        MP_CHECK(mem[i] == RANK_MEM_NULL);
    }
    /* Memory that comes back is zeroed again. */
    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 10000, (void **)&p[0], &mem[0]));
    for (int k = 0; k < 10000; k++)
        MP_CHECK_EQ(p[0][k], 0);
    MP_OK(rank_free(&mem[0]));
}

static void nothing(struct mp *mp)
{
    rank_mem_t mem;
    void *p;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 0, &p, &mem));
    for (int r = 0; r < mp->size; r++) {
        char c = 0;
        MP_OK(rank_put(&c, 0, r, mem, 0));
        MP_STATUS(rank_put(&c, 1, r, mem, 0), RANK_ERR_BOUNDS);
    }
    MP_OK(rank_flush(mem, RANK_ALL));
    MP_OK(rank_free(&mem));
}

/* Each rank writes its own stripe at all; each finds all stripes, and reads them back from
 * everywhere. */
static void put_get(struct mp *mp)
{
    for (int s = 0; s < SIZES; s++) {
        int64_t n = sizes[s] / (mp->size > 4 && s > 7 ? 8 : 1);
        char *src = mp_alloc((size_t)n + 1), *back = mp_alloc((size_t)n), *p;
        rank_mem_t mem;

        MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, n * mp->size, (void **)&p, &mem));
        for (int d = 0; d < mp->size; d++) {
            int r = (mp->rank + d) % mp->size;
            mp_fill(src + 1, (size_t)n, (uint64_t)(mp->rank * 100 + r));
            MP_OK(rank_put(src + 1, n, r, mem, n * mp->rank));
            memset(src, 0xdd, (size_t)n + 1); /* it may be reused at once */
            if (d % 2)
                MP_OK(rank_flush(mem, r));
        }
        MP_OK(rank_flush(mem, RANK_ALL));
        mp_barrier(mp->world);
        for (int r = 0; r < mp->size; r++)
            MP_CHECK_EQ(mp_verify(p + n * r, (size_t)n, (uint64_t)(r * 100 + mp->rank)), -1);
        for (int d = 0; d < mp->size; d++) {
            int r = (mp->rank + d) % mp->size, w = (r + 1) % mp->size;
            memset(back, 0, (size_t)n);
            MP_OK(rank_get(back, n, r, mem, n * w));
            MP_CHECK_EQ(mp_verify(back, (size_t)n, (uint64_t)(w * 100 + r)), -1);
        }
        MP_OK(rank_free(&mem)); /* waits for all: no rank still reads */
        free(src);
        free(back);
    }
}

/* What was flushed is seen by a peer that gets a message afterwards. */
static void flushed(struct mp *mp)
{
    int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;
    rank_mem_t mem;
    volatile uint64_t *p;
    uint64_t go;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 4096, (void **)&p, &mem));
    for (uint64_t i = 1; i <= 300; i++) {
        uint64_t v[4] = {i, i * 3, i * 5, i * 7};
        MP_OK(rank_put(v, sizeof(v), to, mem, (int64_t)(i % 100) * 32));
        MP_OK(rank_flush(mem, to));
        MP_OK(rank_sendrecv(&i, 1, RANK_UINT64, to, 1, &go, 1, RANK_UINT64, from, 1, mp->world,
                            NULL));
        MP_CHECK_EQ(go, i);
        for (int k = 0; k < 4; k++)
            MP_CHECK_EQ(p[i % 100 * 4 + (uint64_t)k], i * (uint64_t)(2 * k + 1));
    }
    MP_OK(rank_free(&mem));
}

/* All count on all counters; fetch-add gives each number once. */
static void counters(struct mp *mp, int each)
{
    int64_t one = 1, total = (int64_t)each * mp->size;
    char *taken = calloc((size_t)total, 1), *all;
    rank_mem_t mem;
    struct { int64_t i64; uint64_t u64; int32_t i32; uint32_t u32; } *p;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, sizeof(*p), (void **)&p, &mem));
    for (int i = 0; i < each; i++) {
        int r = i % mp->size; /* all at one, mostly */
        uint64_t u64 = 1ull << 40;
        int32_t i32 = -3;
        uint32_t u32 = 7;
        int64_t was = -1;
        MP_OK(rank_atomic(RANK_AMO_FETCH_ADD, RANK_INT64, &one, 0, mem, 0, &was));
        if (was < 0 || was >= total || taken[was])
            mp_fail(__FILE__, __LINE__, "fetch-add gave %lld of %lld, %s", (long long)was,
                    (long long)total,
                    was < 0 || was >= total ? "which no rank made" : "for the second time");
        taken[was] = 1;
        MP_OK(rank_atomic(RANK_AMO_ADD, RANK_UINT64, &u64, r, mem, 8, NULL));
        MP_OK(rank_atomic(RANK_AMO_ADD, RANK_INT32, &i32, r, mem, 16, NULL));
        MP_OK(rank_atomic(RANK_AMO_ADD, RANK_UINT32, &u32, r, mem, 20, NULL));
    }
    MP_OK(rank_flush(mem, RANK_ALL));
    mp_barrier(mp->world);
    if (mp->rank == 0)
        MP_CHECK_EQ(p->i64, total);
    /* All of it, wherever it went. */
    {
        uint64_t sum[3] = {p->u64, (uint64_t)(int64_t)p->i32, p->u32}, got[3], mine[3];
        memcpy(mine, sum, sizeof(mine));
        for (int d = 1; d < mp->size; d++) {
            MP_OK(rank_sendrecv(mine, 3, RANK_UINT64, (mp->rank + d) % mp->size, 2, got, 3,
                                RANK_UINT64, (mp->rank - d + mp->size) % mp->size, 2, mp->world,
                                NULL));
            for (int k = 0; k < 3; k++)
                sum[k] += got[k];
        }
        MP_CHECK_EQ(sum[0], (uint64_t)total << 40);
        MP_CHECK_EQ((int64_t)sum[1], -3 * total);
        MP_CHECK_EQ(sum[2], 7 * (uint64_t)total);
    }
    /* No number twice among all ranks. */
    all = mp_alloc((size_t)total);
    for (int d = 1; d < mp->size; d++) {
        MP_OK(rank_sendrecv(taken, total, RANK_BYTE, (mp->rank + d) % mp->size, 3, all, total,
                            RANK_BYTE, (mp->rank - d + mp->size) % mp->size, 3, mp->world, NULL));
        for (int64_t i = 0; i < total; i++)
            MP_CHECK(!(taken[i] && all[i]));
    }
    /* 32-bit results come with 32 bits. */
    {
        int32_t was[2] = {-1, 0x55555555}, three = 3;
        int32_t before = p->i32;
        mp_barrier(mp->world);
        MP_OK(rank_atomic(RANK_AMO_FETCH_ADD, RANK_INT32, &three, mp->rank, mem, 16, was));
        MP_CHECK_EQ(was[0], before);
        MP_CHECK_EQ(was[1], 0x55555555);
        MP_OK(rank_flush(mem, mp->rank));
        MP_CHECK_EQ(p->i32, before + 3);
    }
    free(all);
    free(taken);
    MP_OK(rank_free(&mem));
}

/* The pointer of rank_ptr and rank_put see the same bytes; a rank's own pointer is never null; CPU
 * atomics and rank_atomic work on one counter. */
static void pointers(struct mp *mp, bool mapped)
{
    int to = (mp->rank + 1) % mp->size;
    rank_mem_t mem;
    _Atomic int64_t *p, *q;
    int64_t one = 1, v;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 4096, (void **)&p, &mem));
    MP_OK(rank_ptr(mem, mp->rank, (void **)&q));
    MP_CHECK(p == q);
    MP_OK(rank_ptr(mem, to, (void **)&q));
    MP_CHECK(!mapped || q != NULL);
    if (q) {
        v = 0x1234567890 + mp->rank;
        MP_OK(rank_put(&v, 8, to, mem, 8 * (2 + mp->rank)));
        MP_OK(rank_flush(mem, to));
        MP_CHECK_EQ(q[2 + mp->rank], v);
        for (int i = 0; i < 2000; i++) {
            if (i & 1)
                atomic_fetch_add(q, 1);
            else
                MP_OK(rank_atomic(RANK_AMO_ADD, RANK_INT64, &one, to, mem, 0, NULL));
        }
        MP_OK(rank_flush(mem, to));
    }
    mp_barrier(mp->world);
    if (mapped)
        MP_CHECK_EQ(p[0], 2000);
    MP_OK(rank_free(&mem));
}

/* On a part of the ranks, and the other way round: peers are ranks of the team. */
static void on_teams(struct mp *mp)
{
    rank_team_t t;
    rank_mem_t mem;
    int32_t *p, v = mp->rank;
    int n, r;

    MP_OK(rank_team_split(mp->world, mp->rank & 1, -mp->rank, &t));
    n = rank_team_size(t);
    r = rank_team_rank(t);
    MP_OK(rank_alloc(t, RANK_MEM_HOST, 4 * n, (void **)&p, &mem));
    for (int i = 0; i < n; i++)
        MP_OK(rank_put(&v, 4, i, mem, 4 * r));
    MP_OK(rank_flush(mem, RANK_ALL));
    mp_barrier(t);
    for (int i = 0; i < n; i++)
        MP_CHECK_EQ(p[i], (n - 1 - i) * 2 + (mp->rank & 1));
    MP_STATUS(rank_put(&v, 4, n, mem, 0), RANK_ERR_RANK);
    MP_OK(rank_free(&mem));
    MP_OK(rank_team_free(&t));
}

/* A rank that computes and makes no call does not stop others' puts and gets where memory is mapped;
 * on a network the target's library may have to be called. */
static void passive(struct mp *mp, bool mapped)
{
    rank_mem_t mem;
    int64_t *p, v = 99;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 4096, (void **)&p, &mem));
    if (mp->rank == 0 && mapped) {
        /* no call of the library in this loop, but the others may have the core */
        while (mp->size > 1 && __atomic_load_n(&p[mp->size - 1], __ATOMIC_ACQUIRE) != 99)
            sched_yield();
    } else if (mp->rank == mp->size - 1) {
        MP_OK(rank_put(&v, 8, 0, mem, 8 * (mp->size - 1)));
        MP_OK(rank_flush(mem, 0));
    }
    MP_OK(rank_free(&mem));
}

/* Payload straight from symmetric memory, into it, and both: the way of large messages that share
 * memory. */
static void messages(struct mp *mp)
{
    int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;
    int64_t n = 3000000;
    rank_mem_t mem;
    char *p, *heap = mp_alloc((size_t)n);

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 2 * n, (void **)&p, &mem));
    for (int way = 0; way < 4; way++) {
        char *out = way & 1 ? heap : p, *in = way & 2 ? heap : p + n;
        if (out == in)
            in = p + n;
        for (int64_t size = 1000; size <= n; size *= 14) {
            mp_fill(out, (size_t)size, (uint64_t)(way * 10 + mp->rank));
            memset(in, 0, (size_t)size);
            MP_OK(rank_sendrecv(out, size, RANK_BYTE, to, 4, in, size, RANK_BYTE, from, 4,
                                mp->world, NULL));
            MP_CHECK_EQ(mp_verify(in, (size_t)size, (uint64_t)(way * 10 + from)), -1);
        }
    }
    MP_OK(rank_free(&mem));
    free(heap);
}

int main(int argc, char **argv)
{
    struct mp mp;
    int32_t here = 1, mapped; /* do all share memory with all? */

    mp_start(&mp, &argc, argv);
    for (int r = 0; r < mp.size; r++) {
        const char *name = rank_channel_name(mp.world, r);
        MP_CHECK(name != NULL);
        here = here && strcmp(name, "ucx") != 0 && strcmp(name, "tcp") != 0;
    }
    MP_OK(rank_allreduce(&here, &mapped, 1, RANK_INT32, RANK_MIN, mp.world));
    mp_case(&mp, "fresh");
    fresh(&mp);
    mp_case(&mp, "nothing");
    nothing(&mp);
    mp_case(&mp, "put and get");
    put_get(&mp);
    mp_case(&mp, "flushed");
    flushed(&mp);
    mp_case(&mp, "counters");
    /* Enough that ranks are in each other's way, which on a network is soon. */
    counters(&mp, mapped ? 100000 : 1000);
    mp_case(&mp, "pointers");
    pointers(&mp, mapped);
    mp_case(&mp, "on teams");
    on_teams(&mp);
    mp_case(&mp, "passive");
    passive(&mp, mapped);
    mp_case(&mp, "messages");
    messages(&mp);
    mp_end(&mp);
    return 0;
}

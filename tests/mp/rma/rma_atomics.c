/* SPDX-License-Identifier: BSD-3-Clause */
/* rma_atomics.c: check each atomic on each type, and all ranks on one word. */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>

struct kind {
    rank_dtype_t dtype;
    size_t width;
    bool real;
};

static const struct kind kinds[] = {
    {RANK_INT32, 4, false}, {RANK_UINT32, 4, false}, {RANK_INT64, 8, false},
    {RANK_UINT64, 8, false}, {RANK_F32, 4, true},    {RANK_F64, 8, true},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* The bits of a number of that kind. */
static uint64_t bits_of(const struct kind *k, int64_t v)
{
    uint64_t bits = 0;
    float f = (float)v;
    double d = (double)v;

    if (!k->real)
        bits = (uint64_t)v;
    else if (k->width == 4)
        memcpy(&bits, &f, 4);
    else
        memcpy(&bits, &d, 8);
    return k->width == 4 ? bits & UINT32_MAX : bits;
}

static int64_t number_of(const struct kind *k, uint64_t bits)
{
    float f;
    double d;

    if (!k->real)
        return k->width == 4 ? (int64_t)(int32_t)bits : (int64_t)bits;
    memcpy(&f, &bits, 4);
    memcpy(&d, &bits, 8);
    return k->width == 4 ? (int64_t)f : (int64_t)d;
}

static int64_t expected(rank_amo_t amo, int64_t old, int64_t v)
{
    switch (amo) {
    case RANK_AMO_ADD:
    case RANK_AMO_FETCH_ADD:
        return old + v;
    case RANK_AMO_SWAP:
        return v;
    case RANK_AMO_AND:
    case RANK_AMO_FETCH_AND:
        return old & v;
    case RANK_AMO_OR:
    case RANK_AMO_FETCH_OR:
        return old | v;
    default:
        return old ^ v;
    }
}

static bool fetches(rank_amo_t amo)
{
    return amo == RANK_AMO_FETCH_ADD || amo == RANK_AMO_SWAP || amo == RANK_AMO_FETCH_AND ||
           amo == RANK_AMO_FETCH_OR || amo == RANK_AMO_FETCH_XOR;
}

/* My own word at the next rank; what stands beside it must stay. */
static void one_by_one(struct mp *mp)
{
    static const int64_t values[] = {0, 1, -1, 5, 1 << 20, -77777};
    int to = (mp->rank + 1) % mp->size;
    int64_t at = 32 * mp->rank + 8;
    const uint64_t guard = 0x5a5a5a5a5a5a5a5a;
    uint64_t around[4], *p;
    rank_mem_t mem;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 32 * mp->size, (void **)&p, &mem));
    for (int k = 0; k < KINDS; k++) {
        for (rank_amo_t amo = RANK_AMO_ADD; amo <= RANK_AMO_FETCH_XOR; amo++) {
            bool defined = !kinds[k].real || amo <= RANK_AMO_SWAP;
            int64_t now = 12;
            uint64_t v = bits_of(&kinds[k], now), was;

            for (int i = 0; i < 4; i++)
                around[i] = guard;
            memcpy(&around[1], &v, kinds[k].width);
            MP_OK(rank_put(around, 32, to, mem, at - 8));
            MP_OK(rank_flush(mem, to));
            for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
                rank_status_t st;
                v = bits_of(&kinds[k], values[i]);
                was = guard;
                st = rank_atomic(amo, kinds[k].dtype, &v, to, mem, at, fetches(amo) ? &was : NULL);
                if (!defined) {
                    MP_STATUS(st, RANK_ERR_DTYPE);
                    continue;
                }
                MP_OK(st);
                if (fetches(amo))
                    MP_CHECK_EQ(number_of(&kinds[k], was), now);
                if (fetches(amo) && kinds[k].width == 4)
                    MP_CHECK_EQ(was >> 32, guard >> 32);
                now = expected(amo, now, values[i]);
                if (kinds[k].width == 4 && !kinds[k].real)
                    now = (int32_t)now;
            }
            MP_OK(rank_flush(mem, to));
            MP_OK(rank_get(around, 32, to, mem, at - 8));
            MP_CHECK_EQ(number_of(&kinds[k], around[1]), now);
            MP_CHECK(around[0] == guard && around[2] == guard && around[3] == guard);
            if (kinds[k].width == 4)
                MP_CHECK_EQ(around[1] >> 32, guard >> 32);
        }
    }
    MP_OK(rank_free(&mem));
}

static void compare_swap(struct mp *mp)
{
    int to = (mp->rank + 1) % mp->size;
    uint64_t was, *p;
    rank_mem_t mem;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 8 * mp->size, (void **)&p, &mem));
    for (int k = 0; k < KINDS; k++) {
        uint64_t a = bits_of(&kinds[k], 3), b = bits_of(&kinds[k], -9), c = bits_of(&kinds[k], 1000);

        MP_OK(rank_put(&a, 8, to, mem, 8 * mp->rank));
        MP_OK(rank_flush(mem, to));
        was = 0;
        MP_OK(rank_atomic_cas(kinds[k].dtype, &b, &c, to, mem, 8 * mp->rank, &was));
        MP_CHECK_EQ(was, a);
        was = 0;
        MP_OK(rank_atomic_cas(kinds[k].dtype, &a, &b, to, mem, 8 * mp->rank, &was));
        MP_CHECK_EQ(was, a);
        was = 0;
        MP_OK(rank_atomic_cas(kinds[k].dtype, &b, &c, to, mem, 8 * mp->rank, &was));
        MP_CHECK_EQ(was, b);
        MP_OK(rank_get(&was, 8, to, mem, 8 * mp->rank));
        MP_CHECK_EQ(was, c);
    }
    MP_OK(rank_free(&mem));
}

/* All at one word: no update is lost, whichever way it is made. */
static void together(struct mp *mp, int each)
{
    struct words {
        uint64_t by_swap, toggled;
        int64_t by_cswap, sum;
        double real;
        float small;
        uint32_t set;
    } *p;
    rank_mem_t mem;
    int64_t old, seen, next, one = 1;
    double half = 0.5;
    float two = 2;
    uint64_t held = 0, bit = 1ull << (mp->rank % 64), got;
    uint32_t all = 1u << (mp->rank % 32);
    int n = mp->size < 32 ? mp->size : 32;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, sizeof(*p), (void **)&p, &mem));
    for (int i = 0; i < each; i++) {
        MP_OK(rank_atomic(RANK_AMO_FETCH_OR, RANK_INT64, &(int64_t){0}, 0, mem,
                          offsetof(struct words, by_cswap), &old));
        for (;;) {
            next = old + 1;
            MP_OK(rank_atomic_cas(RANK_INT64, &old, &next, 0, mem,
                                  offsetof(struct words, by_cswap), &seen));
            if (seen == old)
                break;
            old = seen;
        }
        MP_OK(rank_atomic(RANK_AMO_ADD, RANK_INT64, &one, 0, mem, offsetof(struct words, sum), NULL));
        MP_OK(rank_atomic(RANK_AMO_ADD, RANK_F64, &half, 0, mem, offsetof(struct words, real), NULL));
        MP_OK(rank_atomic(RANK_AMO_ADD, RANK_F32, &two, 0, mem, offsetof(struct words, small), NULL));
        MP_OK(rank_atomic(i & 1 ? RANK_AMO_XOR : RANK_AMO_FETCH_XOR, RANK_UINT64, &bit, 0, mem,
                          offsetof(struct words, toggled), &got));
        MP_OK(rank_atomic(RANK_AMO_OR, RANK_UINT32, &all, 0, mem, offsetof(struct words, set), NULL));
        /* A token that is handed on by swaps is always somewhere, once: 1 more for each of us. */
        if (i == 0)
            held = 1;
        MP_OK(rank_atomic(RANK_AMO_SWAP, RANK_UINT64, &held, 0, mem,
                          offsetof(struct words, by_swap), &got));
        held = got;
    }
    MP_OK(rank_flush(mem, RANK_ALL));
    mp_barrier(mp->world);
    {
        uint64_t mine = held, total = 0;
        MP_OK(rank_allreduce(&mine, &total, 1, RANK_UINT64, RANK_SUM, mp->world));
        if (mp->rank == 0)
            MP_CHECK_EQ(total + p->by_swap, mp->size);
    }
    if (mp->rank == 0) {
        MP_CHECK_EQ(p->by_cswap, (int64_t)each * mp->size);
        MP_CHECK_EQ(p->sum, (int64_t)each * mp->size);
        MP_CHECK(p->real == 0.5 * each * mp->size);
        MP_CHECK(p->small == 2.0f * (float)each * (float)mp->size);
        MP_CHECK_EQ(p->toggled, each & 1 ? mp->size >= 64 ? -1ll : (1ll << mp->size) - 1 : 0);
        MP_CHECK_EQ(p->set, n == 32 ? UINT32_MAX : (1u << n) - 1);
    }
    MP_OK(rank_free(&mem));
}

static void refused(struct mp *mp)
{
    rank_mem_t mem;
    int64_t *p, v = 0, r;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 20, (void **)&p, &mem));
    for (int to = 0; to < mp->size; to++) {
        MP_STATUS(rank_atomic(RANK_AMO_ADD, RANK_INT64, &v, to, mem, 4, NULL), RANK_ERR_ARG);
        MP_STATUS(rank_atomic(RANK_AMO_ADD, RANK_INT32, &v, to, mem, 2, NULL), RANK_ERR_ARG);
        MP_STATUS(rank_atomic(RANK_AMO_ADD, RANK_INT64, &v, to, mem, 16, NULL), RANK_ERR_BOUNDS);
        MP_STATUS(rank_atomic(RANK_AMO_ADD, RANK_INT32, &v, to, mem, -4, NULL), RANK_ERR_BOUNDS);
        MP_STATUS(rank_atomic(RANK_AMO_ADD, RANK_INT64, NULL, to, mem, 0, NULL), RANK_ERR_ARG);
        MP_STATUS(rank_atomic(RANK_AMO_SWAP, RANK_INT64, &v, to, mem, 0, NULL), RANK_ERR_ARG);
        MP_STATUS(rank_atomic((rank_amo_t)(RANK_AMO_FETCH_XOR + 1), RANK_INT64, &v, to, mem, 0, &r), RANK_ERR_OP);
        MP_STATUS(rank_atomic((rank_amo_t)-1, RANK_INT64, &v, to, mem, 0, &r), RANK_ERR_OP);
        MP_STATUS(rank_atomic(RANK_AMO_ADD, RANK_INT16, &v, to, mem, 0, &r), RANK_ERR_DTYPE);
        MP_STATUS(rank_atomic(RANK_AMO_ADD, (rank_dtype_t)99, &v, to, mem, 0, &r), RANK_ERR_DTYPE);
        MP_STATUS(rank_atomic(RANK_AMO_OR, RANK_F64, &v, to, mem, 0, NULL), RANK_ERR_DTYPE);
        MP_STATUS(rank_atomic_cas(RANK_F32_COMPLEX, &v, &v, to, mem, 0, &r), RANK_ERR_DTYPE);
        MP_STATUS(rank_atomic_cas(RANK_INT64, NULL, &v, to, mem, 0, &r), RANK_ERR_ARG);
        MP_STATUS(rank_atomic_cas(RANK_INT64, &v, &v, to, mem, 0, NULL), RANK_ERR_ARG);
    }
    MP_STATUS(rank_atomic(RANK_AMO_ADD, RANK_INT64, &v, mp->size, mem, 0, NULL), RANK_ERR_RANK);
    MP_OK(rank_flush(mem, RANK_ALL));
    MP_OK(rank_free(&mem));
}

int main(int argc, char **argv)
{
    struct mp mp;
    int32_t mapped = 1;

    mp_start(&mp, &argc, argv);
    for (int r = 0; r < mp.size; r++)
        mapped = mapped && (strcmp(rank_channel_name(mp.world, r), "shm") == 0 || r == mp.rank);
    mp_case(&mp, "one by one");
    one_by_one(&mp);
    mp_case(&mp, "compare and swap");
    compare_swap(&mp);
    mp_case(&mp, "together");
    together(&mp, mapped ? 20001 : 301);
    mp_case(&mp, "refused");
    refused(&mp);
    mp_end(&mp);
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* rma_signals.c: put data with a signal, and wait for words of the own memory. */
#include "tests/mp/mp.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const int64_t sizes[] = {0, 1, 8, 40, 1000, 4096, 8192, 17000, 70001, 1500000};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* As rank_signal_wait, by tests. */
static void poll_signal(rank_mem_t sig, int64_t offset, uint64_t value, int from, uint64_t *seen)
{
    int flag = 0;

    while (!flag)
        MP_OK(rank_test_signal(sig, offset, RANK_CMP_EQ, value, from, &flag, seen));
    MP_CHECK_EQ(flag, 1);
}

/* Round the ring: the next sends on what came, with the signal one higher. */
static void ring(struct mp *mp)
{
    int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;
    int64_t most = sizes[SIZES - 1];
    char *data, *out = mp_alloc((size_t)most);
    rank_mem_t mem, sig;
    uint64_t *flag, turn = 0, seen;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, most, (void **)&data, &mem));
    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 64, (void **)&flag, &sig));
    for (int s = 0; s < SIZES; s++) {
        for (int round = 0; round < 20; round++) {
            rank_signal_op_t op = round & 1 ? RANK_SIGNAL_ADD : RANK_SIGNAL_SET;
            turn++;
            mp_fill(out, (size_t)sizes[s], turn * 1000 + (uint64_t)mp->rank);
            MP_OK(rank_put_signal(out, sizes[s], to, mem, 0, sig, 8, op == RANK_SIGNAL_SET ? turn : 1,
                                  op));
            memset(out, 0xdd, (size_t)sizes[s]); /* it is ours again */
            if (round % 3)
                MP_OK(rank_signal_wait(sig, 8, RANK_CMP_EQ, turn, from, &seen));
            else
                poll_signal(sig, 8, turn, round % 2 ? from : RANK_ANY_SOURCE, &seen);
            MP_CHECK_EQ(seen, turn);
            MP_CHECK_EQ(mp_verify(data, (size_t)sizes[s], turn * 1000 + (uint64_t)from), -1);
            mp_barrier(mp->world);
        }
    }
    MP_OK(rank_free(&sig));
    MP_OK(rank_free(&mem));
    free(out);
}

/* Every rank counts one word up at rank 0, which waits for all. */
static void gathered(struct mp *mp)
{
    rank_mem_t mem;
    uint64_t *p, v;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 8 * (mp->size + 1), (void **)&p, &mem));
    for (uint64_t round = 1; round <= 50; round++) {
        v = round * 100 + (uint64_t)mp->rank;
        MP_OK(rank_put_signal(&v, 8, 0, mem, 8 * (mp->rank + 1), mem, 0, 1, RANK_SIGNAL_ADD));
        if (mp->rank == 0) {
            MP_OK(rank_signal_wait(mem, 0, RANK_CMP_GE, round * (uint64_t)mp->size, RANK_ANY_SOURCE,
                                   NULL));
            for (int r = 0; r < mp->size; r++)
                MP_CHECK_EQ(p[r + 1], round * 100 + (uint64_t)r);
        }
        mp_barrier(mp->world);
    }
    MP_OK(rank_free(&mem));
}

/* Each comparison, with a value that makes it true at once, and one that a peer makes so. */
static void comparisons(struct mp *mp)
{
    static const struct {
        rank_cmp_t cmp;
        uint64_t start, end, value;
    } rows[] = {
        {RANK_CMP_EQ, 1, 2, 2},          {RANK_CMP_NE, 1, 2, 1},  {RANK_CMP_GT, 5, 6, 5},
        {RANK_CMP_GE, 5, 6, 6},          {RANK_CMP_LT, 5, 4, 5},  {RANK_CMP_LE, 5, 4, 4},
        {RANK_CMP_GT, 1, UINT64_MAX, 9}, /* no sign */
    };
    int to = (mp->rank + 1) % mp->size;
    rank_mem_t mem;
    uint64_t *p;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 64, (void **)&p, &mem));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        __atomic_store_n(&p[2], rows[i].start, __ATOMIC_SEQ_CST);
        mp_barrier(mp->world);
        MP_OK(rank_put(&rows[i].end, 8, to, mem, 16));
        MP_OK(rank_flush(mem, to));
        MP_OK(rank_wait_until(mem, 16, rows[i].cmp, rows[i].value));
        MP_CHECK_EQ(p[2], rows[i].end);
        MP_OK(rank_wait_until(mem, 16, rows[i].cmp, rows[i].value));
        mp_barrier(mp->world);
    }
    MP_STATUS(rank_wait_until(mem, 12, RANK_CMP_EQ, 0), RANK_ERR_ARG);
    MP_STATUS(rank_wait_until(mem, 64, RANK_CMP_EQ, 0), RANK_ERR_BOUNDS);
    MP_STATUS(rank_wait_until(mem, -8, RANK_CMP_EQ, 0), RANK_ERR_BOUNDS);
    MP_STATUS(rank_wait_until(mem, 0, (rank_cmp_t)6, 0), RANK_ERR_ARG);
    MP_STATUS(rank_signal_wait(mem, 0, RANK_CMP_EQ, 0, mp->size, NULL), RANK_ERR_RANK);
    MP_STATUS(rank_put_signal(NULL, 8, to, mem, 0, mem, 8, 1, RANK_SIGNAL_SET), RANK_ERR_ARG);
    MP_STATUS(rank_put_signal(p, 8, to, mem, 0, mem, 4, 1, RANK_SIGNAL_SET), RANK_ERR_ARG);
    MP_STATUS(rank_put_signal(p, 8, to, mem, 0, mem, 64, 1, RANK_SIGNAL_SET), RANK_ERR_BOUNDS);
    MP_STATUS(rank_put_signal(p, 8, to, mem, 60, mem, 0, 1, RANK_SIGNAL_SET), RANK_ERR_BOUNDS);
    MP_STATUS(rank_put_signal(p, 8, mp->size, mem, 0, mem, 0, 1, RANK_SIGNAL_SET), RANK_ERR_RANK);
    MP_STATUS(rank_put_signal(p, 8, to, mem, 0, mem, 0, 1, (rank_signal_op_t)2), RANK_ERR_ARG);
    mp_barrier(mp->world);
    MP_OK(rank_free(&mem));
}

/* A test returns at once, without the signal, and writes nothing then. */
static void tested(struct mp *mp)
{
    int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size, flag = 5;
    uint64_t *p, seen = 99;
    rank_mem_t mem;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 64, (void **)&p, &mem));
    MP_OK(rank_test_signal(mem, 0, RANK_CMP_NE, 0, from, &flag, &seen));
    MP_CHECK_EQ(flag, 0);
    MP_CHECK_EQ(seen, 99);
    mp_barrier(mp->world);
    MP_OK(rank_put_signal(NULL, 0, to, mem, 0, mem, 0, 7, RANK_SIGNAL_SET));
    while (!flag)
        MP_OK(rank_test_signal(mem, 0, RANK_CMP_NE, 0, from, &flag, &seen));
    MP_CHECK_EQ(flag, 1);
    MP_CHECK_EQ(seen, 7);
    MP_OK(rank_test_signal(mem, 0, RANK_CMP_GE, 7, RANK_ANY_SOURCE, &flag, NULL));
    MP_CHECK_EQ(flag, 1);
    MP_STATUS(rank_test_signal(mem, 0, RANK_CMP_EQ, 7, from, NULL, &seen), RANK_ERR_ARG);
    MP_STATUS(rank_test_signal(mem, 4, RANK_CMP_EQ, 7, from, &flag, &seen), RANK_ERR_ARG);
    MP_STATUS(rank_test_signal(mem, 64, RANK_CMP_EQ, 7, from, &flag, &seen), RANK_ERR_BOUNDS);
    MP_STATUS(rank_test_signal(mem, 0, (rank_cmp_t)6, 7, from, &flag, &seen), RANK_ERR_ARG);
    MP_STATUS(rank_test_signal(mem, 0, RANK_CMP_EQ, 7, mp->size, &flag, &seen), RANK_ERR_RANK);
    mp_barrier(mp->world);
    MP_OK(rank_free(&mem));
}

/* A waiter that sleeps is woken by a signal, and finds a plain put or atomic soon. Not one wait in ten may take
 * long: what is late by a whole sleep of the library was not noticed but found by chance. */
static void asleep(struct mp *mp)
{
    enum { ROUNDS = 10 };
    const double pause = 0.1; /* the library's longest */
    double *sent = NULL, late;
    rank_mem_t mem, times;
    int slow[3] = {0, 0, 0};
    uint64_t *p, one = 1;

    if (mp->size < 2)
        return;
    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 64, (void **)&p, &mem));
    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 64, (void **)&sent, &times));
    for (uint64_t i = 1; i <= 3 * ROUNDS; i++) {
        mp_barrier(mp->world);
        if (mp->rank == 1) {
            usleep(15000); /* the other's spinning, after which it sleeps */
            late = mp_now();
            if (i % 3 == 0)
                MP_OK(rank_put_signal(&late, 8, 0, times, 0, mem, 0, i, RANK_SIGNAL_SET));
            MP_OK(rank_put(&late, 8, 0, times, 0));
            MP_OK(rank_flush(times, 0));
            if (i % 3 == 1)
                MP_OK(rank_put(&i, 8, 0, mem, 0));
            if (i % 3 == 2)
                MP_OK(rank_atomic(RANK_AMO_ADD, RANK_UINT64, &one, 0, mem, 0, NULL));
            MP_OK(rank_flush(mem, 0));
        } else if (mp->rank == 0) {
            if (i % 3 == 0)
                MP_OK(rank_signal_wait(mem, 0, RANK_CMP_GE, i, 1, NULL));
            else
                MP_OK(rank_wait_until(mem, 0, RANK_CMP_GE, i));
            late = mp_now() - sent[0];
            slow[i % 3] += late > pause / 4;
        }
    }
    for (int k = 0; k < 3; k++)
        MP_CHECK(slow[k] <= ROUNDS / 2);
    MP_OK(rank_free(&times));
    MP_OK(rank_free(&mem));
}

/* Data, fence, flag by a put: a rank that sees the flag sees the data. */
static void fenced(struct mp *mp)
{
    int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;
    enum { N = 30000 };
    char *p, *out = mp_alloc(N);
    rank_request_t req;
    rank_mem_t mem;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, N + 8, (void **)&p, &mem));
    for (uint64_t i = 1; i <= 60; i++) {
        mp_fill(out, N, i * 100 + (uint64_t)mp->rank);
        if (i & 1) {
            MP_OK(rank_put(out, N, to, mem, 8));
        } else {
            MP_OK(rank_iput(out, N, to, mem, 8, &req));
            MP_OK(rank_flush_local(mem, to));
            MP_OK(rank_wait(&req, NULL));
        }
        MP_OK(rank_fence(mem));
        if (i % 3)
            MP_OK(rank_put(&i, 8, to, mem, 0));
        else
            MP_OK(rank_put_signal(NULL, 0, to, mem, 0, mem, 0, i, RANK_SIGNAL_SET));
        MP_OK(rank_wait_until(mem, 0, RANK_CMP_EQ, i));
        MP_CHECK_EQ(mp_verify(p + 8, N, i * 100 + (uint64_t)from), -1);
        mp_barrier(mp->world);
    }
    MP_OK(rank_free(&mem));
    free(out);
}

/* Data in registered memory, a fence on that, and a flag of each sort in memory of rank_alloc, which mostly goes another way. The
 * flag is read without a call of the library, which would let in what was first. */
static void fenced_across(struct mp *mp)
{
    int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;
    enum { N = 5000, ROUNDS = 24 };
    char *data = mp_alloc(N), *out = mp_alloc(N), mine[RANK_RKEY_MAX], key[RANK_RKEY_MAX];
    rank_mem_t own, theirs, mem;
    size_t len = sizeof(mine);
    uint64_t *flag, one = 1;
    rank_envelope_t env;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 64, (void **)&flag, &mem));
    MP_OK(rank_reg(data, N, &own));
    MP_OK(rank_rkey_pack(own, mine, &len));
    MP_OK(rank_sendrecv(mine, (int64_t)len, RANK_BYTE, from, 1, key, sizeof(key), RANK_BYTE, to, 1, mp->world, &env));
    MP_OK(rank_rkey_open(mp->world, to, key, (size_t)env.bytes, &theirs));
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        int64_t n = i % 2 ? N : 64;
        double end;

        mp_fill(out, (size_t)n, i * 100 + (uint64_t)mp->rank);
        mp_barrier(mp->world);
        MP_OK(rank_put(out, n, to, theirs, 0));
        MP_OK(rank_fence(theirs));
        if (i % 3 == 0)
            MP_OK(rank_put(&i, 8, to, mem, 0));
        else if (i % 3 == 1)
            MP_OK(rank_put_signal(NULL, 0, to, mem, 0, mem, 0, i, RANK_SIGNAL_SET));
        else
            MP_OK(rank_atomic(RANK_AMO_ADD, RANK_UINT64, &one, to, mem, 0, NULL));
        for (end = mp_now() + 0.003; __atomic_load_n(flag, __ATOMIC_ACQUIRE) != i && mp_now() < end;)
            sched_yield();
        if (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != i)
            MP_OK(rank_wait_until(mem, 0, RANK_CMP_EQ, i));
        MP_CHECK_EQ(mp_verify(data, (size_t)n, i * 100 + (uint64_t)from), -1);
    }
    mp_barrier(mp->world);
    MP_OK(rank_rkey_close(&theirs));
    mp_barrier(mp->world);
    MP_OK(rank_dereg(&own));
    MP_OK(rank_free(&mem));
    free(data);
    free(out);
}

int main(int argc, char **argv)
{
    struct mp mp;

    mp_start(&mp, &argc, argv);
    mp_case(&mp, "ring");
    ring(&mp);
    mp_case(&mp, "gathered");
    gathered(&mp);
    mp_case(&mp, "comparisons");
    comparisons(&mp);
    mp_case(&mp, "tested");
    tested(&mp);
    mp_case(&mp, "asleep");
    asleep(&mp);
    mp_case(&mp, "fenced");
    fenced(&mp);
    mp_case(&mp, "fenced across handles");
    fenced_across(&mp);
    mp_end(&mp);
    return 0;
}

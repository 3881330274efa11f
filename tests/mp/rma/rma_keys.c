/* SPDX-License-Identifier: BSD-3-Clause */
/* rma_keys.c: open keys to registered memory, and refuse damaged and stale ones. */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void exchange(struct mp *mp, rank_mem_t mine, int to, int from, char *theirs, size_t *len)
{
    char key[RANK_RKEY_MAX];
    size_t n = sizeof(key);
    rank_envelope_t env;

    MP_OK(rank_rkey_pack(mine, key, &n));
    MP_CHECK(n > 0 && n <= RANK_RKEY_MAX);
    MP_OK(rank_sendrecv(key, (int64_t)n, RANK_BYTE, to, 1, theirs, RANK_RKEY_MAX, RANK_BYTE, from, 1,
                        mp->world, &env));
    *len = (size_t)env.bytes;
}

/* Memory of each sort that a program has. */
static void of_any_memory(struct mp *mp)
{
    static char fixed[1001];
    char stack[333], *heap = mp_alloc(5000), key[RANK_RKEY_MAX];
    int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;
    struct { char *p; int64_t n; } parts[] = {{fixed, 1001}, {stack, 333}, {heap, 5000}};

    for (int i = 0; i < 3; i++) {
        rank_mem_t mine, theirs;
        char out[512], in[512];
        size_t len;
        void *p;

        memset(parts[i].p, 0, (size_t)parts[i].n);
        MP_OK(rank_reg(parts[i].p, parts[i].n, &mine));
        exchange(mp, mine, to, from, key, &len);
        MP_OK(rank_rkey_open(mp->world, from, key, len, &theirs));
        MP_OK(rank_ptr(mine, mp->rank, &p));
        MP_CHECK(p == parts[i].p);
        for (int64_t n = 1; n < 300; n += 37) {
            int64_t at = parts[i].n - n - 1;
            mp_fill(out, (size_t)n, (uint64_t)(n + mp->rank));
            MP_OK(rank_put(out, n, from, theirs, at));
            MP_OK(rank_flush(theirs, from));
            memset(in, 0, sizeof(in));
            MP_OK(rank_get(in, n, from, theirs, at));
            MP_CHECK(memcmp(in, out, (size_t)n) == 0);
            mp_barrier(mp->world);
            MP_CHECK_EQ(mp_verify(parts[i].p + at, (size_t)n, (uint64_t)(n + to)), -1);
            MP_CHECK_EQ(parts[i].p[parts[i].n - 1], 0); /* not past its end */
            mp_barrier(mp->world);
        }
        MP_STATUS(rank_put(out, 8, from, theirs, parts[i].n - 7), RANK_ERR_BOUNDS);
        MP_STATUS(rank_get(in, 1, from, theirs, -1), RANK_ERR_BOUNDS);
        if (mp->size > 1)
            MP_STATUS(rank_put(out, 8, mp->rank, theirs, 0), RANK_ERR_RANK);
        MP_STATUS(rank_put(out, 8, mp->size, theirs, 0), RANK_ERR_RANK);
        /* What is not a handle of the sort that the call wants. */
        MP_STATUS(rank_free(&mine), RANK_ERR_HANDLE);
        MP_STATUS(rank_rkey_close(&mine), RANK_ERR_HANDLE);
        MP_STATUS(rank_dereg(&theirs), RANK_ERR_HANDLE);
        len = sizeof(key);
        MP_STATUS(rank_rkey_pack(theirs, key, &len), RANK_ERR_HANDLE);
        len = 3;
        MP_STATUS(rank_rkey_pack(mine, key, &len), RANK_ERR_TRUNCATED);
        MP_OK(rank_rkey_close(&theirs));
        MP_CHECK(theirs == RANK_MEM_NULL);
        mp_barrier(mp->world);
        MP_OK(rank_dereg(&mine));
        MP_CHECK(mine == RANK_MEM_NULL);
        MP_STATUS(rank_dereg(&mine), RANK_ERR_HANDLE);
    }
    free(heap);
}

/* Each byte of a key changed, each length cut, the wrong peer, the wrong sort: no handle comes of it, and the
 * memory stays as it was. */
static void damaged(struct mp *mp)
{
    int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;
    char key[RANK_RKEY_MAX], bad[RANK_RKEY_MAX], mine[256];
    rank_mem_t own, theirs = RANK_MEM_NULL;
    uint64_t seed = mp->seed;
    size_t len;

    memset(mine, 7, sizeof(mine));
    MP_OK(rank_reg(mine, sizeof(mine), &own));
    exchange(mp, own, to, from, key, &len);
    for (size_t i = 0; i < len; i++) {
        memcpy(bad, key, len);
        bad[i] ^= (char)(1 << mp_below(&seed, 8));
        MP_STATUS(rank_rkey_open(mp->world, from, bad, len, &theirs), RANK_ERR_HANDLE);
        MP_STATUS(rank_rkey_open(mp->world, from, key, i, &theirs), RANK_ERR_HANDLE);
    }
    MP_STATUS(rank_rkey_open(mp->world, from, key, RANK_RKEY_MAX + 1, &theirs), RANK_ERR_HANDLE);
    MP_STATUS(rank_rkey_open(mp->world, from, NULL, len, &theirs), RANK_ERR_ARG);
    MP_STATUS(rank_rkey_open(mp->world, mp->size, key, len, &theirs), RANK_ERR_RANK);
    if (mp->size > 1)
        MP_STATUS(rank_rkey_open(mp->world, to == from ? mp->rank : to, key, len, &theirs),
                  RANK_ERR_HANDLE);
    memset(bad, 0, sizeof(bad));
    MP_STATUS(rank_rkey_open(mp->world, from, bad, len, &theirs), RANK_ERR_HANDLE);
    MP_CHECK(theirs == RANK_MEM_NULL);
    mp_barrier(mp->world);
    for (size_t i = 0; i < sizeof(mine); i++)
        MP_CHECK_EQ(mine[i], 7);
    /* A good key of memory that is registered no longer. */
    MP_OK(rank_dereg(&own));
    mp_barrier(mp->world);
    MP_STATUS(rank_rkey_open(mp->world, from, key, len, &theirs), RANK_ERR_HANDLE);
    /* And of memory that is registered again: another key. */
    MP_OK(rank_reg(mine, sizeof(mine), &own));
    mp_barrier(mp->world);
    MP_STATUS(rank_rkey_open(mp->world, from, key, len, &theirs), RANK_ERR_HANDLE);
    mp_barrier(mp->world);
    MP_OK(rank_dereg(&own));
}

/* Signals into registered memory, and waits for them there. */
static void signalled(struct mp *mp)
{
    int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;
    struct { uint64_t flag; char data[20000]; } *mine = calloc(1, sizeof(*mine));
    char key[RANK_RKEY_MAX], *out = mp_alloc(20000);
    rank_mem_t own, theirs;
    size_t len;

    MP_CHECK(mine != NULL);
    MP_OK(rank_reg(mine, sizeof(*mine), &own));
    exchange(mp, own, from, to, key, &len); /* to its left: it is written by its left */
    MP_OK(rank_rkey_open(mp->world, to, key, len, &theirs));
    for (uint64_t i = 1; i <= 100; i++) {
        int64_t n = i % 3 == 0 ? 20000 : i % 3 == 1 ? 24 : 6000;
        mp_fill(out, (size_t)n, i * 10 + (uint64_t)mp->rank);
        MP_OK(rank_put_signal(out, n, to, theirs, 8, theirs, 0, i, RANK_SIGNAL_SET));
        MP_OK(rank_signal_wait(own, 0, RANK_CMP_GE, i, from, NULL));
        MP_CHECK_EQ(mp_verify(mine->data, (size_t)n, i * 10 + (uint64_t)from), -1);
        mp_barrier(mp->world);
    }
    MP_OK(rank_rkey_close(&theirs));
    mp_barrier(mp->world);
    MP_OK(rank_dereg(&own));
    free(mine);
    free(out);
}

/* Many registrations at once, and what finalize finds still open. */
static void many(struct mp *mp)
{
    enum { N = 40 };
    int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;
    static char fixed[N * 64];
    char key[RANK_RKEY_MAX];
    rank_mem_t own[N], theirs[N];
    size_t len;

    for (int i = 0; i < N; i++) {
        MP_OK(rank_reg(fixed + i * 64, 64, &own[i]));
        exchange(mp, own[i], to, from, key, &len);
        MP_OK(rank_rkey_open(mp->world, from, key, len, &theirs[i]));
    }
    for (int i = N - 1; i >= 0; i--) {
        char c = (char)(i + 1);
        MP_OK(rank_put(&c, 1, from, theirs[i], 5));
    }
    for (int i = 0; i < N; i++)
        MP_OK(rank_flush(theirs[i], from));
    mp_barrier(mp->world);
    for (int i = 0; i < N; i++)
        MP_CHECK_EQ(fixed[i * 64 + 5], i + 1);
    mp_barrier(mp->world);
    for (int i = 0; i < N - 3; i++)
        MP_OK(rank_rkey_close(&theirs[i]));
    mp_barrier(mp->world);
    for (int i = 0; i < N - 5; i++)
        MP_OK(rank_dereg(&own[i]));
}

/* Memory that begins at an odd address: words that lie right by their offset alone, and those that lie right. */
static void odd(struct mp *mp)
{
    int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;
    static uint64_t words[9];
    char key[RANK_RKEY_MAX], *mine = (char *)words + 4;
    rank_mem_t own, theirs;
    uint64_t one = 1, was;
    size_t len;

    memset(words, 0, sizeof(words));
    MP_OK(rank_reg(mine, 64, &own));
    exchange(mp, own, to, from, key, &len);
    MP_OK(rank_rkey_open(mp->world, from, key, len, &theirs));
    MP_STATUS(rank_atomic(RANK_AMO_ADD, RANK_UINT64, &one, from, theirs, 8, NULL), RANK_ERR_ARG);
    MP_STATUS(rank_atomic(RANK_AMO_FETCH_ADD, RANK_UINT64, &one, from, theirs, 8, &was), RANK_ERR_ARG);
    MP_STATUS(rank_put_signal(&one, 8, from, theirs, 0, theirs, 8, 1, RANK_SIGNAL_SET), RANK_ERR_ARG);
    MP_STATUS(rank_wait_until(own, 8, RANK_CMP_EQ, 1), RANK_ERR_ARG);
    MP_OK(rank_atomic(RANK_AMO_FETCH_ADD, RANK_UINT32, &one, from, theirs, 8, &was));
    MP_OK(rank_flush(theirs, from));
    mp_barrier(mp->world);
    MP_CHECK_EQ(mine[8], 1);
    MP_CHECK_EQ(mine[0], 0);
    MP_OK(rank_rkey_close(&theirs));
    mp_barrier(mp->world);
    MP_OK(rank_dereg(&own));
}

/* Memory that the owner has protected from writing, all of it or a page: each write there is refused, and kills no rank. The same
 * holds for reads of memory that is protected from reading. */
static void guarded(struct mp *mp)
{
    enum { PAGE = 4096, BYTES = 3 * PAGE };
    int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;
    char *mine = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), key[RANK_RKEY_MAX];
    char in[BYTES], out[BYTES];
    uint64_t one = 1, was;
    rank_piece_t piece[2] = {{out, 100, 8}, {out + 100, 5000, 2000}};
    rank_mem_t own, theirs;
    rank_request_t req;
    size_t len;

    MP_CHECK(mine != MAP_FAILED);
    mp_fill(mine, BYTES, (uint64_t)mp->rank);
    memset(out, 9, sizeof(out));
    for (int i = 0; i < 3; i++) {
        MP_CHECK_EQ(mprotect(mine, BYTES, PROT_READ | (i == 1 ? PROT_WRITE : 0)), 0);
        MP_CHECK_EQ(mprotect(mine + PAGE, PAGE, i == 2 ? PROT_NONE : PROT_READ), 0);
        MP_OK(rank_reg(mine, BYTES, &own));
        exchange(mp, own, to, from, key, &len);
        MP_OK(rank_rkey_open(mp->world, from, key, len, &theirs));
        for (int64_t at = 0; mp->size > 1 && at < BYTES; at += PAGE) {
            MP_STATUS(rank_put(out, 8, from, theirs, at), RANK_ERR_ARG);
            MP_STATUS(rank_put(out, PAGE, from, theirs, at), RANK_ERR_ARG);
            MP_STATUS(rank_iput(out, 8, from, theirs, at, &req), RANK_ERR_ARG);
            MP_STATUS(rank_put_strided(out, 8, 8, 4, from, theirs, at, 16), RANK_ERR_ARG);
            MP_STATUS(rank_atomic(RANK_AMO_ADD, RANK_UINT64, &one, from, theirs, at, NULL), RANK_ERR_ARG);
            MP_STATUS(rank_atomic(RANK_AMO_FETCH_ADD, RANK_UINT32, &one, from, theirs, at, &was), RANK_ERR_ARG);
            MP_STATUS(rank_atomic_cas(RANK_UINT64, &one, &one, from, theirs, at, &was), RANK_ERR_ARG);
            MP_STATUS(rank_put_signal(out, 8, from, theirs, 0, theirs, at, 1, RANK_SIGNAL_SET), RANK_ERR_ARG);
            MP_OK(rank_flush(theirs, from));
            MP_STATUS(rank_get(in, 8, from, theirs, at), i == 2 ? RANK_ERR_ARG : RANK_OK);
        }
        if (mp->size > 1)
            MP_STATUS(rank_putv(piece, 2, from, theirs), RANK_ERR_ARG);
        if (mp->size > 1 && i < 2) {
            memset(in, 0, sizeof(in));
            MP_OK(rank_iget(in, BYTES, from, theirs, 0, &req));
            MP_OK(rank_wait(&req, NULL));
            MP_CHECK_EQ(mp_verify(in, BYTES, (uint64_t)from), -1);
        }
        MP_OK(rank_rkey_close(&theirs));
        mp_barrier(mp->world);
        MP_OK(rank_dereg(&own));
    }
    MP_CHECK_EQ(mprotect(mine, BYTES, PROT_READ), 0);
    MP_CHECK_EQ(mp_verify(mine, BYTES, (uint64_t)mp->rank), -1);
    munmap(mine, BYTES);
}

int main(int argc, char **argv)
{
    struct mp mp;

    mp_start(&mp, &argc, argv);
    mp_case(&mp, "of any memory");
    of_any_memory(&mp);
    mp_case(&mp, "damaged");
    damaged(&mp);
    mp_case(&mp, "signalled");
    signalled(&mp);
    mp_case(&mp, "odd");
    odd(&mp);
    mp_case(&mp, "guarded");
    guarded(&mp);
    mp_case(&mp, "many");
    many(&mp);
    mp_end(&mp);
    return 0;
}

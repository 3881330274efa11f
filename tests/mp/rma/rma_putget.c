/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma_putget.c: put and get, nonblocking, by vectors and strides.
 * On symmetric and on registered memory, against a model of every rank's memory.
 */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>

/* Each rank may write its own share of every rank's memory. */
enum { SHARE = 400 * 1000 };

struct target {
    rank_mem_t mem[32];  /* by the owner: the same handle (symmetric), or an opened key for each */
    rank_mem_t own;
    bool registered;
    char *mine, *model;  /* model: what my share holds at every rank */
};

static void set_up(struct mp *mp, struct target *t, bool registered)
{
    size_t bytes = (size_t)SHARE * (size_t)mp->size;

    memset(t, 0, sizeof(*t));
    t->registered = registered;
    t->model = calloc((size_t)mp->size, SHARE);
    MP_CHECK(t->model != NULL && mp->size <= 32);
    if (!registered) {
        MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, (int64_t)bytes, (void **)&t->mine, &t->own));
        for (int r = 0; r < mp->size; r++)
            t->mem[r] = t->own;
        return;
    }
    t->mine = calloc(1, bytes);
    MP_CHECK(t->mine != NULL);
    MP_OK(rank_reg(t->mine, (int64_t)bytes, &t->own));
    for (int d = 0; d < mp->size; d++) {
        int to = (mp->rank + d) % mp->size, from = (mp->rank - d + mp->size) % mp->size;
        char key[RANK_RKEY_MAX], theirs[RANK_RKEY_MAX];
        size_t len = sizeof(key);
        rank_envelope_t env;
        MP_OK(rank_rkey_pack(t->own, key, &len));
        MP_OK(rank_sendrecv(key, (int64_t)len, RANK_BYTE, to, 9, theirs, sizeof(theirs), RANK_BYTE,
                            from, 9, mp->world, &env));
        MP_OK(rank_rkey_open(mp->world, from, theirs, (size_t)env.bytes, &t->mem[from]));
    }
}

static void flush_all(struct mp *mp, struct target *t)
{
    for (int r = 0; r < mp->size; r++)
        MP_OK(rank_flush(t->mem[r], r));
}

/* Check that each rank's share in my memory is as in its owner's model. */
static void compare(struct mp *mp, struct target *t)
{
    char *theirs = mp_alloc(SHARE);

    flush_all(mp, t);
    mp_barrier(mp->world);
    for (int d = 0; d < mp->size; d++) {
        int to = (mp->rank + d) % mp->size, from = (mp->rank - d + mp->size) % mp->size;
        MP_OK(rank_sendrecv(t->model + (size_t)to * SHARE, SHARE, RANK_BYTE, to, 8, theirs, SHARE,
                            RANK_BYTE, from, 8, mp->world, NULL));
        MP_CHECK(memcmp(theirs, t->mine + (size_t)from * SHARE, SHARE) == 0);
    }
    mp_barrier(mp->world);
    free(theirs);
}

static void tear_down(struct mp *mp, struct target *t)
{
    compare(mp, t);
    if (t->registered) {
        for (int r = 0; r < mp->size; r++)
            MP_OK(rank_rkey_close(&t->mem[r]));
        mp_barrier(mp->world);
        MP_OK(rank_dereg(&t->own));
        free(t->mine);
    } else {
        MP_OK(rank_free(&t->own));
    }
    MP_CHECK(t->own == RANK_MEM_NULL);
    free(t->model);
}

/* Many at once; completed by waits, by tests, by flushes. */
static void nonblocking(struct mp *mp, struct target *t, uint64_t *seed)
{
    enum { N = 64 };
    rank_request_t req[N];
    char *buf = mp_alloc((size_t)N * 6000);
    int64_t base = (int64_t)SHARE * mp->rank;

    for (int round = 0; round < 6; round++) {
        int64_t at = 0, offs[N], lens[N];
        int to = (int)mp_below(seed, (uint64_t)mp->size);
        for (int i = 0; i < N; i++) {
            lens[i] = (int64_t)mp_below(seed, i % 7 ? 300 : 6000);
            offs[i] = at;
            at += lens[i] + (int64_t)mp_below(seed, 50);
            mp_fill(buf + i * 6000, (size_t)lens[i], mp_random(seed));
            memcpy(t->model + (size_t)to * SHARE + offs[i], buf + i * 6000, (size_t)lens[i]);
            MP_OK(rank_iput(buf + i * 6000, lens[i], to, t->mem[to], base + offs[i], &req[i]));
        }
        if (round % 3 == 0)
            MP_OK(rank_waitall(N, req, NULL));
        else if (round % 3 == 1)
            MP_OK(rank_flush_local(t->mem[to], to));
        MP_OK(rank_flush(t->mem[to], to));
        for (int i = 0; i < N; i++) {
            int done = 0;
            MP_OK(rank_test(&req[i], &done, NULL)); /* flush has completed it */
            MP_CHECK(done && req[i] == RANK_REQUEST_NULL);
        }
        memset(buf, 0xee, (size_t)N * 6000);
        for (int i = 0; i < N; i++)
            MP_OK(rank_iget(buf + i * 6000, lens[i], to, t->mem[to], base + offs[i], &req[i]));
        if (round & 1) {
            MP_OK(rank_flush_local(t->mem[to], RANK_ALL));
            for (int i = 0; i < N; i++)
                MP_CHECK(memcmp(buf + i * 6000, t->model + (size_t)to * SHARE + offs[i],
                                (size_t)lens[i]) == 0);
        }
        MP_OK(rank_waitall(N, req, NULL));
        for (int i = 0; i < N; i++)
            MP_CHECK(memcmp(buf + i * 6000, t->model + (size_t)to * SHARE + offs[i],
                            (size_t)lens[i]) == 0);
    }
    free(buf);
}

/* More than any room holds, started without a check of what comes back. */
static void storm(struct mp *mp, struct target *t, uint64_t *seed)
{
    enum { N = 3000 };
    int to = (mp->rank + 1) % mp->size;
    int64_t base = (int64_t)SHARE * mp->rank;
    char *model = t->model + (size_t)to * SHARE, *in = mp_alloc(N * 8);
    rank_request_t *req = calloc(N, sizeof(*req));

    MP_CHECK(req != NULL);
    mp_fill(model, N * 8, mp_random(seed));
    for (int i = 0; i < N; i++)
        MP_OK(rank_iput(model + i * 8, 8, to, t->mem[to], base + i * 8, &req[i]));
    MP_OK(rank_waitall(N, req, NULL));
    MP_OK(rank_flush(t->mem[to], to));
    for (int i = 0; i < N; i++)
        MP_OK(rank_iget(in + i * 8, 8, to, t->mem[to], base + i * 8, &req[i]));
    MP_OK(rank_waitall(N, req, NULL));
    MP_CHECK(memcmp(in, model, N * 8) == 0);
    free(req);
    free(in);
}

/* Long ones, which do not fit into a frame or a packet. */
static void large(struct mp *mp, struct target *t, uint64_t *seed)
{
    char *out = mp_alloc(SHARE), *in = mp_alloc(SHARE);
    int to = (mp->rank + 1) % mp->size;
    rank_request_t req[2];

    for (int round = 0; round < 4; round++) {
        mp_fill(out, SHARE, mp_random(seed));
        memcpy(t->model + (size_t)to * SHARE, out, SHARE);
        if (round & 1) {
            MP_OK(rank_put(out, SHARE, to, t->mem[to], (int64_t)SHARE * mp->rank));
        } else {
            MP_OK(rank_iput(out, SHARE / 2, to, t->mem[to], (int64_t)SHARE * mp->rank, &req[0]));
            MP_OK(rank_iput(out + SHARE / 2, SHARE / 2, to, t->mem[to],
                            (int64_t)SHARE * mp->rank + SHARE / 2, &req[1]));
            MP_OK(rank_waitall(2, req, NULL));
            memset(out, 0, SHARE);
        }
        MP_OK(rank_flush(t->mem[to], to));
        memset(in, 0, SHARE);
        if (round & 2) {
            MP_OK(rank_get(in, SHARE, to, t->mem[to], (int64_t)SHARE * mp->rank));
        } else {
            MP_OK(rank_iget(in, SHARE, to, t->mem[to], (int64_t)SHARE * mp->rank, &req[0]));
            MP_OK(rank_wait(&req[0], NULL));
        }
        MP_CHECK(memcmp(in, t->model + (size_t)to * SHARE, SHARE) == 0);
    }
    free(out);
    free(in);
}

static void vectors(struct mp *mp, struct target *t, uint64_t *seed)
{
    enum { N = 700 };
    rank_piece_t *pieces = calloc(N, sizeof(*pieces));
    char *local = mp_alloc(SHARE), *back = mp_alloc(SHARE);

    MP_CHECK(pieces != NULL);
    for (int round = 0; round < 12; round++) {
        int to = (int)mp_below(seed, (uint64_t)mp->size), n = 0;
        int64_t base = (int64_t)SHARE * mp->rank, at = 0;
        uint64_t most = round % 3 == 0 ? 64 : round % 3 == 1 ? 1024 : 20000;

        mp_fill(local, SHARE, mp_random(seed));
        while (n < N) {
            int64_t len = (int64_t)mp_below(seed, n % 11 ? most / 8 + 1 : most + 1);
            if (at + len > SHARE)
                break;
            pieces[n++] = (rank_piece_t){local + at, len, base + at};
            memcpy(t->model + (size_t)to * SHARE + at, local + at, (size_t)len);
            at += len + (int64_t)mp_below(seed, 3);
        }
        for (int i = n - 1; i > 0 && round % 2; i--) { /* in no order */
            int k = (int)mp_below(seed, (uint64_t)i + 1);
            rank_piece_t p = pieces[i];
            pieces[i] = pieces[k];
            pieces[k] = p;
        }
        MP_OK(rank_putv(pieces, n, to, t->mem[to]));
        memset(local, 0xdd, SHARE);
        MP_OK(rank_flush(t->mem[to], to));
        memset(back, 0, SHARE);
        for (int i = 0; i < n; i++)
            pieces[i].local = back + (pieces[i].offset - base);
        MP_OK(rank_getv(pieces, n, to, t->mem[to]));
        for (int i = 0; i < n; i++)
            MP_CHECK(memcmp(pieces[i].local,
                            t->model + (size_t)to * SHARE + (pieces[i].offset - base),
                            (size_t)pieces[i].bytes) == 0);
    }
    /* One bad piece, and none is moved. */
    memset(local, 0x11, 16);
    pieces[0] = (rank_piece_t){local, 8, (int64_t)SHARE * mp->rank};
    pieces[1] = (rank_piece_t){local, 8, (int64_t)SHARE * mp->size - 7};
    MP_STATUS(rank_putv(pieces, 2, mp->rank, t->mem[mp->rank]), RANK_ERR_BOUNDS);
    pieces[1] = (rank_piece_t){NULL, 8, 0};
    MP_STATUS(rank_getv(pieces, 2, mp->rank, t->mem[mp->rank]), RANK_ERR_ARG);
    pieces[1] = (rank_piece_t){local, -1, 0};
    MP_STATUS(rank_putv(pieces, 2, mp->rank, t->mem[mp->rank]), RANK_ERR_COUNT);
    MP_STATUS(rank_putv(pieces, -1, mp->rank, t->mem[mp->rank]), RANK_ERR_COUNT);
    MP_STATUS(rank_putv(NULL, 1, mp->rank, t->mem[mp->rank]), RANK_ERR_ARG);
    MP_OK(rank_putv(NULL, 0, mp->rank, t->mem[mp->rank]));
    free(pieces);
    free(local);
    free(back);
}

static void strides(struct mp *mp, struct target *t, uint64_t *seed)
{
    char *local = mp_alloc(SHARE), *back = mp_alloc(SHARE);

    for (int round = 0; round < 20; round++) {
        int to = (int)mp_below(seed, (uint64_t)mp->size);
        int64_t block = 1 + (int64_t)mp_below(seed, round % 4 ? 40 : 3000);
        int64_t stride = block + (int64_t)mp_below(seed, 60), here = block + (int64_t)mp_below(seed, 60);
        int64_t longest = stride > here ? stride : here;
        int64_t count = 1 + (int64_t)mp_below(seed, (uint64_t)(SHARE / longest < 600 ? SHARE / longest : 600));
        int64_t base = (int64_t)SHARE * mp->rank, at = 0, from = 0;
        char *model = t->model + (size_t)to * SHARE;

        if (round & 1) { /* backwards there */
            at = (count - 1) * stride;
            stride = -stride;
        }
        if (round & 2) {
            from = (count - 1) * here;
            here = -here;
        }
        mp_fill(local, SHARE, mp_random(seed));
        for (int64_t i = 0; i < count; i++)
            memcpy(model + at + i * stride, local + from + i * here, (size_t)block);
        MP_OK(rank_put_strided(local + from, here, block, count, to, t->mem[to], base + at, stride));
        MP_OK(rank_flush(t->mem[to], to));
        memset(back, 0, SHARE);
        MP_OK(rank_get_strided(back + from, here, block, count, to, t->mem[to], base + at, stride));
        for (int64_t i = 0; i < count; i++)
            MP_CHECK(memcmp(back + from + i * here, local + from + i * here, (size_t)block) == 0);
    }
    MP_STATUS(rank_put_strided(local, 8, 8, 2, mp->rank, t->mem[mp->rank], 0, INT64_MAX),
              RANK_ERR_BOUNDS);
    MP_STATUS(rank_put_strided(local, 8, 8, 2, mp->rank, t->mem[mp->rank], 0, -8), RANK_ERR_BOUNDS);
    MP_STATUS(rank_put_strided(local, 8, -8, 2, mp->rank, t->mem[mp->rank], 0, 8), RANK_ERR_COUNT);
    MP_STATUS(rank_get_strided(NULL, 8, 8, 2, mp->rank, t->mem[mp->rank], 0, 8), RANK_ERR_ARG);
    MP_OK(rank_get_strided(NULL, 8, 0, 2, mp->rank, t->mem[mp->rank], 0, 8));
    free(local);
    free(back);
}

static void atomics(struct mp *mp, struct target *t)
{
    int64_t one = 1, was;

    compare(mp, t);
    /* the first word of rank 0's own share at rank 0, by all */
    if (mp->rank == 0) {
        memset(t->model, 0, 8);
        memset(t->mine, 0, 8);
    }
    mp_barrier(mp->world);
    for (int i = 0; i < 200; i++) {
        MP_OK(rank_atomic(RANK_AMO_ADD, RANK_INT64, &one, 0, t->mem[0], 0, NULL));
        MP_OK(rank_atomic(RANK_AMO_FETCH_ADD, RANK_INT64, &one, 0, t->mem[0], 0, &was));
    }
    MP_OK(rank_flush(t->mem[0], 0));
    mp_barrier(mp->world);
    if (mp->rank == 0) {
        memcpy(&was, t->mine, 8);
        MP_CHECK_EQ(was, 400 * mp->size);
        memcpy(t->model, t->mine, 8);
    }
}

int main(int argc, char **argv)
{
    struct target t;
    struct mp mp;
    uint64_t seed;

    mp_start(&mp, &argc, argv);
    seed = mp.seed + (uint64_t)mp.rank;
    for (int registered = 0; registered < 2; registered++) {
        mp_case(&mp, registered ? "registered memory" : "symmetric memory");
        set_up(&mp, &t, registered);
        mp_case(&mp, "nonblocking");
        nonblocking(&mp, &t, &seed);
        mp_case(&mp, "storm");
        storm(&mp, &t, &seed);
        mp_case(&mp, "large");
        large(&mp, &t, &seed);
        mp_case(&mp, "vectors");
        vectors(&mp, &t, &seed);
        mp_case(&mp, "strides");
        strides(&mp, &t, &seed);
        mp_case(&mp, "atomics");
        atomics(&mp, &t);
        tear_down(&mp, &t);
    }
    mp_end(&mp);
    return 0;
}

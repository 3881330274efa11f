/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p2p_iov.c: send and receive data in pieces, against each other and plain calls.
 * Shapes at random and chosen ones, every size class, posted and unexpected, cut short.
 */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>

enum { PIECES_MAX = 40, GUARD = 0xa5 };

static int right(const struct mp *mp) { return (mp->rank + 1) % mp->size; }
static int left(const struct mp *mp) { return (mp->rank - 1 + mp->size) % mp->size; }

/* A shape over memory of its own. */
struct shape {
    rank_iov_t iov[PIECES_MAX];
    int n;
    unsigned char *mem;
    size_t mem_bytes;
};

static int64_t blocks_of(const rank_iov_t *v)
{
    return v->count ? v->count : 1;
}

static void shape_free(struct shape *s)
{
    free(s->mem);
}

/* Of exactly bytes bytes: pieces with gaps, strided ones, empty ones; in random order in memory. */
static void shape_random(struct shape *s, int64_t bytes, uint64_t *random, bool plain)
{
    int64_t left_over = bytes, at = 0;

    s->n = 0;
    s->mem_bytes = (size_t)bytes * 4 + PIECES_MAX * 600;
    s->mem = mp_alloc(s->mem_bytes);
    memset(s->mem, GUARD, s->mem_bytes);
    if (plain) {
        s->iov[s->n++] = (rank_iov_t){.base = s->mem + 8, .bytes = bytes};
        return;
    }
    while (left_over > 0) {
        rank_iov_t *v = &s->iov[s->n];
        bool last = s->n == PIECES_MAX - 1;
        int64_t part = last ? left_over : 1 + (int64_t)mp_below(random, (uint64_t)left_over);
        int64_t block = 1 + (int64_t)mp_below(random, 64), gap = (int64_t)mp_below(random, 64);

        if (part > left_over / 3 && !last && mp_below(random, 3))
            part = part / 3 + 1;
        *v = (rank_iov_t){.base = s->mem + at, .bytes = part};
        if (part >= block * 2 && !last && mp_below(random, 2)) {
            v->bytes = block;
            v->count = part / block;
            part = v->count * block;
            if (gap > block)
                gap = block; /* so that the memory suffices */
            v->stride = block + gap;
            at += (v->count - 1) * v->stride + block;
            if (mp_below(random, 4) == 0) { /* backwards */
                v->base = (char *)v->base + (v->count - 1) * v->stride;
                v->stride = -v->stride;
            }
        } else {
            at += part;
        }
        at += (int64_t)mp_below(random, 500);
        left_over -= part;
        s->n++;
        if (!last && s->n < PIECES_MAX - 1 && mp_below(random, 5) == 0)
            s->iov[s->n++] = (rank_iov_t){.base = NULL, .bytes = 0, .count = (int64_t)mp_below(random, 3)};
    }
    MP_CHECK((size_t)at <= s->mem_bytes);
    for (int i = s->n; i-- > 1;) { /* the order of the list is not that of addresses */
        int j = (int)mp_below(random, (uint64_t)i + 1);
        rank_iov_t t = s->iov[i];
        s->iov[i] = s->iov[j];
        s->iov[j] = t;
    }
}

/* Between the shape and flat memory, byte by byte: as plainly as can be. */
static void shape_copy(struct shape *s, unsigned char *flat, int64_t bytes, bool into)
{
    for (int i = 0; i < s->n; i++) {
        for (int64_t b = 0; b < blocks_of(&s->iov[i]); b++) {
            for (int64_t k = 0; k < s->iov[i].bytes && bytes > 0; k++, bytes--) {
                unsigned char *p = (unsigned char *)s->iov[i].base + b * s->iov[i].stride + k;
                if (into)
                    *p = *flat++;
                else
                    *flat++ = *p;
            }
        }
    }
}

/* One message round the ring, in the given shapes; room: bytes of the receive. */
static void exchange(struct mp *mp, struct shape *from, struct shape *to, int64_t bytes, int64_t room,
                     int how)
{
    int64_t got = room < bytes ? room : bytes;
    unsigned char *flat = mp_alloc((size_t)(bytes > room ? bytes : room)), *want;
    rank_request_t send, recv = RANK_REQUEST_NULL;
    rank_envelope_t env;
    rank_status_t st;
    uint64_t key = (uint64_t)(bytes * 7 + how);

    mp_fill(flat, (size_t)bytes, key + (uint64_t)mp->rank);
    shape_copy(from, flat, bytes, true);
    if (how & 1)
        MP_OK(rank_irecvv(to->iov, to->n, left(mp), 5, mp->world, &recv));
    mp_barrier(mp->world);
    if (how & 4) { /* a plain one on this side */
        MP_OK(rank_isend(flat, bytes, RANK_BYTE, right(mp), 5, mp->world, &send));
    } else {
        MP_OK(rank_isendv(from->iov, from->n, right(mp), 5, mp->world, &send));
    }
    if ((how & 3) == 2) /* it is surely there before the receive */
        MP_OK(rank_probe(left(mp), 5, mp->world, NULL));
    st = how & 1 ? rank_wait(&recv, &env)
                 : rank_recvv(to->iov, to->n, left(mp), 5, mp->world, &env);
    MP_STATUS(st, room < bytes ? RANK_ERR_TRUNCATED : RANK_OK);
    MP_CHECK_EQ(env.bytes, got);
    MP_CHECK_EQ(env.count, got);
    MP_CHECK_EQ(env.sent_bytes, bytes);
    MP_CHECK_EQ(env.source, left(mp));
    MP_OK(rank_wait(&send, NULL));
    /* What came, and that nothing else was touched: the memory as it should be, made by hand. */
    want = mp_alloc(to->mem_bytes);
    memcpy(want, to->mem, to->mem_bytes);
    mp_fill(flat, (size_t)bytes, key + (uint64_t)left(mp));
    memset(to->mem, GUARD, to->mem_bytes);
    shape_copy(to, flat, got, true);
    for (size_t i = 0; i < to->mem_bytes; i++) {
        if (want[i] != to->mem[i])
            mp_fail(__FILE__, __LINE__, "byte %zu of the memory is %02x, not %02x (%lld bytes, how %d)",
                    i, want[i], to->mem[i], (long long)bytes, how);
    }
    memset(to->mem, GUARD, to->mem_bytes);
    free(want);
    free(flat);
}

static void random_shapes(struct mp *mp, int64_t bytes, int times)
{
    uint64_t random = mp->seed + (uint64_t)bytes; /* the same on every rank */

    for (int i = 0; i < times; i++) {
        int64_t room = i % 4 == 3 ? bytes - bytes / 3 : bytes + (int64_t)mp_below(&random, 100);
        struct shape from, to;
        uint64_t mine = random + (uint64_t)mp->rank * 977;

        shape_random(&from, bytes, &mine, false);
        shape_random(&to, room, &mine, i % 5 == 4);
        mp_below(&random, 2);
        exchange(mp, &from, &to, bytes, room, i % 8);
        shape_free(&from);
        shape_free(&to);
    }
}

/* As many pieces of about that size, the last in memory first; what is odd is the last one's. */
static void shape_long(struct shape *s, int n, int64_t each)
{
    s->n = n;
    s->mem_bytes = (size_t)n * (size_t)(each + 64);
    s->mem = mp_alloc(s->mem_bytes);
    memset(s->mem, GUARD, s->mem_bytes);
    for (int i = 0; i < n; i++)
        s->iov[i] = (rank_iov_t){.base = s->mem + (size_t)(n - 1 - i) * (size_t)(each + 64) + 13,
                                 .bytes = each + (i == n - 1 ? 7 : 0)};
}

/* Pieces that a network sends from where they lie: few and long ones, one too many of them, one too short. */
static void long_pieces(struct mp *mp)
{
    static const struct { int n; int64_t each; } cases[] = {
        {2, 16384}, {2, 16376}, {3, 200000}, {16, 50000}, {17, 50000}, {16, 131072}};

    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        int64_t bytes = cases[c].n * cases[c].each + 7;
        for (int how = 0; how < 4; how++) {
            struct shape from, to;
            int64_t room = how == 3 ? bytes / 2 : bytes;

            shape_long(&from, cases[c].n, cases[c].each);
            if (how == 3)
                shape_long(&to, 1, room - 7);
            else
                shape_long(&to, how == 2 ? 1 : cases[c].n, how == 2 ? bytes - 7 : cases[c].each);
            exchange(mp, &from, &to, bytes, room, how == 0 ? 2 : 1);
            shape_free(&from);
            shape_free(&to);
        }
    }
}

/* A column of a matrix to a row of another, and back. */
static void columns(struct mp *mp)
{
    enum { N = 700 };
    double *a = mp_alloc(N * N * sizeof(*a)), *row = mp_alloc(N * sizeof(*row));
    rank_iov_t column = {.base = &a[3], .bytes = 8, .count = N, .stride = N * 8};
    rank_request_t req;
    rank_envelope_t env;

    for (int i = 0; i < N * N; i++)
        a[i] = i + 0.5 * mp->rank;
    MP_OK(rank_isendv(&column, 1, right(mp), 1, mp->world, &req));
    MP_OK(rank_recv(row, N, RANK_F64, left(mp), 1, mp->world, &env));
    MP_OK(rank_wait(&req, NULL));
    MP_CHECK_EQ(env.count, N);
    for (int i = 0; i < N; i++)
        MP_CHECK(row[i] == i * N + 3 + 0.5 * left(mp));
    column.base = &a[9];
    MP_OK(rank_isend(row, N, RANK_F64, right(mp), 2, mp->world, &req));
    MP_OK(rank_recvv(&column, 1, left(mp), 2, mp->world, &env));
    MP_OK(rank_wait(&req, NULL));
    MP_CHECK_EQ(env.bytes, N * 8);
    for (int i = 0; i < N; i++) {
        MP_CHECK(a[i * N + 9] == i * N + 3 + 0.5 * ((left(mp) - 1 + mp->size) % mp->size));
        MP_CHECK(a[i * N + 8] == i * N + 8 + 0.5 * mp->rank);
        MP_CHECK(a[i * N + 10] == i * N + 10 + 0.5 * mp->rank);
    }
    free(a);
    free(row);
}

/* From and to memory that all ranks of the node map. */
static void symmetric(struct mp *mp)
{
    enum { BYTES = 1 << 20 };
    struct shape to;
    unsigned char *flat = mp_alloc(BYTES / 2);
    uint64_t random = mp->seed + 5;
    rank_request_t req;
    rank_mem_t mem;
    void *ptr;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, BYTES, &ptr, &mem));
    shape_random(&to, BYTES / 2, &random, false);
    mp_fill(ptr, BYTES / 2, (uint64_t)mp->rank);
    MP_OK(rank_isend(ptr, BYTES / 2, RANK_BYTE, right(mp), 1, mp->world, &req));
    MP_OK(rank_recvv(to.iov, to.n, left(mp), 1, mp->world, NULL));
    MP_OK(rank_wait(&req, NULL));
    shape_copy(&to, flat, BYTES / 2, false);
    MP_CHECK_EQ(mp_verify(flat, BYTES / 2, (uint64_t)left(mp)), -1);
    /* pieces of it into plain memory */
    rank_iov_t half[2] = {{.base = (char *)ptr + 100000, .bytes = BYTES / 4},
                          {.base = (char *)ptr + BYTES / 2 + 3, .bytes = BYTES / 4}};
    mp_fill(half[0].base, BYTES / 4, (uint64_t)mp->rank * 2);
    mp_fill(half[1].base, BYTES / 4, (uint64_t)mp->rank * 2 + 1);
    MP_OK(rank_isendv(half, 2, right(mp), 2, mp->world, &req));
    MP_OK(rank_recv(flat, BYTES / 2, RANK_BYTE, left(mp), 2, mp->world, NULL));
    MP_OK(rank_wait(&req, NULL));
    MP_CHECK_EQ(mp_verify(flat, BYTES / 4, (uint64_t)left(mp) * 2), -1);
    MP_CHECK_EQ(mp_verify(flat + BYTES / 4, BYTES / 4, (uint64_t)left(mp) * 2 + 1), -1);
    MP_OK(rank_free(&mem));
    shape_free(&to);
    free(flat);
}

/* To oneself, where both sides have pieces. */
static void oneself(struct mp *mp)
{
    char out[100], in[100];
    rank_iov_t from[2] = {{.base = out, .bytes = 3, .count = 10, .stride = 6}, {.base = out + 90, .bytes = 10}};
    rank_iov_t to[2] = {{.base = in + 50, .bytes = 7}, {.base = in, .bytes = 33}};
    rank_request_t req;

    mp_fill(out, sizeof(out), 3);
    MP_OK(rank_irecvv(to, 2, mp->rank, 6, mp->world, &req));
    MP_OK(rank_sendv(from, 2, mp->rank, 6, mp->world));
    MP_OK(rank_wait(&req, NULL));
    for (int i = 0; i < 7; i++)
        MP_CHECK_EQ(in[50 + i], out[i / 3 * 6 + i % 3]);
    for (int i = 7; i < 30; i++)
        MP_CHECK_EQ(in[i - 7], out[i / 3 * 6 + i % 3]);
    for (int i = 30; i < 40; i++)
        MP_CHECK_EQ(in[i - 7], out[60 + i]);
}

static void arguments(struct mp *mp)
{
    char c[64] = {0};
    rank_iov_t v = {.base = c, .bytes = -1};
    rank_request_t req;
    rank_envelope_t env;

    MP_STATUS(rank_sendv(&v, 1, mp->rank, 1, mp->world), RANK_ERR_COUNT);
    v = (rank_iov_t){.base = c, .bytes = 1, .count = -1};
    MP_STATUS(rank_sendv(&v, 1, mp->rank, 1, mp->world), RANK_ERR_COUNT);
    v = (rank_iov_t){.base = NULL, .bytes = 1};
    MP_STATUS(rank_sendv(&v, 1, mp->rank, 1, mp->world), RANK_ERR_ARG);
    v = (rank_iov_t){.base = c, .bytes = INT64_MAX};
    MP_STATUS(rank_sendv(&v, 1, mp->rank, 1, mp->world), RANK_ERR_COUNT);
    v = (rank_iov_t){.base = c, .bytes = 1 << 20, .count = INT64_MAX / 1000, .stride = 1 << 20};
    MP_STATUS(rank_sendv(&v, 1, mp->rank, 1, mp->world), RANK_ERR_COUNT);
    v = (rank_iov_t){.base = c, .bytes = 1, .count = 3, .stride = INT64_MAX / 2};
    MP_STATUS(rank_sendv(&v, 1, mp->rank, 1, mp->world), RANK_ERR_COUNT);
    v = (rank_iov_t){.base = c, .bytes = 1, .count = 3, .stride = INT64_MIN / 2};
    MP_STATUS(rank_sendv(&v, 1, mp->rank, 1, mp->world), RANK_ERR_COUNT);
    v = (rank_iov_t){.base = c, .bytes = 8, .count = 3, .stride = 4}; /* over itself */
    MP_STATUS(rank_irecvv(&v, 1, mp->rank, 1, mp->world, &req), RANK_ERR_ARG);
    v.stride = -4;
    MP_STATUS(rank_irecvv(&v, 1, mp->rank, 1, mp->world, &req), RANK_ERR_ARG);
    MP_STATUS(rank_sendv(NULL, 1, mp->rank, 1, mp->world), RANK_ERR_ARG);
    MP_STATUS(rank_sendv(&v, -1, mp->rank, 1, mp->world), RANK_ERR_COUNT);
    MP_STATUS(rank_sendv(&v, 1, mp->size, 1, mp->world), RANK_ERR_RANK);
    MP_STATUS(rank_sendv(&v, 1, mp->rank, -1, mp->world), RANK_ERR_TAG);
    MP_STATUS(rank_isendv(&v, 1, mp->rank, 1, mp->world, NULL), RANK_ERR_ARG);
    MP_STATUS(rank_recvv(&v, 1, mp->rank, 1, RANK_TEAM_NULL, NULL), RANK_ERR_HANDLE);
    /* a send may name the same twice, and nothing is a message too */
    memcpy(c, "abcdefgh", 8);
    v = (rank_iov_t){.base = c, .bytes = 4, .count = 3, .stride = 0};
    MP_OK(rank_irecv(c + 20, 12, RANK_BYTE, mp->rank, 1, mp->world, &req));
    MP_OK(rank_sendv(&v, 1, mp->rank, 1, mp->world));
    MP_OK(rank_wait(&req, NULL));
    MP_CHECK(memcmp(c + 20, "abcdabcdabcd", 12) == 0);
    MP_OK(rank_irecvv(NULL, 0, mp->rank, 1, mp->world, &req));
    MP_OK(rank_sendv(NULL, 0, mp->rank, 1, mp->world));
    MP_OK(rank_wait(&req, &env));
    MP_CHECK_EQ(env.bytes, 0);
}

int main(int argc, char **argv)
{
    static const int64_t sizes[] = {1, 7, 8, 9, 32, 33, 64, 65, 500, 4000, 8192, 8193, 16384, 16385, 70000};
    struct mp mp;

    mp_start(&mp, &argc, argv);
    mp_case(&mp, "arguments");
    arguments(&mp);
    mp_case(&mp, "oneself");
    oneself(&mp);
    mp_case(&mp, "columns");
    columns(&mp);
    mp_case(&mp, "random shapes");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        random_shapes(&mp, sizes[i], (int)mp_rounds(24));
    random_shapes(&mp, 1000000, (int)mp_rounds(8));
    mp_case(&mp, "long pieces");
    long_pieces(&mp);
    mp_case(&mp, "symmetric");
    symmetric(&mp);
    mp_case(&mp, "end");
    mp_end(&mp);
    return 0;
}

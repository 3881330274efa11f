/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_buffers.c: pass buffers that the CPU cannot access.
 *
 * Each call with a buffer, at each size class, from and to host memory and memory of a device.
 *   --full   collectives in each form at each length; else a form a length
 */
#include "tests/mp/mp.h"
#include "lib/mem/kind.h"
#include "tests/standin/device_memory.h"

#include <stdlib.h>
#include <string.h>

static const struct rk_kind *kind;

/* Memory of a test: host memory, or of the kind. */
struct buf {
    const struct rk_kind *kind;
    char *at;
    size_t bytes;
};

enum { GUARD = 8 };

static void copy_any(void *to, const struct rk_kind *to_kind, const void *from, const struct rk_kind *from_kind, size_t bytes)
{
    MP_OK(rk_kind_copy(to, to_kind, from, from_kind, bytes));
}

static void *alloc_any(const struct rk_kind *of, size_t bytes)
{
    void *at;

    if (!of)
        return mp_alloc(bytes);
    MP_OK(of->alloc(bytes, &at));
    return at;
}

static struct buf buf_new(bool of_kind, size_t bytes)
{
    struct buf b = {of_kind ? kind : NULL, alloc_any(of_kind ? kind : NULL, bytes + GUARD), bytes};
    char *zero = calloc(1, bytes + GUARD);

    copy_any(b.at, b.kind, zero, NULL, bytes + GUARD);
    free(zero);
    return b;
}

static void buf_free(struct buf *b)
{
    if (b->kind)
        b->kind->free(b->at);
    else
        free(b->at);
}

static void buf_fill(const struct buf *b, size_t at, size_t bytes, uint64_t key)
{
    char *host = mp_alloc(bytes);

    mp_fill(host, bytes, key);
    copy_any(b->at + at, b->kind, host, NULL, bytes);
    free(host);
}

static void buf_verify(const struct buf *b, size_t at, size_t bytes, uint64_t key)
{
    char *host = mp_alloc(bytes + 1);

    copy_any(host, NULL, b->at + at, b->kind, bytes + 1);
    if (mp_verify(host, bytes, key) >= 0)
        mp_fail(__FILE__, __LINE__, "byte %lld of %zu is wrong", (long long)mp_verify(host, bytes, key), bytes);
    if (at + bytes == b->bytes)
        MP_CHECK_EQ(host[bytes], 0);
    free(host);
}

static const int64_t sizes[] = {0, 1, 8, 64, 4096, 65536, (1 << 20) + 1};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* ------------------------------------------------------------------ messages */

struct ring {
    const struct mp *mp;
    int to, from;
    struct buf s, r;
    int64_t n;
    uint64_t mine, theirs; /* keys */
};

static void ring_begin(struct ring *g, bool post)
{
    buf_fill(&g->s, 0, (size_t)g->n, g->mine);
    buf_fill(&g->r, 0, (size_t)g->n, ~g->theirs);
    if (post)
        mp_barrier(g->mp->world);
}

static void ring_end(const struct ring *g)
{
    buf_verify(&g->r, 0, (size_t)g->n, g->theirs);
    buf_verify(&g->s, 0, (size_t)g->n, g->mine);
}

/* Posted receives, then unexpected messages, of blocking and nonblocking calls. */
static void test_calls(struct ring *g)
{
    rank_team_t world = g->mp->world;
    rank_request_t req[2];
    rank_envelope_t e;

    for (int sync = 0; sync < 2; sync++) {
        ring_begin(g, true);
        MP_OK(rank_irecv(g->r.at, g->n, RANK_BYTE, g->from, 1, world, &req[0]));
        mp_barrier(world);
        MP_OK((sync ? rank_ssend : rank_send)(g->s.at, g->n, RANK_BYTE, g->to, 1, world));
        MP_OK(rank_wait(&req[0], &e));
        MP_CHECK_EQ(e.bytes, g->n);
        ring_end(g);

        ring_begin(g, true);
        MP_OK((sync ? rank_issend : rank_isend)(g->s.at, g->n, RANK_BYTE, g->to, 2, world, &req[0]));
        mp_barrier(world);
        MP_OK(rank_recv(g->r.at, g->n, RANK_BYTE, sync ? RANK_ANY_SOURCE : g->from, 2, world, &e));
        MP_CHECK_EQ(e.source, g->from);
        MP_OK(rank_wait(&req[0], NULL));
        ring_end(g);
    }
    ring_begin(g, true);
    MP_OK(rank_sendrecv(g->s.at, g->n, RANK_BYTE, g->to, 3, g->r.at, g->n, RANK_BYTE, g->from, 3, world, &e));
    MP_CHECK_EQ(e.bytes, g->n);
    ring_end(g);
}

static void test_truncated(struct ring *g)
{
    rank_team_t world = g->mp->world;
    rank_request_t req;
    rank_envelope_t e;

    if (g->n < 2)
        return;
    ring_begin(g, true);
    MP_OK(rank_isend(g->s.at, g->n, RANK_BYTE, g->to, 4, world, &req));
    MP_STATUS(rank_recv(g->r.at, g->n / 2, RANK_BYTE, g->from, 4, world, &e), RANK_ERR_TRUNCATED);
    MP_CHECK_EQ(e.bytes, g->n / 2);
    MP_OK(rank_wait(&req, NULL));
    buf_verify(&g->r, 0, (size_t)g->n / 2, g->theirs);
}

static void test_persistent(struct ring *g)
{
    rank_request_t req[2];

    MP_OK(rank_send_init(g->s.at, g->n, RANK_BYTE, g->to, 5, g->mp->world, &req[0]));
    MP_OK(rank_recv_init(g->r.at, g->n, RANK_BYTE, g->from, 5, g->mp->world, &req[1]));
    for (int i = 0; i < 2; i++) {
        ring_begin(g, true);
        MP_OK(rank_startall(2, req));
        MP_OK(rank_waitall(2, req, NULL));
        ring_end(g);
    }
    MP_OK(rank_request_free(&req[0]));
    MP_OK(rank_request_free(&req[1]));
}

static void test_probe(struct ring *g)
{
    rank_team_t world = g->mp->world;
    rank_request_t req, got;
    rank_message_t message;
    rank_envelope_t e;

    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        ring_begin(g, true);
        MP_OK(rank_isend(g->s.at, g->n, RANK_BYTE, g->to, 6, world, &req));
        MP_OK(rank_mprobe(g->from, 6, world, &message, &e));
        MP_CHECK_EQ(e.bytes, g->n);
        if (nonblocking) {
            MP_OK(rank_imrecv(g->r.at, g->n, RANK_BYTE, &message, &got));
            MP_OK(rank_wait(&got, NULL));
        } else {
            MP_OK(rank_mrecv(g->r.at, g->n, RANK_BYTE, &message, NULL));
        }
        MP_OK(rank_wait(&req, NULL));
        ring_end(g);
    }
}

/* A list of host memory, strided memory of the buffer, and the rest of it, against a plain buffer. */
static void test_lists(struct ring *g)
{
    rank_team_t world = g->mp->world;
    int64_t head = g->n / 4, block = g->n / 16, rest = g->n - head - 4 * block;
    struct buf host = buf_new(false, (size_t)head), wide = buf_new(g->s.kind != NULL, (size_t)g->n * 2);
    struct buf whole = buf_new(g->r.kind != NULL, (size_t)g->n);
    rank_iov_t iov[3] = {{.base = host.at, .bytes = head},
                         {.base = wide.at, .bytes = block, .count = 4, .stride = 2 * block},
                         {.base = wide.at + 8 * block, .bytes = rest}};
    char *flat = mp_alloc((size_t)g->n);
    rank_request_t req;

    mp_fill(flat, (size_t)g->n, g->mine);
    memcpy(host.at, flat, (size_t)head);
    for (int i = 0; i < 4; i++)
        copy_any(wide.at + 2 * i * block, wide.kind, flat + head + i * block, NULL, (size_t)block);
    copy_any(wide.at + 8 * block, wide.kind, flat + head + 4 * block, NULL, (size_t)rest);
    mp_barrier(world);
    MP_OK(rank_isendv(iov, 3, g->to, 7, world, &req));
    MP_OK(rank_recv(whole.at, g->n, RANK_BYTE, g->from, 7, world, NULL));
    MP_OK(rank_wait(&req, NULL));
    buf_verify(&whole, 0, (size_t)g->n, g->theirs);

    mp_barrier(world);
    MP_OK(rank_irecvv(iov, 3, g->from, 8, world, &req));
    mp_barrier(world);
    MP_OK(rank_send(whole.at, g->n, RANK_BYTE, g->to, 8, world)); /* what came from the left goes right */
    MP_OK(rank_wait(&req, NULL));
    memcpy(flat, host.at, (size_t)head);
    for (int i = 0; i < 4; i++)
        copy_any(flat + head + i * block, NULL, wide.at + 2 * i * block, wide.kind, (size_t)block);
    copy_any(flat + head + 4 * block, NULL, wide.at + 8 * block, wide.kind, (size_t)rest);
    MP_CHECK_EQ(mp_verify(flat, (size_t)g->n, 100 + (uint64_t)((g->from - 1 + g->mp->size) % g->mp->size)), -1);
    free(flat);
    buf_free(&host);
    buf_free(&wide);
    buf_free(&whole);
}

static void test_messages(struct mp *mp)
{
    for (int where = 1; where < 4; where++) {
        for (int i = 0; i < SIZES; i++) {
            struct ring g = {.mp = mp, .to = (mp->rank + 1) % mp->size, .from = (mp->rank - 1 + mp->size) % mp->size,
                             .n = sizes[i]};

            g.mine = 100 + (uint64_t)mp->rank;
            g.theirs = 100 + (uint64_t)g.from;
            g.s = buf_new(where & 1, (size_t)g.n);
            g.r = buf_new(where & 2, (size_t)g.n);
            test_calls(&g);
            test_truncated(&g);
            test_persistent(&g);
            test_probe(&g);
            test_lists(&g);
            buf_free(&g.s);
            buf_free(&g.r);
        }
    }
}

/* --------------------------------------------------------------- collectives */

enum coll { BARRIER, BCAST, REDUCE, ALLREDUCE, GATHER, ALLGATHER, ALLGATHERV, SCATTER, REDUCE_SCATTER, ALLTOALL, GATHERV, SCATTERV, ALLTOALLV, SCAN, EXSCAN, REDUCE_SCATTERV, COLLS };

/* Blocks of the buffers for each rank, and root's alone. */
static const struct {
    bool s_all, r_all, s_root, r_root;
} shapes[COLLS] = {
    [GATHER] = {.r_all = true, .r_root = true},  [ALLGATHER] = {.r_all = true},      [ALLGATHERV] = {.r_all = true},
    [SCATTER] = {.s_all = true, .s_root = true}, [REDUCE_SCATTER] = {.s_all = true}, [ALLTOALL] = {.s_all = true, .r_all = true},
    [REDUCE] = {.r_root = true},                 [GATHERV] = {.r_all = true, .r_root = true},
    [SCATTERV] = {.s_all = true, .s_root = true}, [ALLTOALLV] = {.s_all = true, .r_all = true},
    [REDUCE_SCATTERV] = {.s_all = true},
};

static rank_status_t coll_call(enum coll k, const void *s, void *r, int64_t n, int root, rank_team_t t, rank_request_t *req)
{
    int64_t counts[64], displs[64], pairs[64]; /* pairs: of alltoallv, the same both ways */
    rank_dtype_t d = RANK_INT64;

    for (int i = 0; i < rank_team_size(t); i++) {
        counts[i] = n - i % 2;
        displs[i] = i * n;
        pairs[i] = n - (i + rank_team_rank(t)) % 2;
    }
    switch (k) {
    case BARRIER:
        return req ? rank_ibarrier(t, req) : rank_barrier(t);
    case BCAST:
        return req ? rank_ibcast(r, n, d, root, t, req) : rank_bcast(r, n, d, root, t);
    case REDUCE:
        return req ? rank_ireduce(s, r, n, d, RANK_SUM, root, t, req) : rank_reduce(s, r, n, d, RANK_SUM, root, t);
    case ALLREDUCE:
        return req ? rank_iallreduce(s, r, n, d, RANK_SUM, t, req) : rank_allreduce(s, r, n, d, RANK_SUM, t);
    case GATHER:
        return req ? rank_igather(s, r, n, d, root, t, req) : rank_gather(s, r, n, d, root, t);
    case ALLGATHER:
        return req ? rank_iallgather(s, r, n, d, t, req) : rank_allgather(s, r, n, d, t);
    case ALLGATHERV:
        n = counts[rank_team_rank(t)];
        return req ? rank_iallgatherv(s, n, r, counts, displs, d, t, req) : rank_allgatherv(s, n, r, counts, displs, d, t);
    case GATHERV:
        n = counts[rank_team_rank(t)];
        return req ? rank_igatherv(s, n, r, counts, displs, d, root, t, req) : rank_gatherv(s, n, r, counts, displs, d, root, t);
    case SCATTERV:
        n = counts[rank_team_rank(t)];
        return req ? rank_iscatterv(s, counts, displs, r, n, d, root, t, req) : rank_scatterv(s, counts, displs, r, n, d, root, t);
    case REDUCE_SCATTERV:
        return req ? rank_ireduce_scatterv(s, r, counts, d, RANK_MAX, t, req) : rank_reduce_scatterv(s, r, counts, d, RANK_MAX, t);
    case SCAN:
        return req ? rank_iscan(s, r, n, d, RANK_SUM, t, req) : rank_scan(s, r, n, d, RANK_SUM, t);
    case EXSCAN:
        return req ? rank_iexscan(s, r, n, d, RANK_SUM, t, req) : rank_exscan(s, r, n, d, RANK_SUM, t);
    case ALLTOALLV:
        return req ? rank_ialltoallv(s, pairs, displs, r, pairs, displs, d, t, req)
                   : rank_alltoallv(s, pairs, displs, r, pairs, displs, d, t);
    case SCATTER:
        return req ? rank_iscatter(s, r, n, d, root, t, req) : rank_scatter(s, r, n, d, root, t);
    case REDUCE_SCATTER:
        return req ? rank_ireduce_scatter(s, r, n, d, RANK_MAX, t, req) : rank_reduce_scatter(s, r, n, d, RANK_MAX, t);
    default:
        return req ? rank_ialltoall(s, r, n, d, t, req) : rank_alltoall(s, r, n, d, t);
    }
}

/* Once with host memory and once with memory as where says (1: sent, 2: received): the results must be equal. */
static void coll_compare(const struct mp *mp, enum coll k, int64_t n, int where, bool nonblocking, bool in_place)
{
    int root = mp->size - 1;
    bool at_root = mp->rank == root, s_in_r = in_place && k != SCATTER && k != SCATTERV,
         r_in_s = in_place && (k == SCATTER || k == SCATTERV);
    size_t size = (size_t)mp->size, block = (size_t)n * 8;
    size_t s_bytes = block * (shapes[k].s_all ? size : 1), r_bytes = block * (shapes[k].r_all || s_in_r ? size : 1);
    char *host_s = mp_alloc(s_bytes + 1), *host_r = mp_alloc(r_bytes), *got = mp_alloc(r_bytes > s_bytes ? r_bytes : s_bytes);
    struct buf s = buf_new(where & 1, s_bytes), r = buf_new(where & 2, r_bytes);
    rank_request_t req;

    mp_fill(host_s, s_bytes, 7 + (uint64_t)mp->rank);
    mp_fill(host_r, r_bytes, 8 + (uint64_t)mp->rank);
    copy_any(s.at, s.kind, host_s, NULL, s_bytes);
    copy_any(r.at, r.kind, host_r, NULL, r_bytes);
    for (int pass = 0; pass < 2; pass++) {
        const void *from = pass ? s.at : host_s;
        void *to = pass ? r.at : host_r;

        if (s_in_r && (at_root || !shapes[k].r_root))
            from = RANK_IN_PLACE;
        if (r_in_s && at_root)
            to = RANK_IN_PLACE;
        if (shapes[k].s_root && !at_root)
            from = NULL;
        if (shapes[k].r_root && !at_root)
            to = NULL;
        MP_OK(coll_call(k, from, to, n, root, mp->world, pass && nonblocking ? &req : NULL));
        if (pass && nonblocking)
            MP_OK(rank_wait(&req, NULL));
    }
    copy_any(got, NULL, r.at, r.kind, r_bytes);
    if ((k == REDUCE_SCATTER || k == REDUCE_SCATTERV) && in_place) /* the rest of the buffer is undefined */
        r_bytes = k == REDUCE_SCATTER ? block : block - (size_t)(mp->rank % 2) * 8;
    if (memcmp(got, host_r, r_bytes) != 0)
        mp_fail(__FILE__, __LINE__, "collective %d, count %lld, where %d: another result", (int)k, (long long)n, where);
    copy_any(got, NULL, s.at, s.kind, s_bytes);
    MP_CHECK(memcmp(got, host_s, s_bytes) == 0);
    free(host_s);
    free(host_r);
    free(got);
    buf_free(&s);
    buf_free(&r);
}

/* Each start of a persistent collective reads its buffers again. */
static void test_restarts(const struct mp *mp)
{
    enum { N = 3000, STARTS = 4 };
    struct buf s = buf_new(true, N * 8), r = buf_new(true, N * 8);
    int64_t host[N], sum[N];
    rank_request_t req;

    MP_OK(rank_allreduce_init(s.at, r.at, N, RANK_INT64, RANK_SUM, mp->world, &req));
    for (int k = 0; k < STARTS; k++) {
        for (int i = 0; i < N; i++)
            host[i] = (int64_t)k * i + mp->rank;
        copy_any(s.at, s.kind, host, NULL, N * 8);
        MP_OK(rank_start(&req));
        MP_OK(rank_wait(&req, NULL));
        copy_any(sum, NULL, r.at, r.kind, N * 8);
        for (int i = 0; i < N; i++)
            MP_CHECK_EQ(sum[i], (int64_t)k * i * mp->size + mp->size * (mp->size - 1) / 2);
        MP_OK(rank_reduce_local(s.at, r.at, N, RANK_INT64, RANK_SUM));
        copy_any(sum, NULL, r.at, r.kind, N * 8);
        MP_CHECK_EQ(sum[1], (int64_t)k * (mp->size + 1) + mp->size * (mp->size - 1) / 2 + mp->rank);
    }
    MP_OK(rank_request_free(&req));
    buf_free(&s);
    buf_free(&r);
}

static void test_collectives(const struct mp *mp, bool full)
{
    enum { COUNTS = 5 };
    static const int64_t counts[COUNTS] = {1, 2, 17, 1000, 40000};
    enum { SEGMENTS = 1 << 18, LONG_SEGMENTS = 1 << 20, REST = 4711 };
    static const struct {
        enum coll k;
        int64_t count;
    } cut[] = { /* into segments: of 768 KiB, and of 8 MiB */
        {REDUCE, SEGMENTS}, {REDUCE_SCATTER, SEGMENTS}, {REDUCE_SCATTERV, SEGMENTS},
        {ALLREDUCE, LONG_SEGMENTS}, {SCAN, LONG_SEGMENTS}, {EXSCAN, LONG_SEGMENTS},
    };

    /* Four forms: bit 0 nonblocking, bit 1 in place. Each collective has each of them with each place of its buffers. */
    for (enum coll k = 0; k < COLLS; k++) {
        for (int i = 0; i < COUNTS; i++) {
            for (int where = 1; where < 4; where++) {
                for (int form = 0; form < 4; form++) {
                    bool in_place = form & 2 && k >= REDUCE;

                    if (full || form == (i + where + (int)k) % 4)
                        coll_compare(mp, k, counts[i], in_place && mp->rank % 2 == 0 ? 3 : where, form & 1, in_place);
                }
            }
        }
    }
    for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++) {
        for (int where = 1; where < 4; where++)
            coll_compare(mp, cut[i].k, cut[i].count + REST, mp->rank % 2 ? where : 0, where == 2, where == 3);
    }
}

/* ------------------------------------------------------------- one-sided calls */

enum { PART = 5 << 19, AT = 64, PIECES = 600, ROUNDS = 48 };

/* What a part of a peer, a host buffer and a buffer of the kind hold, and are expected to. */
struct model {
    struct buf local[2];
    char *mine[2], *theirs;
    rank_piece_t pieces[PIECES];
    int64_t n;
};

static void model_move(struct model *m, bool put, int which, int64_t local, int64_t bytes, int64_t offset)
{
    m->pieces[m->n++] = (rank_piece_t){m->local[which].at + local, bytes, AT + offset};
    if (put)
        memcpy(m->theirs + offset, m->mine[which] + local, (size_t)bytes);
    else
        memcpy(m->mine[which] + local, m->theirs + offset, (size_t)bytes);
}

/* Random pieces that overlap nowhere; a few are longer than the library's host memory for a copy. */
static void model_pieces(struct model *m, bool put, uint64_t *seed)
{
    int64_t end[2] = {0, 0}, offset = 0, most = mp_below(seed, 4) ? 60 : PART;

    for (m->n = 0; m->n < PIECES;) {
        int which = (int)mp_below(seed, 2);
        int64_t bytes = (int64_t)mp_below(seed, (uint64_t)most), gap = (int64_t)mp_below(seed, 20);
        if (offset + gap + bytes > PART || end[which] + gap + bytes > PART)
            break;
        model_move(m, put, which, end[which] + gap, bytes, offset);
        end[which] += gap + bytes;
        offset += gap + bytes;
    }
}

static void model_strided(struct model *m, bool put, rank_mem_t mem, int to, uint64_t *seed)
{
    int64_t block = (int64_t)mp_below(seed, mp_below(seed, 4) ? 60 : PART / 2), count = (int64_t)mp_below(seed, PIECES);
    int64_t here = block + (int64_t)mp_below(seed, 20), there = block + (int64_t)mp_below(seed, 20), local = 0, offset = 0;
    int which = mp_below(seed, 4) != 0;

    if (count * here > PART || count * there > PART)
        count = PART / (here > there ? here : there);
    if (count && mp_below(seed, 2)) { /* backwards */
        local = (count - 1) * here;
        here = -here;
    }
    m->n = 0;
    for (int64_t i = 0; i < count; i++)
        model_move(m, put, which, local + i * here, block, offset + i * there);
    if (put)
        MP_OK(rank_put_strided(m->local[which].at + local, here, block, count, to, mem, AT + offset, there));
    else
        MP_OK(rank_get_strided(m->local[which].at + local, here, block, count, to, mem, AT + offset, there));
}

static void model_verify(const struct model *m, rank_mem_t mem, int to)
{
    char *host = mp_alloc(PART);

    MP_OK(rank_get(host, PART, to, mem, AT));
    MP_CHECK(memcmp(host, m->theirs, PART) == 0);
    for (int i = 0; i < 2; i++) {
        copy_any(host, NULL, m->local[i].at, m->local[i].kind, PART);
        MP_CHECK(memcmp(host, m->mine[i], PART) == 0);
    }
    free(host);
}

/* Lists, strides and signals with pieces of both kinds of memory. signals: host memory. */
static void onesided_random(const struct mp *mp, rank_mem_t mem, rank_mem_t signals, int to)
{
    uint64_t seed = mp->seed + (uint64_t)mp->rank, value = 1000;
    struct model *m = mp_alloc(sizeof(*m));
    char *before = mp_alloc(PART);

    m->theirs = mp_alloc(PART);
    for (int i = 0; i < 2; i++) {
        m->local[i] = buf_new(i, PART);
        m->mine[i] = mp_alloc(PART);
        mp_fill(m->mine[i], PART, mp_random(&seed));
        copy_any(m->local[i].at, m->local[i].kind, m->mine[i], NULL, PART);
    }
    mp_fill(m->theirs, PART, mp_random(&seed));
    MP_OK(rank_put(m->theirs, PART, to, mem, AT));
    MP_OK(rank_flush(mem, to));
    for (int i = 0; i < ROUNDS; i++) {
        bool put = mp_below(&seed, 2);

        switch (mp_below(&seed, 3)) {
        case 0:
            model_pieces(m, put, &seed);
            MP_OK((put ? rank_putv : rank_getv)(m->pieces, m->n, to, mem));
            break;
        case 1:
            model_strided(m, put, mem, to, &seed);
            break;
        default:
            m->n = 0;
            model_move(m, true, 1, 0, (int64_t)mp_below(&seed, i % 2 ? 6000 : PART), (int64_t)mp_below(&seed, 8));
            MP_OK(rank_put_signal(m->pieces[0].local, m->pieces[0].bytes, to, mem, m->pieces[0].offset, signals, 0, ++value,
                                  RANK_SIGNAL_SET));
        }
        MP_OK(rank_flush(mem, to));
        if (i % 8 == 7)
            model_verify(m, mem, to);
    }
    memcpy(before, m->theirs, PART); /* one invalid piece: none moves */
    model_pieces(m, true, &seed);
    memcpy(m->theirs, before, PART);
    m->pieces[m->n < PIECES ? m->n++ : m->n - 1] = (rank_piece_t){m->local[1].at, 8, 5 << 20}; /* behind the memory */
    MP_STATUS(rank_putv(m->pieces, m->n, to, mem), RANK_ERR_BOUNDS);
    model_verify(m, mem, to);
    mp_barrier(mp->world);
    for (int i = 0; i < 2; i++) {
        buf_free(&m->local[i]);
        free(m->mine[i]);
    }
    free(m->theirs);
    free(before);
    free(m);
}

static void test_onesided(const struct mp *mp)
{
    const int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;
    int64_t word = 1;
    rank_request_t req;
    rank_mem_t mem, none;
    void *ptr;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 4 << 20, &ptr, &mem));
    for (int i = 0; i < 2 * SIZES; i++) {
        size_t n = (size_t)sizes[i / 2];
        struct buf b = buf_new(true, n);
        bool nonblocking = i % 2;

        buf_fill(&b, 0, n, 50 + (uint64_t)mp->rank);
        if (nonblocking) {
            MP_OK(rank_iput(b.at, (int64_t)n, to, mem, 64, &req));
            MP_OK(rank_wait(&req, NULL));
        } else {
            MP_OK(rank_put(b.at, (int64_t)n, to, mem, 64));
        }
        MP_OK(rank_flush(mem, to));
        mp_barrier(mp->world);
        buf_fill(&b, 0, n, 0);
        if (nonblocking) {
            MP_OK(rank_iget(b.at, (int64_t)n, to, mem, 64, &req));
            MP_OK(rank_wait(&req, NULL));
        } else {
            MP_OK(rank_get(b.at, (int64_t)n, to, mem, 64));
        }
        buf_verify(&b, 0, n, 50 + (uint64_t)mp->rank);
        MP_OK(rank_get(b.at, (int64_t)n, mp->rank, mem, 64));
        buf_verify(&b, 0, n, 50 + (uint64_t)from);
        MP_OK(rank_flush(mem, to));
        mp_barrier(mp->world);
        buf_fill(&b, 0, n, 90 + (uint64_t)mp->rank);
        MP_OK(rank_put_signal(b.at, (int64_t)n, to, mem, 64, mem, 0, (uint64_t)i + 1, RANK_SIGNAL_SET));
        MP_OK(rank_signal_wait(mem, 0, RANK_CMP_EQ, (uint64_t)i + 1, from, NULL));
        MP_CHECK_EQ(mp_verify((char *)ptr + 64, n, 90 + (uint64_t)from), -1);
        MP_OK(rank_flush(mem, to));
        mp_barrier(mp->world);
        if (n >= 8) {
            MP_STATUS(rank_atomic(RANK_AMO_ADD, RANK_INT64, b.at, to, mem, 0, NULL), RANK_ERR_NOT_SUPPORTED);
            MP_STATUS(rank_atomic(RANK_AMO_FETCH_ADD, RANK_INT64, &word, to, mem, 0, b.at), RANK_ERR_NOT_SUPPORTED);
            MP_STATUS(rank_atomic_cas(RANK_INT64, b.at, &word, to, mem, 0, &word), RANK_ERR_NOT_SUPPORTED);
            MP_STATUS(rank_atomic_cas(RANK_INT64, &word, &word, to, mem, 0, b.at), RANK_ERR_NOT_SUPPORTED);
            MP_STATUS(rank_reg(b.at, (int64_t)n, &none), RANK_ERR_NOT_SUPPORTED);
            MP_STATUS(rank_xfer(RANK_XFER_WRITE, &(rank_block_t){b.at, 8, mem, 0}, 1, to, mp->world, NULL, &req), RANK_ERR_NOT_SUPPORTED);
            MP_STATUS(rank_xfer(RANK_XFER_READ, NULL, 0, to, mp->world, &(rank_notice_t){0, b.at, 8}, &req), RANK_ERR_NOT_SUPPORTED);
        }
        buf_free(&b);
    }
    onesided_random(mp, mem, mem, to);
    MP_OK(rank_free(&mem));
}

/* Memory of the kind on every rank: zeroed, accessed by puts and gets of all forms, and by address where it is mapped. */
static void test_allocated(const struct mp *mp)
{
    const int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;
    enum { BYTES = 4 << 20 };
    char *host = mp_alloc(BYTES);
    rank_mem_kind_t found;
    rank_request_t list;
    rank_mem_t mem, signals;
    void *ptr, *flags, *theirs;
    int64_t word = 1;
    int device;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 64, &flags, &signals));
    MP_OK(rank_alloc(mp->world, RANK_MEM_CUDA, BYTES, &ptr, &mem));
    copy_any(host, NULL, ptr, kind, BYTES);
    for (int i = 0; i < BYTES; i += 509)
        MP_CHECK_EQ(host[i], 0);
    MP_OK(rank_mem_kind((char *)ptr + BYTES - 1, &found, &device));
    MP_CHECK(found == RANK_MEM_CUDA && device >= 0);
    MP_OK(rank_mem_kind(host, &found, &device));
    MP_CHECK(found == RANK_MEM_HOST && device == -1);
    mp_barrier(mp->world);

    onesided_random(mp, mem, signals, to);
    for (int i = 0; i < 2 * SIZES; i++) {
        struct buf b = buf_new(i % 2, (size_t)sizes[i / 2]);

        buf_fill(&b, 0, b.bytes, 70 + (uint64_t)mp->rank);
        MP_OK(rank_put_signal(b.at, (int64_t)b.bytes, to, mem, 64, signals, 0, (uint64_t)i + 1, RANK_SIGNAL_SET));
        MP_OK(rank_signal_wait(signals, 0, RANK_CMP_EQ, (uint64_t)i + 1, from, NULL));
        copy_any(host, NULL, (char *)ptr + 64, kind, b.bytes);
        MP_CHECK_EQ(mp_verify(host, b.bytes, 70 + (uint64_t)from), -1);
        MP_OK(rank_flush(mem, to));
        mp_barrier(mp->world);
        buf_free(&b);
    }
    MP_OK(rank_ptr(mem, mp->rank, &theirs));
    MP_CHECK(theirs == ptr);
    MP_OK(rank_ptr(mem, to, &theirs));
    mp_fill(host, BYTES, (uint64_t)mp->rank);
    if (theirs)
        copy_any(theirs, kind, host, NULL, BYTES);
    else
        MP_OK(rank_put(host, BYTES, to, mem, 0));
    MP_OK(rank_flush(mem, to));
    mp_barrier(mp->world);
    copy_any(host, NULL, ptr, kind, BYTES);
    MP_CHECK_EQ(mp_verify(host, BYTES, (uint64_t)from), -1);
    MP_CHECK(mp->size == 1 || !getenv("DEVICE_MAPPED") || theirs);
    MP_STATUS(rank_atomic(RANK_AMO_ADD, RANK_INT64, &word, to, mem, 0, NULL), RANK_ERR_NOT_SUPPORTED);
    MP_STATUS(rank_atomic_cas(RANK_INT64, &word, &word, to, mem, 0, &word), RANK_ERR_NOT_SUPPORTED);
    MP_STATUS(rank_put_signal(host, 8, to, signals, 0, mem, 0, 1, RANK_SIGNAL_SET), RANK_ERR_NOT_SUPPORTED);
    MP_STATUS(rank_xfer(RANK_XFER_WRITE, &(rank_block_t){host, 8, mem, 0}, 1, to, mp->world, NULL, &list), RANK_ERR_NOT_SUPPORTED);
    MP_STATUS(rank_signal_wait(mem, 0, RANK_CMP_EQ, 0, from, NULL), RANK_ERR_NOT_SUPPORTED);
    MP_STATUS(rank_put(host, 8, to, mem, BYTES - 7), RANK_ERR_BOUNDS);
    MP_STATUS(rank_put(NULL, 8, to, mem, 0), RANK_ERR_ARG);
    MP_OK(rank_put(host, 8, RANK_PROC_NULL, mem, 0));
    MP_OK(rank_free(&mem));
    MP_STATUS(rank_alloc(mp->world, RANK_MEM_CUDA, -1, &ptr, &mem), RANK_ERR_COUNT);
    if (mp->size > 1) {
        MP_STATUS(rank_alloc(mp->world, RANK_MEM_CUDA, 8 + mp->rank, &ptr, &mem), RANK_ERR_ARG);
        MP_STATUS(rank_alloc(mp->world, mp->rank ? RANK_MEM_HOST : RANK_MEM_CUDA, 8, &ptr, &mem), RANK_ERR_ARG);
    }
    MP_OK(rank_free(&signals));
    free(host);
}

int main(int argc, char **argv)
{
    struct mp mp;

    mp_start(&mp, &argc, argv);
    kind = device_memory(mp.rank);
    mp_case(&mp, "messages");
    test_messages(&mp);
    mp_case(&mp, "collectives");
    test_collectives(&mp, mp_flag(argc, argv, "--full"));
    mp_case(&mp, "restarts");
    test_restarts(&mp);
    mp_case(&mp, "one-sided");
    test_onesided(&mp);
    mp_case(&mp, "device memory");
    test_allocated(&mp);
    MP_CHECK(device_memory_is_current());
    device_memory_end();
    mp_end(&mp);
    return 0;
}

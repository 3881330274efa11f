/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_data.c: check every byte of collectives that move data, and the barrier. */
#include "tests/coll/mp_coll.h"

#include <stdlib.h>
#include <string.h>

/* What rank r contributes for rank to in turn k. */
static uint64_t key(int r, int to, uint64_t k)
{
    return k * 1000003u + (uint64_t)r * 1009u + (uint64_t)to;
}

struct shape {
    int64_t count;
    rank_dtype_t d;
    size_t bytes;
    uint64_t turn;
};

static void bcast(struct coll_test *t, const struct shape *s, int root)
{
    char *buf = mp_alloc(s->bytes);
    rank_request_t req;

    memset(buf, 0x11, s->bytes);
    if (t->rank == root)
        mp_fill(buf, s->bytes, key(root, 0, s->turn));
    if (coll_toss(t)) {
        MP_OK(rank_bcast(buf, s->count, s->d, root, t->team));
    } else {
        MP_OK(rank_ibcast(buf, s->count, s->d, root, t->team, &req));
        MP_OK(rank_wait(&req, NULL));
    }
    MP_CHECK_EQ(mp_verify(buf, s->bytes, key(root, 0, s->turn)), -1);
    free(buf);
}

static void gather(struct coll_test *t, const struct shape *s, int root, bool in_place)
{
    char *all = t->rank == root ? mp_alloc(s->bytes * (size_t)t->size) : NULL;
    char *mine = mp_alloc(s->bytes);
    const void *sbuf = mine;
    rank_request_t req;

    mp_fill(mine, s->bytes, key(t->rank, root, s->turn));
    if (t->rank == root && in_place) {
        memcpy(all + (size_t)root * s->bytes, mine, s->bytes);
        sbuf = RANK_IN_PLACE;
    }
    if (coll_toss(t)) {
        MP_OK(rank_gather(sbuf, all, s->count, s->d, root, t->team));
    } else {
        MP_OK(rank_igather(sbuf, all, s->count, s->d, root, t->team, &req));
        MP_OK(rank_wait(&req, NULL));
    }
    for (int r = 0; all && r < t->size; r++)
        MP_CHECK_EQ(mp_verify(all + (size_t)r * s->bytes, s->bytes, key(r, root, s->turn)), -1);
    free(all);
    free(mine);
}

static void scatter(struct coll_test *t, const struct shape *s, int root, bool in_place)
{
    char *all = t->rank == root ? mp_alloc(s->bytes * (size_t)t->size) : NULL;
    char *mine = mp_alloc(s->bytes);
    bool here = t->rank == root && in_place;
    rank_request_t req;

    for (int r = 0; all && r < t->size; r++)
        mp_fill(all + (size_t)r * s->bytes, s->bytes, key(root, r, s->turn));
    if (coll_toss(t)) {
        MP_OK(rank_scatter(all, here ? RANK_IN_PLACE : mine, s->count, s->d, root, t->team));
    } else {
        MP_OK(rank_iscatter(all, here ? RANK_IN_PLACE : mine, s->count, s->d, root, t->team,
                            &req));
        MP_OK(rank_wait(&req, NULL));
    }
    MP_CHECK_EQ(mp_verify(here ? all + (size_t)root * s->bytes : mine, s->bytes,
                          key(root, t->rank, s->turn)),
                -1);
    for (int r = 0; all && r < t->size; r++) /* the input is as it was */
        MP_CHECK_EQ(mp_verify(all + (size_t)r * s->bytes, s->bytes, key(root, r, s->turn)), -1);
    free(all);
    free(mine);
}

static void allgather(struct coll_test *t, const struct shape *s, bool in_place)
{
    char *all = mp_alloc(s->bytes * (size_t)t->size), *mine = mp_alloc(s->bytes);
    rank_request_t req;

    mp_fill(in_place ? all + (size_t)t->rank * s->bytes : mine, s->bytes, key(t->rank, 0, s->turn));
    if (coll_toss(t)) {
        MP_OK(rank_allgather(in_place ? RANK_IN_PLACE : mine, all, s->count, s->d, t->team));
    } else {
        MP_OK(rank_iallgather(in_place ? RANK_IN_PLACE : mine, all, s->count, s->d, t->team,
                              &req));
        MP_OK(rank_wait(&req, NULL));
    }
    for (int r = 0; r < t->size; r++)
        MP_CHECK_EQ(mp_verify(all + (size_t)r * s->bytes, s->bytes, key(r, 0, s->turn)), -1);
    free(all);
    free(mine);
}

/* Blocks of different lengths, some empty, with gaps between them, not in the order of ranks. */
struct blocks {
    int64_t counts[64], displs[64], total;
    size_t elem;
    char *at; /* set to 0x77 */
};

enum { GAP = 2 /* elements behind each block */ };

static void blocks_open(struct blocks *b, const struct coll_test *t, const struct shape *s)
{
    b->total = 0;
    b->elem = value_size(s->d);
    for (int i = 0; i < t->size; i++) {
        int r = (int)((uint64_t)i + s->turn) % t->size;
        int64_t kind = (r + (int64_t)s->turn) % 12;

        b->counts[r] = kind % 3 == 0 && t->size > 1 ? 0 : s->count * (kind % 4 + 1) / 2;
        b->displs[r] = b->total;
        b->total += b->counts[r] + GAP;
    }
    b->at = mp_alloc((size_t)b->total * b->elem);
    memset(b->at, 0x77, (size_t)b->total * b->elem);
}

static size_t blocks_bytes(const struct blocks *b, int r)
{
    return (size_t)b->counts[r] * b->elem;
}

static char *blocks_at(const struct blocks *b, int r)
{
    return b->at + (size_t)b->displs[r] * b->elem;
}

/* Block r has these bytes, and the gap behind it is untouched. */
static void blocks_check(const struct blocks *b, int r, uint64_t pattern)
{
    MP_CHECK_EQ(mp_verify(blocks_at(b, r), blocks_bytes(b, r), pattern), -1);
    for (size_t i = 0; i < GAP * b->elem; i++)
        MP_CHECK_EQ(blocks_at(b, r)[blocks_bytes(b, r) + i], 0x77);
}

/* The arrays are read during the call only. */
static void blocks_forget(struct blocks *b, struct blocks *keep)
{
    *keep = *b;
    memset(b->counts, 0x7f, sizeof(b->counts));
    memset(b->displs, 0x7f, sizeof(b->displs));
}

static void gatherv(struct coll_test *t, const struct shape *s, int root, bool in_place)
{
    bool at_root = t->rank == root, here = at_root && in_place;
    struct blocks b, keep;
    rank_request_t req;
    char *mine;

    blocks_open(&b, t, s);
    mine = mp_alloc(blocks_bytes(&b, t->rank));
    mp_fill(here ? blocks_at(&b, root) : mine, blocks_bytes(&b, t->rank), key(t->rank, root, s->turn));
    if (coll_toss(t)) {
        MP_OK(rank_gatherv(here ? RANK_IN_PLACE : mine, b.counts[t->rank], at_root ? b.at : NULL,
                           at_root ? b.counts : NULL, at_root ? b.displs : NULL, s->d, root, t->team));
    } else {
        MP_OK(rank_igatherv(here ? RANK_IN_PLACE : mine, here ? -7 : b.counts[t->rank], b.at, at_root ? b.counts : NULL,
                            b.displs, s->d, root, t->team, &req));
        blocks_forget(&b, &keep);
        MP_OK(rank_wait(&req, NULL));
        b = keep;
    }
    for (int r = 0; at_root && r < t->size; r++)
        blocks_check(&b, r, key(r, root, s->turn));
    free(b.at);
    free(mine);
}

static void scatterv(struct coll_test *t, const struct shape *s, int root, bool in_place)
{
    bool at_root = t->rank == root, here = at_root && in_place;
    struct blocks b, keep;
    rank_request_t req;
    char *mine;

    blocks_open(&b, t, s);
    mine = mp_alloc(blocks_bytes(&b, t->rank));
    for (int r = 0; at_root && r < t->size; r++)
        mp_fill(blocks_at(&b, r), blocks_bytes(&b, r), key(root, r, s->turn));
    if (coll_toss(t)) {
        MP_OK(rank_scatterv(at_root ? b.at : NULL, at_root ? b.counts : NULL, at_root ? b.displs : NULL,
                            here ? RANK_IN_PLACE : mine, b.counts[t->rank], s->d, root, t->team));
    } else {
        MP_OK(rank_iscatterv(b.at, at_root ? b.counts : NULL, b.displs, here ? RANK_IN_PLACE : mine,
                             here ? -7 : b.counts[t->rank], s->d, root, t->team, &req));
        blocks_forget(&b, &keep);
        MP_OK(rank_wait(&req, NULL));
        b = keep;
    }
    if (!here)
        MP_CHECK_EQ(mp_verify(mine, blocks_bytes(&b, t->rank), key(root, t->rank, s->turn)), -1);
    for (int r = 0; at_root && r < t->size; r++) /* the input is as it was */
        blocks_check(&b, r, key(root, r, s->turn));
    free(b.at);
    free(mine);
}

static void allgatherv(struct coll_test *t, const struct shape *s, bool in_place)
{
    struct blocks b, keep;
    rank_request_t req;
    char *mine;

    blocks_open(&b, t, s);
    mine = mp_alloc(blocks_bytes(&b, t->rank));
    mp_fill(in_place ? blocks_at(&b, t->rank) : mine, blocks_bytes(&b, t->rank), key(t->rank, 0, s->turn));
    if (coll_toss(t)) {
        MP_OK(rank_allgatherv(in_place ? RANK_IN_PLACE : mine, b.counts[t->rank], b.at, b.counts, b.displs, s->d, t->team));
    } else {
        MP_OK(rank_iallgatherv(in_place ? RANK_IN_PLACE : mine, b.counts[t->rank], b.at, b.counts, b.displs, s->d, t->team,
                               &req));
        blocks_forget(&b, &keep);
        MP_OK(rank_wait(&req, NULL));
        b = keep;
    }
    for (int r = 0; r < t->size; r++)
        blocks_check(&b, r, key(r, 0, s->turn));
    free(b.at);
    free(mine);
}

/* Length of the block from one rank to another; in place the same both ways. */
static int64_t pair_count(const struct coll_test *t, const struct shape *s, int from, int to, bool in_place)
{
    int64_t kind = ((in_place ? from + to : from + 2 * to) + (int64_t)s->turn) % 12;

    return kind % 3 == 0 && t->size > 1 ? 0 : s->count * (kind % 4 + 1) / 2;
}

static void pairs_open(struct blocks *b, const struct coll_test *t, const struct shape *s, bool sends, bool in_place)
{
    b->total = 0;
    b->elem = value_size(s->d);
    for (int i = 0; i < t->size; i++) {
        int r = (int)((uint64_t)i + s->turn) % t->size;

        b->counts[r] = sends ? pair_count(t, s, t->rank, r, in_place) : pair_count(t, s, r, t->rank, in_place);
        b->displs[r] = b->total;
        b->total += b->counts[r] + GAP;
    }
    b->at = mp_alloc((size_t)b->total * b->elem);
    memset(b->at, 0x77, (size_t)b->total * b->elem);
}

static void alltoallv(struct coll_test *t, const struct shape *s, bool in_place)
{
    struct blocks out, in, keep;
    const struct blocks *from = in_place ? &in : &out;
    rank_request_t req;

    pairs_open(&out, t, s, true, in_place);
    pairs_open(&in, t, s, false, in_place);
    for (int r = 0; r < t->size; r++)
        mp_fill(blocks_at(from, r), blocks_bytes(from, r), key(t->rank, r, s->turn));
    if (coll_toss(t)) {
        MP_OK(rank_alltoallv(in_place ? RANK_IN_PLACE : out.at, in_place ? NULL : out.counts, out.displs, in.at, in.counts,
                             in.displs, s->d, t->team));
    } else {
        MP_OK(rank_ialltoallv(in_place ? RANK_IN_PLACE : out.at, out.counts, in_place ? NULL : out.displs, in.at,
                              in.counts, in.displs, s->d, t->team, &req));
        blocks_forget(&in, &keep);
        MP_OK(rank_wait(&req, NULL));
        in = keep;
    }
    for (int r = 0; r < t->size; r++) {
        blocks_check(&in, r, key(r, t->rank, s->turn));
        if (!in_place) /* the input is as it was */
            blocks_check(&out, r, key(t->rank, r, s->turn));
    }
    free(out.at);
    free(in.at);
}

static void alltoall(struct coll_test *t, const struct shape *s, bool in_place)
{
    size_t whole = s->bytes * (size_t)t->size;
    char *in = mp_alloc(whole), *out = mp_alloc(whole);
    rank_request_t req;

    for (int r = 0; r < t->size; r++)
        mp_fill((in_place ? out : in) + (size_t)r * s->bytes, s->bytes,
                key(t->rank, r, s->turn));
    if (coll_toss(t)) {
        MP_OK(rank_alltoall(in_place ? RANK_IN_PLACE : in, out, s->count, s->d, t->team));
    } else {
        MP_OK(rank_ialltoall(in_place ? RANK_IN_PLACE : in, out, s->count, s->d, t->team, &req));
        MP_OK(rank_wait(&req, NULL));
    }
    for (int r = 0; r < t->size; r++)
        MP_CHECK_EQ(mp_verify(out + (size_t)r * s->bytes, s->bytes, key(r, t->rank, s->turn)), -1);
    free(in);
    free(out);
}

static void all_of(struct coll_test *t, struct shape *s, int root)
{
    bcast(t, s, root);
    for (int in_place = 0; in_place < 2; in_place++) {
        s->turn++;
        gather(t, s, root, in_place);
        scatter(t, s, root, in_place);
        allgather(t, s, in_place);
        allgatherv(t, s, in_place);
        gatherv(t, s, root, in_place);
        scatterv(t, s, root, in_place);
        alltoall(t, s, in_place);
        alltoallv(t, s, in_place);
    }
    t->checks += 17;
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
    struct shape s = {.turn = 1};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (cases[i].full && !t->full)
            continue;
        s.count = cases[i].count;
        s.d = cases[i].d;
        s.bytes = (size_t)s.count * value_size(s.d);
        /* Short ones from every root, long ones from one or two. */
        for (int root = 0; root < t->size; root++) {
            if ((s.bytes > 100 && root != (int)i % t->size && (!t->full || s.bytes > 10000)))
                continue;
            all_of(t, &s, root);
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

    MP_OK(rank_alloc(t->team, RANK_MEM_HOST, 64, 0, &ptr, &mem));
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

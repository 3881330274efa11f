/* SPDX-License-Identifier: BSD-3-Clause */
/* any_coll.c: see any_coll.h. */
#include "tests/coll/any_coll.h"

#include <stdlib.h>
#include <string.h>

enum { GUARD = 9, GAP = 2 };
static const uint64_t blank = 0x7e7e7e7e7e7e7e7e;

static const char *const names[ANY_KINDS] = {
    "barrier", "bcast", "reduce", "allreduce", "gather", "allgather", "scatter", "reduce_scatter",
    "alltoall", "scan", "exscan", "gatherv", "allgatherv", "scatterv", "reduce_scatterv", "alltoallv",
};

const char *any_coll_name(enum any_kind kind)
{
    return names[kind];
}

/* Element i of the block that a rank contributes for rank to. */
static uint64_t value(const struct any_coll *c, int from, int to, int64_t i)
{
    uint64_t x = c->key + (uint64_t)from * 0x9e3779b97f4a7c15u + (uint64_t)to * 0xd1342543de82ef95u + (uint64_t)i;

    return (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
}

static bool has_counts(enum any_kind kind)
{
    return kind >= ANY_GATHERV;
}

/* Does a rank send a block to each rank, and not one? */
static bool sends_blocks(enum any_kind kind)
{
    return kind == ANY_SCATTER || kind == ANY_SCATTERV || kind == ANY_ALLTOALL || kind == ANY_ALLTOALLV ||
           kind == ANY_REDUCE_SCATTER || kind == ANY_REDUCE_SCATTERV;
}

/* Blocks have different lengths, and lie backwards; those of a reduction lie in a row. */
static void lay_blocks(struct any_coll *c)
{
    int64_t gap = has_counts(c->kind) && c->kind != ANY_REDUCE_SCATTERV ? GAP : 0, at = 0;

    for (int k = 0; k < c->size; k++) {
        int r = gap ? c->size - 1 - k : k;
        int64_t less = !has_counts(c->kind) ? 0 : c->kind == ANY_ALLTOALLV ? (c->rank + r) % 3 : r % 3;

        c->counts[r] = c->count > less ? c->count - less : 0;
        c->displs[r] = at;
        at += c->counts[r] + gap;
    }
    c->elements = at;
}

/* Elements that this rank sends to rank r, or to all if r is 0, from *at on. */
static int64_t input_block(const struct any_coll *c, int r, int64_t *at)
{
    *at = sends_blocks(c->kind) ? c->displs[r] : 0;
    return c->counts[sends_blocks(c->kind) ? r : c->rank];
}

void any_coll_open(struct any_coll *c, rank_team_t team, enum any_kind kind, int64_t count, rank_op_t op, uint64_t *seed)
{
    uint64_t *all;

    *c = (struct any_coll){.team = team, .op = op, .kind = kind, .count = count, .rank = rank_team_rank(team),
                           .size = rank_team_size(team), .req = RANK_REQUEST_NULL};
    c->form = (enum any_form)mp_below(seed, ANY_FORMS);
    c->root = (int)mp_below(seed, (uint64_t)c->size);
    c->key = mp_random(seed);
    c->counts = mp_alloc((size_t)c->size * sizeof(int64_t));
    c->displs = mp_alloc((size_t)c->size * sizeof(int64_t));
    lay_blocks(c);
    c->in = mp_alloc((size_t)c->elements * sizeof(*c->in));
    all = mp_alloc((size_t)(c->elements + 2 * GUARD) * sizeof(*all));
    c->out = all + GUARD;
    for (int64_t i = 0; i < c->elements + 2 * GUARD; i++)
        all[i] = blank;
    for (int64_t i = 0; i < c->elements; i++)
        c->in[i] = blank;
    for (int r = 0; r < (sends_blocks(kind) ? c->size : 1); r++) {
        int64_t at, n = input_block(c, r, &at);

        for (int64_t i = 0; i < n; i++)
            c->in[at + i] = value(c, c->rank, r, i);
    }
    if (kind == ANY_BCAST && c->rank == c->root)
        for (int64_t i = 0; i < count; i++)
            c->out[i] = value(c, c->root, 0, i);
}

/* -------------------------------------------------------------------------- calls */

#define ONE_OF(call, ...)                                                                          \
    (form == ANY_BLOCKING      ? rank_##call(__VA_ARGS__)                                          \
     : form == ANY_NONBLOCKING ? rank_i##call(__VA_ARGS__, &c->req)                                \
                               : rank_##call##_init(__VA_ARGS__, &c->req))

static rank_status_t make_call(struct any_coll *c, const int64_t *counts, const int64_t *displs)
{
    enum any_form form = c->form;
    const int64_t n = c->count, own = c->counts[c->rank];
    const rank_dtype_t d = RANK_UINT64;
    rank_team_t t = c->team;
    int root = c->root;

    switch (c->kind) {
    case ANY_BARRIER: return ONE_OF(barrier, t);
    case ANY_BCAST: return ONE_OF(bcast, c->out, n, d, root, t);
    case ANY_REDUCE: return ONE_OF(reduce, c->in, c->out, n, d, c->op, root, t);
    case ANY_ALLREDUCE: return ONE_OF(allreduce, c->in, c->out, n, d, c->op, t);
    case ANY_GATHER: return ONE_OF(gather, c->in, c->out, n, d, root, t);
    case ANY_ALLGATHER: return ONE_OF(allgather, c->in, c->out, n, d, t);
    case ANY_SCATTER: return ONE_OF(scatter, c->in, c->out, n, d, root, t);
    case ANY_REDUCE_SCATTER: return ONE_OF(reduce_scatter, c->in, c->out, n, d, c->op, t);
    case ANY_ALLTOALL: return ONE_OF(alltoall, c->in, c->out, n, d, t);
    case ANY_SCAN: return ONE_OF(scan, c->in, c->out, n, d, c->op, t);
    case ANY_EXSCAN: return ONE_OF(exscan, c->in, c->out, n, d, c->op, t);
    case ANY_GATHERV: return ONE_OF(gatherv, c->in, own, c->out, counts, displs, d, root, t);
    case ANY_ALLGATHERV: return ONE_OF(allgatherv, c->in, own, c->out, counts, displs, d, t);
    case ANY_SCATTERV: return ONE_OF(scatterv, c->in, counts, displs, c->out, own, d, root, t);
    case ANY_REDUCE_SCATTERV: return ONE_OF(reduce_scatterv, c->in, c->out, counts, d, c->op, t);
    default: return ONE_OF(alltoallv, c->in, counts, displs, c->out, counts, displs, d, t);
    }
}

rank_status_t any_coll_start(struct any_coll *c)
{
    size_t bytes = (size_t)c->size * sizeof(int64_t);
    int64_t *counts = mp_alloc(2 * bytes), *displs = counts + c->size;
    rank_status_t st;

    memcpy(counts, c->counts, bytes);
    memcpy(displs, c->displs, bytes);
    st = make_call(c, counts, displs);
    memset(counts, 0x77, 2 * bytes); /* they are read during the call only */
    free(counts);
    if (!st && c->form == ANY_PERSISTENT && (st = rank_start(&c->req)) != RANK_OK)
        MP_OK(rank_request_free(&c->req));
    return st;
}

rank_status_t any_coll_finish(struct any_coll *c)
{
    return c->req == RANK_REQUEST_NULL ? RANK_OK : rank_wait(&c->req, NULL);
}

/* -------------------------------------------------------------------------- checks */

static void wrong(const struct any_coll *c, const char *what, int64_t i)
{
    mp_fail(__FILE__, __LINE__, "%s, form %d, %lld elements, root %d, rank %d of %d: %s %lld is wrong", names[c->kind],
            (int)c->form, (long long)c->count, c->root, c->rank, c->size, what, (long long)i);
}

/* out[at ...] is what a rank has contributed for rank to. */
static void check_block(const struct any_coll *c, int64_t at, int from, int to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (c->out[at + i] != value(c, from, to, i))
            wrong(c, "element", at + i);
    }
}

static void check_sums(const struct any_coll *c, int ranks, int to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint64_t sum = 0;

        for (int r = 0; r < ranks; r++)
            sum += value(c, r, to, i);
        if (c->out[i] != sum)
            wrong(c, "sum", i);
    }
}

/* Elements of the result, which begins the receive buffer; 0: this rank has none. */
static int64_t result_length(const struct any_coll *c)
{
    bool at_root = c->rank == c->root;

    switch (c->kind) {
    case ANY_BARRIER: return 0;
    case ANY_REDUCE: return at_root ? c->count : 0;
    case ANY_EXSCAN: return c->rank > 0 ? c->count : 0;
    case ANY_GATHER:
    case ANY_GATHERV: return at_root ? c->elements : 0;
    case ANY_ALLGATHER:
    case ANY_ALLGATHERV:
    case ANY_ALLTOALL:
    case ANY_ALLTOALLV: return c->elements;
    case ANY_SCATTERV:
    case ANY_REDUCE_SCATTERV: return c->counts[c->rank];
    default: return c->count;
    }
}

void any_coll_check_guards(const struct any_coll *c)
{
    int64_t result = result_length(c);
    bool has_gaps = result == c->elements && has_counts(c->kind) && c->kind != ANY_REDUCE_SCATTERV;

    for (int64_t i = -GUARD; i < c->elements + GUARD; i++) {
        if ((i < 0 || i >= result) && c->out[i] != blank)
            wrong(c, "a guard, element", i);
    }
    for (int r = 0; has_gaps && r < c->size; r++) {
        for (int64_t i = c->displs[r] + c->counts[r]; i < c->displs[r] + c->counts[r] + GAP; i++) {
            if (c->out[i] != blank)
                wrong(c, "a gap, element", i);
        }
    }
    for (int r = 0; r < (sends_blocks(c->kind) ? c->size : 1); r++) {
        int64_t at, n = input_block(c, r, &at);

        for (int64_t i = 0; i < n; i++) {
            if (c->in[at + i] != value(c, c->rank, r, i))
                wrong(c, "input, element", at + i);
        }
    }
}

void any_coll_check(const struct any_coll *c)
{
    any_coll_check_guards(c);
    if (result_length(c) == 0)
        return;
    switch (c->kind) {
    case ANY_BCAST: check_block(c, 0, c->root, 0, c->count); return;
    case ANY_REDUCE:
    case ANY_ALLREDUCE: check_sums(c, c->size, 0, c->count); return;
    case ANY_SCAN: check_sums(c, c->rank + 1, 0, c->count); return;
    case ANY_EXSCAN: check_sums(c, c->rank, 0, c->count); return;
    case ANY_REDUCE_SCATTER:
    case ANY_REDUCE_SCATTERV: check_sums(c, c->size, c->rank, c->counts[c->rank]); return;
    case ANY_SCATTER:
    case ANY_SCATTERV: check_block(c, 0, c->root, c->rank, c->counts[c->rank]); return;
    default:
        for (int r = 0; r < c->size; r++)
            check_block(c, c->displs[r], r, sends_blocks(c->kind) ? c->rank : 0, c->counts[r]);
    }
}

void any_coll_close(struct any_coll *c)
{
    if (c->req != RANK_REQUEST_NULL)
        MP_OK(rank_request_free(&c->req));
    free(c->in);
    free(c->out - GUARD);
    free(c->counts);
    free(c->displs);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* any_coll.c: see any_coll.h. */
#include "tests/coll/any_coll.h"
#include "tests/coll/reference_values.h"

#include <stdlib.h>
#include <string.h>

enum { GUARD = 128 /* bytes */, GAP = 2 /* elements */, BLANK = 0x7e };

static const struct {
    const char *name;
    bool sends_blocks, receives_blocks; /* one for each rank, or from each */
    bool from_root, to_root, reduces, counts;
} kinds[ANY_KINDS] = {
    [ANY_BARRIER] = {.name = "barrier"},
    [ANY_BCAST] = {.name = "bcast"},
    [ANY_REDUCE] = {.name = "reduce", .to_root = true, .reduces = true},
    [ANY_ALLREDUCE] = {.name = "allreduce", .reduces = true},
    [ANY_GATHER] = {.name = "gather", .receives_blocks = true, .to_root = true},
    [ANY_ALLGATHER] = {.name = "allgather", .receives_blocks = true},
    [ANY_SCATTER] = {.name = "scatter", .sends_blocks = true, .from_root = true},
    [ANY_REDUCE_SCATTER] = {.name = "reduce_scatter", .sends_blocks = true, .reduces = true},
    [ANY_ALLTOALL] = {.name = "alltoall", .sends_blocks = true, .receives_blocks = true},
    [ANY_SCAN] = {.name = "scan", .reduces = true},
    [ANY_EXSCAN] = {.name = "exscan", .reduces = true},
    [ANY_GATHERV] = {.name = "gatherv", .receives_blocks = true, .to_root = true, .counts = true},
    [ANY_ALLGATHERV] = {.name = "allgatherv", .receives_blocks = true, .counts = true},
    [ANY_SCATTERV] = {.name = "scatterv", .sends_blocks = true, .from_root = true, .counts = true},
    [ANY_REDUCE_SCATTERV] = {.name = "reduce_scatterv", .sends_blocks = true, .reduces = true, .counts = true},
    [ANY_ALLTOALLV] = {.name = "alltoallv", .sends_blocks = true, .receives_blocks = true, .counts = true},
};

const char *any_coll_name(enum any_kind kind)
{
    return kinds[kind].name;
}

bool any_coll_reduces(enum any_kind kind)
{
    return kinds[kind].reduces;
}

void any_coll_open(struct any_coll *c, rank_team_t team, enum any_kind kind, int64_t count, rank_dtype_t dtype, rank_op_t op,
                   uint64_t *seed)
{
    *c = (struct any_coll){.team = team, .op = op, .dtype = dtype, .kind = kind, .count = count, .rank = rank_team_rank(team),
                           .size = rank_team_size(team), .elem = value_size(dtype), .req = RANK_REQUEST_NULL};
    c->form = (enum any_form)mp_below(seed, ANY_FORMS);
    c->in_place = mp_below(seed, 3) == 0;
    c->bare = mp_below(seed, 2);
    c->root = (int)mp_below(seed, (uint64_t)c->size);
    c->layout = mp_below(seed, 5);
    c->key = mp_random(seed);
}

/* -------------------------------------------------------------------------- inputs */

/* Elements of the block between two ranks; in place the same both ways. */
static int64_t block_count(const struct any_coll *c, int from, int to)
{
    int which = !kinds[c->kind].sends_blocks ? from : !kinds[c->kind].receives_blocks ? to : c->in_place ? from + to : from + 2 * to;

    if (!kinds[c->kind].counts)
        return c->count;
    switch ((c->layout + (uint64_t)which) % 5) {
    case 0: return 0;
    case 1: return c->count / 2;
    case 2: return c->count - c->count / 3;
    default: return c->count;
    }
}

/* Elements of this rank's block, where there is one for each rank. */
static int64_t own_count(const struct any_coll *c)
{
    return kinds[c->kind].sends_blocks ? block_count(c, 0, c->rank) : block_count(c, c->rank, 0);
}

/* Blocks lie backwards, with gaps; those of a reduction in a row. */
static void lay_blocks(struct any_coll *c, int64_t *counts, bool receives)
{
    int64_t gap = kinds[c->kind].counts && !kinds[c->kind].reduces ? GAP : 0, at = 0;

    for (int k = 0; k < c->size; k++) {
        int r = gap ? c->size - 1 - k : k;

        counts[r] = receives ? block_count(c, r, c->rank) : block_count(c, c->rank, r);
        counts[c->size + r] = at;
        at += counts[r] + gap;
    }
    c->elements = at > c->elements ? at : c->elements;
}

static void open_buffers(struct any_coll *c)
{
    size_t size = (size_t)c->size;
    bool at_root = c->rank == c->root;

    c->here = c->in_place && c->kind > ANY_BCAST && (at_root || !(kinds[c->kind].from_root || kinds[c->kind].to_root));
    c->send = mp_alloc(4 * size * sizeof(int64_t));
    c->recv = c->send + 2 * size;
    lay_blocks(c, c->send, false);
    lay_blocks(c, c->recv, true);
    c->in = mp_alloc((size_t)c->elements * c->elem);
    c->kept_in = mp_alloc((size_t)c->elements * c->elem);
    c->kept_out = mp_alloc((size_t)c->elements * c->elem + (size_t)2 * GUARD);
    c->out = (char *)mp_alloc((size_t)c->elements * c->elem + (size_t)2 * GUARD) + GUARD;
    c->in_at = c->in_memory ? c->in_memory->alloc((size_t)c->elements * c->elem + 1) : c->in;
    c->out_at = c->out_memory ? (char *)c->out_memory->alloc((size_t)c->elements * c->elem + (size_t)2 * GUARD) + GUARD : c->out;
}

/* A sum of UINT64 has inputs that differ everywhere. */
static bool is_mixed(const struct any_coll *c)
{
    return c->dtype == RANK_UINT64 && (c->op == RANK_SUM || !value_defined(c->op, c->dtype));
}

static uint64_t mixed(const struct any_coll *c, int from, int64_t i)
{
    uint64_t x = c->key + (uint64_t)from * 0x9e3779b97f4a7c15u + (uint64_t)i;

    return (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
}

/* Inputs of other reductions repeat: begin elsewhere each time. */
static int64_t first_value(const struct any_coll *c)
{
    return (int64_t)(c->key % 1000);
}

static void fill_numbers(const struct any_coll *c, char *to)
{
    int64_t n = c->count;

    if (kinds[c->kind].sends_blocks)
        n = c->send[2 * c->size - 1] + c->send[c->size - 1];
    if (!is_mixed(c))
        value_fill(to, c->dtype, c->op, c->rank, c->size, first_value(c), n);
    for (int64_t i = 0; i < n && is_mixed(c); i++)
        ((uint64_t *)(void *)to)[i] = mixed(c, c->rank, i);
}

static uint64_t block_key(const struct any_coll *c, int from, int to)
{
    return c->key + (uint64_t)from * 1009 + (uint64_t)to;
}

static void fill_inputs(struct any_coll *c)
{
    size_t elem = c->elem, bytes = (size_t)c->elements * elem;
    char *to = c->here && !kinds[c->kind].from_root ? c->out : c->in;

    mp_random(&c->key);
    memset(c->in, BLANK, bytes);
    memset(c->out - GUARD, BLANK, bytes + (size_t)2 * GUARD);
    if (kinds[c->kind].reduces)
        fill_numbers(c, to);
    else if (c->kind == ANY_BCAST && c->rank == c->root)
        mp_fill(c->out, (size_t)c->count * elem, block_key(c, c->root, 0));
    else if (kinds[c->kind].sends_blocks)
        for (int r = 0; r < c->size; r++)
            mp_fill(to + (size_t)c->send[c->size + r] * elem, (size_t)c->send[r] * elem, block_key(c, c->rank, r));
    else if (kinds[c->kind].receives_blocks)
        mp_fill(to + (c->here ? (size_t)c->recv[c->size + c->rank] * elem : 0), (size_t)own_count(c) * elem, block_key(c, c->rank, 0));
    memcpy(c->kept_in, c->in, bytes);
    memcpy(c->kept_out, c->out - GUARD, bytes + (size_t)2 * GUARD);
    if (c->in_memory)
        c->in_memory->copy(c->in_at, c->in, bytes, true);
    if (c->out_memory)
        c->out_memory->copy(c->out_at - GUARD, c->out - GUARD, bytes + (size_t)2 * GUARD, true);
}

/* -------------------------------------------------------------------------- calls */

#define ONE_OF(call, ...)                                                                          \
    (form == ANY_BLOCKING      ? rank_##call(__VA_ARGS__)                                          \
     : form == ANY_NONBLOCKING ? rank_i##call(__VA_ARGS__, &c->req)                                \
                               : rank_##call##_init(__VA_ARGS__, &c->req))

static rank_status_t make_call(struct any_coll *c, const int64_t *sends, const int64_t *receives)
{
    enum any_form form = c->form;
    const rank_dtype_t d = c->dtype;
    rank_team_t t = c->team;
    int root = c->root;
    bool bare = c->bare && c->rank != root, at_root_in = kinds[c->kind].from_root, at_root_out = kinds[c->kind].to_root;
    const void *s = c->here && !at_root_in ? RANK_IN_PLACE : bare && at_root_in ? NULL : c->in_at;
    void *r = c->here && at_root_in ? RANK_IN_PLACE : bare && at_root_out ? NULL : c->out_at;
    const int64_t *sn = (bare && at_root_in) || (c->bare && c->here) ? NULL : sends, *sd = sn ? sn + c->size : NULL;
    const int64_t *rn = bare && at_root_out ? NULL : receives, *rd = rn ? rn + c->size : NULL;
    const int64_t n = c->count, own = c->bare && c->here && c->kind != ANY_ALLGATHERV ? -7 : own_count(c);

    if (c->kind == ANY_EXSCAN && c->rank == 0 && c->bare && !c->here)
        r = NULL;
    switch (c->kind) {
    case ANY_BARRIER: return ONE_OF(barrier, t);
    case ANY_BCAST: return ONE_OF(bcast, c->out_at, n, d, root, t);
    case ANY_REDUCE: return ONE_OF(reduce, s, r, n, d, c->op, root, t);
    case ANY_ALLREDUCE: return ONE_OF(allreduce, s, r, n, d, c->op, t);
    case ANY_GATHER: return ONE_OF(gather, s, r, n, d, root, t);
    case ANY_ALLGATHER: return ONE_OF(allgather, s, r, n, d, t);
    case ANY_SCATTER: return ONE_OF(scatter, s, r, n, d, root, t);
    case ANY_REDUCE_SCATTER: return ONE_OF(reduce_scatter, s, r, n, d, c->op, t);
    case ANY_ALLTOALL: return ONE_OF(alltoall, s, r, n, d, t);
    case ANY_SCAN: return ONE_OF(scan, s, r, n, d, c->op, t);
    case ANY_EXSCAN: return ONE_OF(exscan, s, r, n, d, c->op, t);
    case ANY_GATHERV: return ONE_OF(gatherv, s, own, r, rn, rd, d, root, t);
    case ANY_ALLGATHERV: return ONE_OF(allgatherv, s, own, r, rn, rd, d, t);
    case ANY_SCATTERV: return ONE_OF(scatterv, s, c->here ? sends : sn, c->here ? sends + c->size : sd, r, own, d, root, t);
    case ANY_REDUCE_SCATTERV: return ONE_OF(reduce_scatterv, s, r, sends, d, c->op, t);
    default: return ONE_OF(alltoallv, s, sn, sd, r, rn, rd, d, t);
    }
}

rank_status_t any_coll_init(struct any_coll *c)
{
    size_t n = 4 * (size_t)c->size * sizeof(int64_t);
    rank_status_t st;
    int64_t *counts;

    if (!c->in)
        open_buffers(c);
    fill_inputs(c);
    if (c->req != RANK_REQUEST_NULL)
        return RANK_OK;
    counts = mp_alloc(n);
    memcpy(counts, c->send, n);
    st = make_call(c, counts, counts + 2 * (size_t)c->size);
    memset(counts, 0x77, n); /* they are read during the call only */
    free(counts);
    return st;
}

rank_status_t any_coll_start(struct any_coll *c)
{
    rank_status_t st = any_coll_init(c);

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
    mp_fail(__FILE__, __LINE__, "%s, form %d, dtype %#x, op %#x, %lld elements, root %d, in place %d, bare %d, rank %d of %d: %s %lld is wrong",
            kinds[c->kind].name, (int)c->form, (unsigned)c->dtype, (unsigned)c->op, (long long)c->count, c->root, c->in_place, c->bare,
            c->rank, c->size, what, (long long)i);
}

static void check_numbers(const struct any_coll *c, int64_t n)
{
    int64_t first = kinds[c->kind].sends_blocks ? c->send[c->size + c->rank] : 0, bad = -1;
    int ranks = c->kind == ANY_SCAN ? c->rank + 1 : c->kind == ANY_EXSCAN ? c->rank : c->size;

    if (!is_mixed(c) && ranks == c->size)
        bad = value_check(c->out, c->dtype, c->op, c->size, first_value(c) + first, n);
    else if (!is_mixed(c))
        bad = value_check_prefix(c->out, c->dtype, c->op, ranks, c->size, first_value(c) + first, n);
    for (int64_t i = 0; i < n && is_mixed(c); i++) {
        uint64_t sum = 0;

        for (int r = 0; r < ranks; r++)
            sum += mixed(c, r, first + i);
        if (((uint64_t *)(void *)c->out)[i] != sum)
            wrong(c, "sum", i);
    }
    if (bad >= 0)
        wrong(c, "result", bad);
}

/* Block i of the result, in elements. Returns false if there is none. */
static bool result_block(const struct any_coll *c, int i, int64_t *at, int64_t *n)
{
    bool blocks = kinds[c->kind].receives_blocks;

    if (c->kind == ANY_BARRIER || (kinds[c->kind].to_root && c->rank != c->root) || (c->kind == ANY_EXSCAN && c->rank == 0) ||
        (kinds[c->kind].from_root && c->here) || i >= (blocks ? c->size : 1))
        return false;
    *at = blocks ? c->recv[c->size + i] : 0;
    *n = blocks ? c->recv[i] : own_count(c);
    return true;
}

static void check_result(const struct any_coll *c)
{
    int64_t at, n;

    for (int i = 0; result_block(c, i, &at, &n); i++) {
        int from = kinds[c->kind].receives_blocks ? i : c->root, to = kinds[c->kind].sends_blocks ? c->rank : 0;

        if (kinds[c->kind].reduces)
            check_numbers(c, n);
        else if ((at = mp_verify(c->out + (size_t)at * c->elem, (size_t)n * c->elem, block_key(c, from, to))) >= 0)
            wrong(c, "byte", at);
    }
}

/* The first byte in which two differ, or -1. */
static int64_t difference(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; memcmp(a, b, n) != 0 && i < n; i++) {
        if (a[i] != b[i])
            return (int64_t)i;
    }
    return -1;
}

static void fetch_buffers(const struct any_coll *c)
{
    size_t bytes = (size_t)c->elements * c->elem;

    if (c->in_memory)
        c->in_memory->copy(c->in, c->in_at, bytes, false);
    if (c->out_memory)
        c->out_memory->copy(c->out - GUARD, c->out_at - GUARD, bytes + (size_t)2 * GUARD, false);
}

static void check_rest(const struct any_coll *c)
{
    size_t bytes = (size_t)c->elements * c->elem;
    int64_t at, n;

    for (int i = 0; result_block(c, i, &at, &n); i++)
        memcpy(c->out + (size_t)at * c->elem, c->kept_out + GUARD + (size_t)at * c->elem, (size_t)n * c->elem);
    if (c->here && kinds[c->kind].reduces && kinds[c->kind].sends_blocks) /* the rest is undefined */
        memcpy(c->out, c->kept_out + GUARD, bytes);
    if ((at = difference(c->out - GUARD, c->kept_out, bytes + (size_t)2 * GUARD)) >= 0)
        wrong(c, "beside the result, byte", at - GUARD);
    if ((at = difference(c->in, c->kept_in, bytes)) >= 0)
        wrong(c, "input, byte", at);
}

void any_coll_check_guards(const struct any_coll *c)
{
    fetch_buffers(c);
    check_rest(c);
}

void any_coll_check(const struct any_coll *c)
{
    fetch_buffers(c);
    check_result(c);
    check_rest(c);
}

void any_coll_close(struct any_coll *c)
{
    if (c->req != RANK_REQUEST_NULL)
        MP_OK(rank_request_free(&c->req));
    if (!c->in)
        return;
    if (c->in_memory)
        c->in_memory->release(c->in_at);
    if (c->out_memory)
        c->out_memory->release(c->out_at - GUARD);
    free(c->in);
    free(c->out - GUARD);
    free(c->kept_in);
    free(c->kept_out);
    free(c->send);
    c->in = NULL;
}

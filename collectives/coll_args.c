/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_args.c: check blocks of different lengths, and report unusable buffers. */
#include "collectives/coll_args.h"
#include "collectives/op/op_name.h"

RK_COLD rank_status_t rk_coll_buffer_error(const char *call, const char *name, const void *buf)
{
    return buf ? rk_arg_error(RANK_ERR_ARG, call, "RANK_IN_PLACE is not for %s here", name) : rk_arg_null(call, name);
}

RK_COLD rank_status_t rk_coll_op_error(const char *call, rank_op_t op, rank_dtype_t dtype)
{
    char which[RK_OP_NAME], of[RK_OP_NAME];

    rk_op_text(op, which, sizeof(which));
    rk_dtype_text(dtype, of, sizeof(of));
    return rk_arg_error(RANK_ERR_DTYPE, call, "op %s is not defined for dtype %s", which, of);
}

RK_COLD rank_status_t rk_coll_check_user_op(const char *call, rank_op_t op, bool *commutative)
{
    return rk_user_op_check(op, commutative) ? RANK_OK
                                             : rk_arg_error(RANK_ERR_OP, call, "op %#llx is not defined, or freed", (unsigned long long)op);
}

RK_COLD rank_status_t rk_coll_overlap_error(const char *call)
{
    return rk_arg_error(RANK_ERR_ARG, call, "the buffers overlap; RANK_IN_PLACE is for that");
}

/* ------------------------------------------------------------------- blocks of different lengths */

/* Blocks in a buffer: of each rank, or one. */
struct coll_blocks {
    const char *base, *buf, *count, *displ; /* and the names of the arguments; displ NULL: one behind the other */
    const int64_t *counts, *displs;         /* in elements */
    int n;                                  /* 0: this rank has no such buffer */
    int64_t total, longest;                 /* set by the check */
};

static rank_status_t check_lengths(const struct rk_coll_call *c, struct coll_blocks *b)
{
    rank_status_t st = RANK_OK;
    int64_t end;
    size_t span;

    if (b->n && (!b->counts || (b->displ && !b->displs)))
        return rk_arg_null(c->name, !b->counts ? b->count : b->displ);
    for (int r = 0; r < b->n && !st; r++) {
        int64_t at = b->displ ? b->displs[r] : 0;

        if (b->counts[r] < 0 || at < 0 || __builtin_add_overflow(b->counts[r], at, &end))
            return b->displ ? rk_arg_error(RANK_ERR_COUNT, c->name, "%s[%d] %lld or %s[%d] %lld is out of range", b->count,
                                           r, (long long)b->counts[r], b->displ, r, (long long)at)
                            : rk_arg_error(RANK_ERR_COUNT, c->name, "%s[%d] %lld is negative", b->count, r,
                                           (long long)b->counts[r]);
        if (__builtin_add_overflow(b->total, b->counts[r], &b->total))
            return rk_arg_error(RANK_ERR_COUNT, c->name, "the sum of %s is out of range", b->count);
        b->longest = b->counts[r] > b->longest ? b->counts[r] : b->longest;
        st = rk_dtype_span(c->name, c->dtype, end, &span);
        if (!st)
            st = rk_dtype_span(c->name, c->dtype, b->total, &span);
    }
    return st;
}

/* The part of the blocks of this rank is as long as the other argument gives it. */
static rank_status_t check_own(const struct rk_coll_call *c, const char *name, int64_t count, const struct coll_blocks *b)
{
    int me = c->team->rank;

    if (count == b->counts[me])
        return RANK_OK;
    return rk_arg_error(RANK_ERR_COUNT, c->name, "%s %lld is not %s[%d], %lld, of this rank", name, (long long)count,
                        b->count, me, (long long)b->counts[me]); /* as the other ranks assume */
}

static rank_status_t check_present(const struct rk_coll_call *c, const struct coll_blocks *b)
{
    bool usable = b->base != RANK_IN_PLACE && (b->base || !b->total);

    return !b->n || usable ? RANK_OK : rk_coll_buffer_error(c->name, b->buf, b->base);
}

/* Does no block of w overlap another one, or one of r? */
static RK_COLD bool blocks_apart(const struct rk_coll_call *c, const struct coll_blocks *w, const struct coll_blocks *r)
{
    for (int i = 0; i < w->n; i++) {
        const char *at = rk_block_at(w->base, w->displs[i], c->elem);
        size_t bytes = (size_t)w->counts[i] * c->elem;

        for (int q = 0; q < i; q++) {
            if (rk_overlap(at, bytes, rk_block_at(w->base, w->displs[q], c->elem), (size_t)w->counts[q] * c->elem))
                return false;
        }
        for (int q = 0; q < r->n && !c->in_place; q++) {
            if (rk_overlap(at, bytes, rk_block_at(r->base, r->displs[q], c->elem), (size_t)r->counts[q] * c->elem))
                return false;
        }
    }
    return true;
}

/* Of collectives in which a rank has one block in one buffer, and a block of each rank in the other one, at root only. */
static rank_status_t check_one_and_all(struct rk_coll_call *c, struct coll_blocks *one, struct coll_blocks *all)
{
    rank_status_t st = check_lengths(c, all);

    c->in_place = one->base == RANK_IN_PLACE && all->n && one->n;
    if (!st)
        st = check_present(c, all);
    if (st)
        return st;
    if (c->in_place) {
        one->base = rk_block_at(all->base, all->displs[c->team->rank], c->elem);
        c->count = all->counts[c->team->rank];
    } else if (all->n && (st = check_own(c, all->base == c->rbuf ? "scount" : "rcount", c->count, all)) != RANK_OK) {
        return st;
    }
    c->bytes = (size_t)c->count * c->elem;
    one->total = c->count;
    return check_present(c, one);
}

static rank_status_t check_all_and_all(struct rk_coll_call *c, struct coll_blocks *s, struct coll_blocks *r)
{
    rank_status_t st = check_lengths(c, r);

    c->in_place = s->base == RANK_IN_PLACE;
    if (!st)
        st = check_present(c, r);
    if (st)
        return st;
    if (c->in_place) {
        *s = *r;
        c->scounts = c->rcounts;
        c->sdispls = c->rdispls;
        return RANK_OK;
    }
    st = check_lengths(c, s);
    if (!st)
        st = check_own(c, "the entry of scounts", s->counts[c->team->rank], r);
    return st ? st : check_present(c, s);
}

/* The input of all ranks has a block for each, one behind the other. */
static rank_status_t check_reduced(struct rk_coll_call *c)
{
    struct coll_blocks s = {c->sbuf, "sbuf", "rcounts", NULL, c->rcounts, NULL, c->team->size, 0, 0};
    struct coll_blocks r = {c->rbuf, "rbuf", NULL, NULL, NULL, NULL, 1, 0, 0};
    rank_status_t st = check_lengths(c, &s);

    if (st)
        return st;
    c->in_place = c->sbuf == RANK_IN_PLACE;
    r.total = c->in_place ? s.total : c->rcounts[c->team->rank];
    if (c->in_place)
        s.base = c->rbuf;
    st = check_present(c, &r);
    if (!st)
        st = check_present(c, &s);
    if (!st && RK_CHECK_OVERLAP && !c->in_place &&
        rk_overlap(s.base, (size_t)s.total * c->elem, r.base, (size_t)r.total * c->elem))
        st = rk_coll_overlap_error(c->name);
    c->sbuf = s.base;
    c->count = s.longest;
    c->bytes = (size_t)c->count * c->elem;
    return st;
}

rank_status_t rk_coll_check_counts(struct rk_coll_call *c)
{
    static const int64_t zero;
    const struct rk_coll_shape shape = rk_coll_shape[c->kind];
    int size = c->team->size;
    bool at_root = c->team->rank == c->root, scatters = c->kind == RK_COLL_SCATTERV;
    bool all_to_all = c->kind == RK_COLL_ALLTOALLV;
    struct coll_blocks s = {c->sbuf, "sbuf", "scounts", scatters ? "displs" : "sdispls", c->scounts, c->sdispls, size, 0, 0};
    struct coll_blocks r = {c->rbuf, "rbuf", "rcounts", all_to_all ? "rdispls" : "displs", c->rcounts, c->rdispls, size, 0, 0};
    struct coll_blocks *one = scatters ? &r : &s, *all = scatters ? &s : &r;
    rank_status_t st;

    if (c->kind == RK_COLL_REDUCE_SCATTERV)
        return check_reduced(c);
    if (shape.root && (unsigned)c->root >= (unsigned)size)
        return rk_arg_error(RANK_ERR_RANK, c->name, "root %d is out of range (team size %d)", c->root, size);
    if (!all_to_all) {
        one->counts = &c->count;
        one->displs = &zero;
        one->n = 1;
        all->n = !shape.root || at_root ? size : 0;
    }
    st = all_to_all ? check_all_and_all(c, &s, &r) : check_one_and_all(c, one, all);
    if (!st && RK_CHECK_OVERLAP && !(scatters && c->in_place) && !blocks_apart(c, &r, &s))
        st = rk_coll_overlap_error(c->name);
    c->sbuf = s.base;
    c->rbuf = (char *)(uintptr_t)r.base;
    if (c->kind == RK_COLL_ALLGATHERV) {
        c->count = all->longest;
        c->bytes = (size_t)c->count * c->elem;
    }
    return st;
}

enum { ARRAYS = 4 };

size_t rk_coll_counts(const struct rk_coll_call *c)
{
    bool used = rk_coll_has_counts(c->kind) && (!rk_coll_shape[c->kind].root || c->team->rank == c->root);

    return used ? ARRAYS * (size_t)c->team->size : 0;
}

void rk_coll_copy_counts(struct rk_coll_call *c, int64_t *to)
{
    const int64_t **array[ARRAYS] = {&c->rcounts, &c->rdispls, &c->scounts, &c->sdispls};
    size_t n = rk_coll_counts(c) / ARRAYS;

    for (int i = 0; i < ARRAYS; i++, to += n) {
        if (n && *array[i])
            memcpy(to, *array[i], n * sizeof(*to));
        *array[i] = n && *array[i] ? to : NULL;
    }
}

/* -------------------------------------------------------------------------- buffers */

struct rk_block_list rk_blocks_sent(const struct rk_coll_call *c)
{
    bool used = c->kind != RK_COLL_SCATTERV || c->team->rank == c->root;

    return (struct rk_block_list){used ? c->scounts : NULL, c->sdispls};
}

struct rk_block_list rk_blocks_received(const struct rk_coll_call *c)
{
    bool used = c->kind != RK_COLL_GATHERV || c->team->rank == c->root;

    return (struct rk_block_list){used && c->rdispls ? c->rcounts : NULL, c->rdispls};
}

/* Bytes of a buffer with these blocks; 0 if this rank does not use it. */
static size_t buffer_span(const struct rk_coll_call *c, enum rk_blocks blocks, bool used, struct rk_block_list list)
{
    size_t span = 0;

    if (!used || blocks == RK_NO_BLOCK)
        return 0;
    if (!list.counts)
        return c->bytes * (blocks == RK_ALL_BLOCKS ? (size_t)c->team->size : 1);
    for (int i = 0; i < c->team->size; i++) {
        size_t end = (size_t)(list.counts[i] ? list.displs[i] + list.counts[i] : 0) * c->elem;
        span = end > span ? end : span;
    }
    return span;
}

void rk_coll_buffers(const struct rk_coll_call *c, size_t *send, size_t *recv)
{
    const struct rk_coll_shape shape = rk_coll_shape[c->kind];
    bool at_root = c->team->rank == c->root;
    size_t s = buffer_span(c, shape.sbuf, at_root || shape.root != RK_ROOT_SENDS, rk_blocks_sent(c));
    size_t r = buffer_span(c, shape.rbuf, at_root || shape.root != RK_ROOT_RECEIVES, rk_blocks_received(c));

    if (c->kind == RK_COLL_ALLGATHERV)
        s = (size_t)c->rcounts[c->team->rank] * c->elem;
    if (c->kind == RK_COLL_REDUCE_SCATTERV) {
        s = 0;
        for (int i = 0; i < c->team->size; i++)
            s += (size_t)c->rcounts[i] * c->elem;
        r = (size_t)c->rcounts[c->team->rank] * c->elem;
    }
    if (c->kind == RK_COLL_EXSCAN && c->team->rank == 0)
        r = 0;
    *send = s;
    *recv = r;
}

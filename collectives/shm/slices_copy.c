/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slices_copy.c: copy and reduce the chunks of a call (slices.h).
 *
 * A cell holds the piece of one block, or a share for each rank with the piece of its block. Without a sum phase each
 * rank reduces what it receives itself. With one, rank r reduces slice r of a chunk for all ranks: into its own cell, or,
 * in a scan, the prefix of each rank into the cell of that rank.
 */
#include "collectives/shm/slices_call.h"
#include "collectives/coll_args.h"

#include <string.h>

/* ----------------------------------------------------------------------- geometry */

/* Share of a cell for each rank. */
static size_t cell_share(size_t cell, int n)
{
    return cell / (size_t)n & ~(size_t)(RK_CACHE_LINE - 1);
}

static bool has_share_per_rank(enum rk_coll_kind kind)
{
    return rk_coll_shape[kind].sbuf == RK_ALL_BLOCKS || kind == RK_COLL_SCATTERV;
}

/* Bytes before the pieces in a share, for the length of the block that it begins. Ranks announce that of a gatherv. */
static size_t length_room(enum rk_coll_kind kind)
{
    return rk_coll_has_own_counts(kind) && kind != RK_COLL_GATHERV ? RK_CACHE_LINE : 0;
}

bool rk_slices_fit(enum rk_coll_kind kind, int n, size_t elem)
{
    size_t cell = rk_arena_cell_min(n), room = has_share_per_rank(kind) ? cell_share(cell, n) : cell;

    return room > length_room(kind) && (!rk_coll_shape[kind].reduces || elem <= room);
}

/* The first piece in a rank's cell. */
static char *slices_cell(const struct slices *x, int r, uint64_t i)
{
    const struct rk_arena *a = x->a;
    size_t depth = (size_t)a->cell_depth;

    return a->cells + ((size_t)r * depth + (size_t)((x->base + i) & (depth - 1))) * a->cell_bytes + length_room(x->kind);
}

/* Bytes in chunk i of a block of that many. */
static size_t piece_of_block(const struct slices *x, uint64_t i, size_t bytes)
{
    size_t at = (size_t)i * x->piece;

    return at >= bytes ? 0 : bytes - at < x->piece ? bytes - at : x->piece;
}

static size_t piece_of(const struct slices *x, uint64_t i)
{
    return piece_of_block(x, i, x->bytes);
}

static struct rk_own_block place_of_block(const struct slices *x, const struct rk_own_block *blocks, int r)
{
    return blocks ? blocks[r] : (struct rk_own_block){(size_t)r * x->bytes, x->bytes};
}

/* The slice of a chunk of len bytes that rank r reduces: bytes first to *end. */
static size_t slice_of(const struct slices *x, size_t len, int r, size_t *end)
{
    size_t n = (size_t)x->a->n, unit = RK_CACHE_LINE % x->elem ? x->elem : RK_CACHE_LINE;
    size_t each = (len + n * unit - 1) / (n * unit) * unit, first = each * (size_t)r;

    first = first < len ? first : len;
    *end = len - first < each ? len : first + each;
    return first;
}

/* -------------------------------------------------------------------------- lengths */

/* Write the length of a block before its first piece. */
static void set_length(char *piece, size_t bytes)
{
    uint64_t length = bytes;

    memcpy(piece - RK_CACHE_LINE, &length, sizeof(length));
}

void rk_slices_compare(struct slices *x, uint64_t length, size_t bytes)
{
    if (length != bytes && !x->status)
        x->status = length > bytes ? RANK_ERR_TRUNCATED : RANK_ERR_COLLECTIVE;
}

static void check_length(struct slices *x, const char *piece, size_t bytes)
{
    uint64_t length;

    memcpy(&length, piece - RK_CACHE_LINE, sizeof(length));
    rk_slices_compare(x, length, bytes);
}

/* ----------------------------------------------------------------------------- in */

static void move(void *to, const void *from, size_t bytes)
{
    if (bytes && to != from)
        memcpy(to, from, bytes);
}

/* Copy the pieces for the other ranks to their shares of the cell; of a scatter the own one to rbuf. */
static void copy_shares_in(const struct slices *x, char *cell, uint64_t i)
{
    size_t at = (size_t)i * x->piece;
    int n = x->a->n, me = x->a->me;
    bool scatters = x->kind == RK_COLL_SCATTER || x->kind == RK_COLL_SCATTERV;

    for (int k = scatters ? 0 : 1; k < n; k++) {
        int r = (me + k) % n;
        struct rk_own_block block = place_of_block(x, x->from, r);
        size_t len = piece_of_block(x, i, block.bytes);
        char *share = cell + (size_t)r * x->stride;

        if (x->agrees && i == 0 && r != me)
            set_length(share, block.bytes);
        if (len)
            move(r == me ? x->rbuf + at : share, x->sbuf + block.at + at, len);
    }
}

void rk_slices_copy_in(struct slices *x, uint64_t i)
{
    size_t len = piece_of_block(x, i, x->gives), at = (size_t)i * x->piece, first, end;
    char *cell = slices_cell(x, x->a->me, i);

    if (x->stride) {
        copy_shares_in(x, cell, i);
    } else if (x->does[RK_CHUNK_SUM] && (x->kind == RK_COLL_ALLREDUCE || x->kind == RK_COLL_REDUCE)) {
        first = slice_of(x, len, x->a->me, &end); /* the own slice is reduced from sbuf */
        move(cell, x->sbuf + at, first);
        move(cell + end, x->sbuf + at + end, len - end);
    } else if (len) {
        move(cell, (x->kind == RK_COLL_BCAST ? x->rbuf : x->sbuf) + at, len);
    }
}

/* ---------------------------------------------------------------------------- sum */

/* to = bytes at offset from in the cells of chunk i of the first n ranks, reduced; this rank's are at mine. */
static void reduce_cells(struct slices *x, uint64_t i, int n, char *to, const char *mine, size_t from, size_t bytes)
{
    struct rk_arena *a = x->a;
    size_t count = bytes / x->elem;

    if (!count)
        return;
    for (int r = 0; r < n; r++)
        x->operands[r] = r == a->me ? mine : slices_cell(x, r, i) + from;
    if (n == 1)
        move(to, x->operands[0], bytes);
    else if (n > 1)
        rk_reduce_many(&x->sched->reducer, to, x->operands, n, count);
    if (x->avg)
        rk_op_divide(x->dtype, to, count, a->n);
}

/* Turn the slice of each rank's cell into that of its prefix. */
static void sum_prefixes(const struct slices *x, uint64_t i, size_t first, size_t bytes)
{
    int n = x->kind == RK_COLL_SCAN ? x->a->n : x->a->n - 1;

    for (int r = 1; r < n && bytes; r++) {
        char *cell = slices_cell(x, r, i) + first;

        rk_reduce(&x->sched->reducer, cell, slices_cell(x, r - 1, i) + first, cell, bytes / x->elem);
    }
}

void rk_slices_sum(struct slices *x, uint64_t i)
{
    size_t end, first = slice_of(x, piece_of(x, i), x->a->me, &end);
    const char *mine = x->sbuf + (size_t)i * x->piece + first;

    if (x->kind == RK_COLL_SCAN || x->kind == RK_COLL_EXSCAN)
        sum_prefixes(x, i, first, end - first);
    else
        reduce_cells(x, i, x->a->n, slices_cell(x, x->a->me, i) + first, mine, first, end - first);
}

/* ---------------------------------------------------------------------------- out */

static void copy_slices(const struct slices *x, uint64_t i)
{
    size_t len = piece_of(x, i), at = (size_t)i * x->piece;

    for (int k = 0; k < x->a->n; k++) {
        int r = (x->a->me + k) % x->a->n;
        size_t end, first = slice_of(x, len, r, &end);

        move(x->rbuf + at + first, slices_cell(x, r, i) + first, end - first);
    }
}

/* A block of each rank. */
static void copy_blocks(struct slices *x, uint64_t i)
{
    size_t at = (size_t)i * x->piece;
    int n = x->a->n, me = x->a->me;

    for (int k = 0; k < n; k++) {
        int r = (me + k) % n;
        struct rk_own_block block = place_of_block(x, x->to, r);
        size_t len = piece_of_block(x, i, block.bytes);
        size_t own = x->stride ? place_of_block(x, x->from, me).at : 0;
        const char *share = slices_cell(x, r, i) + (size_t)me * x->stride;

        if (x->agrees && x->stride && i == 0 && r != me)
            check_length(x, share, block.bytes);
        if (len && r == me)
            move(x->rbuf + block.at + at, x->sbuf + own + at, len);
        else if (len)
            move(x->rbuf + block.at + at, share, len);
    }
}

/* In place and with blocks of their own lengths, the result may overlap the input of this chunk: move it after. */
static void reduce_own_block(struct slices *x, uint64_t i)
{
    struct rk_own_block own = place_of_block(x, x->from, x->a->me);
    size_t len = piece_of_block(x, i, own.bytes), at = (size_t)i * x->piece;
    char *mine, *to;

    if (!len)
        return;
    mine = (char *)(uintptr_t)x->sbuf + own.at + at;
    to = x->from && x->sbuf == x->rbuf ? mine : x->rbuf + at;
    reduce_cells(x, i, x->a->n, to, mine, (size_t)x->a->me * x->stride, len);
    if (to == mine && own.at > 0)
        memmove(x->rbuf + at, to, len);
}

/* The prefix of this rank, or of the one before. */
static void copy_prefix(struct slices *x, uint64_t i)
{
    size_t len = piece_of(x, i), at = (size_t)i * x->piece;
    int n = x->kind == RK_COLL_SCAN ? x->a->me + 1 : x->a->me; /* inputs in it */

    if (n == 0)
        return;
    if (x->does[RK_CHUNK_SUM])
        move(x->rbuf + at, slices_cell(x, n - 1, i), len);
    else
        reduce_cells(x, i, n, x->rbuf + at, x->sbuf + at, 0, len);
}

void rk_slices_copy_out(struct slices *x, uint64_t i)
{
    size_t at = (size_t)i * x->piece, len;
    const char *share;

    if (x->kind == RK_COLL_SCAN || x->kind == RK_COLL_EXSCAN) {
        copy_prefix(x, i);
    } else if (x->reduces && x->does[RK_CHUNK_SUM]) {
        if (x->kind == RK_COLL_ALLREDUCE || x->a->me == x->root)
            copy_slices(x, i);
    } else if (x->stride && x->reduces) {
        reduce_own_block(x, i);
    } else if (x->reduces) {
        reduce_cells(x, i, x->a->n, x->rbuf + at, x->sbuf + at, 0, piece_of(x, i));
    } else if (x->writer != RK_SLICES_ALL) {
        len = piece_of_block(x, i, x->gets);
        share = slices_cell(x, x->writer, i) + (size_t)x->a->me * x->stride;
        if (x->agrees && i == 0)
            check_length(x, share, x->gets);
        if (len)
            move(x->rbuf + at, share, len);
    } else if (x->kind != RK_COLL_BARRIER) {
        copy_blocks(x, i);
    }
}

/* -------------------------------------------------------------------------- build */

/* Copy the blocks of a buffer, one behind the other if displs is NULL; adds their longest one to the call's. */
static struct rk_own_block *set_list(struct slices *x, const int64_t *counts, const int64_t *displs)
{
    struct rk_own_block *blocks = rk_sched_scratch(x->sched, (size_t)x->a->n * sizeof(blocks[0]));
    size_t at = 0;

    if (x->sched->status)
        return NULL;
    for (int r = 0; r < x->a->n; r++) {
        blocks[r] = (struct rk_own_block){displs ? (size_t)displs[r] * x->elem : at, (size_t)counts[r] * x->elem};
        at += blocks[r].bytes;
        x->bytes = blocks[r].bytes > x->bytes ? blocks[r].bytes : x->bytes;
    }
    return blocks;
}

static bool set_lists(struct slices *x, const struct rk_coll_call *c)
{
    bool all = !rk_coll_shape[x->kind].root || x->a->me == x->root;

    if (x->kind == RK_COLL_REDUCE_SCATTERV)
        x->from = set_list(x, c->rcounts, NULL);
    if (x->kind == RK_COLL_ALLTOALLV || (x->kind == RK_COLL_SCATTERV && all))
        x->from = set_list(x, c->scounts, c->sdispls);
    if (x->kind == RK_COLL_ALLGATHERV || x->kind == RK_COLL_ALLTOALLV || (x->kind == RK_COLL_GATHERV && all))
        x->to = set_list(x, c->rcounts, c->rdispls);
    return !x->sched->status;
}

uint64_t rk_slices_chunks(const struct slices *x, size_t longest)
{
    return longest || !(x->agrees || x->kind == RK_COLL_BARRIER) ? (longest + x->piece - 1) / x->piece : 1;
}

bool rk_slices_set_blocks(struct slices *x, const struct rk_coll_call *c)
{
    x->bytes = x->gives = x->gets = c->bytes;
    x->stride = has_share_per_rank(c->kind) ? cell_share(x->a->cell_bytes, x->a->n) : 0;
    x->piece = (x->stride ? x->stride : x->a->cell_bytes) - length_room(c->kind);
    if (x->reduces)
        x->piece -= x->piece % c->elem;
    if (!set_lists(x, c))
        return false;
    if (x->kind == RK_COLL_ALLGATHERV)
        x->gives = x->to[x->a->me].bytes;
    return true;
}

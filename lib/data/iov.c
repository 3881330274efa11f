/* SPDX-License-Identifier: BSD-3-Clause */
/* iov.c: pack and unpack noncontiguous data. */
#include "lib/data/iov.h"
#include "lib/data/dtype.h"

#include <stdlib.h>
#include <string.h>

RK_INLINE uint64_t blocks_of(const rank_iov_t *v)
{
    return v->count ? (uint64_t)v->count : 1;
}

RK_INLINE uint64_t iov_bytes_of(const rank_iov_t *v)
{
    return (uint64_t)v->bytes * blocks_of(v);
}

/* ---------------------------------------------------------------------- checking */

enum { MOST_CHECKED = 1 << 20 };

struct block {
    uint64_t at, bytes;
};

static int by_address(const void *a, const void *b)
{
    uint64_t x = ((const struct block *)a)->at, y = ((const struct block *)b)->at;

    return x < y ? -1 : x > y;
}

RK_COLD bool rk_pieces_overlap(const rank_iov_t *iov, int64_t n)
{
    uint64_t total = 0, k = 0;
    struct block *blocks;
    bool found = false;

    for (int64_t i = 0; i < n; i++)
        total += iov[i].bytes ? blocks_of(&iov[i]) : 0;
    /* A debugging aid: skip very long lists. */
    if (total < 2 || total > MOST_CHECKED || !(blocks = malloc(total * sizeof(*blocks))))
        return false;
    for (int64_t i = 0; i < n; i++) {
        for (uint64_t b = 0; iov[i].bytes && b < blocks_of(&iov[i]); b++)
            blocks[k++] = (struct block){(uint64_t)(uintptr_t)iov[i].base +
                                             b * (uint64_t)iov[i].stride,
                                         (uint64_t)iov[i].bytes};
    }
    qsort(blocks, total, sizeof(*blocks), by_address);
    for (k = 1; k < total && !found; k++)
        found = blocks[k - 1].at + blocks[k - 1].bytes > blocks[k].at;
    free(blocks);
    return found;
}

/* Check that one entry stays within the address space. */
static rank_status_t iov_check_one(const char *call, const rank_iov_t *v, bool to_write)
{
    int64_t bytes, reach, first = (int64_t)(uintptr_t)v->base, last;

    if (v->bytes < 0 || v->count < 0)
        return rk_arg_error(RANK_ERR_COUNT, call, "an entry of %lld bytes, count %lld, is negative",
                            (long long)v->bytes, (long long)v->count);
    if (v->bytes == 0)
        return RANK_OK;
    if (!v->base)
        return rk_arg_null(call, "the base of an entry");
    if (__builtin_mul_overflow(v->bytes, (int64_t)blocks_of(v), &bytes) ||
        __builtin_mul_overflow((int64_t)blocks_of(v) - 1, v->stride, &reach) ||
        __builtin_add_overflow(first, reach, &last) || last < 0 ||
        __builtin_add_overflow(first, v->bytes, &bytes) ||
        __builtin_add_overflow(last, v->bytes, &bytes))
        return rk_arg_error(RANK_ERR_COUNT, call, "an entry of %lld blocks of %lld bytes, stride %lld, leaves the address space",
                            (long long)v->count, (long long)v->bytes, (long long)v->stride);
    if (to_write && v->count > 1 && v->stride < v->bytes && v->stride > -v->bytes)
        return rk_arg_error(RANK_ERR_ARG, call, "blocks that are written overlap: stride %lld is less than block %lld",
                            (long long)v->stride, (long long)v->bytes);
    return RANK_OK;
}

rank_status_t rk_pieces_check_for(const char *call, const rank_iov_t *iov, int64_t n, bool to_write, size_t *bytes)
{
    int64_t sum = 0;

    if (n < 0)
        return rk_arg_error(RANK_ERR_COUNT, call, "n %lld is negative", (long long)n);
    if (n > 0 && !iov)
        return rk_arg_null(call, "iov");
    for (int64_t i = 0; i < n; i++) {
        rank_status_t st = iov_check_one(call, &iov[i], to_write);
        if (st)
            return st;
        if (__builtin_add_overflow(sum, (int64_t)iov_bytes_of(&iov[i]), &sum) || sum > RK_SPAN_MAX)
            return rk_arg_error(RANK_ERR_COUNT, call, "the sum of %lld entries is more than memory can hold", (long long)n);
    }
    if (RK_CHECK_OVERLAP && to_write && rk_pieces_overlap(iov, n))
        return rk_arg_error(RANK_ERR_ARG, call, "entries that are written overlap");
    *bytes = (size_t)sum;
    return RANK_OK;
}

/* ----------------------------------------------------------------------- the view */

/* Go to the entry that holds offset, which is less than the sum. */
static const rank_iov_t *seek(struct rk_pieces *p, uint64_t offset)
{
    if (offset < p->before) {
        p->at = 0;
        p->before = 0;
    }
    while (offset - p->before >= iov_bytes_of(&p->iov[p->at])) {
        p->before += iov_bytes_of(&p->iov[p->at]);
        p->at++;
    }
    return &p->iov[p->at];
}

/* Memory at offset, and the bytes of rest contiguous with it. */
RK_INLINE char *piece_at(struct rk_pieces *p, uint64_t offset, size_t rest, size_t *in_one)
{
    const rank_iov_t *v = seek(p, offset);
    uint64_t in = offset - p->before, block = in / (uint64_t)v->bytes, skip = in % (uint64_t)v->bytes;
    uint64_t n = v->stride == v->bytes ? iov_bytes_of(v) - in : (uint64_t)v->bytes - skip;

    *in_one = n < rest ? (size_t)n : rest;
    return (char *)v->base + (int64_t)block * v->stride + skip;
}

/* Matrix columns are many copies of one element. */
RK_INLINE void copy_block(void *to, const void *from, size_t n)
{
    if (n == 8)
        memcpy(to, from, 8);
    else if (n == 4)
        memcpy(to, from, 4);
    else
        memcpy(to, from, n);
}

/*
 * Copy between the pieces and a flat buffer; in: into the pieces; kinds: entries may be of any kind of memory, and copies
 * of these begin if begun is not NULL. Walks blocks of an entry without divisions.
 */
RK_INLINE rank_status_t iov_move(struct rk_pieces *p, size_t offset, char *flat, size_t bytes, bool in, bool kinds,
                                 struct rk_kind_copy **begun)
{
    rank_status_t st;

    while (bytes) {
        const rank_iov_t *v = seek(p, offset);
        size_t each = (size_t)v->bytes, skip = (offset - p->before) % each, n = each - skip;
        uint64_t block = (offset - p->before) / each, left = blocks_of(v) - block;
        char *at = (char *)v->base + (int64_t)block * v->stride + skip;
        const struct rk_kind *kind = kinds ? rk_kind_of(v->base, each) : NULL;

        for (;; n = each) {
            if (n > bytes)
                n = bytes;
            if (!kind) {
                copy_block(in ? at : flat, in ? flat : at, n);
            } else {
                st = begun ? rk_kind_begin(in, in ? at : flat, in ? flat : at, kind, n, begun)
                           : rk_kind_copy(in ? at : flat, in ? kind : NULL, in ? flat : at, in ? NULL : kind, n);
                if (st)
                    return st;
            }
            flat += n;
            offset += n;
            bytes -= n;
            if (!bytes || --left == 0) /* behind the last block a stride may lead anywhere, unchecked */
                break;
            at += v->stride - (int64_t)skip;
            skip = 0;
        }
    }
    return RANK_OK;
}

static rank_status_t iov_pack(const struct rk_view *view, size_t offset, void *to, size_t bytes)
{
    return iov_move(view->base, offset, to, bytes, false, false, NULL);
}

static rank_status_t iov_unpack(const struct rk_view *view, size_t offset, const void *from, size_t bytes)
{
    return iov_move(view->base, offset, (char *)(uintptr_t)from, bytes, true, false, NULL);
}

static rank_status_t kinds_pack(const struct rk_view *view, size_t offset, void *to, size_t bytes)
{
    return iov_move(view->base, offset, to, bytes, false, true, NULL);
}

static rank_status_t kinds_unpack(const struct rk_view *view, size_t offset, const void *from, size_t bytes)
{
    return iov_move(view->base, offset, (char *)(uintptr_t)from, bytes, true, true, NULL);
}

static rank_status_t kinds_begin(const struct rk_view *view, bool in, size_t offset, char *host, size_t bytes, struct rk_kind_copy **list)
{
    return iov_move(view->base, offset, host, bytes, in, true, list);
}

static int iov_list(const void *base, size_t offset, size_t bytes, struct iovec *out, int max)
{
    struct rk_pieces *p = (struct rk_pieces *)(uintptr_t)base; /* the position in it is not const */
    int k = 0;
    size_t n;

    for (; bytes; bytes -= n, offset += n) {
        char *at = piece_at(p, offset, bytes, &n);
        if (k && (char *)out[k - 1].iov_base + out[k - 1].iov_len == at) {
            out[k - 1].iov_len += n;
            continue;
        }
        if (k == max)
            break;
        out[k++] = (struct iovec){at, n};
    }
    return k;
}

const struct rk_view_ops rk_pieces_ops = {.pack = iov_pack, .unpack = iov_unpack, .list = iov_list};
/* Of lists with memory of other kinds than host. */
static const struct rk_view_ops kinds_ops = {.pack = kinds_pack, .unpack = kinds_unpack, .begin = kinds_begin};

struct rk_view rk_pieces_view(struct rk_pieces *p, const rank_iov_t *iov, int64_t n, size_t bytes)
{
    const rank_iov_t *only = NULL;
    bool kinds = false;
    int full = 0;

    for (int64_t i = 0; i < n && (full < 2 || (rk_device_kind && !kinds)); i++) {
        if (!iov[i].bytes)
            continue;
        only = &iov[i];
        full++;
        kinds = kinds || rk_kind_of(only->base, (size_t)only->bytes);
    }
    if (full == 0)
        return (struct rk_view){NULL, 0, NULL};
    if (full == 1 && (only->count <= 1 || only->stride == only->bytes))
        return rk_view_of(only->base, bytes);
    *p = (struct rk_pieces){.iov = iov, .n = n};
    return (struct rk_view){p, bytes, kinds ? &kinds_ops : &rk_pieces_ops};
}

uint64_t rk_pieces_block(const struct rk_view *view)
{
    const struct rk_pieces *p = view->base;
    uint64_t blocks = 0;

    if (view->ops != &rk_pieces_ops)
        return UINT64_MAX;
    for (int64_t i = 0; i < p->n; i++) {
        const rank_iov_t *v = &p->iov[i];
        if (v->bytes)
            blocks += v->stride == v->bytes ? 1 : blocks_of(v);
    }
    return view->bytes / blocks;
}

int rk_view_list(const struct rk_view *view, size_t offset, size_t bytes, struct iovec *out, int max)
{
    if (view->ops)
        return view->ops->list(view->base, offset, bytes, out, max);
    out[0] = (struct iovec){(char *)view->base + offset, bytes};
    return 1;
}

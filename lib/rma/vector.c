/* SPDX-License-Identifier: BSD-3-Clause */
/* vector.c: put and get vectors of pieces and strided blocks. */
#include "lib/data/iov.h"
#include "lib/rma/rma_internal.h"

#include <stdlib.h>

static rank_status_t check_pieces(const char *call, const struct rank_mem *mem, const rank_piece_t *pieces, int64_t n,
                                  int peer)
{
    rank_status_t st = rk_mem_check_any(call, mem);

    if (!st)
        st = rk_mem_check_range(call, mem, NULL, 0, peer, 0);
    if (st)
        return st;
    if (n < 0)
        return rk_arg_error(RANK_ERR_COUNT, call, "n %lld is negative", (long long)n);
    if (n && !pieces)
        return rk_arg_null(call, "pieces");
    for (int64_t i = 0; i < n && !st; i++) {
        st = rk_mem_check_range(call, mem, pieces[i].local, pieces[i].bytes, peer, pieces[i].offset);
        if (!st && rk_mem_lies_on(mem, pieces[i].local, pieces[i].bytes, peer, pieces[i].offset))
            st = rk_mem_overlaps(call);
    }
    return st;
}

RK_COLD bool rk_local_overlap(const void *entries, size_t each, int64_t n)
{
    rank_iov_t *iov = n > 1 ? calloc((size_t)n, sizeof(*iov)) : NULL;
    bool found;

    if (!iov)
        return false;
    for (int64_t i = 0; i < n; i++) {
        const rank_piece_t *p = (const void *)((const char *)entries + (size_t)i * each);
        iov[i] = (rank_iov_t){.base = p->local, .bytes = p->bytes};
    }
    found = rk_pieces_overlap(iov, n);
    free(iov);
    return found;
}

/* The pieces are checked. */
RK_INLINE rank_status_t vector_move(bool put, const rank_piece_t *pieces, int64_t n, int peer, struct rank_mem *mem)
{
    return rk_likely(rk_mem_is_plain(mem)) ? rk_move_pieces(put, pieces, n, peer, mem) : rk_stage_pieces(put, pieces, n, peer, mem);
}

rank_status_t rank_putv(const rank_piece_t *pieces, int64_t n, int peer, rank_mem_t mem)
{
    rank_status_t st = check_pieces(__func__, mem, pieces, n, peer);

    return st ? rk_peer_null_ok(st) : rk_call_end(__func__, vector_move(true, pieces, n, peer, mem));
}

rank_status_t rank_getv(const rank_piece_t *pieces, int64_t n, int peer, rank_mem_t mem)
{
    rank_status_t st = check_pieces(__func__, mem, pieces, n, peer);

    if (RK_CHECK_OVERLAP && !st && rk_local_overlap(pieces, sizeof(*pieces), n))
        return rk_arg_error(RANK_ERR_ARG, __func__, "pieces that are written overlap");
    return st ? rk_peer_null_ok(st) : rk_call_end(__func__, vector_move(false, pieces, n, peer, mem));
}

/* ------------------------------------------------------------------------ strided */

/* The first and the last block bound all others. to_local: the blocks are written there and must not overlap. */
static rank_status_t check_strided(const char *call, const struct rank_mem *mem, void *local, int64_t local_stride, int64_t block,
                                   int64_t count, int peer, int64_t offset, int64_t stride, bool to_local)
{
    const rank_iov_t mine = {.base = local, .bytes = block, .count = count, .stride = local_stride};
    rank_status_t st = rk_mem_check_any(call, mem);
    size_t bytes;
    int64_t last;

    if (!st)
        st = rk_mem_check_range(call, mem, NULL, 0, peer, 0);
    if (st)
        return st;
    if (block < 0 || count < 0)
        return rk_arg_error(RANK_ERR_COUNT, call, "block %lld or count %lld is negative", (long long)block, (long long)count);
    if (block == 0 || count == 0)
        return RANK_OK;
    st = rk_pieces_check_for(call, &mine, 1, to_local, &bytes);
    if (st)
        return st;
    if (!to_local && count > 1 && stride < block && stride > -block)
        return rk_arg_error(RANK_ERR_ARG, call, "blocks that are written overlap: stride %lld is less than block %lld",
                            (long long)stride, (long long)block);
    if (__builtin_mul_overflow(stride, count - 1, &last) ||
        __builtin_add_overflow(last, offset, &last))
        return rk_arg_error(RANK_ERR_BOUNDS, call, "%lld blocks of stride %lld leave the memory of %zu bytes",
                            (long long)count, (long long)stride, mem->bytes);
    st = rk_mem_check_range(call, mem, local, block, peer, offset);
    return st ? st : rk_mem_check_range(call, mem, local, block, peer, last);
}

static rank_status_t move_strided(bool put, char *local, int64_t local_stride, int64_t block,
                                  int64_t count, int peer, struct rank_mem *mem, int64_t offset,
                                  int64_t stride)
{
    rank_status_t st = check_strided(put ? "rank_put_strided" : "rank_get_strided", mem, local, local_stride, block, count, peer, offset, stride, !put);
    rank_piece_t pieces[RK_PIECE_BATCH];

    if (st || block == 0)
        return rk_peer_null_ok(st);
    for (int64_t i = 0; i < count && !st;) {
        int64_t k = 0;
        for (; k < RK_PIECE_BATCH && i < count; k++, i++)
            pieces[k] = (rank_piece_t){local + i * local_stride, block, offset + i * stride};
        st = vector_move(put, pieces, k, peer, mem);
    }
    return rk_call_end(NULL, st);
}

rank_status_t rank_put_strided(const void *src, int64_t src_stride, int64_t block, int64_t count,
                               int peer, rank_mem_t mem, int64_t offset, int64_t stride)
{
    return move_strided(true, (char *)(uintptr_t)src, src_stride, block, count, peer, mem, offset,
                        stride);
}

rank_status_t rank_get_strided(void *dst, int64_t dst_stride, int64_t block, int64_t count,
                               int peer, rank_mem_t mem, int64_t offset, int64_t stride)
{
    return move_strided(false, dst, dst_stride, block, count, peer, mem, offset, stride);
}

RK_PUBLIC(rank_putv); RK_PUBLIC(rank_getv); RK_PUBLIC(rank_put_strided); RK_PUBLIC(rank_get_strided);

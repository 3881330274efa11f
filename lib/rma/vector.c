/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vector.c: put and get many pieces and strided blocks.
 *
 * Mapped memory: copies. CMA: many pieces with one system call. Otherwise short pieces are packed into frames,
 * which the owner scatters or gathers, and long ones use the channel's put and get concurrently.
 */
#include "lib/data/iov.h"
#include "lib/node/cma.h"
#include "lib/node/xpmem.h"
#include "lib/rma/rma_internal.h"
#include "lib/rma/op_set.h"

#include <stdlib.h>
#include <sys/uio.h>

enum { CMA_BATCH = 256, CMA_GAP = 1024 };

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

/* Do the pieces of a get overlap locally? For builds with that check. */
static RK_COLD bool local_overlap(const rank_piece_t *pieces, int64_t n)
{
    rank_iov_t *iov = n > 1 ? calloc((size_t)n, sizeof(*iov)) : NULL;
    bool found;

    if (!iov)
        return false;
    for (int64_t i = 0; i < n; i++)
        iov[i] = (rank_iov_t){.base = pieces[i].local, .bytes = pieces[i].bytes};
    found = rk_pieces_overlap(iov, n);
    free(iov);
    return found;
}

/* Returns the total size. */
static uint64_t move_mapped(bool put, const rank_piece_t *pieces, int64_t n, char *part)
{
    uint64_t bytes = 0;

    for (int64_t i = 0; i < n; i++) {
        const rank_piece_t *p = &pieces[i];
        if (p->bytes == 0)
            continue;
        if (put)
            rk_mapped_put(part + p->offset, p->local, (size_t)p->bytes);
        else
            rk_mapped_get(p->local, part + p->offset, (size_t)p->bytes);
        bytes += (uint64_t)p->bytes;
    }
    return bytes;
}

/*
 * Pieces of one CMA call. The kernel resolves pages for each remote piece (0.4 us); local ones are cheap. So
 * adjacent remote pieces are merged, and in a get also those with small gaps, which are read and discarded.
 */
struct cma_list {
    struct iovec here[2 * CMA_BATCH], there[CMA_BATCH];
    int nhere, nthere;
    char thrown[CMA_GAP];
};

static void add_piece(struct cma_list *list, bool put, const rank_piece_t *p, uint64_t base)
{
    struct iovec *last = list->nthere ? &list->there[list->nthere - 1] : NULL;
    uint64_t at = base + (uint64_t)p->offset;
    uint64_t gap = last ? at - ((uint64_t)(uintptr_t)last->iov_base + last->iov_len) : UINT64_MAX;

    if (p->bytes == 0)
        return;
    if (gap > (put ? 0 : CMA_GAP)) {
        list->there[list->nthere++] = (struct iovec){(void *)(uintptr_t)at, (size_t)p->bytes};
    } else {
        if (gap)
            list->here[list->nhere++] = (struct iovec){list->thrown, (size_t)gap};
        last->iov_len += (size_t)gap + (size_t)p->bytes;
    }
    list->here[list->nhere++] = (struct iovec){p->local, (size_t)p->bytes};
}

rank_status_t rk_pieces_by_cma(bool put, const rank_piece_t *pieces, int64_t n, int pid, uint64_t base)
{
    struct cma_list list;
    rank_status_t st = RANK_OK;

    for (int64_t at = 0; at < n && !st; at += CMA_BATCH) {
        int k = n - at < CMA_BATCH ? (int)(n - at) : CMA_BATCH;

        list.nhere = list.nthere = 0;
        for (int i = 0; i < k; i++)
            add_piece(&list, put, &pieces[at + i], base);
        if (rk_cma_move(pid, put, list.here, list.nhere, list.there, list.nthere))
            continue;
        for (int i = 0; i < k && !st; i++) {
            const rank_piece_t *p = &pieces[at + i];
            uint64_t far = base + (uint64_t)p->offset;
            st = put ? rk_cma_write(pid, far, p->local, (size_t)p->bytes)
                     : rk_cma_read(pid, p->local, far, (size_t)p->bytes);
        }
    }
    return st;
}

/* part_bytes: size of the part. */
static rank_status_t move_by_cma(bool put, const rank_piece_t *pieces, int64_t n,
                                 const struct rk_access *way, size_t part_bytes)
{
    char *part = rk_xpmem_begin(way->attached, way->base, part_bytes);

    if (part) {
        move_mapped(put, pieces, n, part);
        if (rk_xpmem_end(way->attached))
            return RANK_OK;
    }
    return rk_pieces_by_cma(put, pieces, n, way->pid, way->base);
}

static rank_status_t move_by_frames(bool put, const rank_piece_t *pieces, int64_t n,
                                    struct rk_peer *peer, const struct rank_mem *mem,
                                    const struct rk_access *way)
{
    struct rk_origin_op job;

    rk_origin_init(&job, peer, put ? RK_RMA_PUT : RK_RMA_GET, way->id);
    job.ask.flags = put ? 0 : RK_RMA_WANTS_REPLY;
    job.pieces = pieces;
    job.npieces = n;
    job.shift = mem->shift;
    return rk_origin_run(&job, put ? RK_REQ_PUT : RK_REQ_GET);
}

static rank_status_t start_by_channel(bool put, const rank_piece_t *p, struct rk_peer *peer,
                                      struct rank_mem *mem, const struct rk_access *way,
                                      struct rk_group *group)
{
    struct rank_request *req = rk_group_add(group, peer);
    rank_status_t st;

    if (!req)
        return RANK_ERR_NO_MEMORY;
    st = rk_remote_by_channel(put, p->local, (size_t)p->bytes, peer, mem, way, (size_t)p->offset + mem->shift, req);
    if (st)
        rk_group_undo(group, req);
    return st;
}

/* Start long pieces, pack runs of short ones between them, then wait for the long ones. */
static rank_status_t move_by_channel(bool put, const rank_piece_t *pieces, int64_t n,
                                     struct rk_peer *peer, struct rank_mem *mem,
                                     const struct rk_access *way)
{
    struct rk_group group = {0, RANK_OK};
    rank_status_t st = RANK_OK, end;

    for (int64_t i = 0; i < n && !st;) {
        int64_t first = i;
        while (i < n && pieces[i].bytes <= RK_PIECE_LONG)
            i++;
        if (i > first)
            st = move_by_frames(put, pieces + first, i - first, peer, mem, way);
        if (i < n && !st)
            st = start_by_channel(put, &pieces[i++], peer, mem, way, &group);
    }
    end = rk_group_wait(peer->ctx, &group);
    return st ? st : end;
}

rank_status_t rk_restricted_move(bool put, const rank_piece_t *pieces, int64_t n, int peer, struct rank_mem *mem)
{
    rk_mem_moved(mem, move_mapped(put, pieces, n, mem->ways[peer].mapped));
    return put ? RANK_OK : rk_mem_check_death(mem, peer);
}

rank_status_t rk_pieces_move(bool put, const rank_piece_t *pieces, int64_t n, int peer, struct rank_mem *mem)
{
    const struct rk_access *way;
    struct rk_peer *p;
    rank_status_t st;

    if (n == 0)
        return RANK_OK;
    if (mem->part[peer]) {
        rk_mem_moved(mem, move_mapped(put, pieces, n, mem->part[peer]));
        return put ? RANK_OK : rk_mem_check_death(mem, peer);
    }
    RK_ENTER(mem->ctx);
    st = rk_remote_reach(mem, peer, put ? RK_NO_WRITES : RK_NO_READS, &p, &way);
    if (st)
        return st;
    switch (way->how) {
    case RK_ACCESS_CHANNEL:
        return move_by_channel(put, pieces, n, p, mem, way);
    case RK_ACCESS_CMA:
        return move_by_cma(put, pieces, n, way, mem->bytes);
    case RK_ACCESS_MAPPED:
        return rk_restricted_move(put, pieces, n, peer, mem);
    default:
        return move_by_frames(put, pieces, n, p, mem, way);
    }
}

/* The pieces are checked. */
RK_INLINE rank_status_t vector_move(bool put, const rank_piece_t *pieces, int64_t n, int peer, struct rank_mem *mem)
{
    return rk_likely(rk_mem_is_plain(mem)) ? rk_pieces_move(put, pieces, n, peer, mem) : rk_stage_pieces(put, pieces, n, peer, mem);
}

rank_status_t rank_putv(const rank_piece_t *pieces, int64_t n, int peer, rank_mem_t mem)
{
    rank_status_t st = check_pieces(__func__, mem, pieces, n, peer);

    return st ? rk_peer_null_ok(st) : rk_call_end(__func__, vector_move(true, pieces, n, peer, mem));
}

rank_status_t rank_getv(const rank_piece_t *pieces, int64_t n, int peer, rank_mem_t mem)
{
    rank_status_t st = check_pieces(__func__, mem, pieces, n, peer);

    if (RK_CHECK_OVERLAP && !st && local_overlap(pieces, n))
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

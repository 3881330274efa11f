/* SPDX-License-Identifier: BSD-3-Clause */
/* rma_kind.c: move to and from memory of other kinds than host memory. */
#include "lib/base/log.h"
#include "lib/rma/rma_internal.h"

#include <stdlib.h>

/* Payload that is in host memory at a time. */
enum { STAGE_MAX = 1 << 20 };

RK_COLD bool rk_mem_stages(const struct rank_mem *mem, const void *buf, int64_t bytes)
{
    if (!mem || mem->magic == RK_MEM_DEVICE_MAGIC)
        return mem != NULL;
    return mem->magic == RK_MEM_KINDS_MAGIC && bytes > 0 && (uint64_t)bytes <= mem->bytes && rk_kind_of(buf, (size_t)bytes);
}

RK_COLD rank_status_t rk_mem_check_any_kind(const char *call, const struct rank_mem *mem)
{
    return mem && (mem->magic == RK_MEM_KINDS_MAGIC || mem->magic == RK_MEM_DEVICE_MAGIC) ? RANK_OK : rk_arg_handle(call, "memory", mem);
}

RK_COLD rank_status_t rk_mem_check_kind(const char *call, const struct rank_mem *mem, const void *buf, int64_t bytes)
{
    rank_status_t st = rk_mem_check_any_kind(call, mem);

    if (st || !rk_mem_stages(mem, buf, bytes))
        return st;
    if (mem->kind)
        return rk_arg_error(RANK_ERR_NOT_SUPPORTED, call, "the memory is of the kind %s, which puts and gets access only; use host memory",
                            mem->kind->name);
    return rk_arg_error(RANK_ERR_NOT_SUPPORTED, call, "the buffer lies in memory of the kind %s; copy it to host memory",
                        rk_kind_of(buf, (size_t)bytes)->name);
}

RK_COLD rank_status_t rk_stage_move(const char *call, bool put, void *local, int64_t bytes, int peer, struct rank_mem *mem,
                                    int64_t offset)
{
    rank_status_t st = rk_mem_check_range(call, mem, local, bytes, peer, offset);

    return st ? rk_peer_null_ok(st) : rk_stage_pieces(put, &(rank_piece_t){local, bytes, offset}, 1, peer, mem);
}

/* The next pieces to move, with their payload in host memory. */
struct stage {
    rank_piece_t host[RK_PIECE_BATCH];
    char *local[RK_PIECE_BATCH]; /* their places, */
    const struct rk_kind *kind[RK_PIECE_BATCH]; /* and kinds */
    int n;
};

static rank_status_t stage_copy(const struct stage *s, int i, bool put)
{
    size_t bytes = (size_t)s->host[i].bytes;

    if (!s->kind[i])
        return RANK_OK;
    return put ? rk_kind_copy(s->host[i].local, NULL, s->local[i], s->kind[i], bytes)
               : rk_kind_copy(s->local[i], s->kind[i], s->host[i].local, NULL, bytes);
}

/* To and from a mapped part that is no host memory. */
static rank_status_t copy_mapped(bool put, const rank_piece_t *pieces, int64_t n, char *part, struct rank_mem *mem)
{
    rank_status_t st = RANK_OK;

    for (int64_t i = 0; i < n && !st; i++) {
        const rank_piece_t *p = &pieces[i];
        const struct rk_kind *kind = rk_kind_of(p->local, (size_t)p->bytes);

        st = put ? rk_kind_copy(part + p->offset, mem->kind, p->local, kind, (size_t)p->bytes)
                 : rk_kind_copy(p->local, kind, part + p->offset, mem->kind, (size_t)p->bytes);
        rk_mem_moved(mem, (uint64_t)p->bytes);
    }
    return st;
}

RK_COLD rank_status_t rk_stage_pieces(bool put, const rank_piece_t *pieces, int64_t n, int peer, struct rank_mem *mem)
{
    rank_status_t st = RANK_OK;
    char *room = NULL;
    int64_t i = 0, in = 0; /* the first piece that has not moved, and its bytes that have */
    struct stage s;

    if (mem->kind && mem->part[peer]) {
        st = copy_mapped(put, pieces, n, mem->part[peer], mem);
        return st || put ? st : rk_mem_check_death(mem, peer);
    }
    room = malloc(STAGE_MAX);
    if (!room) {
        rk_error("out of memory for copies of buffers of other kinds");
        return RANK_ERR_NO_MEMORY;
    }
    while (i < n && !st) {
        int64_t used = 0;
        for (s.n = 0; s.n < RK_PIECE_BATCH && i < n && used < STAGE_MAX; s.n++) {
            rank_piece_t p = {(char *)pieces[i].local + in, pieces[i].bytes - in, pieces[i].offset + in};
            s.local[s.n] = p.local;
            s.kind[s.n] = rk_kind_of(pieces[i].local, (size_t)pieces[i].bytes);
            if (s.kind[s.n]) {
                p.bytes = p.bytes < STAGE_MAX - used ? p.bytes : STAGE_MAX - used;
                p.local = room + used;
                used += p.bytes;
            }
            s.host[s.n] = p;
            if (put && !st)
                st = stage_copy(&s, s.n, true);
            in += p.bytes;
            if (in == pieces[i].bytes) {
                i++;
                in = 0;
            }
        }
        if (!st)
            st = rk_pieces_move(put, s.host, s.n, peer, mem);
        for (int k = 0; k < s.n && !put && !st; k++)
            st = stage_copy(&s, k, false);
    }
    free(room);
    return st;
}

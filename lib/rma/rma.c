/* SPDX-License-Identifier: BSD-3-Clause */
/* rma.c: implement put and get, blocking and not, and rank_ptr. */
#include "lib/core/request_pool.h"
#include "lib/rma/rma_internal.h"

/* A call that starts an operation has checked its arguments; st is an error or RK_PEER_NULL. */
static RK_COLD rank_status_t start_null(const char *call, rank_status_t st, struct rank_mem *mem, rank_request_t *req)
{
    if (st != RK_PEER_NULL)
        return st;
    if (!req)
        return rk_arg_null(call, "req");
    *req = rk_req_sent(mem->ctx);
    return RANK_OK;
}

/* starts: the call gives a request; else it waits, and req is NULL. */
RK_INLINE rank_status_t rma_move(const char *call, bool put, void *local, int64_t bytes, int peer, rank_mem_t mem, int64_t offset,
                                 bool starts, rank_request_t *req)
{
    rank_status_t st = rk_mem_check_access(call, mem, local, bytes, peer, offset);

    if (rk_unlikely(st))
        return starts ? start_null(call, st, mem, req) : rk_peer_null_ok(st);
    if (starts && rk_unlikely(!req))
        return rk_arg_null(call, "req");
    if (rk_mem_lies_on(mem, local, bytes, peer, offset))
        return rk_mem_overlaps(call);
    if (starts)
        *req = rk_req_sent(mem->ctx); /* complete, and usable like any other: it can have a callback */
    if (bytes == 0)
        return RANK_OK;
    if (rk_unlikely(mem->part[peer] == NULL)) {
        st = rk_move_remote(put, local, (size_t)bytes, peer, mem, (size_t)offset, req);
    } else {
        if (put)
            rk_mapped_put(mem->part[peer] + offset, local, (size_t)bytes);
        else
            rk_mapped_get(local, mem->part[peer] + offset, (size_t)bytes);
        rk_mem_moved(mem, (uint64_t)bytes);
        st = put ? RANK_OK : rk_mem_check_death(mem, peer);
    }
    if (starts && rk_unlikely(st))
        *req = RANK_REQUEST_NULL;
    return st;
}

static RK_COLD rank_status_t move_any(const char *call, bool put, void *local, int64_t bytes, int peer, rank_mem_t mem,
                                      int64_t offset, bool starts, rank_request_t *req)
{
    rank_status_t st;

    if ((starts && !req) || !rk_mem_stages(mem, local, bytes))
        return rma_move(call, put, local, bytes, peer, mem, offset, starts, req);
    st = rk_stage_move(call, put, local, bytes, peer, mem, offset); /* complete on return */
    if (!st && starts)
        *req = rk_req_sent(mem->ctx);
    return st;
}

rank_status_t rank_put(const void *src, int64_t bytes, int peer, rank_mem_t mem, int64_t offset)
{
    void *local = (void *)(uintptr_t)src;

    return rk_likely(rk_mem_is_plain(mem)) ? rma_move("rank_put", true, local, bytes, peer, mem, offset, false, NULL)
                                           : move_any("rank_put", true, local, bytes, peer, mem, offset, false, NULL);
}

rank_status_t rank_get(void *dst, int64_t bytes, int peer, rank_mem_t mem, int64_t offset)
{
    return rk_likely(rk_mem_is_plain(mem)) ? rma_move("rank_get", false, dst, bytes, peer, mem, offset, false, NULL)
                                           : move_any("rank_get", false, dst, bytes, peer, mem, offset, false, NULL);
}

rank_status_t rank_iput(const void *src, int64_t bytes, int peer, rank_mem_t mem, int64_t offset, rank_request_t *req)
{
    void *local = (void *)(uintptr_t)src;

    return rk_likely(rk_mem_is_plain(mem)) ? rma_move("rank_iput", true, local, bytes, peer, mem, offset, true, req)
                                           : move_any("rank_iput", true, local, bytes, peer, mem, offset, true, req);
}

rank_status_t rank_iget(void *dst, int64_t bytes, int peer, rank_mem_t mem, int64_t offset, rank_request_t *req)
{
    return rk_likely(rk_mem_is_plain(mem)) ? rma_move("rank_iget", false, dst, bytes, peer, mem, offset, true, req)
                                           : move_any("rank_iget", false, dst, bytes, peer, mem, offset, true, req);
}

rank_status_t rank_ptr(rank_mem_t mem, int peer, void **ptr)
{
    rank_status_t st = rk_mem_check_any(__func__, mem);

    if (st)
        return st;
    if ((unsigned)peer >= (unsigned)mem->team->size && rk_peer_null_ok(st = rk_mem_peer_else(__func__, peer, mem)))
        return st;
    if (!ptr)
        return rk_arg_null(__func__, "ptr");
    *ptr = st ? NULL : mem->part[peer];
    if (!st && !*ptr && mem->paths && !(mem->denied & RK_NO_READS)) /* mapped read-only */
        *ptr = mem->paths[peer].mapped;
    return RANK_OK;
}

RK_PUBLIC(rank_put); RK_PUBLIC(rank_get); RK_PUBLIC(rank_iput); RK_PUBLIC(rank_iget); RK_PUBLIC(rank_ptr);

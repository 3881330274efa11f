/* SPDX-License-Identifier: BSD-3-Clause */
/* rma.c: implement put, get and rank_ptr, and the access paths to unmapped memory. */
#include "lib/node/cma.h"
#include "lib/node/xpmem.h"
#include "lib/node/node.h"
#include "lib/p2p/p2p.h"
#include "lib/rma/rma_internal.h"

enum { MOVE_STEP = 1 << 20 };

rank_status_t rk_remote_reach(struct rank_mem *mem, int rank, unsigned denied, struct rk_peer **peer,
                              const struct rk_access **way)
{
    if (rk_unlikely(mem->magic == RK_MEM_REVOKED_MAGIC)) /* while the call waited for the lock */
        return RANK_ERR_HANDLE;
    if (!mem->ways || mem->ways[rank].how == RK_ACCESS_NONE)
        return mem->sort == RK_MEM_SYMMETRIC ? RANK_ERR_UNREACHABLE : RANK_ERR_RANK;
    if (rk_unlikely(mem->denied & denied))
        return rk_mem_is_denied(mem->denied & denied);
    *peer = rk_team_peer(mem->team, rank);
    if (!*peer)
        return RANK_ERR_NO_MEMORY;
    *way = &mem->ways[rank];
    /* This path reports no end of the process, and its pid may be reused soon. */
    if ((*way)->how == RK_ACCESS_CMA && (*peer)->node && atomic_load(&(*peer)->node->slots[(*peer)->slot].state) != RK_SLOT_UP) {
        if ((*peer)->local < 0)
            rk_progress(mem->ctx); /* its last frame shows whether it has closed the connection */
        return rk_peer_lost(*peer);
    }
    return rk_peer_connect(*peer);
}

/* By RK_ACCESS_CMA. Attached memory may vanish; then CMA reports the reason. */
static rank_status_t access_move(bool put, const struct rk_access *way, void *local, size_t bytes, size_t offset)
{
    char *part = rk_xpmem_begin(way->attached, way->base + offset, bytes);

    if (part) {
        if (put)
            rk_mapped_put(part, local, bytes);
        else
            rk_mapped_get(local, part, bytes);
        if (rk_xpmem_end(way->attached))
            return RANK_OK;
    }
    return put ? rk_cma_write(way->pid, way->base + offset, local, bytes)
               : rk_cma_read(way->pid, local, way->base + offset, bytes);
}

rank_status_t rk_remote_by_channel(bool put, void *local, size_t bytes, struct rk_peer *peer, struct rank_mem *mem,
                                   const struct rk_access *way, size_t offset, struct rank_request *req)
{
    return put ? mem->channel->iput(mem->channel_mem, peer, way->index, local, bytes, offset, req)
               : mem->channel->iget(mem->channel_mem, peer, way->index, local, bytes, offset, req);
}

/*
 * By frames, or a get by a stream: that is in no order with frames, and puts are. job: the caller's storage; NULL: from the
 * pool.
 */
static rank_status_t remote_by_frames(bool put, void *local, size_t bytes, struct rk_peer *peer, const struct rk_access *way,
                                      size_t offset, struct rank_request *req, struct rk_origin_op *job)
{
    enum rk_rma_op op = put ? RK_RMA_PUT : RK_RMA_GET;

    if (!put && rk_rma_streams(peer, bytes) && !rk_sendq_has(&peer->sendq, RK_SEND_RMA)) {
        rank_status_t st = peer->channel->stream(peer, false, local, bytes, way->id, offset, req);
        if (st != RK_AGAIN)
            return st;
    }
    if (job)
        rk_origin_init(job, peer, op, way->id);
    else if (!(job = rk_origin_new(peer, op, way->id)))
        return RANK_ERR_NO_MEMORY;
    job->ask.flags = put ? 0 : RK_RMA_WANTS_REPLY;
    job->req = req;
    rk_origin_move(job, local, bytes, offset);
    return rk_origin_start(job);
}

/* out NULL: a request and a job on the stack. */
static rank_status_t remote_move(bool put, void *local, size_t bytes, int peer, struct rank_mem *mem, size_t offset,
                                 rank_request_t *out)
{
    RK_ENTER(mem->ctx);
    struct rank_request here, *req = &here;
    const struct rk_access *way;
    struct rk_origin_op job;
    rank_piece_t piece;
    struct rk_peer *p;
    rank_status_t st = rk_remote_reach(mem, peer, put ? RK_NO_WRITES : RK_NO_READS, &p, &way);

    if (st)
        return st;
    offset += mem->shift;
    if (way->how == RK_ACCESS_CMA) /* CMA copies are synchronous */
        return access_move(put, way, local, bytes, offset);
    if (way->how == RK_ACCESS_MAPPED) {
        piece = (rank_piece_t){local, (int64_t)bytes, (int64_t)offset};
        return rk_restricted_move(put, &piece, 1, peer, mem);
    }
    if (out) {
        req = rk_req_alloc(p->ctx);
        if (!req)
            return RANK_ERR_NO_MEMORY;
        req->flags |= RK_REQ_LISTED;
        rk_list_append(&mem->requests, &req->link);
    } else {
        rk_req_init(req, NULL, NULL);
        req->ctx = p->ctx;
        req->done = false;
    }
    req->type = RK_REQ_RMA;
    req->kind = put ? RK_REQ_PUT : RK_REQ_GET;
    req->peer = p;
    req->view = (struct rk_view){NULL, bytes, NULL};
    st = way->how == RK_ACCESS_CHANNEL ? rk_remote_by_channel(put, local, bytes, p, mem, way, offset, req)
                                       : remote_by_frames(put, local, bytes, p, way, offset, req, out ? NULL : &job);
    if (!out)
        return st ? st : rk_req_wait(req);
    if (st) {
        rk_list_remove(&req->link);
        rk_req_free(req);
        return st;
    }
    *out = req;
    return RANK_OK;
}

/* By CMA a call copies in steps, between which other threads may use the context. It is complete on return. */
static RK_COLD rank_status_t move_in_steps(bool put, char *local, size_t bytes, int peer, struct rank_mem *mem, size_t offset)
{
    rank_status_t st = RANK_OK;

    for (size_t at = 0; at < bytes && !st; at += MOVE_STEP) {
        size_t n = bytes - at < MOVE_STEP ? bytes - at : MOVE_STEP;

        st = at ? rk_mem_check(put ? "rank_put" : "rank_get", mem) : RANK_OK;
        st = st ? st : remote_move(put, local + at, n, peer, mem, offset + at, NULL);
    }
    return st;
}

/* Not inlined: calls on mapped memory keep their registers. */
__attribute__((noinline)) rank_status_t rk_remote_move(bool put, void *local, size_t bytes, int peer, struct rank_mem *mem,
                                                       size_t offset, rank_request_t *out)
{
    if (rk_unlikely(bytes > MOVE_STEP) && mem->ctx->engine->threads && mem->ways && mem->ways[peer].how == RK_ACCESS_CMA)
        return rk_call_end(NULL, move_in_steps(put, local, bytes, peer, mem, offset));
    return rk_call_end(NULL, remote_move(put, local, bytes, peer, mem, offset, out));
}

RK_INLINE rank_status_t rma_move(const char *call, bool put, void *local, int64_t bytes, int peer, rank_mem_t mem, int64_t offset)
{
    rank_status_t st = rk_mem_check_access(call, mem, local, bytes, peer, offset);

    if (rk_unlikely(st) || bytes == 0)
        return rk_peer_null_ok(st);
    if (rk_mem_lies_on(mem, local, bytes, peer, offset))
        return rk_mem_overlaps(call);
    if (rk_unlikely(mem->part[peer] == NULL))
        return rk_remote_move(put, local, (size_t)bytes, peer, mem, (size_t)offset, NULL);
    if (put)
        rk_mapped_put(mem->part[peer] + offset, local, (size_t)bytes);
    else
        rk_mapped_get(local, mem->part[peer] + offset, (size_t)bytes);
    rk_mem_moved(mem, (uint64_t)bytes);
    return put ? RANK_OK : rk_mem_check_death(mem, peer);
}

static RK_COLD rank_status_t move_any(const char *call, bool put, void *local, int64_t bytes, int peer, rank_mem_t mem,
                                      int64_t offset)
{
    return rk_mem_stages(mem, local, bytes) ? rk_stage_move(call, put, local, bytes, peer, mem, offset)
                                            : rma_move(call, put, local, bytes, peer, mem, offset);
}

rank_status_t rank_put(const void *src, int64_t bytes, int peer, rank_mem_t mem, int64_t offset)
{
    void *local = (void *)(uintptr_t)src;

    return rk_likely(rk_mem_is_plain(mem)) ? rma_move("rank_put", true, local, bytes, peer, mem, offset)
                                           : move_any("rank_put", true, local, bytes, peer, mem, offset);
}

rank_status_t rank_get(void *dst, int64_t bytes, int peer, rank_mem_t mem, int64_t offset)
{
    return rk_likely(rk_mem_is_plain(mem)) ? rma_move("rank_get", false, dst, bytes, peer, mem, offset)
                                           : move_any("rank_get", false, dst, bytes, peer, mem, offset);
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
    if (!st && !*ptr && mem->ways && !(mem->denied & RK_NO_READS)) /* mapped read-only */
        *ptr = mem->ways[peer].mapped;
    return RANK_OK;
}

RK_PUBLIC(rank_put); RK_PUBLIC(rank_get); RK_PUBLIC(rank_ptr);

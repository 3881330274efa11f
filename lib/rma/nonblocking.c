/* SPDX-License-Identifier: BSD-3-Clause */
/* nonblocking.c: implement iput and iget, and their completion: flush, fence. */
#include "lib/core/request_pool.h"
#include "lib/rma/rma_internal.h"
#include "lib/rma/op_set.h"
#include "lib/rma/xfer.h"

/* End a call. st, of its check, is an error or RK_PEER_NULL. */
static RK_COLD rank_status_t nonblocking_null(const char *call, rank_status_t st, struct rank_mem *mem, rank_request_t *req)
{
    if (st != RK_PEER_NULL)
        return st;
    if (!req)
        return rk_arg_null(call, "req");
    *req = rk_req_sent(mem->ctx);
    return RANK_OK;
}

RK_INLINE rank_status_t rma_start(const char *call, bool put, void *local, int64_t bytes, int peer, rank_mem_t mem, int64_t offset,
                                  rank_request_t *req)
{
    rank_status_t st = rk_mem_check_access(call, mem, local, bytes, peer, offset);

    if (rk_unlikely(st))
        return nonblocking_null(call, st, mem, req);
    if (rk_unlikely(!req))
        return rk_arg_null(call, "req");
    if (rk_mem_lies_on(mem, local, bytes, peer, offset))
        return rk_mem_overlaps(call);
    *req = rk_req_sent(mem->ctx); /* complete, and usable like any other: it can have a callback */
    if (bytes == 0)
        return RANK_OK;
    if (rk_likely(mem->part[peer] != NULL)) {
        if (put)
            rk_mapped_put(mem->part[peer] + offset, local, (size_t)bytes);
        else
            rk_mapped_get(local, mem->part[peer] + offset, (size_t)bytes);
        rk_mem_moved(mem, (uint64_t)bytes);
        if (put)
            return RANK_OK;
        st = rk_mem_check_death(mem, peer);
    } else {
        st = rk_remote_move(put, local, (size_t)bytes, peer, mem, (size_t)offset, req);
    }
    if (rk_unlikely(st))
        *req = RANK_REQUEST_NULL;
    return st;
}

static RK_COLD rank_status_t start_any(const char *call, bool put, void *local, int64_t bytes, int peer, rank_mem_t mem,
                                       int64_t offset, rank_request_t *req)
{
    rank_status_t st;

    if (!req || !rk_mem_stages(mem, local, bytes))
        return rma_start(call, put, local, bytes, peer, mem, offset, req);
    st = rk_stage_move(call, put, local, bytes, peer, mem, offset); /* complete on return */
    if (!st)
        *req = rk_req_sent(mem->ctx);
    return st;
}

rank_status_t rank_iput(const void *src, int64_t bytes, int peer, rank_mem_t mem, int64_t offset, rank_request_t *req)
{
    void *local = (void *)(uintptr_t)src;

    return rk_likely(rk_mem_is_plain(mem)) ? rma_start("rank_iput", true, local, bytes, peer, mem, offset, req)
                                           : start_any("rank_iput", true, local, bytes, peer, mem, offset, req);
}

rank_status_t rank_iget(void *dst, int64_t bytes, int peer, rank_mem_t mem, int64_t offset, rank_request_t *req)
{
    return rk_likely(rk_mem_is_plain(mem)) ? rma_start("rank_iget", false, dst, bytes, peer, mem, offset, req)
                                           : start_any("rank_iget", false, dst, bytes, peer, mem, offset, req);
}

/* -------------------------------------------------------------------- completion */

struct under_way {
    struct rk_wait wait; /* for its peer; NULL: any */
    const struct rank_mem *mem;
    bool over; /* stays true: operations that other threads start later do not matter */
};

static bool none_under_way(struct rk_wait *w)
{
    struct under_way *u = (struct under_way *)w;
    const struct rk_link *l;

    if (u->over)
        return true;
    rk_list_for_each(l, &u->mem->requests)
    {
        if (!w->peer || rk_list_entry(l, struct rank_request, link)->peer == w->peer)
            return false;
    }
    if (rk_mem_has_lists(u->mem) && rk_xfers_pending(u->mem, w->peer))
        return false;
    u->over = true;
    return true;
}

static rank_status_t wait_local(struct rank_mem *mem, int peer)
{
    RK_ENTER(mem->ctx);
    struct under_way u = {.wait = {.kind = RK_FOR_RMA}, .mem = mem};

    if (rk_list_empty(&mem->requests) && !rk_mem_has_lists(mem))
        return RANK_OK;
    if (peer != RANK_ALL && !(u.wait.peer = rk_team_peer(mem->team, peer)))
        return RANK_ERR_NO_MEMORY;
    rk_wait(mem->team->ctx, &u.wait, none_under_way);
    return RANK_OK;
}

/*
 * Request an answer from a part's owner when all earlier frames are executed. Another thread's flush covers only
 * what was before it, and only when its answer has arrived.
 */
static rank_status_t request_flush(struct rank_mem *mem, int rank, struct rk_group *group)
{
    struct rk_rma *rma = mem->team->ctx->rma;
    struct rk_peer *peer = rk_team_peer(mem->team, rank);
    struct rank_request *req;
    struct rk_rma_peer *state;
    struct rk_origin_op *job;
    rank_status_t st;

    if (!peer)
        return RANK_ERR_NO_MEMORY;
    state = peer->number < rma->npeers ? rma->peers[peer->number] : NULL;
    if (!state || state->done == state->posted)
        return RANK_OK;
    req = rk_group_add(group, peer);
    if (!req)
        return RANK_ERR_NO_MEMORY;
    job = rk_origin_new(peer, RK_RMA_FLUSH, mem->ways[rank].id);
    if (job) {
        job->ask.flags = RK_RMA_WANTS_REPLY;
        job->req = req;
    }
    st = job ? rk_origin_start(job) : RANK_ERR_NO_MEMORY;
    if (st)
        rk_group_undo(group, req);
    if (rk_is_lost(st)) /* reported once */
        state->done = state->posted;
    return st;
}

/*
 * Frames keep their order. Mapped copies and those of a device take other paths and could overtake frames: a
 * signal in rank_alloc memory, say, the data in registered memory.
 */
static bool only_frames_lead_to(const struct rank_mem *mem, int rank)
{
    const struct rk_peer *peer = rk_team_peer(mem->team, rank);

    return mem->ways[rank].how == RK_ACCESS_FRAMES && peer && peer->channel && !rk_rma_moves(mem->ctx, peer->channel) &&
           !(peer->node && peer->channel->shares_memory);
}

/* Wait for frames to be executed at the owners of these parts. */
static rank_status_t flush_frames(struct rank_mem *mem, int peer, bool for_order)
{
    struct rk_group group = {0, RANK_OK};
    rank_status_t first = RANK_OK, st;

    for (int r = 0; r < mem->team->size; r++) {
        if ((peer != RANK_ALL && r != peer) || mem->ways[r].how == RK_ACCESS_NONE ||
            (for_order && only_frames_lead_to(mem, r)))
            continue;
        st = request_flush(mem, r, &group);
        if (st && !first)
            first = st;
    }
    st = group.left ? rk_group_wait(mem->team->ctx, &group) : group.first;
    return first ? first : st;
}

static rank_status_t flush_remote(struct rank_mem *mem, int peer, bool for_order)
{
    RK_ENTER(mem->ctx);
    struct rk_peer *p = NULL;
    rank_status_t first = RANK_OK, st;

    if (peer != RANK_ALL && !(p = rk_team_peer(mem->team, peer)))
        return RANK_ERR_NO_MEMORY;
    if (mem->channel_mem && (!p || mem->ways[peer].how == RK_ACCESS_CHANNEL))
        first = mem->channel->flush(mem->channel_mem, p);
    st = flush_frames(mem, peer, for_order);
    return first ? first : st;
}

rank_status_t rk_remote_flush(struct rank_mem *mem, int peer)
{
    return flush_remote(mem, peer, false);
}

static rank_status_t nonblocking_check(const char *call, const struct rank_mem *mem, int peer)
{
    rank_status_t st = rk_mem_check_any(call, mem);

    if (!st && peer != RANK_ALL && (unsigned)peer >= (unsigned)mem->team->size)
        st = rk_mem_peer_else(call, peer, mem);
    return st;
}

rank_status_t rank_flush(rank_mem_t mem, int peer)
{
    rank_status_t st = nonblocking_check(__func__, mem, peer);

    if (st)
        return rk_peer_null_ok(st);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* stores to mapped parts */
    if (rk_mem_has_lists(mem) && (st = wait_local(mem, peer)) != RANK_OK)
        return rk_call_returns(__func__, st);
    if (!mem->ways || (peer != RANK_ALL && mem->ways[peer].how == RK_ACCESS_NONE))
        return peer == RANK_ALL || mem->part[peer] ? rk_mem_check_death(mem, peer) : RANK_OK;
    st = wait_local(mem, peer);
    if (st)
        return rk_call_returns(__func__, st);
    st = flush_remote(mem, peer, false);
    /* Also if nothing was pending; a death reported now counts as reported. */
    if (st == RANK_OK)
        st = rk_mem_check_death(mem, peer);
    else if (rk_is_lost(st) && peer == RANK_ALL)
        rk_mem_check_death_now(mem, peer);
    return rk_call_end(__func__, st);
}

rank_status_t rank_flush_local(rank_mem_t mem, int peer)
{
    rank_status_t st = nonblocking_check(__func__, mem, peer);

    return st ? rk_peer_null_ok(st) : rk_call_end(__func__, wait_local(mem, peer));
}

rank_status_t rank_fence(rank_mem_t mem)
{
    rank_status_t st = rk_mem_check_any(__func__, mem);

    if (st)
        return st;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return mem->ways ? rk_call_end(__func__, flush_remote(mem, RANK_ALL, true)) : RANK_OK;
}

RK_PUBLIC(rank_iput); RK_PUBLIC(rank_iget); RK_PUBLIC(rank_flush); RK_PUBLIC(rank_flush_local); RK_PUBLIC(rank_fence);

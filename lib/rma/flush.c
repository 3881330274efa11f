/* SPDX-License-Identifier: BSD-3-Clause */
/* flush.c: complete and order one-sided calls: flush, flush_local, fence. */
#include "lib/rma/rma_internal.h"
#include "lib/rma/op_set.h"
#include "lib/rma/xfer.h"

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
 * Request a reply from a part's owner when all earlier frames are executed. Another thread's flush covers only
 * what was before it, and only when its reply has arrived.
 */
static rank_status_t request_flush(struct rank_mem *mem, int rank, struct rk_counter *group)
{
    struct rk_rma *rma = mem->team->ctx->rma;
    struct rk_peer *peer = rk_team_peer(mem->team, rank);
    struct rank_request *req;
    struct rk_rma_peer *state;
    struct rk_origin_op *op;
    rank_status_t st;

    if (!peer)
        return RANK_ERR_NO_MEMORY;
    state = peer->number < rma->npeers ? rma->peers[peer->number] : NULL;
    if (!state || state->done == state->posted)
        return RANK_OK;
    req = rk_counter_add(group, peer);
    if (!req)
        return RANK_ERR_NO_MEMORY;
    op = rk_origin_new(peer, RK_RMA_FLUSH, mem->paths[rank].id);
    if (op) {
        op->head.flags = RK_RMA_WANTS_REPLY;
        op->req = req;
    }
    st = op ? rk_origin_start(op) : RANK_ERR_NO_MEMORY;
    if (st)
        rk_counter_undo(group, req);
    if (rk_is_lost(st)) /* reported once */
        state->done = state->posted;
    return st;
}

/* Wait for frames to be executed at the owners of these parts. */
static rank_status_t flush_frames(struct rank_mem *mem, int peer, bool for_order)
{
    struct rk_counter group = {0, RANK_OK};
    rank_status_t first = RANK_OK, st;

    for (int r = 0; r < mem->team->size; r++) {
        if ((peer != RANK_ALL && r != peer) || !rk_path_needs_flush(mem, r) || (for_order && rk_path_keeps_order(mem, r)))
            continue;
        st = request_flush(mem, r, &group);
        if (st && !first)
            first = st;
    }
    st = group.left ? rk_counter_wait(mem->team->ctx, &group) : group.first;
    return first ? first : st;
}

static rank_status_t flush_remote(struct rank_mem *mem, int peer, bool for_order)
{
    RK_ENTER(mem->ctx);
    rank_status_t first, st;

    if (peer != RANK_ALL && !rk_team_peer(mem->team, peer))
        return RANK_ERR_NO_MEMORY;
    first = rk_path_flush(mem, peer);
    st = flush_frames(mem, peer, for_order);
    return first ? first : st;
}

rank_status_t rk_flush_remote(struct rank_mem *mem, int peer)
{
    return flush_remote(mem, peer, false);
}

static rank_status_t flush_check(const char *call, const struct rank_mem *mem, int peer)
{
    rank_status_t st = rk_mem_check_any(call, mem);

    if (!st && peer != RANK_ALL && (unsigned)peer >= (unsigned)mem->team->size)
        st = rk_mem_peer_else(call, peer, mem);
    return st;
}

rank_status_t rank_flush(rank_mem_t mem, int peer)
{
    rank_status_t st = flush_check(__func__, mem, peer);

    if (st)
        return rk_peer_null_ok(st);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* stores to mapped parts */
    if (rk_mem_has_lists(mem) && (st = wait_local(mem, peer)) != RANK_OK)
        return rk_call_returns(__func__, st);
    if (!mem->paths || (peer != RANK_ALL && !rk_path_needs_flush(mem, peer)))
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
    rank_status_t st = flush_check(__func__, mem, peer);

    return st ? rk_peer_null_ok(st) : rk_call_end(__func__, wait_local(mem, peer));
}

rank_status_t rank_fence(rank_mem_t mem)
{
    rank_status_t st = rk_mem_check_any(__func__, mem);

    if (st)
        return st;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return mem->paths ? rk_call_end(__func__, flush_remote(mem, RANK_ALL, true)) : RANK_OK;
}

RK_PUBLIC(rank_flush); RK_PUBLIC(rank_flush_local); RK_PUBLIC(rank_fence);

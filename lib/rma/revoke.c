/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * revoke.c: end a registration, and wait until the peers touch the memory no more.
 *
 * The owner executes frames itself, and refuses them from the first moment on. Peers of the same host may have mapped the
 * memory, or copy by CMA: each of them gets a request to stop. A peer puts private memory in place of its mapping, since its
 * other threads may copy there without a lock.
 */
#include "lib/boot/boot.h"
#include "lib/core/describe.h"
#include "lib/core/threads.h"
#include "lib/rma/rma_internal.h"
#include "lib/rma/xfer.h"

#include <stdlib.h>

/* ---------------------------------------------------------------------- opener */

rank_status_t rk_key_revoke(struct rk_ctx *ctx, const struct rk_peer *owner, uint64_t nonce)
{
    struct rk_hash_node *node = rk_hash_find(&ctx->rma->opened, nonce);
    rank_status_t st = RANK_OK;

    for (; node; node = rk_hash_from(node->next, nonce)) {
        struct rank_mem *mem = rk_container_of(node, struct rank_mem, by_nonce);

        if (rk_team_peer(mem->team, mem->owner) != owner)
            continue;
        __atomic_store_n(&mem->magic, RK_MEM_REVOKED_MAGIC, __ATOMIC_RELEASE);
        if (rk_mem_has_lists(mem))
            rk_xfers_mem_over(mem);
        if (mem->segment && !rk_segment_revoke(mem->segment))
            st = RANK_ERR_NO_MEMORY;
    }
    return st;
}

/* ----------------------------------------------------------------------- owner */

/* Peers that have a request. Outlives a call that is late. */
struct revocation {
    int left; /* replies */
    bool refused, abandoned;
};

struct revocation_wait {
    struct rk_wait wait;
    const struct revocation *of;
};

static void peer_replied(struct rank_request *req, void *arg)
{
    struct revocation *r = arg;

    if (req->status && !rk_is_lost(req->status))
        r->refused = true;
    rk_req_free(req);
    if (--r->left == 0 && r->abandoned)
        free(r);
}

static bool all_replied(struct rk_wait *w)
{
    return ((struct revocation_wait *)w)->of->left == 0 || w->late;
}

static void describe_revocation(const struct rk_wait *w, struct rk_wait_for *out)
{
    (void)w;
    rk_describe_call(out, "%s", "end of a registration");
}

/* May the peer of this number have mapped memory of this process, or copy by CMA? */
static bool may_touch(struct rk_ctx *ctx, int number)
{
    const struct rk_peer *peer = ctx->engine->peers[number];

    if (number == ctx->boot->rank || (peer && peer->state == RK_PEER_DEAD))
        return false;
    if (peer && peer->local < 0) /* of a connection, or far away */
        return peer->node != NULL;
    return rk_engine_shares_memory(ctx) && rk_engine_local_slot(ctx, number) >= 0;
}

/* Request a peer to stop. Returns false if that is not possible. */
static bool revocation_request(struct revocation *r, struct rk_peer *peer, struct rk_id id, uint64_t nonce)
{
    struct rk_rma_operands operands = {nonce, 0};
    struct rank_request *req;
    struct rk_origin_op *op;
    rank_status_t st = peer ? rk_peer_try_connect(peer) : RANK_ERR_NO_MEMORY;

    if (st)
        return rk_is_lost(st);
    req = rk_req_alloc(peer->ctx);
    op = req ? rk_origin_new(peer, RK_RMA_REVOKE, id) : NULL;
    if (!op) {
        if (req)
            rk_req_free(req);
        return false;
    }
    req->type = RK_REQ_RMA;
    req->kind = RK_REQ_KEY;
    req->peer = peer;
    req->view.bytes = 0;
    req->on_done = peer_replied;
    req->arg = r;
    r->left++;
    op->head.flags = RK_RMA_WANTS_REPLY;
    op->req = req;
    rk_origin_add(op, &operands, sizeof(operands));
    st = rk_origin_start(op);
    if (st) {
        r->left--;
        rk_req_free(req);
    }
    return !st || rk_is_lost(st);
}

/* Request all peers that may touch it to stop, and wait. */
static rank_status_t revoke_at_peers(struct rk_ctx *ctx, struct rk_id id, uint64_t nonce, int64_t timeout_ns)
{
    struct revocation *r = calloc(1, sizeof(*r));
    struct revocation_wait w = {.wait = {.kind = RK_FOR_RMA, .describe = describe_revocation}, .of = r};
    rank_status_t st;

    if (!r)
        return RANK_ERR_TIMED_OUT;
    for (int number = 0; number < ctx->engine->npeers; number++) {
        if (may_touch(ctx, number) && !revocation_request(r, rk_engine_peer(ctx, number), id, nonce))
            r->refused = true;
    }
    w.wait.deadline = rk_wait_deadline(timeout_ns);
    if (r->left && timeout_ns)
        rk_wait(ctx, &w.wait, all_replied);
    else if (r->left)
        rk_progress_once(ctx);
    st = r->left || r->refused ? RANK_ERR_TIMED_OUT : ctx->closing ? RANK_ERR_CLOSED : RANK_OK;
    if (r->left)
        r->abandoned = true;
    else
        free(r);
    return st;
}

/*
 * rank_dereg: request the peers of connections to stop, and wait for no reply. One that reads no frames keeps its mapping.
 */
void rk_revoke_posted(const struct rank_mem *mem)
{
    const struct rk_rma_operands operands = {mem->record->nonce, 0};

    for (int number = 0; mem->ctx->connects && number < mem->ctx->engine->npeers; number++) {
        struct rk_peer *peer = mem->ctx->engine->peers[number];
        struct rk_origin_op *op;

        if (!peer || peer->local >= 0 || !peer->node || peer->state != RK_PEER_UP || rk_sendq_has(&peer->sendq, RK_SEND_RMA))
            continue;
        op = rk_origin_new(peer, RK_RMA_REVOKE, mem->id);
        if (!op)
            return;
        rk_origin_add(op, &operands, sizeof(operands));
        rk_origin_start(op);
    }
}

rank_status_t rank_dereg_timed(rank_mem_t *handle, int64_t timeout_ns)
{
    rank_status_t st = rk_mem_check_sort(__func__, handle, RK_MEM_REGISTERED);
    struct rank_mem *mem;
    uint64_t nonce;

    if (st)
        return st;
    mem = *handle;
    RK_ENTER(mem->ctx);
    if (timeout_ns && rk_in_callback(mem->ctx))
        return rk_arg_in_callback(__func__);
    st = rk_mem_check_sort(__func__, &mem, RK_MEM_REGISTERED); /* another thread may have ended it meanwhile */
    if (st)
        return st;
    *handle = RANK_MEM_NULL;
    mem->magic = 0;
    nonce = mem->record->nonce;
    rk_secret_id_drop(&mem->ctx->rma->mem_ids, &mem->by_id);
    rk_key_record_free(mem);
    rk_segment_withdraw(mem->segment);
    rk_key_revoke(mem->ctx, rk_engine_peer(mem->ctx, mem->ctx->boot->rank), nonce); /* keys that this process has opened itself */
    st = revoke_at_peers(mem->ctx, mem->id, nonce, timeout_ns);
    rk_mem_destroy(mem);
    return st;
}

RK_PUBLIC(rank_dereg_timed);

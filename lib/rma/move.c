/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * move.c: put and get pieces of one part, of blocking and nonblocking calls.
 *
 * The pieces lie on the caller's stack. Copies are complete on return. Otherwise long pieces take the channel's put and
 * get, all at once, and runs of shorter ones share frames.
 */
#include "lib/p2p/p2p.h"
#include "lib/rma/op_set.h"
#include "lib/rma/path.h"
#include "lib/rma/rma_internal.h"

enum { MOVE_STEP = 1 << 20 };

/*
 * Does the channel move the piece by itself? Puts by frames keep their order, which streams do not. Frames alone reach
 * device memory.
 */
static bool goes_alone(bool put, const rank_piece_t *p, int64_t n, struct rk_peer *peer, const struct rank_mem *mem,
                       const struct rk_path *path)
{
    if (path->kind == RK_PATH_RDMA)
        return (n == 1 && p->bytes) || p->bytes > RK_PIECE_LONG;
    return !put && !mem->kind && rk_path_streams(peer, p->bytes) && !rk_sendq_has(&peer->sendq, RK_SEND_RMA);
}

static void set_request(struct rank_request *req, bool put, struct rk_peer *peer, int64_t bytes)
{
    req->type = RK_REQ_RMA;
    req->kind = put ? RK_REQ_PUT : RK_REQ_GET;
    req->peer = peer;
    req->view = (struct rk_view){NULL, (size_t)bytes, NULL};
}

static void init_frames(struct rk_origin_op *op, bool put, const rank_piece_t *pieces, int64_t n, const struct rank_mem *mem)
{
    op->head.flags = put ? 0 : RK_RMA_WANTS_REPLY;
    op->pieces = pieces;
    op->npieces = n;
    op->shift = mem->shift;
}

static rank_status_t move_by_frames(bool put, const rank_piece_t *pieces, int64_t n, struct rk_peer *peer,
                                    const struct rank_mem *mem, const struct rk_path *path)
{
    struct rk_origin_op op;

    rk_origin_init(&op, peer, put ? RK_RMA_PUT : RK_RMA_GET, path->id);
    init_frames(&op, put, pieces, n, mem);
    return rk_origin_run(&op, put ? RK_REQ_PUT : RK_REQ_GET);
}

/* Start one piece, which completes req. op: the caller's storage; NULL: from the pool. */
static rank_status_t start_piece(bool put, const rank_piece_t *p, int64_t n, const struct rank_mem *mem, const struct rk_path *path,
                                 struct rank_request *req, struct rk_origin_op *op)
{
    struct rk_peer *peer = req->peer;
    enum rk_rma_op kind = put ? RK_RMA_PUT : RK_RMA_GET;
    rank_status_t st = RK_AGAIN;

    if (goes_alone(put, p, n, peer, mem, path))
        st = rk_path_start(put, p->local, (size_t)p->bytes, peer, mem, path, (size_t)p->offset + mem->shift, req);
    if (st != RK_AGAIN)
        return st;
    if (op)
        rk_origin_init(op, peer, kind, path->id);
    else if (!(op = rk_origin_new(peer, kind, path->id)))
        return RANK_ERR_NO_MEMORY;
    op->one = *p;
    init_frames(op, put, &op->one, 1, mem);
    op->req = req;
    return rk_origin_start(op);
}

static rank_status_t move_one(bool put, const rank_piece_t *p, struct rk_peer *peer, const struct rank_mem *mem,
                              const struct rk_path *path)
{
    struct rank_request req;
    struct rk_origin_op op;
    rank_status_t st;

    rk_req_init(&req, NULL, NULL);
    req.ctx = peer->ctx;
    req.done = false;
    set_request(&req, put, peer, p->bytes);
    st = start_piece(put, p, 1, mem, path, &req, &op);
    return st ? st : rk_req_wait(&req);
}

static rank_status_t move_many(bool put, const rank_piece_t *pieces, int64_t n, struct rk_peer *peer, const struct rank_mem *mem,
                               const struct rk_path *path)
{
    struct rk_counter counter = {0, RANK_OK};
    rank_status_t st = RANK_OK, end;

    for (int64_t i = 0; i < n && !st;) {
        struct rank_request *req;
        int64_t first = i;

        while (i < n && !goes_alone(put, &pieces[i], n, peer, mem, path))
            i++;
        if (i > first)
            st = move_by_frames(put, pieces + first, i - first, peer, mem, path);
        if (i == n || st)
            break;
        req = rk_counter_add(&counter, peer);
        if (!req) {
            st = RANK_ERR_NO_MEMORY;
            break;
        }
        set_request(req, put, peer, pieces[i].bytes);
        st = start_piece(put, &pieces[i++], n, mem, path, req, NULL);
        if (st)
            rk_counter_undo(&counter, req);
    }
    end = rk_counter_wait(peer->ctx, &counter);
    return st ? st : end;
}

/* *out gets the request, in mem's list. */
static rank_status_t start_listed(bool put, const rank_piece_t *p, struct rk_peer *peer, struct rank_mem *mem,
                                  const struct rk_path *path, rank_request_t *out)
{
    struct rank_request *req = rk_req_alloc(peer->ctx);
    rank_status_t st;

    if (!req)
        return RANK_ERR_NO_MEMORY;
    req->flags |= RK_REQ_LISTED;
    rk_list_append(&mem->requests, &req->link);
    set_request(req, put, peer, p->bytes);
    st = start_piece(put, p, 1, mem, path, req, NULL);
    if (st) {
        rk_list_remove(&req->link);
        rk_req_free(req);
        return st;
    }
    *out = req;
    return RANK_OK;
}

/* By a path. out NULL: the call waits. */
static rank_status_t move_remote(bool put, const rank_piece_t *pieces, int64_t n, int rank, struct rank_mem *mem, rank_request_t *out)
{
    RK_ENTER(mem->ctx);
    const struct rk_path *path;
    struct rk_peer *peer;
    rank_status_t st = rk_path_reach(mem, rank, put ? RK_NO_WRITES : RK_NO_READS, &peer, &path);

    if (st)
        return st;
    if (rk_path_copies(path))
        return rk_path_copy(put, pieces, n, mem, rank);
    if (out)
        return start_listed(put, pieces, peer, mem, path, out);
    return n == 1 ? move_one(put, pieces, peer, mem, path) : move_many(put, pieces, n, peer, mem, path);
}

/* By CMA a call copies in steps, between which other threads may use the context. It is complete on return. */
static RK_COLD rank_status_t move_in_steps(bool put, char *local, size_t bytes, int rank, struct rank_mem *mem, size_t offset)
{
    rank_status_t st = RANK_OK;

    for (size_t at = 0; at < bytes && !st; at += MOVE_STEP) {
        const rank_piece_t p = {local + at, (int64_t)(bytes - at < MOVE_STEP ? bytes - at : MOVE_STEP), (int64_t)(offset + at)};

        st = at ? rk_mem_check(put ? "rank_put" : "rank_get", mem) : RANK_OK;
        st = st ? st : move_remote(put, &p, 1, rank, mem, NULL);
    }
    return st;
}

/* Not inlined: calls on mapped memory keep their registers. */
__attribute__((noinline)) rank_status_t rk_move_remote(bool put, void *local, size_t bytes, int rank, struct rank_mem *mem,
                                                       size_t offset, rank_request_t *out)
{
    const rank_piece_t p = {local, (int64_t)bytes, (int64_t)offset};

    if (rk_unlikely(bytes > MOVE_STEP) && mem->ctx->engine->threads && mem->paths && mem->paths[rank].kind == RK_PATH_CMA)
        return rk_call_end(NULL, move_in_steps(put, local, bytes, rank, mem, offset));
    return rk_call_end(NULL, move_remote(put, &p, 1, rank, mem, out));
}

rank_status_t rk_move_pieces(bool put, const rank_piece_t *pieces, int64_t n, int rank, struct rank_mem *mem)
{
    if (n == 0)
        return RANK_OK;
    if (!mem->part[rank])
        return move_remote(put, pieces, n, rank, mem, NULL);
    rk_mem_moved(mem, rk_copy_mapped(put, pieces, n, (uint64_t)(uintptr_t)mem->part[rank]));
    return put ? RANK_OK : rk_mem_check_death(mem, rank);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xfer.h: move lists of blocks between this process and one peer (rank_xfer).
 *
 * A transfer has its blocks as pieces, merged and grouped by route (path.h). xfer_plan.c makes it, xfer_step.c moves it, xfer_all.c ends those of a peer or a
 * memory. A step moves at most RK_XFER_STEP bytes; the call makes the first one, progress the others, in turn among the
 * running transfers.
 */
#ifndef RK_RMA_XFER_H
#define RK_RMA_XFER_H

#include "lib/p2p/p2p.h"
#include "lib/rma/rma_internal.h"

enum { RK_XFER_STEP = 1 << 20 };

/* A memory of a list. */
struct rk_xfer_mem {
    struct rank_mem *mem; /* NULL: it was closed */
    int rank;             /* of the peer in the memory's team */
};

/* Pieces of one group. */
struct rk_xfer_group {
    int64_t first, end;
    int64_t next; /* first piece that has not been moved or started completely, */
    int64_t in;   /* and bytes of it that have */
};

struct rk_xfer {
    struct rk_link link; /* running, deferred by rk_engine_defer; waiting for completions; idle, if it is persistent */
    struct rk_ctx *ctx;
    struct rank_team *team;
    struct rk_peer *peer;
    int rank; /* of the peer in the team; RANK_PROC_NULL: there is nothing to do */
    bool put;
    bool persistent;
    bool active, running;
    bool stale;     /* one of its memories was closed */
    bool posted;    /* its frames were started, */
    bool op_done;   /* and are complete */
    bool visible;   /* the channel's puts have been flushed */
    uint32_t inflight; /* requests of the channel, and of its frames */
    rank_status_t status;
    struct rank_request *req; /* the user's */
    struct rank_request op_req;
    struct rk_origin_op op;
    struct rk_xfer_group group[RK_ROUTES]; /* by enum rk_route, in the order of the pieces */
    uint64_t bytes;
    int64_t nblocks; /* of the user */
    /* Pieces; offset is an address here (mapped) or there (CMA), or counts in what the path gives access to. */
    rank_piece_t *pieces;
    struct rk_id *ids;  /* frames: the owner's id of each piece's memory */
    uint32_t *which;    /* index in mems of each piece's memory */
    uint32_t nmems;
    struct rk_xfer_mem *mems;
    bool has_notice;
    rank_notice_t notice; /* its data lies behind the arrays */
};

/* Any thread reads the number, code with the lock writes it. */
RK_INLINE void rk_mem_add_lists(struct rank_mem *mem, int n)
{
    __atomic_store_n(&mem->nlists, mem->nlists + (uint32_t)n, __ATOMIC_RELAXED);
}
RK_INLINE bool rk_mem_has_lists(const struct rank_mem *mem)
{
    return rk_unlikely(__atomic_load_n(&mem->nlists, __ATOMIC_RELAXED) != 0);
}

/* xfer_plan.c: check the arguments and make a transfer, which is inactive. It is in no list. */
rank_status_t rk_xfer_plan(const char *call, rank_xfer_op_t op, const rank_block_t *blocks, int64_t n, int peer,
                           struct rank_team *team, const rank_notice_t *notice, struct rk_xfer **out);
void rk_xfer_free(struct rk_xfer *x);

/* xfer_step.c: begin an inactive transfer, which completes req. */
void rk_xfer_begin(struct rk_xfer *x, struct rank_request *req);
/* End an active one with an error, outside of steps: it may be freed. */
void rk_xfer_abort(struct rk_xfer *x, rank_status_t status);
/* It waits for completions. */
void rk_xfer_sleep(struct rk_xfer *x);
int rk_xfers_progress(struct rk_ctx *ctx);

/* xfer_all.c */
void rk_xfers_open(struct rk_rma *rma);
/* End all transfers, as far as the channels permit; then free them. */
void rk_xfers_close(struct rk_rma *rma);
void rk_xfers_free(struct rk_ctx *ctx);
/* End the transfers to or from it; by a team; of a memory that is going to be freed. */
void rk_xfers_peer_lost(struct rk_peer *peer);
void rk_xfers_team_over(struct rk_ctx *ctx, const struct rank_team *team);
void rk_xfers_mem_over(struct rank_mem *mem);
/* Is a transfer of this memory active? peer NULL: with any. */
bool rk_xfers_pending(const struct rank_mem *mem, const struct rk_peer *peer);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_kind.h: stage buffers of a collective that are no host memory.
 *
 * The algorithms see host memory only: what the call sends is copied there before, what it receives is copied back
 * after.
 */
#ifndef RK_COLL_COLL_KIND_H
#define RK_COLL_COLL_KIND_H

#include "collectives/shm/arena.h"
#include "collectives/coll_args.h"

/* A buffer of a call, and what stands for it. */
struct rk_staged {
    struct rk_view view; /* bytes 0: used as it is */
    char *host;
};

struct rk_stage {
    struct rk_coll_call host; /* the call with host memory only */
    struct rk_staged send, recv;
    struct rk_stage_block { size_t at, bytes; } *blocks; /* parts of recv to copy back; NULL: all of it */
    int nblocks;
    rank_status_t (*fill)(struct rk_stage *stage); /* copy what the call sends, if that is deferred */
    bool deferred; /* the input is copied later, by fill */
    void (*filled)(void *arg); /* it changes the copied input then; NULL: nothing does */
    void *filled_arg;
    bool skipped;  /* the result is there, without the host */
};

/* Bytes that staging of a checked call needs; 0: its buffers are host memory. */
size_t rk_stage_bytes(const struct rk_coll_call *c);
/* Lay the stage of the call out in that many bytes at mem, which begin with the struct. */
struct rk_stage *rk_stage_layout(const struct rk_coll_call *c, void *mem);
/* Copy what the call sends to the stage: a step's function. No-op if the stage is deferred. */
rank_status_t rk_stage_begin(void *stage);
/* Copy the result back: a step's function. No-op if it is skipped. */
rank_status_t rk_stage_end(void *stage);

/* Run a checked blocking call, with buffers of any kind. */
rank_status_t rk_stage_in_arena(struct rk_arena *a, const struct rk_coll_call *c);
/* api_coll.c: the same with host memory. */
rank_status_t rk_coll_in_arena(struct rk_arena *a, const struct rk_coll_call *c);

#endif

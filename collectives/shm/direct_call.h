/* SPDX-License-Identifier: BSD-3-Clause */
/* direct_call.h: define the state of a call that reads the other ranks' buffers. */
#ifndef RK_COLLECTIVES_SHM_DIRECT_CALL_H
#define RK_COLLECTIVES_SHM_DIRECT_CALL_H

#include "collectives/shm/device_call.h"
#include "collectives/shm/direct.h"
#include "collectives/shm/peer_memory.h"
#include "collectives/shm/slices.h"
#include "collectives/shm/slot.h"

enum { RK_DIRECT_RESULTS = 4 /* pieces of a reduce that wait for the root */ };

/* Bytes of a buffer. */
struct rk_span {
    size_t at, bytes;
};

/* A rank's cell during the call. */
struct rk_post {
    uint64_t turn;  /* rk_cell_turn of the call */
    struct rk_place sbuf, result;
    bool reads_all; /* this rank can read the memory of all members */
    bool overlaps;  /* its result lies where others read its input */
    size_t sent;    /* bytes of sbuf */
    struct rk_device_post device;
    struct rk_span block[]; /* in sbuf, for each rank, if others do not know it */
};

struct rk_direct {
    struct rk_sched *sched;
    struct rk_arena *a;
    const struct slices *before; /* what moves the call if it is short; NULL: nothing */
    struct slices *slices;     /* what moves the call otherwise */
    enum rk_coll_kind kind;
    int root;
    bool reduces, avg;
    bool shares;               /* each rank reduces a slice of each chunk for all */
    bool sums, copies;         /* what this rank does */
    bool overlaps;
    const char *sbuf;
    char *rbuf;
    size_t bytes, elem, piece; /* of a block, of an element, of a rank's slice of a chunk */
    size_t sent;               /* bytes of sbuf that others read */
    struct rk_span own;           /* in sbuf, what this rank reduces or copies from itself */
    struct rk_span *blocks;       /* of rbuf, if they have lengths of their own; NULL: equal ones */
    struct rk_span *given;        /* of sbuf, to each rank, if others do not know it; else NULL */
    rank_status_t status;      /* of the lengths of blocks that came */
    rank_dtype_t dtype;
    char *results;             /* [RK_DIRECT_RESULTS] pieces: this rank's part of the sum of a reduce */
    char *temp;                /* operands of operand bytes that are read by the kernel */
    size_t operand;
    enum { RK_DIRECT_POST, RK_DIRECT_MEET, RK_DIRECT_VOTE, RK_DIRECT_WORK, RK_DIRECT_LEAVE } state;
    struct rk_device_call *device; /* NULL: never on devices; the same on all ranks */
    bool on_device;            /* it runs there */
    bool begun;
    uint64_t base, chunks;     /* numbers of this call: of the first chunk, and how many */
    uint64_t summed, copied;   /* chunks */
    int source;                /* of the present chunk: how many ranks have been copied from */
    size_t moved;              /* bytes of the present copy */
    size_t reduced;            /* and of the present sum */
    const void *operands[];
};

RK_INLINE struct rk_post *rk_post_of(const struct rk_direct *x, int r)
{
    const struct rk_arena *a = x->a;
    size_t depth = (size_t)a->cell_depth;

    return (struct rk_post *)(void *)(a->cells + ((size_t)r * depth + (size_t)(x->base % depth)) * a->cell_bytes);
}

RK_INLINE bool rk_direct_reached(const struct rk_direct *x, enum rk_chunk_phase phase, uint64_t want)
{
    for (int r = 0; r < x->a->n; r++) {
        if (r != x->a->me && rk_chunk_counter(x->a, r, phase) < want)
            return false;
    }
    return true;
}

/* Has that rank posted this call? */
RK_INLINE bool rk_direct_has_posted(const struct rk_direct *x, int r)
{
    return rk_chunk_counter(x->a, r, RK_CHUNK_IN) >= x->base + x->chunks && rk_post_of(x, r)->turn == rk_cell_turn(x->sched, x->base + 1);
}

RK_INLINE void rk_direct_publish(const struct rk_direct *x, enum rk_chunk_phase phase, uint64_t to)
{
    atomic_store_explicit(&x->a->chunks[x->a->me].count[phase], to, memory_order_release);
    rk_wake_members(x->a, 0, x->a->n);
}

/* Only the root's memory is read. */
RK_INLINE bool rk_direct_one_source(const struct rk_direct *x)
{
    return x->kind == RK_COLL_BCAST || x->kind == RK_COLL_SCATTER || x->kind == RK_COLL_SCATTERV;
}

/* Only the root reads. */
RK_INLINE bool rk_direct_one_reader(const struct rk_direct *x)
{
    return x->kind == RK_COLL_GATHER || x->kind == RK_COLL_GATHERV || (x->kind == RK_COLL_REDUCE && !x->shares);
}

/* All post in a team's first call, to find out if they can read each other, and if the call may run on devices. */
RK_INLINE bool rk_direct_all_post(const struct rk_direct *x)
{
    return x->a->reads == RK_READS_UNKNOWN || x->device || !rk_direct_one_source(x);
}

/* direct_post.c */

/* Have the readers of the own cell left it? */
bool rk_direct_cell_is_free(const struct rk_direct *x);
/* Write the own cell, and raise "in". */
void rk_direct_post(const struct rk_direct *x);
/* Are the posts there that decide? */
bool rk_direct_have_met(const struct rk_direct *x);
/* Does the call run so? The same on all ranks. */
bool rk_direct_decide(const struct rk_direct *x);

/* direct_work.c: move what can be moved, up to a limit. Returns false if it is not all. */
bool rk_direct_work(struct rk_direct *x);

#endif

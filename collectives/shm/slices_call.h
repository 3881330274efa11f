/* SPDX-License-Identifier: BSD-3-Clause */
/* slices_call.h: define the state of a call that moves chunks through cells. */
#ifndef RK_COLLECTIVES_SHM_SLICES_CALL_H
#define RK_COLLECTIVES_SHM_SLICES_CALL_H

#include "collectives/shm/slices.h"

enum { RK_SLICES_ALL = -1 };

/* A counter of all ranks, read no more often than necessary. */
struct rk_slices_seen {
    uint64_t least;  /* all other ranks have reached it */
    uint64_t lowest; /* of the ranks before next, in the present pass */
    int next;
};

/* A block in a buffer. */
struct rk_own_block {
    size_t at, bytes;
};

struct slices {
    struct rk_sched *sched;
    struct rk_arena *a;
    enum rk_coll_kind kind;
    int root;
    const char *sbuf;
    char *rbuf;
    size_t bytes, elem; /* of a block (the longest one that this rank has), of an element */
    size_t gives, gets; /* bytes of the only block in sbuf, in rbuf */
    /* In sbuf and rbuf, of their own lengths; NULL: equal ones, one after another. */
    struct rk_own_block *from, *to;
    size_t piece;        /* bytes of a block in a chunk */
    size_t stride;       /* between the pieces for two ranks in one cell; 0: all read the same */
    rank_dtype_t dtype;
    bool reduces, avg;
    bool sums_for_all;   /* all ranks receive what others have reduced for them */
    bool agrees;         /* ranks do not know all lengths: they agree on the number of chunks */
    bool begun, agreed, skip;
    bool last;           /* the schedule does not use the arena after it */
    bool does[RK_CHUNK_PHASES]; /* this rank has that phase */
    int reader;          /* the only one of this rank's cells, or RK_SLICES_ALL */
    int writer;          /* this rank reads only the cells of that one, or RK_SLICES_ALL */
    int givers;          /* ranks below this one give their input, if it has no sum phase */
    int arrived;           /* lower ranks have announced their longest block */
    size_t longest;      /* of those */
    size_t limit;        /* longer blocks are left to a later step; 0: none are */
    bool too_long;
    struct rk_step *step;
    rank_status_t status; /* of the lengths of blocks that came */
    uint64_t base;       /* number of the first chunk */
    uint64_t chunks;
    uint64_t done[RK_CHUNK_PHASES]; /* chunks of this call */
    struct rk_slices_seen seen[RK_CHUNK_PHASES];
    const void *operands[];
};

/* slices_copy.c: what a rank does with chunk i in each phase. */
void rk_slices_copy_in(struct slices *x, uint64_t i);
void rk_slices_sum(struct slices *x, uint64_t i);
void rk_slices_copy_out(struct slices *x, uint64_t i);

/* Chunks of a call with a longest block of that many bytes: not 0 if ranks wait for each other anyway. */
uint64_t rk_slices_chunks(const struct slices *x, size_t longest);
/* Compare the length of a block with the expected one: sets the status. */
void rk_slices_compare(struct slices *x, uint64_t length, size_t bytes);
/* Set the geometry of a call: blocks and pieces. False: out of memory. */
bool rk_slices_set_blocks(struct slices *x, const struct rk_coll_call *c);

#endif

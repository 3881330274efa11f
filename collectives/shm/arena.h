/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena.h: run small collectives of one node directly in shared memory.
 *
 * A team of one node has an arena in the node's segment, with slots for each rank. A slot is a line with a turn
 * number and at most 56 bytes of payload, and 4 KiB beside it. A small contribution and its flag share that cache
 * line. A slot has one writer. Turn numbers count the team's operations of a class, so nothing is cleared between
 * them.
 *
 * Two classes have turns and slots of their own:
 *
 * - "all" operations (barrier, allreduce, allgather, reduce_scatter, alltoall): no rank completes turn t before
 *   every rank has begun it. Two slots a rank suffice without acknowledgement: a rank that writes for turn t + 2
 *   has completed t + 1, so all have begun t + 1, so all have left t, and its slot may be overwritten.
 * - "rooted" operations (bcast, scatter, reduce, gather, scans): the root of a bcast does not wait. Each rank writes the
 *   turn that it has left to a line of its own, and a slot is overwritten only when its readers have left the turn
 *   that it was written for. Four slots a rank make that check rare.
 *
 * The turn in a slot has the hash of the calls so far in its upper bits, so ranks that make different calls do not
 * match. The turns of acknowledgements have none.
 *
 * All waits use rk_wait. Deaths and failures end them: a wait also checks team->coll_over.
 */
#ifndef RK_COLLECTIVES_SHM_ARENA_H
#define RK_COLLECTIVES_SHM_ARENA_H

#include "collectives/algo.h"
#include "lib/core/peer_device.h"
#include "lib/node/node.h"

enum {
    RK_SLOT_INLINE = 56,
    RK_SLOT_DATA = 4096,
    RK_ALL_SLOTS = 2,
    RK_ROOTED_SLOTS = 4,
    RK_FLAT_MAX = 16, /* ranks that read each other's slots directly; more use leaders */
    RK_ARENA_OF_WORLD = 0,
    RK_CALL_LINES = 4, /* latest calls of a rank */
    RK_CELLS_BYTES = 128 << 10, /* at most, of a rank */
    RK_CELL_DEPTH = 8,          /* at most */
    /* Of slots and cells in a page. Buffers begin near the start of one: a copy between equal places makes loads wait for stores. */
    RK_PAGE_SHIFT = 2048
};

struct rk_slot_line {
    _Atomic uint64_t turn RK_ALIGNED_LINE;
    unsigned char payload[RK_SLOT_INLINE];
};
_Static_assert(sizeof(struct rk_slot_line) == RK_CACHE_LINE, "flag and payload in one line");

struct rk_arena_head {
    _Atomic uint32_t gone RK_ALIGNED_LINE; /* number of members that have closed it */
    _Atomic uint32_t cells; /* enum rk_cells */
    _Atomic uint32_t failed; /* members have made different calls: all waits end */
};

/* State of an arena's cells, for all members: the first one that has tried to back them decides. */
enum rk_cells { RK_CELLS_UNKNOWN, RK_CELLS_NONE, RK_CELLS_SHALLOW, RK_CELLS_DEEP };

/* Counters of a rank for its cells (slices.h). */
enum rk_chunk_phase { RK_CHUNK_IN, RK_CHUNK_SUM, RK_CHUNK_OUT, RK_CHUNK_PHASES };

struct rk_chunk_line {
    _Atomic uint64_t count[RK_CHUNK_PHASES] RK_ALIGNED_LINE;
    _Atomic uint64_t announced; /* calls for which this rank has set most */
    _Atomic uint64_t most[2];   /* chunks of its longest block, in every other such call */
    _Atomic uint64_t abandoned; /* number of the first call that has failed here: its buffers may be written again; 0: none */
};

/* Can the members read each other's memory? Found out in the team's first direct call, alike on all. */
enum rk_reads { RK_READS_UNKNOWN, RK_READS_SOME, RK_READS_ALL };

/* What was last written to an own cell. */
struct rk_cell_use {
    uint64_t number; /* of its chunk, from 1; 0: nothing yet */
    int reader;      /* negative: all members */
};

/* A call of a rank, written by that rank. */
struct rk_call_line {
    _Atomic uint64_t call RK_ALIGNED_LINE; /* its number in the team, and RK_CALL_BITS of the hash; 0: none */
    _Atomic uint64_t described;            /* the same once desc is set */
    struct rk_call_desc desc;
};
_Static_assert(sizeof(struct rk_call_line) == sizeof(struct rk_slot_line), "both are lines of the front");

/* A rank's view of the arena of its team, or of a group of ranks in the team. */
struct rk_arena {
    struct rank_team *team;
    const int *ranks; /* of the group, by place in the team; NULL: the whole team */
    int line;         /* of schedules that use its cells: their place there */
    struct rk_node *node;
    int index, n, me; /* n, me: of the group */
    int groups, group; /* of RK_FLAT_MAX ranks each, and mine */
    struct rk_arena_head *head;
    struct rk_slot_line *left;   /* [n] rooted turn that a rank has left */
    struct rk_slot_line *all;    /* [RK_ALL_SLOTS][n] */
    struct rk_slot_line *rooted; /* [RK_ROOTED_SLOTS][n] */
    struct rk_call_line *calls;  /* [RK_CALL_LINES][n] */
    struct rk_slot_line *lines;  /* [n][cell_depth] of lines.h */
    struct rk_slot_line *up, *down; /* [RK_ALL_SLOTS][groups] sums of groups, and of all */
    char *all_data, *rooted_data, *up_data, *down_data; /* RK_SLOT_DATA for each line */
    uint64_t all_turn, rooted_turn; /* without the hash */
    uint64_t history;               /* hash of all calls of the team */
    uint8_t kind;                /* enum rk_coll_kind of the latest, for describe_coll.c */
    uint64_t wrote[RK_ROOTED_SLOTS]; /* turn for which the slot was last written; 0: none */
    int reader[RK_ROOTED_SLOTS];     /* its reader; -1: all */
    uint64_t all_left;               /* a turn that all have left */
    struct rk_chunk_line *chunks;    /* [n] */
    char *cells;                     /* [n][cell_depth] of cell_bytes */
    size_t cell_bytes;               /* 0: not open */
    int cell_depth;
    uint64_t chunks_begun;              /* by this rank, of all calls */
    uint64_t announced;                 /* calls that were agreed on */
    uint64_t left_by_all;               /* chunks that all other members have left */
    uint8_t reads;                      /* enum rk_reads */
    struct rk_cell_use cell_use[RK_CELL_DEPTH];
    struct rk_device_export held[2];    /* input and result of the present call of device_call.h */
    int slot_of[];                   /* [n] slots of the members in the node */
};

RK_INLINE int rk_arena_world_rank(const struct rk_arena *a, int r)
{
    return rk_team_world_rank(a->team, a->ranks ? a->ranks[r] : r);
}

/* Groups of RK_FLAT_MAX ranks in a team of n. */
RK_INLINE int rk_arena_groups(int n)
{
    return (n + RK_FLAT_MAX - 1) / RK_FLAT_MAX;
}

/* Where an arena lies. */
struct rk_arena_place {
    size_t at;    /* in RK_REGION_ARENAS */
    size_t data;  /* of slots, from at */
    size_t cells; /* in RK_REGION_CELLS; SIZE_MAX: it has none */
    int most;     /* ranks of a team */
};
struct rk_arena_place rk_arena_place(int nlocal, int index);
/* Bytes before the data that a team of n ranks uses; they are zero in a fresh arena. */
size_t rk_arena_front_bytes(int n);

/* Bytes of RK_REGION_ARENAS for a node of nlocal ranks (sparse). */
size_t rk_arena_region_bytes(int nlocal);
/* The creator of a node's segment backs the world's arena before other ranks attach. */
void rk_arena_prepare_world(struct rk_node *node);

/* Find and back a free arena for a team of n ranks; returns its index, or -1. */
int rk_arena_take(struct rk_node *node, int n);
/* The same for the cells of one that has some: no slot may be used. */
int rk_arena_take_cells(struct rk_node *node, int n);
bool rk_arena_of_world_is_there(const struct rk_node *node);
void rk_arena_give_back(struct rk_node *node, int index);
/* Clear the front for n ranks and give it back: no rank uses it any more. */
void rk_arena_return(struct rk_node *node, int index, int n);
/* Of n members one leaves without having opened it, or for good: the last one gives it back. */
void rk_arena_leave(struct rk_node *node, int index, int n);
/* A call of this rank has failed, and returns after this: its buffers may be written again. */
void rk_arena_abandon(struct rk_arena *a, uint64_t number);
/* This rank's view of an arena that is still to be attached; NULL if out of memory. Caller frees it until then. */
struct rk_arena *rk_arena_new(struct rank_team *team);
void rk_arena_attach(struct rk_arena *a, int index);
/*
 * Attached: the view of n ranks of the team, of which this one is number me. ranks is used until the arena is closed. NULL, too, if
 * one of them has no slot in the node.
 */
struct rk_arena *rk_arena_open_group(struct rank_team *team, int index, const int *ranks, int n, int me);
/* Does not synchronize: the last member frees the arena. No-op if NULL. */
void rk_arena_close(struct rk_arena *a);

/* Bytes of RK_REGION_CELLS for a node of nlocal ranks (sparse). */
size_t rk_arena_cells_bytes(int nlocal);
/*
 * Back and open the cells; a no-op if they are open. All members get the same answer: false if there is no memory for
 * them.
 */
bool rk_arena_open_cells(struct rk_arena *a);
/* Smallest cell of a team of n ranks. */
size_t rk_arena_cell_min(int n);

/* Maximum block for the arena of a team of n ranks. */
size_t rk_arena_block_max(enum rk_coll_kind kind, int n);

/* The operations; buffers and lengths as in struct rk_coll_call. */
rank_status_t rk_arena_barrier(struct rk_arena *a);
rank_status_t rk_arena_allreduce(struct rk_arena *a, const void *sbuf, void *rbuf, size_t count,
                                 size_t bytes, rk_op_fn fn);
rank_status_t rk_arena_allgather(struct rk_arena *a, const void *sbuf, char *rbuf, size_t bytes);
rank_status_t rk_arena_alltoall(struct rk_arena *a, const void *sbuf, char *rbuf, size_t bytes);
rank_status_t rk_arena_reduce_scatter(struct rk_arena *a, const void *sbuf, void *rbuf,
                                      size_t count, size_t bytes, rk_op_fn fn);
/* Prefixes, with this rank or exclusive of it. */
rank_status_t rk_arena_scan(struct rk_arena *a, const void *sbuf, void *rbuf, size_t count, size_t bytes, rk_op_fn fn,
                            bool exclusive);
rank_status_t rk_arena_bcast(struct rk_arena *a, void *buf, size_t bytes, int root);
rank_status_t rk_arena_scatter(struct rk_arena *a, const char *sbuf, void *rbuf, size_t bytes,
                               int root);
rank_status_t rk_arena_reduce(struct rk_arena *a, const void *sbuf, void *rbuf, size_t count,
                              size_t bytes, rk_op_fn fn, int root);
rank_status_t rk_arena_gather(struct rk_arena *a, const void *sbuf, char *rbuf, size_t bytes,
                              int root);

/* slot.h has their building blocks. */

#endif

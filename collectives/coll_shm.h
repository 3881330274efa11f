/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_shm.h: small collectives of one node, straight through shared memory.
 *
 * A team whose ranks share a node has an arena in the node's segment. For each
 * rank it holds slots: a line with a turn number and up to 56 bytes of
 * payload, so that a small contribution and its flag travel in one cache line,
 * and room for 4 KiB beside it. A slot has one writer. Turn numbers count the
 * team's operations of a class, so nothing has to be cleared between them.
 *
 * Two classes, each with its own turns and slots, because they are safe for
 * different reasons:
 *
 *   "all" operations (barrier, allreduce, allgather, reduce_scatter, alltoall):
 *   no rank completes turn t before every rank has begun it. Two slots a rank
 *   are enough without any acknowledgement: who writes for turn t + 2 has
 *   completed t + 1, so all have begun t + 1, so all have left t, whose slot
 *   is overwritten.
 *
 *   "rooted" operations (bcast, scatter, reduce, gather): the root of a bcast
 *   waits for nobody. Each rank says in a line of its own which turn it has
 *   left, and a slot is overwritten only when its readers have left the turn
 *   that it was written for. Four slots a rank, so that this is looked at
 *   rarely.
 *
 * All waiting is rk_wait's. Deaths end it: a waiter looks at team->ndead too.
 */
#ifndef RK_COLLECTIVES_COLL_SHM_H
#define RK_COLLECTIVES_COLL_SHM_H

#include "collectives/algo.h"
#include "lib/node/node.h"

enum {
    RK_SLOT_INLINE = 56,
    RK_SLOT_DATA = 4096,
    RK_ALL_SLOTS = 2,
    RK_ROOTED_SLOTS = 4,
    RK_FLAT_MAX = 16, /* ranks that all look at each other; more of them meet through leaders */
    RK_ARENAS = 32,   /* in a node: the bits of node->head->arenas_taken */
    RK_ARENA_OF_WORLD = 0
};

struct rk_slot_line {
    _Atomic uint64_t turn RK_ALIGNED_LINE;
    unsigned char payload[RK_SLOT_INLINE];
};
_Static_assert(sizeof(struct rk_slot_line) == RK_CACHE_LINE, "flag and payload in one line");

struct rk_arena_head {
    _Atomic uint32_t gone RK_ALIGNED_LINE; /* members that have closed it */
};

/* One rank's view of its team's arena. */
struct rk_arena {
    struct rank_team *team;
    struct rk_node *node;
    int index, n, me;
    int groups, group; /* of RK_FLAT_MAX ranks each, and mine */
    struct rk_arena_head *head;
    size_t front; /* bytes up to the data: what has to be zero in a fresh arena */
    struct rk_slot_line *left;   /* [n] the turn of the rooted class that a rank has left */
    struct rk_slot_line *all;    /* [RK_ALL_SLOTS][n] */
    struct rk_slot_line *rooted; /* [RK_ROOTED_SLOTS][n] */
    struct rk_slot_line *up, *down; /* [RK_ALL_SLOTS][groups] sums of groups, and of all */
    char *all_data, *rooted_data, *up_data, *down_data; /* RK_SLOT_DATA for each line */
    uint64_t all_turn, rooted_turn;
    uint8_t kind;                /* enum rk_coll_kind of the latest, for tell.c */
    uint64_t wrote[RK_ROOTED_SLOTS]; /* the turn that my slot was last written for; 0: none */
    int reader[RK_ROOTED_SLOTS];     /* who read it; -1: all */
    uint64_t all_left;               /* a turn that all are known to have left */
    int slot_of[];                   /* [n] members' slots in the node */
};

/* Bytes of RK_REGION_ARENAS for a node of nlocal ranks (sparse). */
size_t rk_arena_region_bytes(int nlocal);
/* The maker of a node's segment backs the world's arena, before anybody else attaches. */
void rk_arena_prepare_world(struct rk_node *node);

/* Find and back a free arena for a team of n ranks; its index, or -1. */
int rk_arena_take(struct rk_node *node, int n);
bool rk_arena_of_world_is_there(const struct rk_node *node);
/* This rank's view of it; NULL without memory. */
struct rk_arena *rk_arena_open(struct rank_team *team, int index);
/* Does not synchronize: the last member gives the arena back. NULL is fine. */
void rk_arena_close(struct rk_arena *a);

/* The longest block that the shared memory of a team of n ranks takes. */
size_t rk_arena_block_max(enum rk_coll_kind kind, int n);

/* The operations; buffers and lengths as in struct rk_coll_call. */
rank_status_t rk_arena_barrier(struct rk_arena *a);
rank_status_t rk_arena_allreduce(struct rk_arena *a, const void *sbuf, void *rbuf, size_t count,
                                 size_t bytes, rk_op_fn fn);
rank_status_t rk_arena_allgather(struct rk_arena *a, const void *sbuf, char *rbuf, size_t bytes);
rank_status_t rk_arena_alltoall(struct rk_arena *a, const void *sbuf, char *rbuf, size_t bytes);
rank_status_t rk_arena_reduce_scatter(struct rk_arena *a, const void *sbuf, void *rbuf,
                                      size_t count, size_t bytes, rk_op_fn fn);
rank_status_t rk_arena_bcast(struct rk_arena *a, void *buf, size_t bytes, int root);
rank_status_t rk_arena_scatter(struct rk_arena *a, const char *sbuf, void *rbuf, size_t bytes,
                               int root);
rank_status_t rk_arena_reduce(struct rk_arena *a, const void *sbuf, void *rbuf, size_t count,
                              size_t bytes, rk_op_fn fn, int root);
rank_status_t rk_arena_gather(struct rk_arena *a, const void *sbuf, char *rbuf, size_t bytes,
                              int root);

/* shm_slot.h has the pieces that the operations are made of. */

#endif

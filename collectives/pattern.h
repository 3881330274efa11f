/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pattern.h: compute trees, rings and doublings, as pure functions.
 *
 * Independent of messages and memory; each function is tested for every size up to 64. Ranks are of the team;
 * "virtual" ranks count from the root, or after folding to a power of two.
 */
#ifndef RK_COLL_PATTERN_H
#define RK_COLL_PATTERN_H

#include "lib/base/compiler.h"

#include <stdbool.h>

/* Smallest k with 2^k >= n; n >= 1. */
int rk_log2_ceil(int n);
/* Largest power of two <= n; n >= 1. */
int rk_pow2_floor(int n);

RK_INLINE bool rk_is_pow2(int n)
{
    return (n & (n - 1)) == 0;
}

/* Rank counted from the root, and back. */
RK_INLINE int rk_virtual(int rank, int root, int size)
{
    return rank >= root ? rank - root : rank - root + size;
}

RK_INLINE int rk_real(int vrank, int root, int size)
{
    return vrank + root < size ? vrank + root : vrank + root - size;
}

/* The rank d places further around the ring; |d| <= size. */
RK_INLINE int rk_ring(int rank, int d, int size)
{
    int r = rank + d;

    return r >= size ? r - size : r < 0 ? r + size : r;
}

/* Start of part i of count items in parts as equal as possible, longer ones first. */
RK_INLINE int64_t rk_part_at(int64_t count, int parts, int i)
{
    int64_t each = count / parts, longer = count % parts;

    return each * i + (i < longer ? i : longer);
}

RK_INLINE int64_t rk_part_len(int64_t count, int parts, int i)
{
    return count / parts + (i < count % parts);
}

/*
 * A binomial tree over virtual ranks. A vertex covers the virtual ranks [v, v + span); its children divide those
 * behind v, in ascending order; the last has the largest subtree.
 */
enum { RK_TREE_MAX_CHILDREN = 31 }; /* any int of ranks */

struct rk_tree {
    int parent; /* virtual; -1 at the root */
    int span;   /* vertices of the subtree, including this one */
    int children;
    int child[RK_TREE_MAX_CHILDREN];      /* virtual */
    int child_span[RK_TREE_MAX_CHILDREN];
};

void rk_tree_binomial(int vrank, int size, struct rk_tree *tree);

/* Dissemination: destination and source in round k (0 to rk_log2_ceil(size) - 1). */
void rk_dissemination(int rank, int size, int round, int *to, int *from);

/*
 * Folding to a power of two: the first 2 * rest ranks pair up with their neighbours, so that vranks keep the order
 * of ranks. The even rank of a pair gives its data to the odd one and drops out (vrank -1).
 */
struct rk_fold {
    int pow2, rest;
    int vrank;   /* -1: dropped out */
    int partner; /* of a pair; -1 in none */
};

struct rk_fold rk_fold(int rank, int size);
/* Rank that acts for a vrank. */
int rk_unfold(int vrank, int size);
/* Ranks that a vrank represents: [first, first + n). */
void rk_fold_members(int vrank, int size, int *first, int *n);

/*
 * Recursive halving over vranks of a power of two. In round k (0 to log - 1) the group [lo, lo + 2h) splits: a
 * vertex keeps its half [keep, keep + h) and sends the other [give, give + h) to peer. Doubling runs the rounds in
 * reverse.
 */
struct rk_halving {
    int peer, half, keep, give;
};

struct rk_halving rk_halving(int vrank, int pow2, int round);

/*
 * Places: an order of vranks in which halving meets near vranks first, so that each sum is of adjacent ranks. The place
 * of a vrank has its bits in reverse; halving runs over places. The function is its own inverse.
 */
int rk_place(int vrank, int pow2);
/* Number of ranks that the vranks at the places before this one represent; place up to pow2. */
int rk_place_first(int place, int size);

/*
 * Ring. Reduce-scatter, step s (0 to size - 2), after which rank owns part rank: send part rk_ring_reduce_send;
 * receive and reduce the part that the left neighbour sends. Allgather, which starts with part rank on rank: send
 * rk_ring_gather_send.
 */
RK_INLINE int rk_ring_reduce_send(int rank, int size, int step)
{
    return rk_ring(rank, -1 - step, size);
}

RK_INLINE int rk_ring_gather_send(int rank, int size, int step)
{
    return rk_ring(rank, -step, size);
}

/*
 * Bruck's allgather: after round k a rank holds min(2^(k+1), size) blocks, from its own upwards. In round k it
 * receives n blocks from rank + 2^k, and sends its first n to rank - 2^k.
 */
void rk_bruck_gather(int rank, int size, int round, int *to, int *from, int *n);

/* Bruck's all-to-all: does block i (by distance) move in round k, by 2^k ranks upwards? */
RK_INLINE bool rk_bruck_moves(int block, int round)
{
    return block >> round & 1;
}

/*
 * Pairwise exchange: destination and source in step s (1 to size - 1). XOR if size is a power of two, so that
 * pairs meet; else around the ring.
 */
void rk_pairwise(int rank, int size, int step, int *to, int *from);

#endif

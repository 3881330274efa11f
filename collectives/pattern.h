/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pattern.h: who talks to whom: trees, rings and doublings as pure functions.
 *
 * Nothing here knows of messages or memory; each function is tested for every
 * size up to 64. Ranks are of the team; "virtual" ranks are counted from the
 * root, or are those that are left after folding to a power of two.
 */
#ifndef RK_COLL_PATTERN_H
#define RK_COLL_PATTERN_H

#include "lib/base/compiler.h"

#include <stdbool.h>

/* The least k with 2^k >= n; n >= 1. */
int rk_log2_ceil(int n);
/* The greatest power of two that is <= n; n >= 1. */
int rk_pow2_floor(int n);

RK_INLINE bool rk_is_pow2(int n)
{
    return (n & (n - 1)) == 0;
}

/* The rank counted from the root, and back. */
RK_INLINE int rk_virtual(int rank, int root, int size)
{
    return rank >= root ? rank - root : rank - root + size;
}

RK_INLINE int rk_real(int vrank, int root, int size)
{
    return vrank + root < size ? vrank + root : vrank + root - size;
}

/* d places further round the ring; 0 <= d <= size, or negative likewise. */
RK_INLINE int rk_ring(int rank, int d, int size)
{
    int r = rank + d;

    return r >= size ? r - size : r < 0 ? r + size : r;
}

/*
 * Part i of count things in parts as equal as can be, the longer ones first.
 */
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
 * A k-nomial tree over virtual ranks (2: binomial). A vertex holds the virtual
 * ranks [v, v + span), its children divide what is behind v. Children stand in
 * order of their virtual ranks; the last has the largest subtree.
 */
enum { RK_TREE_MAX_CHILDREN = 7 * 11 + 31 }; /* radix 2 to 8, any int of ranks */

struct rk_tree {
    int parent; /* virtual; -1 at the root */
    int span;   /* vertices of the subtree, this one included */
    int children;
    int child[RK_TREE_MAX_CHILDREN];      /* virtual */
    int child_span[RK_TREE_MAX_CHILDREN];
};

void rk_tree_knomial(int vrank, int size, int radix, struct rk_tree *tree);

/* Dissemination: in round k (0 to rk_log2_ceil(size) - 1) tell to, hear from. */
void rk_dissemination(int rank, int size, int round, int *to, int *from);

/*
 * Folding to a power of two: the first 2 * rest ranks pair up, and of each
 * pair the even one drops out (vrank -1) after it has given its part to the
 * odd one. Neighbours pair up so that vranks keep the order of ranks.
 */
struct rk_fold {
    int pow2, rest;
    int vrank;   /* -1: dropped out */
    int partner; /* of a pair; -1 in none */
};

struct rk_fold rk_fold(int rank, int size);
/* The rank that acts for a vrank. */
int rk_unfold(int vrank, int size);
/* The ranks that a vrank stands for: [first, first + n). */
void rk_fold_members(int vrank, int size, int *first, int *n);

/*
 * Recursive halving over the vranks of a power of two: in round k (0 to log -
 * 1) the group [lo, lo + 2h) splits; a vertex keeps its own half [keep, keep +
 * h) and gives away the other [give, give + h), to peer. Doubling is the same
 * from the last round to the first.
 */
struct rk_halving {
    int peer, half, keep, give;
};

struct rk_halving rk_halving(int vrank, int pow2, int round);

/*
 * Ring: in step s (0 to size - 2) of a ring reduce-scatter after which rank
 * owns part rank, send part rk_ring_reduce_send and receive (and reduce) that
 * of the left neighbour's send. In step s of a ring allgather that starts with
 * part rank on rank, send rk_ring_gather_send.
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
 * Bruck's allgather: after round k a rank holds min(2^(k+1), size) blocks,
 * from its own on upwards. In round k it gets have blocks' successors: n
 * blocks from rank + 2^k, and gives its first n to rank - 2^k.
 */
void rk_bruck_gather(int rank, int size, int round, int *to, int *from, int *n);

/* Bruck's all-to-all: does block i (by distance) move in round k? By 2^k ranks upwards. */
RK_INLINE bool rk_bruck_moves(int block, int round)
{
    return block >> round & 1;
}

/* Pairwise exchange: in step s (1 to size - 1) send to and receive from whom. XOR where the size
 * is a power of two, so that pairs meet; else round the ring. */
void rk_pairwise(int rank, int size, int step, int *to, int *from);

#endif

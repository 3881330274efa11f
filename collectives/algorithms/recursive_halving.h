/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recursive_halving.h: build a reduce-scatter by recursive halving.
 *
 * Ranks beyond a power of two first give their data to a neighbour (rk_fold). Afterwards the rank of place i
 * (rk_halved_rank) holds the reduced part i, [at(i), at(i + 1)), in work.
 *
 * With near set, each sum is of adjacent ranks, with the lower ones first: a balanced tree over ranks, the same as
 * that of recursive doubling. Without it place i is vrank i.
 */
#ifndef RK_COLLECTIVES_RECURSIVE_HALVING_H
#define RK_COLLECTIVES_RECURSIVE_HALVING_H

#include "collectives/algo.h"
#include "collectives/pattern.h"

/* It uses message numbers below this. */
enum { RK_HALVED_TAGS = 64 };

/* Start of part i of pow2, in elements; i up to pow2. */
typedef int64_t (*rk_part_fn)(const struct rk_coll_call *c, int pow2, int i);

/* Parts of one block, as equal as possible. */
RK_INLINE int64_t rk_even_part(const struct rk_coll_call *c, int pow2, int i)
{
    return rk_part_at(c->count, pow2, i);
}

struct rk_halved {
    struct rk_fold fold;
    bool near;
    int place;               /* of this rank; -1: dropped out */
    struct rk_step *reduced; /* the own part is in work */
    struct rk_step *sent;    /* all sends from src and work are done */
};

struct rk_halving_of {
    int64_t total; /* elements */
    rk_part_fn at;
    rk_part_fn from; /* start of a part in src; NULL: as in work */
    bool near;
};

/* Rank that acts for a place. */
RK_INLINE int rk_halved_rank(const struct rk_halved *h, int place, int size)
{
    return rk_unfold(h->near ? rk_place(place, h->fold.pow2) : place, size);
}

/* Reduces src. work, as long, may be src unless parts move (from); unused on a rank that drops out. */
void rk_build_halved(struct rk_sched *s, const struct rk_coll_call *c, const struct rk_halving_of *of, const char *src,
                     char *work, struct rk_halved *h);

#endif

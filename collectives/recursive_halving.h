/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recursive_halving.h: build a reduce-scatter by recursive halving.
 *
 * Ranks beyond a power of two first give their data to a neighbour (rk_fold). Afterwards vrank v holds the reduced
 * part v, [at(v), at(v + 1)), in work.
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
    struct rk_step *reduced; /* the own part is in work */
    struct rk_step *sent;    /* all sends from src and work are done */
};

/* Reduces total elements of src. work, as long, may be src; unused on a rank that drops out. */
void rk_build_halved(struct rk_sched *s, const struct rk_coll_call *c, int64_t total,
                     rk_part_fn part, const char *src, char *work, struct rk_halved *h);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recursive_halving.h: reduce-scatter by recursive halving, which several algorithms
 * begin with.
 *
 * Ranks beyond a power of two give all they have to a neighbour first (see
 * rk_fold). After it vrank v holds the reduced part v, [at(v), at(v + 1)), in
 * work.
 */
#ifndef RK_COLLECTIVES_RECURSIVE_HALVING_H
#define RK_COLLECTIVES_RECURSIVE_HALVING_H

#include "collectives/algo.h"
#include "collectives/pattern.h"

/* Message numbers below this are taken by it. */
enum { RK_HALVED_TAGS = 64 };

/* Where part i of pow2 begins, in elements; i up to pow2. */
typedef int64_t (*rk_part_fn)(const struct rk_coll_call *c, int pow2, int i);

struct rk_halved {
    struct rk_fold fold;
    struct rk_step *reduced; /* my part lies in work */
    struct rk_step *sent;    /* nothing of src and work is being sent any more */
};

/* total elements of src are reduced; work, as long, may be src, and is not touched by a rank that
 * drops out. */
void rk_build_halved(struct rk_sched *s, const struct rk_coll_call *c, int64_t total,
                     rk_part_fn part, const char *src, char *work, struct rk_halved *h);

#endif

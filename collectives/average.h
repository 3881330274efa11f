/* SPDX-License-Identifier: BSD-3-Clause */
/* average.h: sum and average 16-bit floats (average.c). */
#ifndef RK_COLLECTIVES_AVERAGE_H
#define RK_COLLECTIVES_AVERAGE_H

#include "collectives/shm/arena.h"

/* Build a call's schedule by an algorithm. An average that could overflow gets a step that scales the input. */
void rk_build_call(struct rk_sched *s, const struct rk_algo *algo, const struct rk_coll_call *c);

/* Is it a sum or average of F16 or BF16? */
RK_INLINE bool rk_sums_halves(const struct rk_coll_call *c)
{
    return rk_unlikely(c->dtype - RANK_F16 <= RANK_BF16 - RANK_F16) && (c->op == RANK_SUM || c->op == RANK_AVG);
}

/* Run such a reduction, a blocking call, in the arena. */
rank_status_t rk_arena_sum_halves(struct rk_arena *a, const struct rk_coll_call *c);

#endif

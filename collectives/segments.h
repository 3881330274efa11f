/* SPDX-License-Identifier: BSD-3-Clause */
/* segments.h: build long collectives in segments, one after the other. */
#ifndef RK_COLLECTIVES_SEGMENTS_H
#define RK_COLLECTIVES_SEGMENTS_H

#include "collectives/algo.h"

/*
 * Build a call with buffers of any kind. A long reduction or scan is cut into segments of equal elements on all
 * ranks: each is built when the one before it is done, in the same memory. So scratch memory and steps have a bound,
 * whatever the message.
 */
void rk_build_segments(struct rk_sched *s, const struct rk_algo *algo, const struct rk_coll_call *c);

#endif

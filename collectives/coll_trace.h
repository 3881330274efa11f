/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_trace.h: trace collective calls: a line each (RANK_COLL_TRACE). */
#ifndef RK_COLLECTIVES_COLL_TRACE_H
#define RK_COLLECTIVES_COLL_TRACE_H

#include "collectives/algo.h"

struct rk_trace {
    uint64_t began;  /* ns */
    uint64_t number; /* of the team's collectives */
    uint64_t team;
    size_t bytes;
    const char *algo;
    int size;
    uint8_t kind;
};
/* It fits where rk_sched_scratch points without memory. */
_Static_assert(sizeof(struct rk_trace) <= RK_CACHE_LINE, "a line of scratch");

/* Begin the trace of a call. algo NULL: no data is to be moved. */
void rk_trace_begin(struct rk_trace *t, const struct rk_coll_call *c, const struct rk_algo *algo);
/* Print its line on stderr. */
void rk_trace_end(const struct rk_trace *t, rank_status_t status);

#endif

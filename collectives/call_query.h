/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * call_query.h: compare the calls of late schedules with those of other ranks.
 *
 * A schedule that is under way for some rare checks of the engine (0.125 s each) sends its call to the ranks that it waits
 * for, again after twice the time, and in the end every 4 s. The receiver compares it with its own call of that number, and
 * reports a difference to the team (coll_failure.h). If only the prints differ, it sends the call before, which is then
 * compared likewise.
 *
 * It sends an answer if it has completed that call. Messages and answer come in order, so a wait for that rank which
 * outlasts the next check is in vain: the ranks have made different calls. A call before the first one that has failed
 * in its team has END_TICKS to complete.
 */
#ifndef RK_COLLECTIVES_CALL_QUERY_H
#define RK_COLLECTIVES_CALL_QUERY_H

#include "collectives/algo.h"

/* Payload of RK_KIND_COLL_CALL. */
struct rk_call_frame {
    uint64_t team;
    uint64_t number; /* of the call, from 1 */
    uint64_t done;   /* the sender has completed all calls below this number; 0: not known */
    uint64_t print;  /* of struct rk_sched */
    struct rk_call_desc call;
    uint32_t src;    /* rank of the sender in the team */
    uint32_t answer; /* 1: an answer; 0: a query */
};
_Static_assert(sizeof(struct rk_call_frame) == 80, "the frame's payload has no padding");

/* Decode a frame. Returns false if it is malformed. */
bool rk_call_decode(const void *payload, uint32_t len, struct rk_call_frame *out);
/* Handle a query or an answer: rk_handler_fn. */
void rk_call_arrived(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr, const void *payload,
                     const struct rk_rndv *rndv);

/* Check for late schedules. Not within a channel. */
void rk_calls_check(struct rk_ctx *ctx);

#endif

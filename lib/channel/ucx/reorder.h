/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reorder.h: puts packets that were numbered by their sender back in order.
 *
 * UCP keeps no order between active messages of different sizes. What comes
 * early is held in a ring by its turn until its turn is due. The ring grows
 * with need up to RK_ORDER_WINDOW; a sender that is further ahead is broken.
 */
#ifndef RK_CHANNEL_UCX_REORDER_H
#define RK_CHANNEL_UCX_REORDER_H

#include "lib/base/compiler.h"

enum { RK_ORDER_WINDOW = 1 << 15 };

struct rk_order {
    uint32_t due;   /* the turn that is next */
    uint32_t nheld;
    uint32_t mask;  /* of the ring, valid if held is not NULL */
    void **held;
};

enum rk_turn {
    RK_TURN_DUE,   /* now */
    RK_TURN_EARLY, /* hold it */
    RK_TURN_STALE, /* was here before */
    RK_TURN_BROKEN /* further ahead than any sender gets */
};

RK_INLINE enum rk_turn rk_order_look(const struct rk_order *o, uint32_t turn)
{
    uint32_t ahead = turn - o->due;

    if (rk_likely(ahead == 0))
        return RK_TURN_DUE;
    if (ahead < RK_ORDER_WINDOW)
        return RK_TURN_EARLY;
    return ahead > UINT32_MAX - RK_ORDER_WINDOW ? RK_TURN_STALE : RK_TURN_BROKEN;
}

/* Hold an early item, which must not be NULL. 0, or -1: out of memory, or 1: one is there already. */
int rk_order_hold(struct rk_order *o, uint32_t turn, void *item);

/* The item whose turn is due, taken out; NULL if it has not come. Does not move on. */
void *rk_order_take(struct rk_order *o);

/* The turn that was due has been dealt with. */
RK_INLINE void rk_order_advance(struct rk_order *o)
{
    o->due++;
}

/* Hand each item that is still held to fn, which frees it; then free the ring. */
void rk_order_destroy(struct rk_order *o, void (*fn)(void *item, void *arg), void *arg);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reorder.h: restore the order of packets that their sender has numbered.
 *
 * UCP does not keep the order of active messages of different sizes. An early packet is held in a ring until its
 * turn is due. The ring grows on demand up to RK_ORDER_WINDOW; a sender further ahead is faulty.
 */
#ifndef RK_CHANNEL_UCX_REORDER_H
#define RK_CHANNEL_UCX_REORDER_H

#include "lib/base/compiler.h"

enum { RK_ORDER_WINDOW = 1 << 15 };

struct rk_order {
    uint32_t due;   /* next turn */
    uint32_t nheld;
    uint32_t mask;  /* ring size - 1, valid if held is not NULL */
    void **held;
};

enum rk_turn {
    RK_TURN_DUE,   /* deliver now */
    RK_TURN_EARLY, /* hold it */
    RK_TURN_STALE, /* a duplicate */
    RK_TURN_BROKEN /* beyond the window */
};

RK_INLINE enum rk_turn rk_order_compare(const struct rk_order *o, uint32_t turn)
{
    uint32_t ahead = turn - o->due;

    if (rk_likely(ahead == 0))
        return RK_TURN_DUE;
    if (ahead < RK_ORDER_WINDOW)
        return RK_TURN_EARLY;
    return ahead > UINT32_MAX - RK_ORDER_WINDOW ? RK_TURN_STALE : RK_TURN_BROKEN;
}

/* Hold an early item, not NULL. Returns 0; -1: out of memory; 1: that turn is present already. */
int rk_order_hold(struct rk_order *o, uint32_t turn, void *item);

/* Take the item of the due turn; NULL if it has not arrived. Does not advance. */
void *rk_order_take(struct rk_order *o);

/* The due turn has been handled. */
RK_INLINE void rk_order_advance(struct rk_order *o)
{
    o->due++;
}

/* Pass each held item to fn, which frees it; then free the ring. */
void rk_order_destroy(struct rk_order *o, void (*fn)(void *item, void *arg), void *arg);

#endif

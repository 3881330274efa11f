/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ctx_lock.h: the lock of a context, for RANK_THREAD_MULTIPLE.
 *
 * Below that level there is none: nobody takes it, nothing looks at it but one branch in calls that cost more anyway.
 *
 * The order in which locks are taken, all of them of this kind:
 *
 *   1. the context's own: peers, channels, matching, one-sided calls, collectives, memory;
 *   2. that of a lane (lib/p2p/lane.h), the small context of a team whose only rank is this one.
 *
 * Who holds a lane's never waits for the context's (he may try, and does without). Nobody holds two lanes' but who
 * holds the context's. Locks of lower rooms (the table of deaths, PMIx's) are taken last and held for a few lines.
 *
 * A thread may take it again while it has it, since public calls are made of other ones. It spins for a moment, yields
 * a few times, then sleeps; it is held for as long as a step takes, never while a thread waits or runs the user's code.
 * pthread_mutex_t would do but for what it does not say: whether somebody wants it, which a thread that polls has to
 * know to get out of the way.
 */
#ifndef RK_CORE_CTX_LOCK_H
#define RK_CORE_CTX_LOCK_H

#include "lib/base/compiler.h"

#include <pthread.h>
#include <stdbool.h>

struct rk_lock {
    _Atomic uint32_t word RK_ALIGNED_LINE; /* 0: free, 1: taken, 2: taken, and somebody sleeps for it */
    _Atomic uint32_t wanted;               /* threads that want it and do not have it */
    _Atomic uintptr_t owner;
    uint32_t depth;                        /* the owner's */
};

RK_INLINE uintptr_t rk_lock_me(void)
{
    return (uintptr_t)pthread_self();
}

RK_INLINE bool rk_lock_is_mine(const struct rk_lock *l)
{
    return atomic_load_explicit(&l->owner, memory_order_relaxed) == rk_lock_me();
}

void rk_lock_take_slow(struct rk_lock *l);
void rk_lock_wake(struct rk_lock *l);

/* Not if another thread has it. */
RK_INLINE bool rk_lock_try(struct rk_lock *l)
{
    uint32_t is_free = 0;

    if (rk_lock_is_mine(l)) {
        l->depth++;
        return true;
    }
    if (!atomic_compare_exchange_strong_explicit(&l->word, &is_free, 1, memory_order_acquire, memory_order_relaxed))
        return false;
    atomic_store_explicit(&l->owner, rk_lock_me(), memory_order_relaxed);
    l->depth = 1;
    return true;
}

RK_INLINE void rk_lock_take(struct rk_lock *l)
{
    if (rk_likely(rk_lock_try(l)))
        return;
    rk_lock_take_slow(l);
    atomic_store_explicit(&l->owner, rk_lock_me(), memory_order_relaxed);
    l->depth = 1;
}

/* However often it has been taken; the number is for rk_lock_take_again. */
RK_INLINE uint32_t rk_lock_give_all(struct rk_lock *l)
{
    uint32_t depth = l->depth;

    l->depth = 0;
    atomic_store_explicit(&l->owner, 0, memory_order_relaxed);
    if (rk_unlikely(atomic_exchange_explicit(&l->word, 0, memory_order_release) == 2))
        rk_lock_wake(l);
    return depth;
}

RK_INLINE void rk_lock_take_again(struct rk_lock *l, uint32_t depth)
{
    rk_lock_take(l);
    l->depth = depth;
}

RK_INLINE void rk_lock_give(struct rk_lock *l)
{
    if (l->depth > 1)
        l->depth--;
    else
        rk_lock_give_all(l);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ctx_lock.h: lock a context (RANK_THREAD_MULTIPLE).
 *
 * Below that level the lock is unused and costs one branch in calls that are expensive anyway.
 *
 * It guards peers, channels, matching, one-sided calls, collectives and memory. Locks of lower rooms (death table,
 * PMIx) come after it and are held for a few lines.
 *
 * The lock is recursive, since public calls call each other. A thread spins, yields a few times, then sleeps. The
 * lock is held for one step, never while a thread waits or runs user code. A pthread_mutex_t does not report
 * whether another thread wants it, which a polling thread needs in order to give way.
 */
#ifndef RK_CORE_CTX_LOCK_H
#define RK_CORE_CTX_LOCK_H

#include "lib/base/compiler.h"

#include <pthread.h>
#include <stdbool.h>

struct rk_lock {
    _Atomic uint32_t word RK_ALIGNED_LINE; /* 0: free, 1: taken, 2: taken and a thread may sleep on it */
    _Atomic uint32_t wanted;               /* threads that wait for it */
    _Atomic uintptr_t owner;
    uint32_t depth;                        /* recursion depth; the owner's */
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

/* Returns false if another thread holds it. */
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

/* Release all levels; returns the depth for rk_lock_take_again. */
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

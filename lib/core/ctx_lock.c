/* SPDX-License-Identifier: BSD-3-Clause */
/* ctx_lock.c: take the context lock when another thread holds it. */
#include "lib/core/ctx_lock.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Most holds last tens of nanoseconds; the yields let a preempted holder run. */
enum { SPINS = 60, YIELDS = 20 };

static bool try(struct rk_lock *l)
{
    uint32_t is_free = 0;

    return atomic_load_explicit(&l->word, memory_order_relaxed) == 0 &&
           atomic_compare_exchange_strong_explicit(&l->word, &is_free, 1, memory_order_acquire,
                                                   memory_order_relaxed);
}

static bool get_soon(struct rk_lock *l)
{
    for (int i = 0; i < SPINS; i++) {
        if (try(l))
            return true;
        rk_cpu_relax();
    }
    for (int i = 0; i < YIELDS; i++) {
        sched_yield();
        if (try(l))
            return true;
    }
    return false;
}

RK_COLD void rk_lock_take_slow(struct rk_lock *l)
{
    atomic_fetch_add(&l->wanted, 1);
    if (!get_soon(l)) {
        /* Set 2, since this thread cannot exclude other sleepers. */
        while (atomic_exchange_explicit(&l->word, 2, memory_order_acquire) != 0)
            syscall(SYS_futex, &l->word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
    }
    atomic_fetch_sub(&l->wanted, 1);
}

RK_COLD void rk_lock_wake(struct rk_lock *l)
{
    syscall(SYS_futex, &l->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.h: read the monotonic clock, and wait by it. */
#ifndef RK_BASE_CLOCK_H
#define RK_BASE_CLOCK_H

#include "lib/base/compiler.h"

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

/* CLOCK_MONOTONIC in ns, through the vDSO (about 25 ns). */
RK_INLINE uint64_t rk_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Time of the kernel's last tick, some milliseconds old at most (about 5 ns). */
RK_INLINE uint64_t rk_clock_coarse_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/*
 * Wait on a condition, as pthread_cond_wait. Returns false at the deadline, a value of rk_clock_ns. No change of the time of
 * day moves it.
 */
RK_INLINE bool rk_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline)
{
    struct timespec t = {(time_t)(deadline / 1000000000u), (long)(deadline % 1000000000u)};

    return pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC, &t) == 0;
}

#endif

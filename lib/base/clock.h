/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.h: read the monotonic clock. */
#ifndef RK_BASE_CLOCK_H
#define RK_BASE_CLOCK_H

#include "lib/base/compiler.h"

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

#endif

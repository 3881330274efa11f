/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.h: monotonic time. */
#ifndef RK_BASE_CLOCK_H
#define RK_BASE_CLOCK_H

#include "lib/base/compiler.h"

#include <time.h>

/* Nanoseconds of CLOCK_MONOTONIC: through the vDSO, about 25 ns. */
RK_INLINE uint64_t rk_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* As of the last tick of the kernel's, some milliseconds ago at most: about 5 ns. */
RK_INLINE uint64_t rk_clock_coarse_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif

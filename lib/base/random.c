/* SPDX-License-Identifier: BSD-3-Clause */
/* random.c: see random.h. */
#include "lib/base/random.h"
#include "lib/base/clock.h"

#include <sys/random.h>
#include <unistd.h>

uint64_t rk_random_word(void)
{
    uint64_t n;

    if (getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n))
        n = rk_clock_ns() * 0x9e3779b97f4a7c15u ^ (uint64_t)getpid() << 40;
    return n;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* copy_small.h: copy a few bytes, their number known at run time only. */
#ifndef RK_DATA_COPY_SMALL_H
#define RK_DATA_COPY_SMALL_H

#include "lib/base/compiler.h"

#include <string.h>

/* Copy n <= 64 bytes; compiles to a few moves for common sizes. */
RK_INLINE void rk_copy_small(void *to, const void *from, uint32_t n)
{
    if (n == 8) {
        memcpy(to, from, 8);
    } else if (n > 32) {
        memcpy(to, from, 32);
        memcpy((char *)to + n - 32, (const char *)from + n - 32, 32);
    } else if (n >= 16) {
        memcpy(to, from, 16);
        memcpy((char *)to + n - 16, (const char *)from + n - 16, 16);
    } else if (n > 8) {
        memcpy(to, from, 8);
        memcpy((char *)to + n - 8, (const char *)from + n - 8, 8);
    } else if (n >= 4) {
        memcpy(to, from, 4);
        memcpy((char *)to + n - 4, (const char *)from + n - 4, 4);
    } else if (n) {
        ((char *)to)[0] = ((const char *)from)[0];
        ((char *)to)[n / 2] = ((const char *)from)[n / 2];
        ((char *)to)[n - 1] = ((const char *)from)[n - 1];
    }
}

#endif

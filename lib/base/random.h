/* SPDX-License-Identifier: BSD-3-Clause */
/* random.h: get random numbers of the kernel. */
#ifndef RK_BASE_RANDOM_H
#define RK_BASE_RANDOM_H

#include <stdint.h>

/* A number that no other process has: of the kernel, or without that of clock and process. Not for secrets. */
uint64_t rk_random_word(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* random.h: get random numbers of the kernel. */
#ifndef RK_BASE_RANDOM_H
#define RK_BASE_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A number that no other process has: of the kernel, or without that of clock and process. Not for secrets: tests/lint
 * lists its users.
 */
uint64_t rk_random_word(void);
/* Bytes that no other process can guess. Returns false, with errno set, if the kernel gives none. At most 256 bytes. */
bool rk_random_secret(void *out, size_t bytes);

#endif

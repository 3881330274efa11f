/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fnv.h: compute the hash FNV-1a of bytes, in 32 and in 64 bits.
 *
 * Start with a constant below, or go on from the hash of the bytes before. The
 * values are part of files, cards and messages between hosts: they stay as they are.
 */
#ifndef RK_BASE_FNV_H
#define RK_BASE_FNV_H

#include <stddef.h>
#include <stdint.h>

#define RK_FNV32_START 0x811c9dc5u
#define RK_FNV64_START 0xcbf29ce484222325u
/* Library-specific start value, one digit short of the standard's; for keys and names. */
#define RK_FNV64_START_KEYS 1469598103934665603u

static inline uint32_t rk_fnv32(uint32_t hash, const void *data, size_t len)
{
    const uint8_t *at = data;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ at[i]) * 0x01000193u;
    return hash;
}

static inline uint64_t rk_fnv64(uint64_t hash, const void *data, size_t len)
{
    const uint8_t *at = data;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash;
}

#endif

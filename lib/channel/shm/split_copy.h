/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * split_copy.h: share one copy between two ranks.
 *
 * The data is cut into chunks. The receiver claims them from the back and reads, the sender claims them from the
 * front and writes, until they meet. They share one word in the fifo: generation of the transfer (16 bits), chunks
 * claimed from the front (24), and from the back (24). The generation stops a delayed sender from claiming in a
 * later transfer: at most RK_SPLIT_REQUESTS_MAX requests are in the fifo, and none waits outside, so generations differ.
 */
#ifndef RK_CHANNEL_SHM_SPLIT_COPY_H
#define RK_CHANNEL_SHM_SPLIT_COPY_H

#include "lib/base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum frames of a fifo. */
enum { RK_SPLIT_REQUESTS_MAX = 1 << 15 };

/*
 * A system call costs as much as copying some 16 KiB: few chunks. Two halves while that is little; then chunks
 * small enough that the first to finish does not wait long. Smaller where both sides copy without the kernel.
 */
enum { RK_CHUNK_MIN = 16 << 10, RK_CHUNK_MAPPED = 64 << 10, RK_CHUNK_MAX = 128 << 10, RK_CHUNK_BUSY = 512 << 10 };

/* most: larger if the other side will hardly help, as it copies something itself. */
RK_INLINE uint64_t rk_chunk_of(uint64_t bytes, uint64_t most)
{
    uint64_t half = rk_round_up(bytes / 2, 4096);

    while (bytes / most >= 1 << 23) /* range of the word's counters */
        most *= 2;
    return half < RK_CHUNK_MIN ? RK_CHUNK_MIN : half > most ? most : half;
}

RK_INLINE uint64_t rk_chunks(uint64_t bytes, uint64_t chunk)
{
    return bytes / chunk + (bytes % chunk != 0);
}

RK_INLINE uint64_t rk_split_begin(uint32_t gen)
{
    return (uint64_t)(gen & 0xffff) << 48;
}

RK_INLINE uint32_t rk_split_front(uint64_t word)
{
    return (uint32_t)(word >> 24 & 0xffffff);
}

/* Position and length of a claimed chunk. */
struct rk_share {
    uint64_t at;
    size_t bytes;
};

/* Claim a chunk from that end; false: all are claimed. */
RK_INLINE bool rk_split_claim(_Atomic uint64_t *word, uint32_t gen, uint64_t bytes, uint64_t chunk,
                              bool front, struct rk_share *share)
{
    uint64_t w = atomic_load(word), chunks = rk_chunks(bytes, chunk), f, b, i;

    do {
        f = rk_split_front(w);
        b = w & 0xffffff;
        if (w >> 48 != (gen & 0xffff) || f + b >= chunks)
            return false;
    } while (!atomic_compare_exchange_weak(word, &w, w + (front ? 1ull << 24 : 1)));
    i = front ? f : chunks - 1 - b;
    share->at = i * chunk;
    share->bytes = (size_t)(bytes - share->at < chunk ? bytes - share->at : chunk);
    return true;
}

/* Claim all remaining chunks. */
RK_INLINE void rk_split_claim_rest(_Atomic uint64_t *word, uint64_t chunks)
{
    uint64_t w = atomic_load(word);

    while (!atomic_compare_exchange_weak(word, &w,
                                         (w & ~0xffffffull) | (chunks - rk_split_front(w))))
        ;
}

#endif

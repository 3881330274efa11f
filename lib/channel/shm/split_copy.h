/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * split_copy.h: how two ranks share one copy.
 *
 * What is to be copied is cut into chunks. The receiver claims them from the back and reads, the
 * sender claims them from the front and writes, until they meet. All that they share is one word in the box: the
 * generation of the transfer (16 bits), chunks claimed from the front (24), and from the back (24). The
 * generation keeps a sender that was held up from claiming in a later transfer: no more of them are asked for in the box than
 * RK_CLAIMS_ASKED, and none that waits for room there, so that their generations differ.
 */
#ifndef RK_CHANNEL_SHM_SPLIT_COPY_H
#define RK_CHANNEL_SHM_SPLIT_COPY_H

#include "lib/base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Frames of a box at most. */
enum { RK_CLAIMS_ASKED = 1 << 15 };

/*
 * A call of the kernel's costs as much as copying some 16 KiB: few chunks. Halves while that is
 * little; then so much that who is done first does not wait long for the other. Less where both sides copy by themselves.
 */
enum { RK_CHUNK_MIN = 16 << 10, RK_CHUNK_MAPPED = 64 << 10, RK_CHUNK_MAX = 128 << 10, RK_CHUNK_BUSY = 512 << 10 };

/* most: a larger one where the other side will hardly come: it is copying something itself. */
RK_INLINE uint64_t rk_chunk_of(uint64_t bytes, uint64_t most)
{
    uint64_t half = rk_round_up(bytes / 2, 4096);

    while (bytes / most >= 1 << 23) /* what the word counts */
        most *= 2;
    return half < RK_CHUNK_MIN ? RK_CHUNK_MIN : half > most ? most : half;
}

RK_INLINE uint64_t rk_chunks(uint64_t bytes, uint64_t chunk)
{
    return bytes / chunk + (bytes % chunk != 0);
}

RK_INLINE uint64_t rk_claims_begin(uint32_t gen)
{
    return (uint64_t)(gen & 0xffff) << 48;
}

RK_INLINE uint32_t rk_claims_front(uint64_t word)
{
    return (uint32_t)(word >> 24 & 0xffffff);
}

/* Where a chunk lies that was claimed, and how long it is. */
struct rk_share {
    uint64_t at;
    size_t bytes;
};

/* Claim a chunk from that end; false: all are claimed. */
RK_INLINE bool rk_claim(_Atomic uint64_t *word, uint32_t gen, uint64_t bytes, uint64_t chunk,
                        bool front, struct rk_share *share)
{
    uint64_t w = atomic_load(word), chunks = rk_chunks(bytes, chunk), f, b, i;

    do {
        f = rk_claims_front(w);
        b = w & 0xffffff;
        if (w >> 48 != (gen & 0xffff) || f + b >= chunks)
            return false;
    } while (!atomic_compare_exchange_weak(word, &w, w + (front ? 1ull << 24 : 1)));
    i = front ? f : chunks - 1 - b;
    share->at = i * chunk;
    share->bytes = (size_t)(bytes - share->at < chunk ? bytes - share->at : chunk);
    return true;
}

/* Nobody is to claim any more. */
RK_INLINE void rk_claim_rest(_Atomic uint64_t *word, uint64_t chunks)
{
    uint64_t w = atomic_load(word);

    while (!atomic_compare_exchange_weak(word, &w,
                                         (w & ~0xffffffull) | (chunks - rk_claims_front(w))))
        ;
}

#endif

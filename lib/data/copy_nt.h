/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy_nt.h: copy with nontemporal stores, for data that another core reads next.
 */
#ifndef RK_DATA_COPY_NT_H
#define RK_DATA_COPY_NT_H

#include "lib/base/compiler.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* The stored data is visible before later stores of the caller. */
static inline void rk_copy_streamed(void *to, const void *from, size_t n)
{
#ifdef __SSE2__
    char *t = to;
    const char *f = from;
    size_t head = -(uintptr_t)t & 63;

    if (n > 256) {
        memcpy(t, f, head);
        t += head;
        f += head;
        n -= head;
        for (; n >= 64; n -= 64, t += 64, f += 64) {
            __m128i a = _mm_loadu_si128((const __m128i *)(const void *)f);
            __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(f + 16));
            __m128i c = _mm_loadu_si128((const __m128i *)(const void *)(f + 32));
            __m128i d = _mm_loadu_si128((const __m128i *)(const void *)(f + 48));

            _mm_stream_si128((__m128i *)(void *)t, a);
            _mm_stream_si128((__m128i *)(void *)(t + 16), b);
            _mm_stream_si128((__m128i *)(void *)(t + 32), c);
            _mm_stream_si128((__m128i *)(void *)(t + 48), d);
        }
        _mm_sfence();
    }
    memcpy(t, f, n);
#else
    memcpy(to, from, n);
#endif
}

#endif

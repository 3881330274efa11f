/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_tcp.c: cut a stream of bytes into frames.
 *
 * The first byte says how many bytes arrive at once at most. Each call sees memory of just the bytes that are there.
 */
#include "lib/channel/tcp/tcp_wire.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t len);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static long next_exact(const uint8_t *from, size_t len, struct rk_hdr *hdr)
{
    uint8_t *copy = malloc(len ? len : 1);
    long n;

    if (!copy)
        return -1;
    memcpy(copy, from, len);
    n = rk_tcp_next(copy, len, hdr);
    free(copy);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t len)
{
    size_t step, have = 0;
    struct rk_hdr hdr, again;

    if (len == 0)
        return 0;
    step = 1u + *input++;
    len--;
    for (;;) {
        long n = next_exact(input, have, &hdr);

        if (n < 0)
            return 0;
        require((n == 0) == (have < sizeof(hdr)));
        if (n > 0) {
            require(n % 8 == 0 && (size_t)n >= sizeof(hdr) + hdr.len && (size_t)n < sizeof(hdr) + hdr.len + 8);
            require(hdr.kind != RK_KIND_NONE && hdr.kind != RK_KIND_RNDV);
            require(hdr.len <= (hdr.kind == RK_TCP_DATA || hdr.kind == RK_TCP_WRITE ? (uint32_t)RK_TCP_CHUNK_MAX : (uint32_t)RK_TCP_FRAME_MAX));
            require(hdr.kind != RK_TCP_READ || hdr.len == sizeof(struct rk_tcp_read));
            require(hdr.kind != RK_TCP_WRITTEN || hdr.len == sizeof(struct rk_tcp_written));
            require(hdr.kind != RK_TCP_ANNOUNCE || hdr.len == sizeof(struct rk_tcp_announce));
            require(hdr.kind != RK_TCP_PULL || hdr.len == sizeof(struct rk_tcp_pull));
            /* the header alone decides */
            require(next_exact(input, sizeof(hdr), &again) == n && memcmp(&again, &hdr, sizeof(hdr)) == 0);
            if ((size_t)n <= have) {
                input += n;
                len -= (size_t)n;
                have -= (size_t)n;
                continue;
            }
        }
        if (have == len)
            return 0;
        have = have + step < len ? have + step : len;
    }
}

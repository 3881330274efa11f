/* SPDX-License-Identifier: BSD-3-Clause */
/* buffers.c: touch and verify plain bytes, in host or device memory. */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

double bench_now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

bool bench_is_far(const struct bench_run *run, const void *buf)
{
    const char *at = buf;

    for (int i = 0; i < run->nfar; i++) {
        if (at >= run->far[i].base && at < run->far[i].base + run->far[i].bytes)
            return true;
    }
    return false;
}

char *bench_host_begin(const struct bench_run *run, const void *buf, int64_t bytes)
{
    char *host = (char *)(uintptr_t)buf;

    if (!bench_is_far(run, buf))
        return host;
    host = malloc(bytes ? (size_t)bytes : 1);
    if (!host)
        be_abort(1, "out of memory for a copy of device memory");
    be_copy(host, buf, (size_t)bytes);
    return host;
}

void bench_host_end(const struct bench_run *run, void *buf, char *host, int64_t bytes, bool changed)
{
    if (!bench_is_far(run, buf))
        return;
    if (changed)
        be_copy(buf, host, (size_t)bytes);
    free(host);
}

void bench_clear(const struct bench_run *run, void *buf, int value, int64_t bytes)
{
    char *host = bench_host_begin(run, buf, bytes);

    memset(host, value, (size_t)bytes);
    bench_host_end(run, buf, host, bytes, true);
}

void bench_write(struct bench_run *run, void *buf, int64_t bytes)
{
    uint64_t value;

    if (run->opts->untouched || bench_is_far(run, buf))
        return;
    /* Eight bytes that are a normal number of every floating type and overflow in none: neither
     * denormals nor NaNs may slow a reduction down. */
    run->turn++;
    value = 0x38 | (run->turn & 7);
    if (bytes == 8)
        memcpy(buf, &(uint64_t){value * 0x0101010101010101u}, 8);
    else
        memset(buf, (int)value, (size_t)bytes);
}

typedef uint64_t words_t __attribute__((vector_size(32)));

void bench_read(struct bench_run *run, const void *buf, int64_t bytes)
{
    const char *p = buf;
    uint64_t sum = 0, word;
    words_t sums[2] = {{0}}, words[2];

    if (run->opts->untouched || bench_is_far(run, buf))
        return;
    /* Every byte, but no slower than it can be read: what is measured is the message. */
    for (; bytes >= (int64_t)sizeof(words); bytes -= (int64_t)sizeof(words), p += sizeof(words)) {
        memcpy(words, p, sizeof(words));
        sums[0] += words[0];
        sums[1] += words[1];
    }
    for (size_t i = 0; i < sizeof(words_t) / 8; i++)
        sum += sums[0][i] + sums[1][i];
    for (; bytes >= 8; bytes -= 8, p += 8) {
        memcpy(&word, p, 8);
        sum += word;
    }
    for (; bytes > 0; bytes--)
        sum += (unsigned char)*p++;
    run->sink += sum;
}

static unsigned char byte_of(const struct bench_run *run, int r, int64_t i)
{
    return (unsigned char)((uint64_t)i * 7 + (uint64_t)(i >> 8) + (uint64_t)r * 29 + run->turn * 13);
}

void bench_pattern(struct bench_run *run, int r, void *buf, int64_t bytes)
{
    char *host = bench_host_begin(run, buf, bytes);

    for (int64_t i = 0; i < bytes; i++)
        host[i] = (char)byte_of(run, r, i);
    bench_host_end(run, buf, host, bytes, true);
}

int64_t bench_pattern_wrong(const struct bench_run *run, int r, const void *buf, int64_t bytes)
{
    char *host = bench_host_begin(run, buf, bytes);
    int64_t wrong = 0;

    for (int64_t i = 0; i < bytes; i++)
        wrong += (unsigned char)host[i] != byte_of(run, r, i);
    bench_host_end(run, (void *)(uintptr_t)buf, host, bytes, false);
    return wrong;
}

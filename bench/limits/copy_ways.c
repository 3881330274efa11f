/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy_ways.c: copy what copy_mapped.c copies in other ways than memcpy.
 * The target written past the caches, what
 * comes next fetched ahead, and the processor's own string move; and memcpy of what its writer wrote past the caches.
 */
#include "bench/limits/limit_bench.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { SAMPLES = 61, AHEAD = 1024, SIZES = 2 };
static const size_t sizes[SIZES] = {64 << 10, 1 << 20};

enum way { PLAIN, STREAMED, FETCHED, STRING, WRITTEN, WAYS };
static const struct {
    const char *name, *what;
} ways[WAYS] = {
    {"copy_way_plain", "a mapped buffer, just written by another: memcpy"},
    {"copy_way_streamed", "the same, the target written past the caches"},
    {"copy_way_fetched", "the same, 1 KiB ahead fetched first"},
    {"copy_way_string", "the same by rep movsb"},
    {"copy_way_written", "memcpy of what was written past the caches"},
};

struct shared {
    struct limit_flag to, from;
    int samples;
    _Alignas(4096) char buf[LIMIT_MOST];
};

/* A line at a time; both are aligned, and whole lines. */
static void copy_streamed(char *to, const char *from, size_t n)
{
#ifdef __SSE2__
    for (size_t i = 0; i < n; i += 16)
        _mm_stream_si128((__m128i *)(void *)(to + i), _mm_loadu_si128((const __m128i *)(const void *)(from + i)));
    _mm_sfence();
#else
    memcpy(to, from, n);
#endif
}

static void copy_fetched(char *to, const char *from, size_t n)
{
    for (size_t i = 0; i < n; i += 64) {
        __builtin_prefetch(from + i + AHEAD);
        memcpy(to + i, from + i, 64);
    }
}

static void copy_string(char *to, const char *from, size_t n)
{
#ifdef __x86_64__
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
#else
    memcpy(to, from, n);
#endif
}

static void copy_ways_copy(enum way way, char *to, const char *from, size_t n)
{
    switch (way) {
    case STREAMED:
        copy_streamed(to, from, n);
        break;
    case FETCHED:
        copy_fetched(to, from, n);
        break;
    case STRING:
        copy_string(to, from, n);
        break;
    default:
        memcpy(to, from, n);
    }
}

static void copy_ways_writer(void *arg)
{
    struct shared *s = arg;
    char *mine = aligned_alloc(4096, LIMIT_MOST);
    uint64_t turn = 0;

    if (!mine)
        limit_die("memory");
    for (int k = 0; k < SIZES; k++) {
        for (int i = 0; i < s->samples * WAYS; i++) {
            limit_await(&s->to, ++turn);
            if (i % WAYS == WRITTEN) {
                limit_fill(mine, sizes[k], turn);
                copy_streamed(s->buf, mine, sizes[k]);
            } else {
                limit_fill(s->buf, sizes[k], turn);
            }
            limit_set(&s->from, turn);
        }
    }
    free(mine);
}

int main(int argc, char **argv)
{
    struct shared *s = limit_shared(sizeof(*s));
    char *mine = aligned_alloc(4096, LIMIT_MOST);
    double v[WAYS][SAMPLES], t;
    uint64_t turn = 0;
    pid_t pid;

    if (!mine)
        limit_die("memory");
    memset(mine, 1, LIMIT_MOST);
    s->samples = limit_quick(argc, argv) ? 3 : SAMPLES;
    pid = limit_fork(copy_ways_writer, s);
    for (int k = 0; k < SIZES; k++) {
        for (int i = 0; i < s->samples * WAYS; i++) { /* in turn, so that all have the same machine */
            limit_set(&s->to, ++turn);
            limit_await(&s->from, turn);
            t = limit_ns();
            copy_ways_copy((enum way)(i % WAYS), mine, s->buf, sizes[k]);
            v[i % WAYS][i / WAYS] = limit_ns() - t;
            limit_check_filled(mine, sizes[k], turn);
        }
        for (int w = 0; w < WAYS; w++)
            limit_print_copy(ways[w].name, sizes[k], limit_median(v[w], s->samples), ways[w].what);
    }
    limit_join(pid);
    free(mine);
    return 0;
}

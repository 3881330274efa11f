/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p2p_flood.c: send to a rank that does not receive, and from all to all.
 * No rank locks up, no message is lost, and memory stays bounded.
 *
 *   --messages N (from each rank)
 */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TAG = 21, LATE = 22 };

static void deaf(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&t, NULL);
}

/* Blocking sends: each sender is held back at some time until rank 0 listens. */
static void to_one(struct mp *mp, int64_t n, size_t bytes)
{
    char *buf = mp_alloc(bytes);

    if (mp->rank != 0) {
        for (int64_t i = 0; i < n; i++) {
            mp_fill(buf, bytes, (uint64_t)(i * 1000 + mp->rank));
            MP_OK(rank_send(buf, (int64_t)bytes, RANK_BYTE, 0, TAG, mp->world));
        }
        MP_OK(rank_recv(NULL, 0, RANK_BYTE, 0, LATE, mp->world, NULL));
    } else {
        int64_t *next = calloc((size_t)mp->size, sizeof(*next));
        int64_t before = mp_status_kb("VmHWM"), grown;
        deaf(300);
        for (int64_t i = 0; i < n * (mp->size - 1); i++) {
            rank_envelope_t env;
            MP_OK(rank_recv(buf, (int64_t)bytes, RANK_BYTE, RANK_ANY_SOURCE, TAG, mp->world, &env));
            MP_CHECK_EQ(env.bytes, bytes);
            MP_CHECK_EQ(
                mp_verify(buf, bytes, (uint64_t)(next[env.source] * 1000 + env.source)), -1);
            next[env.source]++;
            if (i % 5000 == 4999)
                deaf(20);
        }
        grown = mp_status_kb("VmHWM") - before;
        printf("flood of %lld x %zu bytes from %d: memory grew by %lld kB\n", (long long)n, bytes,
               mp->size - 1, (long long)grown);
        /* Far below all the payload; a window and envelopes for each sender. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        MP_CHECK(grown < 16 * 1024 + (mp->size - 1) * 4 * 1024);
#endif
        for (int r = 1; r < mp->size; r++)
            MP_OK(rank_send(NULL, 0, RANK_BYTE, r, LATE, mp->world));
        free(next);
    }
    free(buf);
}

/* All to all, all sends started before the first receive, received last sender first. */
static void all_to_all(struct mp *mp, int n, size_t bytes)
{
    rank_request_t *req = mp_alloc((size_t)(n * mp->size) * sizeof(*req));
    char *out = mp_alloc(bytes), *in = mp_alloc(bytes);
    int k = 0;

    mp_fill(out, bytes, (uint64_t)mp->rank);
    for (int i = 0; i < n; i++) {
        for (int r = 0; r < mp->size; r++)
            MP_OK(rank_isend(out, (int64_t)bytes, RANK_BYTE, r, i, mp->world, &req[k++]));
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int r = mp->size - 1; r >= 0; r--) {
            MP_OK(rank_recv(in, (int64_t)bytes, RANK_BYTE, r, i, mp->world, NULL));
            MP_CHECK_EQ(mp_verify(in, bytes, (uint64_t)r), -1);
        }
    }
    MP_OK(rank_waitall(k, req, NULL));
    free(req);
    free(out);
    free(in);
}

/* Far more sends of one tag at once than any fifo holds: what waits for room keeps its order. */
static void burst(struct mp *mp, int n)
{
    int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;
    rank_request_t *req = mp_alloc((size_t)n * sizeof(*req));
    int32_t *out = mp_alloc((size_t)n * 50 * sizeof(*out)), in[50];

    for (int i = 0; i < n; i++) {
        int64_t count = 1 + i % 50;
        for (int k = 0; k < count; k++)
            out[i * 50 + k] = i * 1000 + k;
        MP_OK(rank_isend(&out[i * 50], count, RANK_INT32, to, TAG, mp->world, &req[i]));
    }
    deaf(50);
    for (int i = 0; i < n; i++) {
        rank_envelope_t env;
        MP_OK(rank_recv(in, 50, RANK_INT32, from, TAG, mp->world, &env));
        MP_CHECK_EQ(in[0], i * 1000);
        MP_CHECK_EQ(env.count, 1 + i % 50);
        for (int k = 0; k < env.count; k++)
            MP_CHECK_EQ(in[k], i * 1000 + k);
    }
    MP_OK(rank_waitall(n, req, NULL));
    free(req);
    free(out);
}

/* A ring of blocking sends of what is larger than any window, each with its receive posted before:
 * a sender that waits must go on taking in. */
static void ring(struct mp *mp, size_t bytes)
{
    int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;
    enum { N = 200 };
    rank_request_t req[N];
    char *in = mp_alloc(bytes * N), *out = mp_alloc(bytes);

    for (int i = 0; i < N; i++)
        MP_OK(rank_irecv(in + bytes * (size_t)i, (int64_t)bytes, RANK_BYTE, from, TAG, mp->world,
                         &req[i]));
    for (int i = 0; i < N; i++) {
        mp_fill(out, bytes, (uint64_t)(i * 100 + mp->rank));
        MP_OK(rank_send(out, (int64_t)bytes, RANK_BYTE, to, TAG, mp->world));
    }
    MP_OK(rank_waitall(N, req, NULL));
    for (int i = 0; i < N; i++)
        MP_CHECK_EQ(mp_verify(in + bytes * (size_t)i, bytes, (uint64_t)(i * 100 + from)), -1);
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    struct mp mp;
    int64_t n = mp_option(argc, argv, "--messages", 20000);

    mp_start(&mp, &argc, argv);
    mp_case(&mp, "small to one");
    to_one(&mp, n, 16);
    mp_case(&mp, "middling to one");
    to_one(&mp, n / 4, 4000);
    mp_case(&mp, "large to one");
    to_one(&mp, n / 100, 70000);
    mp_case(&mp, "burst");
    burst(&mp, (int)n);
    mp_case(&mp, "all to all, small");
    all_to_all(&mp, 2000 / mp.size, 100);
    mp_case(&mp, "all to all, large");
    all_to_all(&mp, 200 / mp.size, 50000);
    mp_case(&mp, "ring");
    ring(&mp, 8000);
    ring(&mp, 100000);
    mp_case(&mp, "end");
    mp_end(&mp);
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p2p_reverse_tags.c: receive many sends in the reverse order of their tags.
 *
 * Each even rank sends to the odd one above it. The payload, taken together, is
 * far more than a receiver may hold for messages without a receive: memory stays bounded.
 *
 *   --messages N --bytes N
 *   --ahead-kb N   what RANK_RNDV_UNEXPECTED_MAX is: a receiver may fetch so much early while its sender is kept off its core
 */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>

/* Besides a fixed part, windows, pools and tables, a message takes: at the sender a request of ours
 * (280 bytes) and UCX's (460 in 1.13 and 1.22), at the receiver an envelope that waits; UCX keeps a part of a
 * segment for it (1.3 KiB in 1.13). Neither leaves room for a copy of a large message's payload. */
enum { KB_FIXED = 24 * 1024, BYTES_SENT = 1024, BYTES_WAITING = 512, BYTES_BY_UCX = 2048 };

static void check_growth(const struct mp *mp, int64_t before, int64_t messages, int64_t each,
                         int64_t ahead_kb)
{
    int64_t grown = mp_status_kb("VmHWM") - before;
    int64_t bound = KB_FIXED + ahead_kb + messages * each / 1024;

    /* A sanitizer's own memory is not ours to bound. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    if (grown > bound)
        mp_fail(__FILE__, __LINE__, "memory grew by %lld kB for %lld messages, more than %lld kB",
                (long long)grown, (long long)messages, (long long)bound);
#endif
    printf("rank %d: memory grew by %lld kB (bound %lld)\n", mp->rank, (long long)grown,
           (long long)bound);
}

static void sender(struct mp *mp, int64_t n, size_t bytes)
{
    rank_request_t *req = mp_alloc((size_t)n * sizeof(*req));
    char *buf = mp_alloc((size_t)n * bytes);
    int64_t before;

    for (int64_t i = 0; i < n; i++) {
        mp_fill(buf + (size_t)i * bytes, bytes, (uint64_t)i);
        req[i] = RANK_REQUEST_NULL;
    }
    before = mp_status_kb("VmHWM");
    for (int64_t i = 0; i < n; i++)
        MP_OK(rank_isend(buf + (size_t)i * bytes, (int64_t)bytes, RANK_BYTE, mp->rank + 1, i,
                         mp->world, &req[i]));
    /* This one overtakes nothing that it could be mistaken for; the receiver starts on it. */
    MP_OK(rank_send(NULL, 0, RANK_BYTE, mp->rank + 1, n, mp->world));
    MP_OK(rank_waitall((int)n, req, NULL));
    check_growth(mp, before, n, BYTES_SENT, 0);
    free(buf);
    free(req);
}

static void receiver(struct mp *mp, int64_t n, size_t bytes, int64_t ahead_kb)
{
    char *buf = mp_alloc(bytes);
    rank_envelope_t env;
    int64_t before = mp_status_kb("VmHWM");
    double t0 = mp_now();

    MP_OK(rank_recv(NULL, 0, RANK_BYTE, mp->rank - 1, n, mp->world, NULL));
    for (int64_t i = n - 1; i >= 0; i--) {
        MP_OK(rank_recv(buf, (int64_t)bytes, RANK_BYTE, mp->rank - 1, i, mp->world, &env));
        MP_CHECK_EQ(env.bytes, bytes);
        MP_CHECK_EQ(mp_verify(buf, bytes, (uint64_t)i), -1);
    }
    check_growth(mp, before, n, strcmp(rank_channel_name(mp->world, mp->rank - 1), "ucx") == 0 ? BYTES_BY_UCX : BYTES_WAITING, ahead_kb);
    printf("rank %d: %lld messages of %zu bytes in %.3f s\n", mp->rank, (long long)n, bytes,
           mp_now() - t0);
    free(buf);
}

int main(int argc, char **argv)
{
    struct mp mp;
    int64_t n = mp_option(argc, argv, "--messages", 100000);
    size_t bytes = (size_t)mp_option(argc, argv, "--bytes", 8);

    mp_start(&mp, &argc, argv);
    mp_case(&mp, "reverse");
    if ((mp.rank ^ 1) < mp.size) {
        if (mp.rank & 1)
            receiver(&mp, n, bytes, mp_option(argc, argv, "--ahead-kb", 0));
        else
            sender(&mp, n, bytes);
    }
    mp_case(&mp, "end");
    mp_end(&mp);
    return 0;
}

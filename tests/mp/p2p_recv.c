/* SPDX-License-Identifier: BSD-3-Clause */
/* p2p_recv.c: receive sizes, truncated and empty messages, types, own messages. */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>

static const int64_t sizes[] = {0,     1,     2,     8,      24,     31,      32,      33,
                                63,    64,    65,    1000,   4096,   8191,    8192,    16383,
                                16384, 16385, 65535, 262144, 262145, 1000003, 5000000};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* Send bytes, receive into room; nothing past the room is written. */
static void shorten(struct mp *mp, int64_t bytes, int64_t room, int how)
{
    int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;
    unsigned char *out = mp_alloc((size_t)bytes), *in = mp_alloc((size_t)room + 64);
    uint64_t key = (uint64_t)(bytes * 3 + room);
    rank_request_t send, recv = RANK_REQUEST_NULL;
    rank_envelope_t env;
    rank_status_t st, want = room < bytes ? RANK_ERR_TRUNCATED : RANK_OK;
    int64_t got = room < bytes ? room : bytes;

    memset(&env, 0xee, sizeof(env));
    mp_fill(out, (size_t)bytes, key + (uint64_t)mp->rank);
    memset(in, 0xa5, (size_t)room + 64);
    if (how == 0) /* posted */
        MP_OK(rank_irecv(in, room, RANK_BYTE, from, 3, mp->world, &recv));
    mp_barrier(mp->world);
    MP_OK(rank_isend(out, bytes, RANK_BYTE, to, 3, mp->world, &send));
    if (how == 1) { /* surely there before the receive is posted */
        rank_envelope_t seen;
        MP_OK(rank_probe(from, 3, mp->world, &seen));
        MP_CHECK_EQ(seen.bytes, bytes);
        MP_CHECK_EQ(seen.sent_bytes, bytes);
    }
    if (how == 0)
        st = rank_wait(&recv, &env);
    else
        st = rank_recv(in, room, RANK_BYTE, from, 3, mp->world, &env);
    MP_STATUS(st, want);
    MP_CHECK_EQ(env.status, want);
    MP_CHECK_EQ(env.bytes, got);
    MP_CHECK_EQ(env.count, got);
    MP_CHECK_EQ(env.sent_bytes, bytes);
    MP_CHECK_EQ(env.source, from);
    MP_CHECK_EQ(env.tag, 3);
    /* The sender is none the wiser. */
    MP_OK(rank_wait(&send, NULL));
    MP_CHECK(recv == RANK_REQUEST_NULL && send == RANK_REQUEST_NULL);
    /* Compare by regenerating: mp_verify works on whole patterns. */
    mp_fill(out, (size_t)bytes, key + (uint64_t)from);
    MP_CHECK(got == 0 || memcmp(in, out, (size_t)got) == 0);
    for (int64_t i = got; i < room + 64; i++) {
        if (in[i] != 0xa5)
            mp_fail(__FILE__, __LINE__, "byte %lld past the %lld received was written",
                    (long long)i, (long long)got);
    }
    free(out);
    free(in);
}

static void truncation(struct mp *mp)
{
    for (int i = 0; i < SIZES; i++) {
        for (int how = 0; how < 3; how++) {
            shorten(mp, sizes[i], sizes[i], how);
            shorten(mp, sizes[i], sizes[i] + 17, how);
            shorten(mp, sizes[i], 0, how);
            if (sizes[i] > 1) {
                shorten(mp, sizes[i], sizes[i] - 1, how);
                shorten(mp, sizes[i], sizes[i] / 2, how);
            }
        }
    }
}

/* count is in elements; a part of an element does not count. */
static void elements(struct mp *mp)
{
    int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;
    double out[4] = {1.5, -2.5, 3.25, 4}, in[4] = {0, 0, 0, 0};
    const rank_dtype_t all[] = {RANK_BYTE, RANK_INT8, RANK_INT16, RANK_INT32, RANK_INT64, RANK_UINT8, RANK_UINT16, RANK_UINT32,
                                RANK_UINT64, RANK_F16, RANK_BF16, RANK_F32, RANK_F64, RANK_F32_COMPLEX, RANK_F64_COMPLEX,
                                RANK_PAIR_INT32, RANK_PAIR_INT64, RANK_PAIR_F32, RANK_PAIR_F64};
    rank_request_t req;
    rank_envelope_t env;

    for (size_t d = 0; d < sizeof(all) / sizeof(all[0]); d++) {
        rank_dtype_t dtype = all[d];
        int64_t size = rank_dtype_size(dtype);
        char a[64], b[64];
        MP_CHECK(size > 0 && size <= 16);
        mp_fill(a, sizeof(a), (uint64_t)d);
        MP_OK(rank_isend(a, 3, dtype, to, 40 + (int64_t)d, mp->world, &req));
        MP_OK(rank_recv(b, 4, dtype, from, 40 + (int64_t)d, mp->world, &env));
        MP_OK(rank_wait(&req, NULL));
        MP_CHECK_EQ(env.count, 3);
        MP_CHECK_EQ(env.bytes, 3 * size);
        MP_CHECK(memcmp(a, b, (size_t)(3 * size)) == 0);
    }
    /* 20 bytes into doubles: two whole ones */
    MP_OK(rank_isend(out, 20, RANK_BYTE, to, 4, mp->world, &req));
    MP_OK(rank_recv(in, 4, RANK_F64, from, 4, mp->world, &env));
    MP_OK(rank_wait(&req, NULL));
    MP_CHECK_EQ(env.count, 2);
    MP_CHECK_EQ(env.bytes, 20);
    MP_CHECK(in[0] == 1.5 && in[1] == -2.5 && in[3] == 0);
    /* 32 bytes into two and a bit of anything: truncated at whole bytes of the buffer */
    MP_OK(rank_isend(out, 4, RANK_F64, to, 4, mp->world, &req));
    MP_STATUS(rank_recv(in, 3, RANK_F64, from, 4, mp->world, &env), RANK_ERR_TRUNCATED);
    MP_OK(rank_wait(&req, NULL));
    MP_CHECK_EQ(env.count, 3);
    MP_CHECK_EQ(env.bytes, 24);
    MP_CHECK_EQ(env.sent_bytes, 32);
}

static void zero_bytes(struct mp *mp)
{
    int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;
    rank_request_t req[2];
    rank_envelope_t env;

    MP_OK(rank_isend(NULL, 0, RANK_F64, to, 8, mp->world, &req[0]));
    MP_OK(rank_irecv(NULL, 0, RANK_F64, from, 8, mp->world, &req[1]));
    MP_OK(rank_waitall(2, req, NULL));
    MP_OK(rank_isend(NULL, 0, RANK_BYTE, to, 8, mp->world, &req[0]));
    MP_OK(rank_recv(NULL, 0, RANK_BYTE, from, 8, mp->world, &env));
    MP_OK(rank_wait(&req[0], NULL));
    MP_CHECK_EQ(env.count, 0);
    MP_CHECK_EQ(env.sent_bytes, 0);
    MP_CHECK_EQ(env.source, from);
    MP_OK(rank_issend(NULL, 0, RANK_BYTE, to, 8, mp->world, &req[0]));
    MP_OK(rank_recv(NULL, 0, RANK_BYTE, from, 8, mp->world, &env));
    MP_OK(rank_wait(&req[0], NULL));
}

/* To oneself, every size, in both orders; a blocking send to oneself of what is sent eagerly returns,
 * and with a posted receive every one does. */
static void oneself(struct mp *mp)
{
    for (int i = 0; i < SIZES; i++) {
        size_t n = (size_t)sizes[i];
        char *a = mp_alloc(n), *b = mp_alloc(n);
        rank_request_t req;
        rank_envelope_t env;
        int found = 0;

        mp_fill(a, n, n);
        memset(b, 0, n);
        MP_OK(rank_irecv(b, (int64_t)n, RANK_BYTE, mp->rank, 6, mp->world, &req));
        MP_OK(rank_send(a, (int64_t)n, RANK_BYTE, mp->rank, 6, mp->world));
        MP_OK(rank_wait(&req, &env));
        MP_CHECK_EQ(env.source, mp->rank);
        MP_CHECK_EQ(mp_verify(b, n, n), -1);

        memset(b, 0, n);
        MP_OK(rank_isend(a, (int64_t)n, RANK_BYTE, mp->rank, 6, mp->world, &req));
        MP_OK(rank_iprobe(mp->rank, 6, mp->world, &found, &env));
        MP_CHECK(found);
        MP_CHECK_EQ(env.bytes, n);
        MP_OK(rank_recv(b, (int64_t)n, RANK_BYTE, RANK_ANY_SOURCE, 6, mp->world, &env));
        MP_OK(rank_wait(&req, NULL));
        MP_CHECK_EQ(env.source, mp->rank);
        MP_CHECK_EQ(mp_verify(b, n, n), -1);

        memset(b, 0, n);
        MP_OK(rank_irecv(b, (int64_t)n, RANK_BYTE, RANK_ANY_SOURCE, 6, mp->world, &req));
        MP_OK(rank_ssend(a, (int64_t)n, RANK_BYTE, mp->rank, 6, mp->world));
        MP_OK(rank_wait(&req, NULL));
        MP_CHECK_EQ(mp_verify(b, n, n), -1);

        memset(b, 0, n);
        MP_OK(rank_sendrecv(a, (int64_t)n, RANK_BYTE, mp->rank, 6, b, (int64_t)n, RANK_BYTE,
                            mp->rank, 6, mp->world, &env));
        MP_CHECK_EQ(mp_verify(b, n, n), -1);
        if (n > 0) {
            MP_OK(rank_isend(a, (int64_t)n, RANK_BYTE, mp->rank, 6, mp->world, &req));
            MP_STATUS(rank_recv(b, (int64_t)n / 2, RANK_BYTE, mp->rank, 6, mp->world, &env),
                      RANK_ERR_TRUNCATED);
            MP_CHECK_EQ(env.sent_bytes, n);
            MP_CHECK_EQ(env.bytes, n / 2);
            MP_OK(rank_wait(&req, NULL));
        }
        free(a);
        free(b);
    }
}

int main(int argc, char **argv)
{
    struct mp mp;

    mp_start(&mp, &argc, argv);
    mp_case(&mp, "truncation");
    truncation(&mp);
    mp_case(&mp, "elements");
    elements(&mp);
    mp_case(&mp, "zero bytes");
    zero_bytes(&mp);
    mp_case(&mp, "oneself");
    oneself(&mp);
    mp_end(&mp);
    return 0;
}

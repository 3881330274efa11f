/* SPDX-License-Identifier: BSD-3-Clause */
/* p2p_order.c: match receives by order, tags, sources, wildcards and teams of one. */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>

enum { MESSAGES = 300, STOP = 0x111, GO = 0x112 };

/* Sizes on both sides of every border between the ways that a message can travel. */
static const size_t sizes[] = {0,    1,    7,     8,     31,    32,    33,    64,    100,    500,
                               1000, 4095, 4096,  8192,  16383, 16384, 16385, 30000, 65536,  200000};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static size_t size_of(int i)
{
    return sizes[(i * 7 + i / 20) % SIZES];
}

/* One tag, all sizes: received in the order sent, whatever way each of them took. posted: the
 * receives are there first. */
static void same_tag(struct mp *mp, bool posted)
{
    int right = (mp->rank + 1) % mp->size, left = (mp->rank - 1 + mp->size) % mp->size;
    rank_request_t sends[MESSAGES], recvs[MESSAGES];
    char *out[MESSAGES], *in[MESSAGES];

    for (int i = 0; i < MESSAGES; i++) {
        out[i] = mp_alloc(size_of(i));
        in[i] = mp_alloc(size_of(i));
        mp_fill(out[i], size_of(i), (uint64_t)(mp->rank * MESSAGES + i));
    }
    for (int i = 0; posted && i < MESSAGES; i++)
        MP_OK(rank_irecv(in[i], (int64_t)size_of(i), RANK_BYTE, left, 5, mp->world, &recvs[i]));
    mp_barrier(mp->world);
    for (int i = 0; i < MESSAGES; i++)
        MP_OK(rank_isend(out[i], (int64_t)size_of(i), RANK_BYTE, right, 5, mp->world, &sends[i]));
    for (int i = 0; i < MESSAGES; i++) {
        rank_envelope_t env;
        memset(&env, 0xff, sizeof(env));
        if (posted)
            MP_OK(rank_wait(&recvs[i], &env));
        else
            MP_OK(rank_recv(in[i], (int64_t)size_of(i), RANK_BYTE, left, 5, mp->world, &env));
        MP_CHECK_EQ(env.bytes, size_of(i));
        MP_CHECK_EQ(env.sent_bytes, size_of(i));
        MP_CHECK_EQ(env.count, size_of(i));
        MP_CHECK_EQ(env.source, left);
        MP_CHECK_EQ(env.tag, 5);
        MP_CHECK_EQ(env.status, RANK_OK);
        MP_CHECK(env.reserved[0] == 0 && env.reserved[1] == 0 && env.reserved[2] == 0);
        MP_CHECK_EQ(mp_verify(in[i], size_of(i), (uint64_t)(left * MESSAGES + i)), -1);
    }
    MP_OK(rank_waitall(MESSAGES, sends, NULL));
    for (int i = 0; i < MESSAGES; i++) {
        MP_CHECK(sends[i] == RANK_REQUEST_NULL);
        free(out[i]);
        free(in[i]);
    }
}

/* Tags pick messages out of order; what is left is taken in order. */
static void tags(struct mp *mp)
{
    int peer = mp->rank ^ 1;
    int32_t v;

    if (peer >= mp->size)
        return;
    for (int32_t i = 0; i < 64; i++)
        MP_OK(rank_send(&i, 1, RANK_INT32, peer, i % 8, mp->world));
    /* tag 5 first, then any tag: 0 1 2 3 4 6 7 of each eight */
    for (int i = 0; i < 8; i++) {
        MP_OK(rank_recv(&v, 1, RANK_INT32, peer, 5, mp->world, NULL));
        MP_CHECK_EQ(v, 8 * i + 5);
    }
    for (int i = 0; i < 64; i++) {
        rank_envelope_t env;
        if (i % 8 == 5)
            continue;
        MP_OK(rank_recv(&v, 1, RANK_INT32, peer, RANK_ANY_TAG, mp->world, &env));
        MP_CHECK_EQ(v, i);
        MP_CHECK_EQ(env.tag, i % 8);
        MP_CHECK_EQ(env.source, peer);
    }
}

/* Receives that could all match are served in the order in which they were posted, specific and
 * wild ones mixed. */
static void posted_order(struct mp *mp)
{
    int peer = mp->rank ^ 1;
    rank_request_t req[8];
    int32_t v[8], out;

    if (peer >= mp->size)
        return;
    for (int i = 0; i < 8; i++) {
        int source = i & 1 ? RANK_ANY_SOURCE : peer;
        int64_t tag = i & 2 ? RANK_ANY_TAG : 9;
        v[i] = -1;
        /* A receive for just anything could take the next barrier's word from a third rank. */
        if (source == RANK_ANY_SOURCE && mp->size > 2)
            tag = 9;
        MP_OK(rank_irecv(&v[i], 1, RANK_INT32, source, tag, mp->world, &req[i]));
    }
    for (int i = 0; i < 8; i++) {
        out = 100 + i;
        MP_OK(rank_send(&out, 1, RANK_INT32, peer, 9, mp->world));
    }
    MP_OK(rank_waitall(8, req, NULL));
    for (int i = 0; i < 8; i++)
        MP_CHECK_EQ(v[i], 100 + i);
}

/* All to rank 0, which takes whatever comes: per source the order holds. */
static void any_source(struct mp *mp)
{
    int per = 200;

    if (mp->rank != 0) {
        int32_t msg[2] = {mp->rank, 0};
        for (int i = 0; i < per; i++) {
            msg[1] = i;
            MP_OK(rank_send(msg, 2, RANK_INT32, 0, i % 3, mp->world));
        }
        MP_OK(rank_recv(NULL, 0, RANK_BYTE, 0, GO, mp->world, NULL));
        return;
    }
    int32_t *next = calloc((size_t)mp->size, sizeof(*next));
    for (int i = 0; i < per * (mp->size - 1); i++) {
        rank_envelope_t env;
        int32_t msg[2];
        MP_OK(rank_recv(msg, 2, RANK_INT32, RANK_ANY_SOURCE, RANK_ANY_TAG, mp->world, &env));
        MP_CHECK_EQ(env.source, msg[0]);
        MP_CHECK_EQ(env.count, 2);
        MP_CHECK_EQ(env.tag, msg[1] % 3);
        MP_CHECK_EQ(msg[1], next[msg[0]]);
        next[msg[0]]++;
    }
    free(next);
    for (int r = 1; r < mp->size; r++)
        MP_OK(rank_send(NULL, 0, RANK_BYTE, r, GO, mp->world));
}

/* A receive for one source is not disturbed by what others send with the same tag. */
static void chosen_source(struct mp *mp)
{
    int32_t v = mp->rank;

    for (int d = 1; d < mp->size; d++)
        MP_OK(rank_send(&v, 1, RANK_INT32, (mp->rank + d) % mp->size, 31, mp->world));
    for (int r = mp->size - 1; r >= 0; r--) {
        if (r == mp->rank)
            continue;
        MP_OK(rank_recv(&v, 1, RANK_INT32, r, 31, mp->world, NULL));
        MP_CHECK_EQ(v, r);
    }
}

/* The largest tags there are. */
static void wide_tags(struct mp *mp)
{
    int peer = mp->rank ^ 1;
    const int64_t t[] = {INT64_MAX, INT64_MAX - 1, 1LL << 62, 1LL << 32, (1LL << 32) + 1, 0};
    int32_t v;

    if (peer >= mp->size)
        return;
    for (int32_t i = 0; i < 6; i++)
        MP_OK(rank_send(&i, 1, RANK_INT32, peer, t[i], mp->world));
    for (int i = 5; i >= 0; i--) {
        rank_envelope_t env;
        MP_OK(rank_recv(&v, 1, RANK_INT32, peer, t[i], mp->world, &env));
        MP_CHECK_EQ(v, i);
        MP_CHECK_EQ(env.tag, t[i]);
    }
}

int main(int argc, char **argv)
{
    struct mp mp;

    mp_start(&mp, &argc, argv);
    mp_case(&mp, "one tag, unexpected");
    same_tag(&mp, false);
    mp_case(&mp, "one tag, posted");
    same_tag(&mp, true);
    mp_case(&mp, "tags");
    tags(&mp);
    mp_case(&mp, "posted order");
    posted_order(&mp);
    mp_case(&mp, "any source");
    any_source(&mp);
    mp_case(&mp, "chosen source");
    chosen_source(&mp);
    mp_case(&mp, "wide tags");
    wide_tags(&mp);
    mp_case(&mp, "end");
    mp_end(&mp);
    return 0;
}

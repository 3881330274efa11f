/* SPDX-License-Identifier: BSD-3-Clause */
/* matched_probe.c: receive a probed message by its handle and by nothing else. */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>

static const int64_t sizes[] = {0, 1, 8, 32, 64, 65, 1000, 8192, 20000, 300000, 3000000};
static rank_team_t team; /* of its own: here are wildcards */
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static int right(const struct mp *mp) { return (mp->rank + 1) % mp->size; }
static int left(const struct mp *mp) { return (mp->rank - 1 + mp->size) % mp->size; }

/* Two of each size with one tag; the first is taken out, then the second received, then the first. */
static void passed_over(struct mp *mp, int64_t bytes, bool sync)
{
    char *out[2] = {mp_alloc((size_t)bytes), mp_alloc((size_t)bytes)}, *in = mp_alloc((size_t)bytes);
    rank_message_t message = RANK_MESSAGE_NULL, copy;
    rank_request_t send[2], recv;
    rank_envelope_t env;
    int found = 0;

    for (int i = 0; i < 2; i++) {
        mp_fill(out[i], (size_t)bytes, (uint64_t)(mp->rank * 2 + i));
        if (sync)
            MP_OK(rank_issend(out[i], bytes, RANK_BYTE, right(mp), 3, team, &send[i]));
        else
            MP_OK(rank_isend(out[i], bytes, RANK_BYTE, right(mp), 3, team, &send[i]));
    }
    if (bytes % 2) {
        while (!found)
            MP_OK(rank_improbe(RANK_ANY_SOURCE, RANK_ANY_TAG, team, &found, &message, &env));
    } else {
        MP_OK(rank_mprobe(left(mp), 3, team, &message, &env));
    }
    MP_CHECK(message != RANK_MESSAGE_NULL);
    MP_CHECK_EQ(env.bytes, bytes);
    MP_CHECK_EQ(env.source, left(mp));
    MP_CHECK_EQ(env.tag, 3);
    MP_OK(rank_recv(in, bytes, RANK_BYTE, left(mp), 3, team, &env));
    MP_CHECK_EQ(mp_verify(in, (size_t)bytes, (uint64_t)(left(mp) * 2 + 1)), -1);
    MP_OK(rank_iprobe(left(mp), 3, team, &found, NULL));
    MP_CHECK_EQ(found, 0);
    memset(in, 0, (size_t)bytes);
    copy = message;
    if (bytes % 3) {
        MP_OK(rank_mrecv(in, bytes, RANK_BYTE, &message, &env));
    } else {
        MP_OK(rank_imrecv(in, bytes, RANK_BYTE, &message, &recv));
        MP_OK(rank_cancel(&recv)); /* it has matched: nothing happens */
        MP_OK(rank_wait(&recv, &env));
    }
    MP_CHECK(message == RANK_MESSAGE_NULL);
    MP_CHECK_EQ(env.source, left(mp));
    MP_CHECK_EQ(env.tag, 3);
    MP_CHECK_EQ(env.bytes, bytes);
    MP_CHECK_EQ(mp_verify(in, (size_t)bytes, (uint64_t)(left(mp) * 2)), -1);
    MP_STATUS(rank_mrecv(in, bytes, RANK_BYTE, &copy, NULL), RANK_ERR_HANDLE);
    MP_OK(rank_waitall(2, send, NULL));
    mp_barrier(mp->world);
    free(out[0]);
    free(out[1]);
    free(in);
}

/* A synchronous send is matched by the receive, not by a plain probe. */
static void truncated(struct mp *mp)
{
    int64_t out[2000], in[2000];
    rank_message_t message;
    rank_request_t send;
    rank_envelope_t env;

    for (int64_t n = 2; n <= 2000; n += 1998) {
        for (int i = 0; i < 2000; i++) {
            out[i] = i;
            in[i] = -1;
        }
        MP_OK(rank_isend(out, n, RANK_INT64, right(mp), 4, team, &send));
        MP_OK(rank_mprobe(left(mp), RANK_ANY_TAG, team, &message, &env));
        MP_STATUS(rank_mrecv(in, n / 2, RANK_INT64, &message, &env), RANK_ERR_TRUNCATED);
        MP_CHECK_EQ(env.count, n / 2);
        MP_CHECK_EQ(env.sent_bytes, n * 8);
        MP_CHECK_EQ(in[n / 2 - 1], n / 2 - 1);
        MP_CHECK_EQ(in[n / 2], -1);
        MP_OK(rank_wait(&send, NULL));
    }
    mp_barrier(mp->world);
}

/* Many taken out at once, received backwards. */
static void backwards(struct mp *mp)
{
    enum { N = 300 };
    int64_t out[N], in;
    rank_message_t message[N];
    rank_request_t send[N];

    for (int i = 0; i < N; i++) {
        out[i] = mp->rank * 1000 + i;
        MP_OK(rank_isend(&out[i], 1, RANK_INT64, right(mp), i % 3, team, &send[i]));
    }
    for (int i = 0; i < N; i++)
        MP_OK(rank_mprobe(left(mp), i % 3, team, &message[i], NULL));
    for (int i = N; i-- > 0;) {
        MP_OK(rank_mrecv(&in, 1, RANK_INT64, &message[i], NULL));
        MP_CHECK_EQ(in, left(mp) * 1000 + i);
    }
    MP_OK(rank_waitall(N, send, NULL));
}

static void arguments(struct mp *mp)
{
    rank_message_t message = RANK_MESSAGE_NULL;
    int found = 7;
    char c;

    MP_STATUS(rank_mrecv(&c, 1, RANK_BYTE, &message, NULL), RANK_ERR_HANDLE);
    MP_STATUS(rank_mrecv(&c, 1, RANK_BYTE, NULL, NULL), RANK_ERR_ARG);
    MP_STATUS(rank_mrecv(&c, -1, RANK_BYTE, &message, NULL), RANK_ERR_COUNT);
    MP_STATUS(rank_mprobe(mp->size, 0, mp->world, &message, NULL), RANK_ERR_RANK);
    MP_STATUS(rank_mprobe(0, -3, mp->world, &message, NULL), RANK_ERR_TAG);
    MP_STATUS(rank_mprobe(0, 0, RANK_TEAM_NULL, &message, NULL), RANK_ERR_HANDLE);
    MP_STATUS(rank_mprobe(0, 0, mp->world, NULL, NULL), RANK_ERR_ARG);
    MP_OK(rank_improbe(0, 77, mp->world, &found, &message, NULL));
    MP_CHECK_EQ(found, 0);
    MP_CHECK(message == RANK_MESSAGE_NULL);
}

int main(int argc, char **argv)
{
    rank_message_t never;
    char text[100] = "never received";
    rank_request_t send;
    struct mp mp;

    mp_start(&mp, &argc, argv);
    mp_case(&mp, "arguments");
    arguments(&mp);
    MP_OK(rank_team_dup(mp.world, &team));
    mp_case(&mp, "passed over");
    for (int i = 0; i < SIZES; i++) {
        passed_over(&mp, sizes[i], false);
        passed_over(&mp, sizes[i], true);
    }
    mp_case(&mp, "truncated");
    truncated(&mp);
    mp_case(&mp, "backwards");
    backwards(&mp);
    mp_case(&mp, "never received"); /* freed by finalize: a leak checker sees to it */
    MP_OK(rank_isend(text, sizeof(text), RANK_BYTE, right(&mp), 9, mp.world, &send));
    MP_OK(rank_mprobe(left(&mp), 9, mp.world, &never, NULL));
    MP_OK(rank_team_free(&team));
    mp_end(&mp);
    return 0;
}

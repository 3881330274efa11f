/* SPDX-License-Identifier: BSD-3-Clause */
/* p2p_wait.c: test, wait, probe, send synchronously, exchange large messages. */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TAG = 11, GO = 12, ACK = 13 };

static void sleep_s(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    nanosleep(&t, NULL);
}

static void null_requests(void)
{
    rank_request_t req[3] = {RANK_REQUEST_NULL, RANK_REQUEST_NULL, RANK_REQUEST_NULL};
    rank_envelope_t env[3];
    int64_t index = 7;
    int done = 0;

    MP_OK(rank_test(&req[0], &done, &env[0]));
    MP_CHECK_EQ(done, 1);
    MP_OK(rank_wait(&req[0], NULL));
    MP_OK(rank_waitall(3, req, env));
    MP_OK(rank_waitall(0, NULL, NULL));
    MP_OK(rank_waitany(3, req, &index, &env[0]));
    MP_CHECK_EQ(index, RANK_UNDEFINED);
    index = 7;
    MP_OK(rank_waitany(0, NULL, &index, NULL));
    MP_CHECK_EQ(index, RANK_UNDEFINED);
}

/* test alone moves a transfer on to its end, small and large. */
static void test_only(struct mp *mp)
{
    static const size_t sizes[] = {4, 3000, 300000, 4000000};
    int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;

    for (size_t s = 0; s < 4; s++) {
        char *a = mp_alloc(sizes[s]), *b = mp_alloc(sizes[s]);
        rank_request_t req[2];
        rank_envelope_t env;
        int done[2] = {0, 0};

        mp_fill(a, sizes[s], s);
        MP_OK(rank_irecv(b, (int64_t)sizes[s], RANK_BYTE, from, TAG, mp->world, &req[0]));
        MP_OK(rank_test(&req[0], &done[0], &env));
        if (mp->size > 1) /* the left one waits for the barrier as we do */
            MP_CHECK(!done[0] && req[0] != RANK_REQUEST_NULL);
        mp_barrier(mp->world);
        MP_OK(rank_isend(a, (int64_t)sizes[s], RANK_BYTE, to, TAG, mp->world, &req[1]));
        while (!done[0] || !done[1]) {
            for (int i = 0; i < 2; i++) {
                if (!done[i])
                    MP_OK(rank_test(&req[i], &done[i], i == 0 ? &env : NULL));
                MP_CHECK(done[i] == (req[i] == RANK_REQUEST_NULL));
            }
        }
        MP_CHECK_EQ(env.bytes, sizes[s]);
        MP_CHECK_EQ(mp_verify(b, sizes[s], s), -1);
        free(a);
        free(b);
    }
}

/* waitany gives each request once, and only what is complete. */
static void any(struct mp *mp)
{
    enum { N = 40 };
    rank_request_t req[N];
    int32_t in[N];
    int seen[N] = {0};

    if (mp->rank == 0) {
        for (int i = 0; i < N; i++) {
            in[i] = -1;
            MP_OK(rank_irecv(&in[i], 1, RANK_INT32, 1 + i % (mp->size - 1), 100 + i, mp->world,
                             &req[i]));
        }
        for (int r = 1; r < mp->size; r++)
            MP_OK(rank_send(NULL, 0, RANK_BYTE, r, GO, mp->world));
        for (int k = 0; k < N; k++) {
            rank_envelope_t env;
            int64_t i = -5;
            MP_OK(rank_waitany(N, req, &i, &env));
            MP_CHECK(i >= 0 && i < N);
            MP_CHECK(!seen[i]);
            seen[i] = 1;
            MP_CHECK(req[i] == RANK_REQUEST_NULL);
            MP_CHECK_EQ(in[i], i * 3);
            MP_CHECK_EQ(env.tag, 100 + i);
        }
        for (int r = 1; r < mp->size; r++)
            MP_OK(rank_send(NULL, 0, RANK_BYTE, r, GO, mp->world));
    } else {
        MP_OK(rank_recv(NULL, 0, RANK_BYTE, 0, GO, mp->world, NULL));
        for (int i = N - 1; i >= 0; i--) {
            int32_t v = i * 3;
            if (1 + i % (mp->size - 1) == mp->rank)
                MP_OK(rank_send(&v, 1, RANK_INT32, 0, 100 + i, mp->world));
        }
        MP_OK(rank_recv(NULL, 0, RANK_BYTE, 0, GO, mp->world, NULL));
    }
}

/* waitall completes all of them even when some fail; the first error in array order is given, each
 * envelope has its own. */
static void all_with_errors(struct mp *mp)
{
    int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;
    rank_request_t req[6];
    rank_envelope_t env[6];
    char in[5][100], out[100];

    mp_fill(out, sizeof(out), 1);
    for (int i = 0; i < 5; i++) /* the second and the fourth are too short */
        MP_OK(rank_irecv(in[i], i & 1 ? 10 : 100, RANK_BYTE, from, 50 + i, mp->world, &req[i]));
    req[5] = RANK_REQUEST_NULL;
    mp_barrier(mp->world);
    for (int i = 4; i >= 0; i--)
        MP_OK(rank_send(out, 100, RANK_BYTE, to, 50 + i, mp->world));
    MP_STATUS(rank_waitall(6, req, env), RANK_ERR_TRUNCATED);
    for (int i = 0; i < 5; i++) {
        MP_CHECK(req[i] == RANK_REQUEST_NULL);
        MP_CHECK_EQ(env[i].status, i & 1 ? RANK_ERR_TRUNCATED : RANK_OK);
        MP_CHECK_EQ(env[i].bytes, i & 1 ? 10 : 100);
        MP_CHECK_EQ(env[i].tag, 50 + i);
    }
}

/* ssend returns only after the match: the receiver matches late and sends the time. Odd ranks receive. */
static void synchronous(struct mp *mp)
{
    static const size_t sizes[] = {0, 8, 5000, 500000};
    int peer = mp->rank ^ 1;

    if (peer >= mp->size)
        return;
    for (size_t s = 0; s < 4; s++) {
        char *buf = mp_alloc(sizes[s]);
        rank_request_t req;
        int done = 0;

        mp_fill(buf, sizes[s], s);
        if (mp->rank & 1) {
            rank_envelope_t env;
            /* The message is here, without a receive. */
            MP_OK(rank_probe(peer, TAG, mp->world, &env));
            sleep_s(0.03);
            MP_OK(rank_send(NULL, 0, RANK_BYTE, peer, GO, mp->world));
            MP_OK(rank_recv(NULL, 0, RANK_BYTE, peer, ACK, mp->world, NULL));
            MP_OK(rank_recv(buf, (int64_t)sizes[s], RANK_BYTE, peer, TAG, mp->world, &env));
            MP_CHECK_EQ(mp_verify(buf, sizes[s], s), -1);
            /* The blocking one: our clock against the sender's, one machine, one clock. */
            MP_OK(rank_probe(peer, TAG + 50, mp->world, &env));
            sleep_s(0.03);
            double matched = mp_now();
            MP_OK(rank_recv(buf, (int64_t)sizes[s], RANK_BYTE, peer, TAG + 50, mp->world, &env));
            MP_OK(rank_send(&matched, 1, RANK_F64, peer, ACK, mp->world));
        } else {
            double matched, returned;
            MP_OK(rank_issend(buf, (int64_t)sizes[s], RANK_BYTE, peer, TAG, mp->world, &req));
            MP_OK(rank_recv(NULL, 0, RANK_BYTE, peer, GO, mp->world, NULL));
            for (int i = 0; i < 1000; i++) { /* 30 ms later, unmatched still */
                MP_OK(rank_test(&req, &done, NULL));
                MP_CHECK(!done);
            }
            MP_OK(rank_send(NULL, 0, RANK_BYTE, peer, ACK, mp->world));
            MP_OK(rank_wait(&req, NULL));
            MP_OK(rank_ssend(buf, (int64_t)sizes[s], RANK_BYTE, peer, TAG + 50, mp->world));
            returned = mp_now();
            MP_OK(rank_recv(&matched, 1, RANK_F64, peer, ACK, mp->world, NULL));
            if (returned < matched)
                mp_fail(__FILE__, __LINE__, "ssend of %zu bytes returned %g s before the match",
                        sizes[s], matched - returned);
        }
        free(buf);
    }
}

/* iprobe finds nothing where nothing is, does not take anything, and names what the next receive
 * gets. */
static void probes(struct mp *mp)
{
    int peer = mp->rank ^ 1, found = 3;
    rank_envelope_t env;
    char buf[300];

    if (peer >= mp->size)
        return;
    MP_OK(rank_iprobe(peer, 999, mp->world, &found, &env));
    MP_CHECK_EQ(found, 0);
    MP_OK(rank_iprobe(RANK_ANY_SOURCE, 999, mp->world, &found, NULL));
    MP_CHECK_EQ(found, 0);
    mp_fill(buf, sizeof(buf), 5);
    for (int i = 0; i < 3; i++)
        MP_OK(rank_send(buf, 100 * (i + 1), RANK_BYTE, peer, 60 + i, mp->world));
    MP_OK(rank_probe(peer, 62, mp->world, &env));
    MP_CHECK_EQ(env.bytes, 300);
    MP_CHECK_EQ(env.count, 300);
    MP_CHECK_EQ(env.tag, 62);
    for (int again = 0; again < 2; again++) {
        MP_OK(rank_probe(peer, RANK_ANY_TAG, mp->world, &env));
        MP_CHECK_EQ(env.tag, 60);
        MP_CHECK_EQ(env.source, peer);
        MP_CHECK_EQ(env.bytes, 100);
    }
    for (int i = 2; i >= 0; i--) {
        MP_OK(rank_iprobe(peer, 60 + i, mp->world, &found, &env));
        MP_CHECK_EQ(found, 1); /* it was seen to be there: later ones have come */
        MP_CHECK_EQ(env.bytes, 100 * (i + 1));
        memset(buf, 0, sizeof(buf));
        MP_OK(rank_recv(buf, env.bytes, RANK_BYTE, env.source, env.tag, mp->world, NULL));
        MP_CHECK_EQ(mp_verify(buf, (size_t)env.bytes / 8 * 8, 5), -1);
        MP_OK(rank_iprobe(peer, 60 + i, mp->world, &found, &env));
        MP_CHECK_EQ(found, 0);
    }
}

/* All send to all at once, blocking where the library promises to. */
static void head_on(struct mp *mp)
{
    static const size_t sizes[] = {64, 20000, 400000, 6000000};

    for (size_t s = 0; s < 4; s++) {
        size_t n = sizes[s] / (mp->size > 4 && s == 3 ? 8 : 1);
        char *a = mp_alloc(n), *b = mp_alloc(n);
        for (int d = 0; d < mp->size; d++) {
            int to = (mp->rank + d) % mp->size, from = (mp->rank - d + mp->size) % mp->size;
            rank_request_t req;
            rank_envelope_t env;
            mp_fill(a, n, (uint64_t)(mp->rank * 100 + to));
            memset(b, 0, n);
            MP_OK(rank_sendrecv(a, (int64_t)n, RANK_BYTE, to, 70, b, (int64_t)n, RANK_BYTE, from,
                                70, mp->world, &env));
            MP_CHECK_EQ(env.source, from);
            MP_CHECK_EQ(mp_verify(b, n, (uint64_t)(from * 100 + mp->rank)), -1);
            /* a blocking send against a blocking send: each has its receive posted */
            memset(b, 0, n);
            MP_OK(rank_irecv(b, (int64_t)n, RANK_BYTE, from, 71, mp->world, &req));
            MP_OK(rank_ssend(a, (int64_t)n, RANK_BYTE, to, 71, mp->world));
            MP_OK(rank_wait(&req, NULL));
            MP_CHECK_EQ(mp_verify(b, n, (uint64_t)(from * 100 + mp->rank)), -1);
        }
        free(a);
        free(b);
    }
}

/* sendrecv with different sizes, types and truncation of its receive. */
static void exchange(struct mp *mp)
{
    int to = (mp->rank + 1) % mp->size, from = (mp->rank - 1 + mp->size) % mp->size;
    double out[100], in[100];
    rank_envelope_t env;

    mp_fill(out, sizeof(out), 3);
    MP_OK(rank_sendrecv(out, 100, RANK_F64, to, 80, in, 800, RANK_BYTE, from, RANK_ANY_TAG,
                        mp->world, &env));
    MP_CHECK_EQ(env.count, 800);
    MP_CHECK_EQ(env.tag, 80);
    MP_CHECK_EQ(mp_verify(in, sizeof(in), 3), -1);
    MP_STATUS(rank_sendrecv(out, 100, RANK_F64, to, 80, in, 10, RANK_F64, from, 80, mp->world,
                            &env),
              RANK_ERR_TRUNCATED);
    MP_CHECK_EQ(env.count, 10);
    MP_CHECK_EQ(env.sent_bytes, 800);
}

int main(int argc, char **argv)
{
    struct mp mp;

    mp_start(&mp, &argc, argv);
    mp_case(&mp, "null requests");
    null_requests();
    mp_case(&mp, "test only");
    test_only(&mp);
    if (mp.size > 1) {
        mp_case(&mp, "waitany");
        any(&mp);
    }
    mp_case(&mp, "waitall with errors");
    all_with_errors(&mp);
    mp_case(&mp, "ssend");
    synchronous(&mp);
    mp_case(&mp, "probe");
    probes(&mp);
    mp_case(&mp, "sendrecv");
    exchange(&mp);
    mp_case(&mp, "head to head");
    head_on(&mp);
    mp_end(&mp);
    return 0;
}

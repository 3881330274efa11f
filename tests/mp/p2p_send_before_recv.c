/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p2p_send_before_recv.c: send large messages on all ranks before any receive.
 * No rank waits for ever. What is fetched early keeps its order, its bytes, and its place in probes; a synchronous send does not
 * count as matched by that.
 *
 *   --bytes N   of most messages (2 MiB)
 *   --many N    short messages, one after the other, before the first is received (100000)
 *   --level N   of threads
 */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>

enum { TAG = 3 };

struct scene {
    struct mp mp;
    int right, left;
    int64_t bytes;
    char *out, *in;
};

static uint64_t key_of(int from, int i)
{
    return (uint64_t)(from * 1000 + i);
}

static void check_in(struct scene *s, int64_t bytes, int from, int i)
{
    MP_CHECK_EQ(mp_verify(s->in, (size_t)bytes, key_of(from, i)), -1);
    memset(s->in, 0, (size_t)s->bytes);
}

static void fill_out(struct scene *s, int64_t bytes, int i)
{
    mp_fill(s->out, (size_t)bytes, key_of(s->mp.rank, i));
}

/* A ring, each with the blocking send first; sizes differ from rank to rank, so some may leave at once and others not. */
static void ring(struct scene *s)
{
    for (int i = 0; i < 3; i++) {
        int64_t mine = i == 1 ? s->bytes >> s->mp.rank : s->bytes, theirs = i == 1 ? s->bytes >> s->left : s->bytes;

        fill_out(s, mine, i);
        MP_OK(rank_send(s->out, mine, RANK_BYTE, s->right, TAG, s->mp.world));
        MP_OK(rank_recv(s->in, theirs, RANK_BYTE, s->left, TAG, s->mp.world, NULL));
        check_in(s, theirs, s->left, i);
    }
}

/* To each other rank before anything is received, in order of tags; received in another. */
static void all_to_all(struct scene *s)
{
    enum { EACH = 3 };
    int64_t n = s->bytes / 4;

    for (int k = 1; k < s->mp.size; k++) {
        for (int i = 0; i < EACH; i++) {
            fill_out(s, n - i, i);
            MP_OK(rank_send(s->out, n - i, RANK_BYTE, (s->mp.rank + k) % s->mp.size, i, s->mp.world));
        }
    }
    for (int i = EACH; i-- > 0;) {
        for (int k = 1; k < s->mp.size; k++) {
            int from = (s->mp.rank + k) % s->mp.size;
            MP_OK(rank_recv(s->in, n, RANK_BYTE, from, i, s->mp.world, NULL));
            check_in(s, n - i, from, i);
        }
    }
}

/*
 * More short messages than a receiver keeps as a rule. The sender detects once that the peer does not receive, and not again for
 * each message: a millisecond for each would be minutes.
 */
static void many(struct scene *s, int64_t n)
{
    enum { BYTES = 100 };
    double began = mp_now(), took;

    for (int64_t i = 0; i < n; i++) {
        memcpy(s->out, &i, sizeof(i));
        memset(s->out + sizeof(i), (int)(i + s->mp.rank) & 127, BYTES - sizeof(i));
        MP_OK(rank_send(s->out, BYTES, RANK_BYTE, s->right, TAG, s->mp.world));
    }
    took = mp_now() - began;
    for (int64_t i = 0; i < n; i++) {
        MP_OK(rank_recv(s->in, BYTES, RANK_BYTE, s->left, TAG, s->mp.world, NULL));
        memset(s->out + sizeof(i), (int)(i + s->left) & 127, BYTES - sizeof(i));
        memcpy(s->out, &i, sizeof(i));
        MP_CHECK(memcmp(s->in, s->out, BYTES) == 0);
    }
    printf("rank %d: sent %lld in %.3f s\n", s->mp.rank, (long long)n, took);
    MP_CHECK(took < 40);
}

/* One rank to itself; no other can help it. */
static void to_itself(struct scene *s)
{
    fill_out(s, s->bytes, 7);
    MP_OK(rank_send(s->out, s->bytes, RANK_BYTE, s->mp.rank, TAG, s->mp.world));
    MP_OK(rank_recv(s->in, s->bytes, RANK_BYTE, s->mp.rank, TAG, s->mp.world, NULL));
    check_in(s, s->bytes, s->mp.rank, 7);
}

/* On a team of its own, which has a context of its own among threads. */
static void on_its_own(struct scene *s)
{
    rank_team_t alone;

    MP_OK(rank_team_split(s->mp.world, s->mp.rank, 0, &alone));
    fill_out(s, s->bytes, 8);
    MP_OK(rank_send(s->out, s->bytes, RANK_BYTE, 0, TAG, alone));
    MP_OK(rank_recv(s->in, s->bytes, RANK_BYTE, 0, TAG, alone, NULL));
    check_in(s, s->bytes, s->mp.rank, 8);
    MP_OK(rank_team_free(&alone));
}

/* Many of one tag: fetched or not they come in order. */
static void in_order(struct scene *s)
{
    enum { N = 12 };
    rank_request_t req[N];
    int64_t n = s->bytes / N;
    char *all = mp_alloc((size_t)(n * N));

    for (int i = 0; i < N; i++) {
        mp_fill(all + i * n, (size_t)n, key_of(s->mp.rank, i));
        MP_OK(rank_isend(all + i * n, n - i, RANK_BYTE, s->right, TAG, s->mp.world, &req[i]));
    }
    MP_OK(rank_wait(&req[N / 2], NULL));
    for (int i = 0; i < N; i++) {
        rank_envelope_t env;
        MP_OK(rank_recv(s->in, n, RANK_BYTE, i % 2 ? s->left : RANK_ANY_SOURCE, TAG, s->mp.world, &env));
        MP_CHECK_EQ(env.bytes, n - i);
        check_in(s, n - i, s->left, i);
    }
    MP_OK(rank_waitall(N, req, NULL));
    free(all);
}

/* The send among receives of what does not come. */
static int one_of(struct scene *s, rank_request_t *send)
{
    rank_request_t req[2] = {*send};
    rank_envelope_t env;
    int64_t which;
    char c;

    MP_OK(rank_irecv(&c, 1, RANK_BYTE, s->left, TAG + 8, s->mp.world, &req[1]));
    MP_OK(rank_waitany(2, req, &which, &env));
    MP_OK(rank_cancel(&req[1]));
    MP_STATUS(rank_wait(&req[1], NULL), RANK_ERR_CANCELED);
    *send = req[0];
    return which;
}

/* Cut short, scattered, probed, taken out by a probe; waited for by test. */
static void other_receives(struct scene *s)
{
    int64_t n = s->bytes, half = n / 2;
    rank_iov_t pieces[2] = {{.base = s->in + half, .bytes = (size_t)(n - half), .count = 1},
                            {.base = s->in, .bytes = (size_t)half, .count = 1}};
    rank_envelope_t env;
    rank_message_t m;
    rank_request_t req;

    fill_out(s, n, 1);
    MP_OK(rank_send(s->out, n, RANK_BYTE, s->right, TAG, s->mp.world));
    MP_STATUS(rank_recv(s->in, half, RANK_BYTE, s->left, TAG, s->mp.world, &env), RANK_ERR_TRUNCATED);
    MP_CHECK_EQ(env.bytes, half);
    MP_CHECK_EQ(env.sent_bytes, n);
    for (int64_t i = half; i < n; i++)
        MP_CHECK_EQ(s->in[i], 0);

    fill_out(s, n, 2);
    MP_OK(rank_send(s->out, n, RANK_BYTE, s->right, TAG, s->mp.world));
    MP_OK(rank_recvv(pieces, 2, s->left, TAG, s->mp.world, NULL));
    fill_out(s, n, 2);
    mp_fill(s->out, (size_t)n, key_of(s->left, 2));
    MP_CHECK(memcmp(s->in + half, s->out, (size_t)(n - half)) == 0);
    MP_CHECK(memcmp(s->in, s->out + (n - half), (size_t)half) == 0);

    fill_out(s, n, 3);
    MP_OK(rank_isend(s->out, n, RANK_BYTE, s->right, TAG, s->mp.world, &req));
    MP_OK(rank_probe(s->left, TAG, s->mp.world, &env));
    MP_CHECK_EQ(env.bytes, n);
    MP_CHECK_EQ(one_of(s, &req), 0);
    MP_OK(rank_probe(s->left, TAG, s->mp.world, &env));
    MP_CHECK_EQ(env.bytes, n);
    MP_OK(rank_recv(s->in, n, RANK_BYTE, s->left, TAG, s->mp.world, NULL));
    check_in(s, n, s->left, 3);

    fill_out(s, n, 4);
    MP_OK(rank_isend(s->out, n, RANK_BYTE, s->right, TAG, s->mp.world, &req));
    MP_OK(rank_mprobe(s->left, TAG, s->mp.world, &m, &env));
    MP_OK(rank_wait(&req, NULL)); /* it is held by its handle, and fetched for all that */
    MP_OK(rank_mrecv(s->in, n, RANK_BYTE, &m, NULL));
    check_in(s, n, s->left, 4);
}

/* A synchronous send waits for its receive; cancelling what has been announced changes nothing. */
static void others_wait(struct scene *s)
{
    rank_request_t sync, plain;
    rank_envelope_t env;
    int flag;

    fill_out(s, s->bytes, 5);
    MP_OK(rank_issend(s->out, s->bytes, RANK_BYTE, s->right, TAG, s->mp.world, &sync));
    MP_OK(rank_isend(s->out, s->bytes, RANK_BYTE, s->right, TAG + 1, s->mp.world, &plain));
    MP_OK(rank_cancel(&plain));
    env.status = rank_wait(&plain, NULL); /* no receive of it has been posted */
    MP_CHECK(env.status == RANK_OK || env.status == RANK_ERR_CANCELED);
    MP_OK(rank_test(&sync, &flag, NULL));
    MP_CHECK(!flag);
    MP_OK(rank_sendrecv(&env.status, 1, RANK_INT32, s->right, TAG + 2, s->in, 1, RANK_INT32, s->left, TAG + 2, s->mp.world,
                        NULL));
    memcpy(&flag, s->in, sizeof(flag));
    if (flag == RANK_OK) {
        MP_OK(rank_recv(s->in, s->bytes, RANK_BYTE, s->left, TAG + 1, s->mp.world, NULL));
        check_in(s, s->bytes, s->left, 5);
    }
    MP_OK(rank_recv(s->in, s->bytes, RANK_BYTE, s->left, TAG, s->mp.world, NULL));
    check_in(s, s->bytes, s->left, 5);
    MP_OK(rank_wait(&sync, NULL));
}

/* Adds to both words without a pause, until both owners have reported that they have gone on. */
static void keep_on(struct scene *s, rank_mem_t words[2])
{
    double until = mp_now() + 20;
    rank_request_t notice[2];
    uint64_t one = 1;
    int flag = 0;

    for (int i = 0; i < 2; i++)
        MP_OK(rank_irecv(NULL, 0, RANK_BYTE, i, TAG + 3, s->mp.world, &notice[i]));
    while (!flag && mp_now() < until) {
        for (int i = 0; i < 64; i++)
            MP_OK(rank_atomic(RANK_AMO_ADD, RANK_UINT64, &one, i % 2, words[i % 2], 0, NULL));
        MP_OK(rank_testall(2, notice, &flag, NULL));
    }
    MP_CHECK(flag);
    MP_OK(rank_waitall(2, notice, NULL));
}

/* Two send to each other first, while others send them requests all the time. */
static void among_others(struct scene *s)
{
    rank_mem_t mine = RANK_MEM_NULL, words[2];
    int other = 1 - s->mp.rank;
    static uint64_t word;

    for (int i = 0; i < 2; i++) {
        struct { char text[RANK_RKEY_MAX]; size_t len; } key = {.len = RANK_RKEY_MAX};
        if (s->mp.rank == i) {
            MP_OK(rank_reg(&word, sizeof(word), &mine));
            MP_OK(rank_rkey_pack(mine, key.text, &key.len));
        }
        MP_OK(rank_bcast(&key, sizeof(key), RANK_BYTE, i, s->mp.world));
        if (s->mp.rank >= 2)
            MP_OK(rank_rkey_open(s->mp.world, i, key.text, key.len, &words[i]));
    }
    MP_OK(rank_barrier(s->mp.world));
    if (s->mp.rank >= 2) {
        keep_on(s, words);
        for (int i = 0; i < 2; i++)
            MP_OK(rank_rkey_close(&words[i]));
    } else {
        fill_out(s, s->bytes, 6);
        MP_OK(rank_send(s->out, s->bytes, RANK_BYTE, other, TAG, s->mp.world));
        for (int i = 2; i < s->mp.size; i++)
            MP_OK(rank_send(NULL, 0, RANK_BYTE, i, TAG + 3, s->mp.world));
        MP_OK(rank_recv(s->in, s->bytes, RANK_BYTE, other, TAG, s->mp.world, NULL));
        check_in(s, s->bytes, other, 6);
    }
    MP_OK(rank_barrier(s->mp.world));
    if (s->mp.rank < 2)
        MP_OK(rank_dereg(&mine));
}

/* One that is never received. */
static void never_received(struct scene *s)
{
    MP_OK(rank_send(s->out, s->bytes, RANK_BYTE, s->right, TAG + 9, s->mp.world));
}

int main(int argc, char **argv)
{
    struct scene s = {.bytes = mp_option(argc, argv, "--bytes", 2 << 20)};
    int64_t n = mp_option(argc, argv, "--many", 100000);

    mp_start_level(&s.mp, &argc, argv, (rank_thread_level_t)mp_option(argc, argv, "--level", RANK_THREAD_SERIALIZED));
    s.right = (s.mp.rank + 1) % s.mp.size;
    s.left = (s.mp.rank + s.mp.size - 1) % s.mp.size;
    s.out = mp_alloc((size_t)s.bytes);
    s.in = mp_alloc((size_t)s.bytes);
    memset(s.in, 0, (size_t)s.bytes);
    mp_case(&s.mp, "a rank to itself");
    to_itself(&s);
    on_its_own(&s);
    mp_case(&s.mp, "a ring");
    ring(&s);
    mp_case(&s.mp, "many short ones");
    many(&s, n);
    mp_case(&s.mp, "all to all");
    all_to_all(&s);
    mp_case(&s.mp, "in order");
    in_order(&s);
    mp_case(&s.mp, "cut short, scattered, probed");
    other_receives(&s);
    mp_case(&s.mp, "synchronous, cancelled");
    others_wait(&s);
    if (s.mp.size > 2) {
        mp_case(&s.mp, "among others");
        among_others(&s);
    }
    mp_case(&s.mp, "never received");
    never_received(&s);
    free(s.out);
    free(s.in);
    mp_end(&s.mp);
    return 0;
}

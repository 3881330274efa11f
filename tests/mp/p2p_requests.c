/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p2p_requests.c: test, cancel and repeat requests, with callbacks.
 * testall, testany, waitsome, testsome; cancel; callbacks; persistent requests.
 *
 * --chain N: callbacks that start the next operation, N in a row (0: 20000)
 */
#include "tests/mp/mp.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 64 };

static int right(const struct mp *mp) { return (mp->rank + 1) % mp->size; }
static int left(const struct mp *mp) { return (mp->rank - 1 + mp->size) % mp->size; }

/* Progress while waiting for other ranks, which may need this core. */
static void turn(void)
{
    MP_OK(rank_progress());
    sched_yield();
}

/* Requests that make no difference: all null, none at all. */
static void nothing(void)
{
    rank_request_t none[3] = {RANK_REQUEST_NULL, RANK_REQUEST_NULL, RANK_REQUEST_NULL};
    rank_envelope_t env[3];
    int64_t n = 9, index = 9, indices[3];
    int done = 0;

    MP_OK(rank_testall(3, none, &done, env));
    MP_CHECK_EQ(done, 1);
    MP_CHECK_EQ(env[2].source, RANK_UNDEFINED);
    done = 0;
    MP_OK(rank_testall(0, NULL, &done, NULL));
    MP_CHECK_EQ(done, 1);
    done = 0;
    MP_OK(rank_testany(3, none, &index, &done, &env[0]));
    MP_CHECK_EQ(done, 1);
    MP_CHECK_EQ(index, RANK_UNDEFINED);
    MP_OK(rank_waitsome(3, none, &n, indices, env));
    MP_CHECK_EQ(n, RANK_UNDEFINED);
    n = 9;
    MP_OK(rank_testsome(3, none, &n, indices, NULL));
    MP_CHECK_EQ(n, RANK_UNDEFINED);
    MP_STATUS(rank_testall(-1, none, &done, NULL), RANK_ERR_COUNT);
    MP_STATUS(rank_testall(1, NULL, &done, NULL), RANK_ERR_ARG);
    MP_STATUS(rank_testall(1, none, NULL, NULL), RANK_ERR_ARG);
    MP_STATUS(rank_waitsome(1, none, &n, NULL, NULL), RANK_ERR_ARG);
    MP_STATUS(rank_testany(1, none, &index, NULL, NULL), RANK_ERR_ARG);
    MP_STATUS(rank_cancel(&none[0]), RANK_ERR_HANDLE);
    MP_STATUS(rank_cancel(NULL), RANK_ERR_ARG);
    MP_OK(rank_request_free(&none[0]));
}

/* Each receive is reported exactly once, whichever call is used; every seventh is too short. */
static void some(struct mp *mp, int how)
{
    int64_t out[MANY][2], in[MANY][2];
    rank_request_t send[MANY], recv[MANY];
    rank_envelope_t env[MANY];
    bool seen[MANY] = {false};
    int64_t indices[MANY], left_over = MANY, n, index;
    int done;

    for (int i = 0; i < MANY; i++) {
        out[i][0] = mp->rank * 1000 + i;
        out[i][1] = i;
        MP_OK(rank_irecv(in[i], i % 7 == 3 ? 1 : 2, RANK_INT64, left(mp), 100 + i, mp->world,
                         &recv[i]));
    }
    for (int k = 0; k < MANY; k++) {
        int i = (k * 37 + 11) % MANY;
        MP_OK(rank_isend(out[i], 2, RANK_INT64, right(mp), 100 + i, mp->world, &send[i]));
    }
    while (left_over > 0) {
        rank_status_t st, want = RANK_OK;
        if (how == 2) { /* one at a time */
            st = rank_testany(MANY, recv, &index, &done, &env[0]);
            n = done ? 1 : 0;
            indices[0] = index;
            if (done)
                MP_CHECK(index >= 0);
        } else if (how == 1) {
            st = rank_testsome(MANY, recv, &n, indices, env);
        } else {
            st = rank_waitsome(MANY, recv, &n, indices, env);
            MP_CHECK(n >= 1);
        }
        for (int64_t k = 0; k < n; k++) {
            int64_t i = indices[k];
            MP_CHECK(i >= 0 && i < MANY && !seen[i]);
            seen[i] = true;
            MP_CHECK(recv[i] == RANK_REQUEST_NULL);
            MP_CHECK_EQ(env[k].tag, 100 + i);
            MP_CHECK_EQ(env[k].source, left(mp));
            MP_CHECK_EQ(env[k].status, i % 7 == 3 ? RANK_ERR_TRUNCATED : RANK_OK);
            if (env[k].status && !want)
                want = env[k].status;
            MP_CHECK_EQ(in[i][0], left(mp) * 1000 + i);
        }
        MP_STATUS(st, want);
        left_over -= n;
    }
    do
        MP_OK(rank_testall(MANY, send, &done, env));
    while (!done);
    for (int i = 0; i < MANY; i++)
        MP_CHECK(send[i] == RANK_REQUEST_NULL);
}

/* testall ends all or none. */
static void all_or_none(struct mp *mp)
{
    int a = mp->rank, b[2] = {-1, -1}, done = 1;
    rank_request_t recv[2], send;
    rank_envelope_t env[2];

    for (int i = 0; i < 2; i++)
        MP_OK(rank_irecv(&b[i], 1, RANK_INT32, left(mp), 7 + i, mp->world, &recv[i]));
    MP_OK(rank_send(&a, 1, RANK_INT32, right(mp), 7, mp->world));
    for (int i = 0; i < 100; i++) {
        MP_OK(rank_testall(2, recv, &done, env));
        MP_CHECK_EQ(done, 0);
    }
    mp_barrier(mp->world);
    MP_CHECK(recv[0] != RANK_REQUEST_NULL && recv[1] != RANK_REQUEST_NULL);
    MP_OK(rank_isend(&a, 1, RANK_INT32, right(mp), 8, mp->world, &send));
    do
        MP_OK(rank_testall(2, recv, &done, env));
    while (!done);
    MP_CHECK(recv[0] == RANK_REQUEST_NULL && recv[1] == RANK_REQUEST_NULL);
    MP_CHECK_EQ(env[1].tag, 8);
    MP_OK(rank_wait(&send, NULL));
}

/* ------------------------------------------------------------------------- cancel */

static void cancel_receives(struct mp *mp)
{
    int64_t value = 41 + mp->rank, got = -1, other = -1;
    rank_request_t req, keep, sum;
    rank_envelope_t env;
    rank_team_t team; /* of its own: here are wildcards */
    int done;

    MP_OK(rank_team_dup(mp->world, &team));
    /* not matched: taken back, and the message that comes after is another receive's */
    MP_OK(rank_irecv(&got, 1, RANK_INT64, left(mp), 5, team, &req));
    MP_OK(rank_cancel(&req));
    MP_CHECK(req != RANK_REQUEST_NULL);
    MP_OK(rank_cancel(&req)); /* twice is once */
    MP_STATUS(rank_wait(&req, &env), RANK_ERR_CANCELED);
    MP_CHECK_EQ(env.status, RANK_ERR_CANCELED);
    MP_CHECK_EQ(env.bytes, 0);
    MP_CHECK(req == RANK_REQUEST_NULL);
    /* with wildcards, between two that stay; by test */
    MP_OK(rank_irecv(&got, 1, RANK_INT64, RANK_ANY_SOURCE, RANK_ANY_TAG, team, &req));
    MP_OK(rank_irecv(&other, 1, RANK_INT64, left(mp), 5, team, &keep));
    MP_OK(rank_cancel(&req));
    MP_STATUS(rank_test(&req, &done, &env), RANK_ERR_CANCELED);
    MP_CHECK_EQ(done, 1);
    mp_barrier(mp->world);
    MP_OK(rank_send(&value, 1, RANK_INT64, right(mp), 5, team));
    MP_OK(rank_wait(&keep, NULL));
    MP_CHECK_EQ(other, 41 + left(mp));
    MP_CHECK_EQ(got, -1);
    /* complete: nothing happens */
    MP_OK(rank_isend(&value, 1, RANK_INT64, right(mp), 6, team, &keep));
    MP_OK(rank_probe(left(mp), 6, team, NULL));
    MP_OK(rank_irecv(&got, 1, RANK_INT64, left(mp), 6, team, &req));
    MP_OK(rank_cancel(&req));
    MP_OK(rank_wait(&req, &env));
    MP_CHECK_EQ(env.status, RANK_OK);
    MP_CHECK_EQ(got, 41 + left(mp));
    MP_OK(rank_cancel(&keep));
    (void)rank_wait(&keep, NULL); /* either is right */
    MP_OK(rank_ibarrier(team, &sum));
    MP_STATUS(rank_cancel(&sum), RANK_ERR_NOT_SUPPORTED);
    MP_OK(rank_wait(&sum, NULL));
    MP_OK(rank_team_free(&team));
}

/* More sends than there is room for: those that wait here can be cancelled, the others arrive in
 * order, and none waits for ever. */
static void cancel_sends(struct mp *mp)
{
    enum { N = 20000, BYTES = 200 };
    char *out = mp_alloc(BYTES), in[BYTES];
    rank_request_t *req = mp_alloc(N * sizeof(*req)), next;
    int64_t sent = 0, expected = 0, go = 1;

    if (mp->size < 2 || mp->rank > 1) {
        free(out);
        free(req);
        return;
    }
    memset(out, 3, BYTES);
    if (mp->rank == 0) {
        for (int i = 0; i < N; i++)
            MP_OK(rank_isend(out, BYTES, RANK_BYTE, 1, 11, mp->world, &req[i]));
        for (int i = N; i-- > 0;)
            MP_OK(rank_cancel(&req[i]));
        MP_OK(rank_isend(&go, 1, RANK_INT64, 1, 10, mp->world, &next)); /* rank 1 begins */
        for (int i = 0; i < N; i++) {
            rank_status_t st = rank_wait(&req[i], NULL);
            if (st)
                MP_STATUS(st, RANK_ERR_CANCELED);
            else
                sent++;
        }
        MP_OK(rank_wait(&next, NULL));
        MP_OK(rank_send(&sent, 1, RANK_INT64, 1, 12, mp->world));
        printf("%lld of %d sends were not taken back\n", (long long)sent, N);
    } else {
        rank_request_t last;
        MP_OK(rank_recv(&go, 1, RANK_INT64, 0, 10, mp->world, NULL));
        MP_OK(rank_irecv(&expected, 1, RANK_INT64, 0, 12, mp->world, &last));
        for (int64_t n = 0;; n++) {
            int done = 0, found = 0;
            while (!found && !done) {
                MP_OK(rank_iprobe(0, 11, mp->world, &found, NULL));
                if (!found && last)
                    MP_OK(rank_test(&last, &done, NULL));
                done = last == RANK_REQUEST_NULL;
                if (done && !found)
                    MP_OK(rank_iprobe(0, 11, mp->world, &found, NULL));
            }
            if (!found) {
                MP_CHECK_EQ(n, expected);
                break;
            }
            MP_OK(rank_recv(in, BYTES, RANK_BYTE, 0, 11, mp->world, NULL));
        }
    }
    free(out);
    free(req);
}

/* ---------------------------------------------------------------------- callbacks */

struct done_record {
    struct mp *mp;
    int64_t value, calls, limit;
    int depth, deepest;
    rank_status_t status;
    int64_t tag;
};

static void record_done(const rank_envelope_t *env, void *arg)
{
    struct done_record *t = arg;

    t->calls++;
    t->status = env->status;
    t->tag = env->tag;
}

static void callbacks(struct mp *mp)
{
    struct done_record t[3] = {{.mp = mp}, {.mp = mp}, {.mp = mp}};
    rank_request_t req, copy, send;
    int64_t out = 7, in[3] = {0, 0, 0};

    /* pending, complete, cancelled, a collective */
    MP_OK(rank_irecv(&in[0], 1, RANK_INT64, left(mp), 21, mp->world, &req));
    copy = req;
    MP_OK(rank_on_done(&req, record_done, &t[0]));
    MP_CHECK(req == RANK_REQUEST_NULL);
    MP_STATUS(rank_wait(&copy, NULL), RANK_ERR_HANDLE);
    for (int i = 0; i < 100; i++)
        MP_OK(rank_progress());
    MP_CHECK_EQ(t[0].calls, 0);
    mp_barrier(mp->world);
    MP_OK(rank_isend(&out, 1, RANK_INT64, right(mp), 21, mp->world, &send));
    while (t[0].calls == 0)
        turn();
    MP_CHECK_EQ(in[0], 7);
    MP_CHECK_EQ(t[0].tag, 21);
    MP_OK(rank_wait(&send, NULL));
    MP_OK(rank_isend(&out, 1, RANK_INT64, right(mp), 22, mp->world, &send));
    MP_OK(rank_probe(left(mp), 22, mp->world, NULL));
    MP_OK(rank_irecv(&in[1], 1, RANK_INT64, left(mp), 22, mp->world, &req));
    while (t[1].calls == 0 && req) { /* complete or nearly */
        MP_OK(rank_on_done(&req, record_done, &t[1]));
        while (t[1].calls == 0)
            turn();
    }
    MP_OK(rank_wait(&send, NULL));
    MP_OK(rank_irecv(&in[2], 1, RANK_INT64, left(mp), 23, mp->world, &req));
    MP_OK(rank_cancel(&req));
    MP_OK(rank_on_done(&req, record_done, &t[2]));
    MP_CHECK_EQ(t[2].calls, 1); /* at once */
    MP_CHECK_EQ(t[2].status, RANK_ERR_CANCELED);
    MP_OK(rank_ibarrier(mp->world, &req));
    MP_OK(rank_on_done(&req, record_done, &t[2]));
    while (t[2].calls == 1)
        turn();
    MP_CHECK_EQ(t[2].status, RANK_OK);
    for (int i = 0; i < 1000; i++)
        MP_OK(rank_progress());
    MP_CHECK_EQ(t[0].calls, 1);
    MP_CHECK_EQ(t[1].calls, 1);
    MP_CHECK_EQ(t[2].calls, 2);
    req = RANK_REQUEST_NULL;
    MP_STATUS(rank_on_done(&req, record_done, NULL), RANK_ERR_HANDLE);
    MP_STATUS(rank_on_done(NULL, record_done, NULL), RANK_ERR_ARG);
    MP_STATUS(rank_on_done(&req, NULL, NULL), RANK_ERR_ARG);
}

/* A message to oneself is complete when it is sent: each callback starts the next. */
static void next_link(const rank_envelope_t *env, void *arg)
{
    struct done_record *t = arg;
    rank_request_t send, recv, never;
    int done;

    MP_CHECK_EQ(env->status, RANK_OK);
    t->depth++;
    if (t->depth > t->deepest)
        t->deepest = t->depth;
    if (++t->calls < t->limit) {
        MP_OK(rank_isend(&t->calls, 1, RANK_INT64, t->mp->rank, 31, t->mp->world, &send));
        MP_OK(rank_irecv(&t->value, 1, RANK_INT64, t->mp->rank, 31, t->mp->world, &recv));
        MP_OK(rank_on_done(&recv, next_link, t));
        MP_OK(rank_request_free(&send));
    }
    if (t->calls == 5) { /* what would wait is refused, what would not goes */
        MP_OK(rank_irecv(&done, 1, RANK_INT32, t->mp->rank, 32, t->mp->world, &never));
        MP_STATUS(rank_wait(&never, NULL), RANK_ERR_STATE);
        MP_STATUS(rank_finalize(), RANK_ERR_STATE);
        MP_OK(rank_test(&never, &done, NULL));
        MP_CHECK_EQ(done, 0);
        MP_OK(rank_cancel(&never));
        MP_STATUS(rank_wait(&never, NULL), RANK_ERR_CANCELED);
    }
    t->depth--;
}

static void chain(struct mp *mp, int64_t n)
{
    struct done_record t = {.mp = mp, .limit = n};
    rank_request_t send, recv;

    MP_OK(rank_isend(&t.calls, 1, RANK_INT64, mp->rank, 31, mp->world, &send));
    MP_OK(rank_irecv(&t.value, 1, RANK_INT64, mp->rank, 31, mp->world, &recv));
    MP_OK(rank_on_done(&recv, next_link, &t));
    MP_OK(rank_wait(&send, NULL));
    while (t.calls < n)
        MP_OK(rank_progress());
    MP_CHECK_EQ(t.calls, n);
    MP_CHECK_EQ(t.deepest, 1);
}

/* A request round the ring, again and again, all by callbacks. */
struct ring {
    struct mp *mp;
    int64_t token, out, rounds, seen;
    rank_request_t recv;
};

static void pass_on(const rank_envelope_t *env, void *arg)
{
    struct ring *r = arg;
    rank_request_t send;

    MP_CHECK_EQ(env->status, RANK_OK);
    r->seen++;
    r->out = r->token + 1;
    if (r->seen < r->rounds) {
        MP_OK(rank_start(&r->recv));
        MP_OK(rank_on_done(&r->recv, pass_on, r));
    }
    if (r->mp->rank != 0 || r->seen < r->rounds) {
        MP_OK(rank_isend(&r->out, 1, RANK_INT64, right(r->mp), 33, r->mp->world, &send));
        MP_OK(rank_request_free(&send));
    }
}

static void ring(struct mp *mp)
{
    struct ring r = {.mp = mp, .rounds = 200};

    MP_OK(rank_recv_init(&r.token, 1, RANK_INT64, left(mp), 33, mp->world, &r.recv));
    MP_OK(rank_start(&r.recv));
    MP_OK(rank_on_done(&r.recv, pass_on, &r));
    MP_STATUS(rank_wait(&r.recv, NULL), RANK_ERR_STATE);
    MP_STATUS(rank_request_free(&r.recv), RANK_ERR_STATE);
    if (mp->rank == 0)
        MP_OK(rank_send(&r.out, 1, RANK_INT64, right(mp), 33, mp->world));
    while (r.seen < r.rounds)
        turn();
    if (mp->rank == 0)
        MP_CHECK_EQ(r.token, r.rounds * mp->size - 1);
    MP_OK(rank_request_free(&r.recv));
    MP_CHECK(r.recv == RANK_REQUEST_NULL);
}

/* --------------------------------------------------------------------- persistent */

static void persistent(struct mp *mp, int64_t bytes)
{
    char *out = mp_alloc((size_t)bytes), *in = mp_alloc((size_t)bytes);
    rank_request_t req[4] = {RANK_REQUEST_NULL, RANK_REQUEST_NULL, RANK_REQUEST_NULL,
                             RANK_REQUEST_NULL};
    rank_request_t twice[3];
    rank_envelope_t env[4];
    int64_t n, index, indices[4];
    int done = 0;

    MP_OK(rank_recv_init(in, bytes, RANK_BYTE, RANK_ANY_SOURCE, 44, mp->world, &req[0]));
    MP_OK(rank_send_init(out, bytes, RANK_BYTE, right(mp), 44, mp->world, &req[1]));
    /* not under way: as null ones */
    MP_OK(rank_wait(&req[0], &env[0]));
    MP_CHECK_EQ(env[0].source, RANK_UNDEFINED);
    MP_OK(rank_testall(2, req, &done, env));
    MP_CHECK_EQ(done, 1);
    MP_OK(rank_waitany(2, req, &index, NULL));
    MP_CHECK_EQ(index, RANK_UNDEFINED);
    MP_OK(rank_waitsome(4, req, &n, indices, NULL));
    MP_CHECK_EQ(n, RANK_UNDEFINED);
    MP_STATUS(rank_on_done(&req[0], record_done, NULL), RANK_ERR_STATE);
    MP_OK(rank_cancel(&req[0]));
    /* twice in one array: none is started */
    twice[0] = req[0];
    twice[1] = req[1];
    twice[2] = req[0];
    MP_STATUS(rank_startall(3, twice), RANK_ERR_STATE);
    MP_OK(rank_testall(2, req, &done, env));
    MP_CHECK_EQ(done, 1);
    for (int round = 0; round < 50; round++) {
        mp_fill(out, (size_t)bytes, (uint64_t)(mp->rank * 100 + round));
        MP_OK(rank_startall(2, req));
        MP_STATUS(rank_start(&req[0]), RANK_ERR_STATE);
        MP_STATUS(rank_startall(2, req), RANK_ERR_STATE);
        switch (round % 4) {
        case 0:
            MP_OK(rank_waitall(2, req, env));
            break;
        case 1:
            do
                MP_OK(rank_testall(2, req, &done, env));
            while (!done);
            break;
        case 2:
            for (int k = 0; k < 2; k++)
                MP_OK(rank_waitany(4, req, &index, &env[k]));
            break;
        default:
            for (int k = 0; k < 2; k += n)
                MP_OK(rank_waitsome(4, req, &n, indices, env));
        }
        MP_CHECK(req[0] && req[1]);
        MP_CHECK_EQ(mp_verify(in, (size_t)bytes, (uint64_t)(left(mp) * 100 + round)), -1);
        MP_OK(rank_wait(&req[0], NULL)); /* ended already */
        mp_barrier(mp->world);           /* ANY_SOURCE and one tag */
    }
    /* taken back, and started again */
    MP_OK(rank_start(&req[0]));
    MP_OK(rank_cancel(&req[0]));
    MP_STATUS(rank_wait(&req[0], &env[0]), RANK_ERR_CANCELED);
    mp_barrier(mp->world);
    MP_OK(rank_ssend_init(out, bytes, RANK_BYTE, right(mp), 44, mp->world, &req[2]));
    MP_OK(rank_start(&req[2]));
    MP_OK(rank_start(&req[0]));
    MP_OK(rank_wait(&req[0], NULL));
    MP_OK(rank_wait(&req[2], NULL));
    for (int i = 0; i < 3; i++) {
        rank_request_t copy = req[i];
        MP_OK(rank_request_free(&req[i]));
        MP_CHECK(req[i] == RANK_REQUEST_NULL);
        MP_STATUS(rank_start(&copy), RANK_ERR_HANDLE);
    }
    MP_STATUS(rank_start(&req[0]), RANK_ERR_HANDLE);
    MP_STATUS(rank_send_init(out, -1, RANK_BYTE, 0, 1, mp->world, &req[0]), RANK_ERR_COUNT);
    MP_STATUS(rank_send_init(out, 1, RANK_BYTE, mp->size, 1, mp->world, &req[0]), RANK_ERR_RANK);
    MP_STATUS(rank_recv_init(in, 1, RANK_BYTE, 0, -5, mp->world, &req[0]), RANK_ERR_TAG);
    free(out);
    free(in);
}

/* A persistent request that its own callback starts again. */
struct again {
    struct mp *mp;
    rank_request_t req;
    char *buf;
    int64_t bytes, rounds, done;
    bool receives, inside;
};

static void once_more(const rank_envelope_t *env, void *arg);

static void begin(struct again *a)
{
    if (!a->receives)
        mp_fill(a->buf, (size_t)a->bytes, (uint64_t)(a->mp->rank * 100000 + a->done));
    MP_OK(rank_start(&a->req));
    MP_OK(rank_on_done(&a->req, once_more, a));
}

static void once_more(const rank_envelope_t *env, void *arg)
{
    struct again *a = arg;

    MP_CHECK(!a->inside);
    a->inside = true;
    MP_CHECK_EQ(env->status, RANK_OK);
    if (a->receives) {
        MP_CHECK_EQ(env->source, left(a->mp));
        MP_CHECK_EQ(env->bytes, a->bytes);
        MP_CHECK_EQ(mp_verify(a->buf, (size_t)a->bytes, (uint64_t)(left(a->mp) * 100000 + a->done)), -1);
        memset(a->buf, 0, 8);
    }
    if (++a->done < a->rounds) {
        begin(a);
        MP_STATUS(rank_start(&a->req), RANK_ERR_STATE); /* it is under way, or complete and not reported */
        MP_STATUS(rank_wait(&a->req, NULL), RANK_ERR_STATE);
    }
    a->inside = false;
}

/* On both sides of each message: only the callbacks start operations. */
static void again(struct mp *mp, int64_t bytes, int64_t rounds, bool synchronous)
{
    struct again s = {.mp = mp, .buf = mp_alloc((size_t)bytes), .bytes = bytes, .rounds = rounds}, r = s;

    r.buf = mp_alloc((size_t)bytes);
    r.receives = true;
    MP_OK((synchronous ? rank_ssend_init : rank_send_init)(s.buf, bytes, RANK_BYTE, right(mp), 45, mp->world, &s.req));
    MP_OK(rank_recv_init(r.buf, bytes, RANK_BYTE, left(mp), 45, mp->world, &r.req));
    begin(&r);
    begin(&s);
    while (s.done < rounds || r.done < rounds)
        turn();
    MP_CHECK_EQ(s.done, rounds);
    MP_CHECK_EQ(r.done, rounds);
    MP_OK(rank_wait(&r.req, NULL)); /* not under way */
    MP_OK(rank_request_free(&s.req));
    MP_OK(rank_request_free(&r.req));
    free(s.buf);
    free(r.buf);
}

/* A request that outlives its team finds that out, also when another team has that one's memory; a handle that stands
 * twice among others is refused once it has ended. */
static void strays(struct mp *mp)
{
    int64_t out = 1, in[2] = {0, 0};
    rank_team_t first, second;
    rank_request_t req, twice[2];
    int64_t n = 0, indices[2];

    MP_OK(rank_team_dup(mp->world, &first));
    MP_OK(rank_send_init(&out, 1, RANK_INT64, right(mp), 1, first, &req));
    MP_OK(rank_team_free(&first));
    MP_OK(rank_team_dup(mp->world, &second));
    MP_STATUS(rank_start(&req), RANK_ERR_HANDLE);
    MP_OK(rank_request_free(&req));
    MP_OK(rank_team_free(&second));

    MP_OK(rank_irecv(&in[0], 1, RANK_INT64, mp->rank, 66, mp->world, &twice[0]));
    MP_OK(rank_send(&out, 1, RANK_INT64, mp->rank, 66, mp->world));
    twice[1] = twice[0];
    MP_STATUS(rank_waitsome(2, twice, &n, indices, NULL), RANK_ERR_HANDLE);
    MP_CHECK_EQ(n, 1);
    for (int i = 0; i < 2; i++) /* the pool is whole: these are two */
        MP_OK(rank_irecv(&in[i], 1, RANK_INT64, mp->rank, 67 + i, mp->world, &twice[i]));
    MP_CHECK(twice[0] != twice[1]);
    for (int i = 0; i < 2; i++)
        MP_OK(rank_send(&out, 1, RANK_INT64, mp->rank, 67 + i, mp->world));
    MP_OK(rank_waitall(2, twice, NULL));
}

/* A freed receive under way still receives. */
static void drop_sends(struct mp *mp)
{
    int64_t in = -1, out = mp->rank;
    rank_request_t req, send;

    MP_OK(rank_irecv(&in, 1, RANK_INT64, left(mp), 55, mp->world, &req));
    MP_OK(rank_request_free(&req));
    MP_CHECK(req == RANK_REQUEST_NULL);
    MP_OK(rank_isend(&out, 1, RANK_INT64, right(mp), 55, mp->world, &send));
    while (((volatile int64_t *)&in)[0] == -1)
        turn();
    MP_CHECK_EQ(in, left(mp));
    MP_OK(rank_wait(&send, NULL));
}

int main(int argc, char **argv)
{
    int64_t n = mp_option(argc, argv, "--chain", 20000);
    struct mp mp;

    mp_start(&mp, &argc, argv);
    mp_case(&mp, "nothing");
    nothing();
    mp_case(&mp, "some");
    for (int how = 0; how < 3; how++)
        some(&mp, how);
    mp_case(&mp, "all or none");
    all_or_none(&mp);
    mp_case(&mp, "cancel receives");
    cancel_receives(&mp);
    mp_case(&mp, "cancel sends");
    cancel_sends(&mp);
    mp_case(&mp, "callbacks");
    callbacks(&mp);
    mp_case(&mp, "chain");
    chain(&mp, n);
    mp_case(&mp, "ring");
    ring(&mp);
    mp_case(&mp, "persistent");
    persistent(&mp, 8);
    persistent(&mp, 5000);
    persistent(&mp, 300000);
    mp_case(&mp, "started by its own callback");
    again(&mp, 8, mp_rounds(10 + 8000 / mp.size), false);
    again(&mp, 5000, mp_rounds(10 + 2000 / mp.size), true);
    again(&mp, 300000, mp_rounds(10 + 100 / mp.size), false);
    mp_case(&mp, "strays");
    strays(&mp);
    mp_case(&mp, "dropped sends");
    drop_sends(&mp);
    mp_case(&mp, "end");
    mp_end(&mp);
    return 0;
}

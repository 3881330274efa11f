/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads_p2p.c: send, receive and call collectives from several threads at once.
 * At RANK_THREAD_MULTIPLE. Tags of their own; wildcards and matched probes where every message is received exactly once. Receives
 * that are canceled while other threads complete them; requests that one thread starts and another waits for. Callbacks, teams of
 * one, a team for each thread.
 */
#include "tests/mp/threads/worker_threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONG = 100000, WINDOW = 8, SEND_FIRST = 3 << 20 };

static int right(const struct mp *mp) { return (mp->rank + 1) % mp->size; }
static int left(const struct mp *mp) { return (mp->rank + mp->size - 1) % mp->size; }

/* Mostly short, sometimes empty or long; both sides throw the same. */
static size_t some_bytes(uint64_t *random)
{
    switch (mp_below(random, 8)) {
    case 0:
        return 0;
    case 1:
        return mp_below(random, LONG);
    default:
        return 1 + mp_below(random, 64);
    }
}

static uint64_t key_of(int rank, int t, int i) { return (uint64_t)rank << 40 | (uint64_t)t << 32 | (uint64_t)i; }

/* ------------------------------------------------------------------------- tags of their own */

static void ring(struct hand *me)
{
    struct mp *mp = me->mp;
    uint64_t random = mp->seed + (uint64_t)me->t;
    char *out = mp_alloc(LONG), *in = mp_alloc(LONG);

    for (int i = 0; i < me->workers->rounds; i++) {
        size_t n = some_bytes(&random);
        rank_envelope_t e;

        mp_fill(out, n, key_of(mp->rank, me->t, i));
        if (i % 3 == 0) {
            MP_OK(rank_sendrecv(out, (int64_t)n, RANK_BYTE, right(mp), me->t, in, LONG, RANK_BYTE, left(mp), me->t,
                                mp->world, &e));
        } else {
            rank_request_t req[2];
            MP_OK(rank_irecv(in, LONG, RANK_BYTE, left(mp), me->t, mp->world, &req[0]));
            MP_OK((i % 3 == 1 ? rank_isend : rank_issend)(out, (int64_t)n, RANK_BYTE, right(mp), me->t, mp->world,
                                                          &req[1]));
            MP_OK(rank_wait(&req[0], &e));
            MP_OK(rank_wait(&req[1], NULL));
        }
        MP_CHECK_EQ(e.bytes, n);
        MP_CHECK_EQ(mp_verify(in, n, key_of(left(mp), me->t, i)), -1);
    }
    free(out);
    free(in);
}

static void windows(struct hand *me)
{
    struct mp *mp = me->mp;
    uint64_t in[WINDOW], out[WINDOW];
    rank_request_t req[2 * WINDOW];

    for (int i = 0; i < me->workers->rounds; i++) {
        for (int w = 0; w < WINDOW; w++)
            MP_OK(rank_irecv(&in[w], 1, RANK_UINT64, left(mp), me->t, mp->world, &req[w]));
        for (int w = 0; w < WINDOW; w++) {
            out[w] = key_of(mp->rank, me->t, i * WINDOW + w);
            MP_OK(rank_isend(&out[w], 1, RANK_UINT64, right(mp), me->t, mp->world, &req[WINDOW + w]));
        }
        if (i % 2) {
            MP_OK(rank_waitall(2 * WINDOW, req, NULL));
        } else {
            for (int64_t left_over = 2 * WINDOW; left_over;) {
                int64_t index[2 * WINDOW], n;
                MP_OK(rank_waitsome(2 * WINDOW, req, &n, index, NULL));
                MP_CHECK(n > 0 && n <= left_over);
                left_over -= n;
            }
        }
        for (int w = 0; w < WINDOW; w++)
            MP_CHECK_EQ(in[w], key_of(left(mp), me->t, i * WINDOW + w));
    }
}

/* ------------------------------------------------- wildcards: every message exactly once */

struct tally {
    rank_team_t team;
    pthread_mutex_t lock;
    uint8_t *seen;    /* [size][threads][rounds] */
    _Atomic int left; /* messages for this rank that no thread has undertaken to receive */
};

/* False: all are taken, or none is there and we shall not wait. */
static bool take_one(struct hand *me, struct tally *all, char *buf, bool wait)
{
    rank_message_t message;
    rank_envelope_t e, got;
    uint64_t key;
    int from, t, i, found = 1;

    if (atomic_fetch_sub(&all->left, 1) <= 0) {
        atomic_fetch_add(&all->left, 1);
        return false;
    }
    if (wait)
        MP_OK(rank_mprobe(RANK_ANY_SOURCE, RANK_ANY_TAG, all->team, &message, &e));
    else
        MP_OK(rank_improbe(RANK_ANY_SOURCE, RANK_ANY_TAG, all->team, &found, &message, &e));
    if (!found) {
        atomic_fetch_add(&all->left, 1);
        return false;
    }
    MP_OK(rank_mrecv(buf, e.bytes, RANK_BYTE, &message, &got));
    MP_CHECK_EQ(got.bytes, e.bytes);
    MP_CHECK(e.bytes >= (int64_t)sizeof(key));
    memcpy(&key, buf, sizeof(key));
    from = (int)(key >> 40);
    t = (int)(key >> 32 & 255);
    i = (int)(key & 0xffffffff);
    MP_CHECK_EQ(from, e.source);
    MP_CHECK_EQ(t, e.tag);
    MP_CHECK(t < me->workers->threads && i < me->workers->rounds);
    MP_CHECK_EQ(mp_verify(buf + sizeof(key), (size_t)e.bytes - sizeof(key), key), -1);
    pthread_mutex_lock(&all->lock);
    all->seen[(from * me->workers->threads + t) * me->workers->rounds + i]++;
    pthread_mutex_unlock(&all->lock);
    return true;
}

/* Message i of each thread goes to rank (me + i). A thread that waits for a send receives what has come meanwhile. */
static void wild(struct hand *me)
{
    struct tally *all = me->arg;
    struct mp *mp = me->mp;
    char *in = mp_alloc(LONG + 8), *out = mp_alloc((LONG + 8) * 4);
    rank_request_t req[4] = {0};

    for (int i = 0; i < me->workers->rounds; i++) {
        size_t n = some_bytes(&me->random);
        uint64_t key = key_of(mp->rank, me->t, i);
        char *buf = out + (size_t)(i % 4) * (LONG + 8);

        for (int done = 0; !done;) {
            MP_OK(rank_test(&req[i % 4], &done, NULL));
            if (!done)
                take_one(me, all, in, false);
        }
        memcpy(buf, &key, sizeof(key));
        mp_fill(buf + sizeof(key), n, key);
        MP_OK(rank_isend(buf, (int64_t)(n + sizeof(key)), RANK_BYTE, (mp->rank + i) % mp->size, me->t, all->team,
                         &req[i % 4]));
        if (mp_below(&me->random, 2))
            take_one(me, all, in, false); /* waiting could be for a message of our own */
    }
    while (take_one(me, all, in, true))
        ;
    MP_OK(rank_waitall(4, req, NULL));
    free(in);
    free(out);
}

static void wildcards(struct workers *workers)
{
    struct mp *mp = workers->mp;
    size_t n = (size_t)mp->size * (size_t)workers->threads * (size_t)workers->rounds;
    struct tally all = {.lock = PTHREAD_MUTEX_INITIALIZER, .seen = calloc(n, 1)};

    MP_CHECK(all.seen != NULL);
    for (int from = 0; from < mp->size; from++) {
        for (int i = 0; i < workers->rounds; i++)
            all.left += (from + i) % mp->size == mp->rank ? workers->threads : 0;
    }
    MP_OK(rank_team_dup(mp->world, &all.team));
    workers_run(workers, wild, &all);
    for (int from = 0; from < mp->size; from++) {
        for (int t = 0; t < workers->threads; t++) {
            for (int i = 0; i < workers->rounds; i++)
                MP_CHECK_EQ(all.seen[(from * workers->threads + t) * workers->rounds + i], (from + i) % mp->size == mp->rank);
        }
    }
    mp_barrier(mp->world);
    MP_OK(rank_team_free(&all.team));
    free(all.seen);
}

/* ---------------------------------------------- canceled by one thread, completed by another */

enum { POISON = 0x77, WATCHED = 64 };

struct race {
    rank_team_t team;
    int rounds;
    int runners;         /* threads that send and receive; the others make progress until they are through */
    _Atomic int running;
    _Atomic int canceled;
};

/* Nothing has come to the beginning of a buffer that was given to a receive. */
static bool untouched(const char *buf)
{
    for (int i = 0; i < WATCHED; i++) {
        if (buf[i] != POISON)
            return false;
    }
    return true;
}

/* False: it was canceled in time. The request is this thread's, but what comes for it any thread may take in. */
static bool receive_or_cancel(struct hand *me, struct race *race, char *buf, int how, rank_envelope_t *e)
{
    rank_request_t req[2] = {RANK_REQUEST_NULL, RANK_REQUEST_NULL};
    rank_status_t st = RANK_OK;
    int64_t index;
    int done = 0;

    memset(buf, POISON, WATCHED);
    MP_OK(rank_irecv(buf, LONG + 8, RANK_BYTE, left(me->mp), me->t, race->team, &req[0]));
    for (volatile uint64_t n = mp_below(&me->random, 3000); n > 0; n--)
        ; /* any moment of the other threads */
    if (mp_below(&me->random, 2))
        sched_yield();
    if (mp_below(&me->random, 4)) /* else no thread need make progress */
        MP_OK(rank_cancel(&req[0]));
    if (how == 0) {
        st = rank_wait(&req[0], e);
    } else if (how == 1) {
        st = rank_waitany(2, req, &index, e);
    } else {
        while (!st && !done)
            st = rank_test(&req[0], &done, e);
        MP_CHECK_EQ(done, 1);
    }
    if (!st)
        return true;
    MP_STATUS(st, RANK_ERR_CANCELED);
    MP_CHECK_EQ(e->bytes, 0);
    MP_CHECK(untouched(buf));
    race->canceled++;
    return false;
}

/* Each message is received once, and in its turn, however many receives for it were canceled before; and they leave their
 * memory alone for ever. */
static void take_back(struct hand *me)
{
    struct race *race = me->arg;
    struct mp *mp = me->mp;
    int to = (me->t + 1) % race->runners;
    char *out = mp_alloc(LONG + 8), *in[2] = {mp_alloc(LONG + 8), mp_alloc(LONG + 8)};

    for (int i = 0; me->t < race->runners && i < race->rounds; i++) {
        uint64_t sent = mp->seed ^ key_of(0, to, i), came = mp->seed ^ key_of(0, me->t, i), key;
        size_t n = some_bytes(&sent), want = some_bytes(&came);
        rank_request_t req;
        rank_envelope_t e;
        int at = 0, canceled = 0;

        key = key_of(mp->rank, to, i);
        memcpy(out, &key, sizeof(key));
        mp_fill(out + 8, n, key);
        MP_OK(rank_isend(out, (int64_t)n + 8, RANK_BYTE, right(mp), to, race->team, &req));
        while (!receive_or_cancel(me, race, in[at], i % 3, &e)) {
            at = 1 - at;
            canceled++;
        }
        memcpy(&key, in[at], sizeof(key));
        MP_CHECK_EQ(key, key_of(left(mp), me->t, i));
        MP_CHECK_EQ(e.bytes, want + 8);
        MP_CHECK_EQ(mp_verify(in[at] + 8, want, key), -1);
        MP_CHECK(canceled == 0 || untouched(in[1 - at]));
        MP_OK(rank_wait(&req, NULL));
    }
    if (me->t < race->runners)
        race->running--;
    while (race->running) {
        MP_OK(rank_progress());
        sched_yield();
    }
    free(out);
    free(in[0]);
    free(in[1]);
}

static void canceled_or_received(struct workers *workers)
{
    struct mp *mp = workers->mp;
    struct race race = {.runners = workers->threads > 2 ? workers->threads - 1 : workers->threads};
    int found = 0;

    race.running = race.runners;
    race.rounds = workers->rounds * 2 / (mp->size + 3); /* many ranks on few cores show no more */
    MP_OK(rank_team_dup(mp->world, &race.team));
    workers_run(workers, take_back, &race);
    mp_barrier(mp->world);
    MP_OK(rank_iprobe(RANK_ANY_SOURCE, RANK_ANY_TAG, race.team, &found, NULL)); /* what was sent has been taken */
    MP_CHECK_EQ(found, 0);
    if (mp->rank == 0)
        printf("%d receives were canceled before %d messages came\n", race.canceled, race.runners * race.rounds);
    MP_OK(rank_team_free(&race.team));
}

/* ------------------------------------------ started by one thread, waited for by another */

struct shelf {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool full[WORKERS_MAX];
    rank_request_t req[WORKERS_MAX][2];
};

static void put_on(struct shelf *s, int at, const rank_request_t req[2])
{
    pthread_mutex_lock(&s->lock);
    while (s->full[at])
        pthread_cond_wait(&s->changed, &s->lock);
    memcpy(s->req[at], req, sizeof(s->req[at]));
    s->full[at] = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void take_off(struct shelf *s, int at, rank_request_t req[2])
{
    pthread_mutex_lock(&s->lock);
    while (!s->full[at])
        pthread_cond_wait(&s->changed, &s->lock);
    memcpy(req, s->req[at], sizeof(s->req[at]));
    s->full[at] = false;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void swap(struct hand *me)
{
    struct shelf *s = me->arg;
    struct mp *mp = me->mp;
    char *in = mp_alloc(LONG), *out = mp_alloc(LONG);

    for (int i = 0; i < me->workers->rounds; i++) {
        uint64_t random = mp->seed ^ key_of(0, me->t, i);
        size_t n = some_bytes(&random);
        rank_request_t req[2];
        int64_t index;

        mp_fill(out, n, key_of(mp->rank, me->t, i));
        MP_OK(rank_irecv(in, LONG, RANK_BYTE, left(mp), 1000 + me->t, mp->world, &req[0]));
        MP_OK(rank_isend(out, (int64_t)n, RANK_BYTE, right(mp), 1000 + me->t, mp->world, &req[1]));
        put_on(s, me->t, req);
        /* Mine is another's now; his is mine. */
        take_off(s, (me->t + 1) % me->workers->threads, req);
        if (i % 2) {
            MP_OK(rank_waitany(2, req, &index, NULL));
            MP_OK(rank_waitany(2, req, &index, NULL));
            MP_OK(rank_waitany(2, req, &index, NULL));
            MP_CHECK_EQ(index, RANK_UNDEFINED);
        } else {
            int done = 0;
            while (!done)
                MP_OK(rank_testall(2, req, &done, NULL));
        }
        /* When all have come round, mine has been waited for, too. */
        put_on(s, me->t + WORKERS_MAX / 2, req);
        take_off(s, (me->t + me->workers->threads - 1) % me->workers->threads + WORKERS_MAX / 2, req);
        MP_CHECK_EQ(mp_verify(in, n, key_of(left(mp), me->t, i)), -1);
    }
    free(in);
    free(out);
}

/* ---------------------------------------------------------- all send first, others talk */

struct talk {
    rank_team_t team; /* of the talkers */
    _Atomic int senders;
};

/* All but the last send to the right what is too long to leave at once, and then receive. The last never stops to talk: its
 * waits are short, and others' messages keep coming. */
static void send_first(struct hand *me)
{
    struct talk *talk = me->arg;
    struct mp *mp = me->mp;
    double start = mp_now();
    int64_t mine = 1, all = 1;
    char *out, *in;

    if (me->t == me->workers->threads - 1) {
        for (int i = 0; all; i++) {
            MP_OK(rank_sendrecv(&mine, 1, RANK_INT64, right(mp), 1, &all, 1, RANK_INT64, left(mp), 1, talk->team, NULL));
            mine = talk->senders;
            all = 1;
            if (i % 64 == 0)
                MP_OK(rank_allreduce(&mine, &all, 1, RANK_INT64, RANK_MAX, talk->team));
            MP_CHECK(mp_now() < start + 40);
        }
        return;
    }
    out = mp_alloc(SEND_FIRST);
    in = mp_alloc(SEND_FIRST);
    mp_fill(out, SEND_FIRST, key_of(mp->rank, me->t, 0));
    MP_OK(rank_send(out, SEND_FIRST, RANK_BYTE, right(mp), 5000 + me->t, mp->world));
    MP_OK(rank_recv(in, SEND_FIRST, RANK_BYTE, left(mp), 5000 + me->t, mp->world, NULL));
    MP_CHECK_EQ(mp_verify(in, SEND_FIRST, key_of(left(mp), me->t, 0)), -1);
    talk->senders--;
    free(out);
    free(in);
}

static void all_send_first(struct workers *workers)
{
    struct talk talk = {.senders = workers->threads - 1};

    MP_OK(rank_team_dup(workers->mp->world, &talk.team));
    workers_run(workers, send_first, &talk);
    MP_OK(rank_team_free(&talk.team));
}

/* ----------------------------------------------------------------------------- callbacks */

struct called {
    _Atomic int n;
    rank_team_t team;
};

static void count_one(const rank_envelope_t *e, void *arg)
{
    struct called *called = arg;

    MP_CHECK_EQ(e->status, RANK_OK);
    called->n++;
}

static void call_back(struct hand *me)
{
    struct called *called = me->arg;
    struct mp *mp = me->mp;
    uint64_t *in = mp_alloc((size_t)(me->workers->rounds + WINDOW) * sizeof(*in)), out = 1; /* all of them may wait at once */
    int before;

    for (int i = 0; i < me->workers->rounds / WINDOW; i++) {
        rank_request_t req;
        for (int w = 0; w < WINDOW; w++) {
            MP_OK(rank_irecv(&in[i * WINDOW + w], 1, RANK_UINT64, left(mp), 2000 + me->t, called->team, &req));
            MP_OK(rank_on_done(&req, count_one, called));
        }
        for (int w = 0; w < WINDOW; w++)
            MP_OK(rank_send(&out, 1, RANK_UINT64, right(mp), 2000 + me->t, called->team));
        before = called->n;
        MP_OK(rank_progress());
        MP_CHECK(called->n >= before);
    }
    while (called->n < me->workers->threads * (me->workers->rounds / WINDOW) * WINDOW)
        MP_OK(rank_progress());
    free(in);
}

/* ------------------------------------------------------------------------- teams of one */

struct own {
    rank_team_t team[WORKERS_MAX];
    rank_team_t common;
};

static void alone(struct hand *me)
{
    struct own *own = me->arg;
    rank_team_t team = own->team[me->t];
    char *in = mp_alloc(LONG), *out = mp_alloc(LONG);

    MP_CHECK_EQ(rank_team_size(team), 1);
    for (int i = 0; i < me->workers->rounds; i++) {
        size_t n = some_bytes(&me->random);
        rank_request_t req[2];
        int64_t index;

        mp_fill(out, n, key_of(0, me->t, i));
        MP_OK(rank_isend(out, (int64_t)n, RANK_BYTE, 0, 1, team, &req[0]));
        MP_OK(rank_irecv(in, LONG, RANK_BYTE, 0, i % 2 ? 1 : RANK_ANY_TAG, team, &req[1]));
        if (i % 3 == 0)
            MP_OK(rank_waitall(2, req, NULL));
        else
            for (int k = 0; k < 2; k++)
                MP_OK(rank_waitany(2, req, &index, NULL));
        MP_CHECK_EQ(mp_verify(in, n, key_of(0, me->t, i)), -1);
    }
    free(in);
    free(out);
}

/* On one team of one: a thread sends what the next one receives; the first begins. Some wait with a request of another
 * team beside it. */
static void hand_over(struct hand *me)
{
    struct own *own = me->arg;
    struct mp *mp = me->mp;
    int next = (me->t + 1) % me->workers->threads;
    uint64_t token = 0;

    for (int i = 0; i < me->workers->rounds; i++) {
        rank_request_t req[2] = {RANK_REQUEST_NULL, RANK_REQUEST_NULL};
        int64_t index = -1;

        if (me->t == 0) {
            token = (uint64_t)i;
            MP_OK(rank_send(&token, 1, RANK_UINT64, 0, next, own->common));
        }
        if (i % 2) {
            uint64_t never;
            MP_OK(rank_irecv(&never, 1, RANK_UINT64, mp->rank, 3000 + me->t, mp->world, &req[0]));
            MP_OK(rank_irecv(&token, 1, RANK_UINT64, 0, me->t, own->common, &req[1]));
            MP_OK(rank_waitany(2, req, &index, NULL));
            MP_CHECK_EQ(index, 1);
            MP_OK(rank_cancel(&req[0]));
            MP_STATUS(rank_wait(&req[0], NULL), RANK_ERR_CANCELED);
        } else {
            MP_OK(rank_recv(&token, 1, RANK_UINT64, 0, me->t, own->common, NULL));
        }
        MP_CHECK_EQ(token, i);
        if (me->t != 0)
            MP_OK(rank_send(&token, 1, RANK_UINT64, 0, next, own->common));
    }
}

/* One thread sends large messages on two teams, waits for either, and only then receives them. */
static void either(const struct own *own)
{
    char *out = calloc(1, SEND_FIRST), *in = mp_alloc(SEND_FIRST);
    rank_request_t req[2];
    int64_t index;

    for (int k = 0; k < 2; k++)
        MP_OK(rank_isend(out, SEND_FIRST, RANK_BYTE, 0, 1, own->team[k], &req[k]));
    for (int k = 0; k < 2; k++)
        MP_OK(rank_waitany(2, req, &index, NULL));
    for (int k = 0; k < 2; k++)
        MP_OK(rank_recv(in, SEND_FIRST, RANK_BYTE, 0, 1, own->team[k], NULL));
    free(out);
    free(in);
}

static void teams_of_one(struct workers *workers)
{
    struct mp *mp = workers->mp;
    struct called called = {.n = 0};
    struct own own;
    struct mp as_one = *mp;
    struct workers one = *workers;

    for (int t = 0; t < workers->threads; t++)
        MP_OK(rank_team_split(mp->world, mp->rank, 0, &own.team[t]));
    MP_OK(rank_team_split(mp->world, mp->rank, 0, &own.common));
    workers_run(workers, alone, &own);
    workers_run(workers, hand_over, &own);
    either(&own);
    as_one.rank = 0;
    as_one.size = 1;
    as_one.world = called.team = own.common;
    one.mp = &as_one;
    workers_run(&one, call_back, &called);
    workers_run(&one, swap, &(struct shelf){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER});
    for (int t = 0; t < workers->threads; t++)
        MP_OK(rank_team_free(&own.team[t]));
    MP_OK(rank_team_free(&own.common));
}

/* --------------------------------------------------------------------- a team a thread */

static void together(struct hand *me)
{
    struct own *own = me->arg;
    struct mp *mp = me->mp;
    rank_team_t team;
    int64_t *big = mp_alloc(20000 * sizeof(int64_t));

    /* Each makes its own, all at once, from teams that the main thread has made. */
    MP_OK(rank_team_dup(own->team[me->t], &team));
    for (int i = 0; i < me->workers->rounds / 4; i++) {
        int64_t in = mp->rank + i + me->t, out = -1, want = 0, n = i % 8 == 7 ? 20000 : 1;
        rank_request_t req;

        for (int r = 0; r < mp->size; r++)
            want += r + i + me->t;
        MP_OK(rank_allreduce(&in, &out, 1, RANK_INT64, RANK_SUM, i % 2 ? team : own->team[me->t]));
        MP_CHECK_EQ(out, want);
        big[0] = big[n - 1] = mp->rank == i % mp->size ? want : -1;
        MP_OK(rank_bcast(big, n, RANK_INT64, i % mp->size, team));
        MP_CHECK_EQ(big[n - 1], want);
        MP_OK(rank_iallreduce(&in, &out, 1, RANK_INT64, RANK_SUM, team, &req));
        MP_OK(rank_wait(&req, NULL));
        MP_CHECK_EQ(out, want);
        MP_OK(rank_barrier(team));
    }
    MP_OK(rank_team_free(&team));
    free(big);
}

static void team_each(struct workers *workers)
{
    struct own own;

    for (int t = 0; t < workers->threads; t++)
        MP_OK(rank_team_dup(workers->mp->world, &own.team[t]));
    workers_run(workers, together, &own);
    for (int t = 0; t < workers->threads; t++)
        MP_OK(rank_team_free(&own.team[t]));
}

/* ---------------------------------------------------------------- asleep, and woken */

/* All but the first wait so long that they sleep; what wakes them is a thread of their own process. */
static void wake(struct hand *me)
{
    struct mp *mp = me->mp;
    int word = 0;

    if (me->t == 0) {
        usleep(30 * 1000);
        for (int t = 1; t < me->workers->threads; t++)
            MP_OK(rank_send(&t, 1, RANK_INT32, mp->rank, 4000 + t, mp->world));
    } else {
        MP_OK(rank_recv(&word, 1, RANK_INT32, mp->rank, 4000 + me->t, mp->world, NULL));
        MP_CHECK_EQ(word, me->t);
    }
}

/* A sleep ends by itself after a tenth of a second: if all had to wait for that it would show. */
static void sleepers(struct workers *workers)
{
    double best = 1;

    for (int i = 0; i < 5; i++) {
        double start = mp_now();
        workers_run(workers, wake, NULL);
        if (mp_now() - start - 0.03 < best)
            best = mp_now() - start - 0.03;
    }
    MP_CHECK(best < 0.05);
}

/* Random lists with ranks in common, at once: each thread has a tag of its own, and draws alike on all ranks. */
static void lists(struct hand *me)
{
    uint64_t common = me->mp->seed + (uint64_t)me->t;
    int *list = mp_alloc((size_t)me->mp->size * sizeof(int));

    for (int i = 0; i < me->workers->rounds; i++) {
        int n = 1 + (int)mp_below(&common, (uint64_t)me->mp->size), first = (int)mp_below(&common, (uint64_t)me->mp->size);
        int64_t mine = me->t, sum = 0;
        rank_team_t team;
        if ((me->mp->rank - first + me->mp->size) % me->mp->size >= n)
            continue;
        for (int k = 0; k < n; k++)
            list[k] = (first + k) % me->mp->size;
        MP_OK(rank_team_create(me->mp->world, n, list, me->t, &team));
        MP_CHECK_EQ(rank_team_size(team), n);
        MP_CHECK_EQ(list[rank_team_rank(team)], me->mp->rank);
        MP_OK(rank_allreduce(&mine, &sum, 1, RANK_INT64, RANK_SUM, team));
        MP_CHECK_EQ(sum, n * me->t);
        MP_OK(rank_team_free(&team));
    }
    free(list);
}

int main(int argc, char **argv)
{
    struct shelf shelf = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct called called = {.n = 0};
    struct workers workers;
    struct mp mp;

    workers_start(&workers, &mp, &argc, argv);
    called.team = mp.world;
    MP_CHECK(workers.threads <= WORKERS_MAX / 2);
    mp_case(&mp, "tags of their own");
    workers_run(&workers, ring, NULL);
    mp_case(&mp, "windows");
    workers_run(&workers, windows, NULL);
    mp_case(&mp, "wildcards");
    wildcards(&workers);
    mp_case(&mp, "canceled or received");
    canceled_or_received(&workers);
    mp_case(&mp, "requests of others");
    workers_run(&workers, swap, &shelf);
    mp_case(&mp, "all send first");
    all_send_first(&workers);
    mp_case(&mp, "callbacks");
    workers_run(&workers, call_back, &called);
    mp_case(&mp, "teams of one");
    teams_of_one(&workers);
    mp_case(&mp, "a team for each thread");
    team_each(&workers);
    mp_case(&mp, "teams from lists");
    workers_run(&workers, lists, NULL);
    mp_case(&mp, "sleepers");
    sleepers(&workers);
    mp_end(&mp);
    return 0;
}

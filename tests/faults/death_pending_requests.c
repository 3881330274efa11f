/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * death_pending_requests.c: kill a rank while requests of every kind are pending.
 * The same requests are pending with ranks that live. Each request with the dead one ends, in time and once, with
 * RANK_ERR_PEER_DEAD, or well if it was whole by then. Those with the living end well, whole, after it.
 *
 *   --within S   seconds in which all has ended
 *   --seed N     how long the victim receives before it dies
 */
#include "tests/mp/mp.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static double in_time = 20;
#else
static double in_time = 5;
#endif

enum { SMALL = 8, MIDDLE = 2000, LARGE = 300000, HUGE = 4 << 20, BURST = 40, PIECE = 8, RANKS = 16 };

/* A set's requests, each with its own tag. */
enum {
    RECV, ANY_TAG, RECVV, AGAIN_RECV, AGAIN_SSEND, SSEND, SEND_LARGE, SENDV, /* without an answer while the victim lives */
    MRECV, SEND_HALF, PUT, GET, SENDS,                                       /* these may end well in time */
    REQUESTS = SENDS + BURST,
    CALLBACK, GIVEN_RECV, GIVEN_SSEND, READY, ANY, TAGS
};

struct set {
    int to, from; /* the targets of its sends and puts, the source of its receives */
    rank_request_t req[REQUESTS];
    int ended[REQUESTS];
    rank_status_t status[REQUESTS];
    char *in[TAGS];
    rank_iov_t out_v[2], in_v;
    rank_mem_t mem;       /* of to */
    rank_message_t large; /* that from has announced */
    int reports;
    rank_status_t reported_status;
};

struct scene {
    struct mp mp;
    int victim, open; /* open: requests of both sets */
    rank_team_t living, dup;
    char *out, *memory; /* memory: HUGE that is put to, HUGE that is read */
    rank_mem_t own;
    struct set dead, alive;
};

static const size_t room[TAGS] = {[RECV] = SMALL, [ANY_TAG] = SMALL, [RECVV] = (size_t)2 * LARGE, [AGAIN_RECV] = SMALL,
                                  [MRECV] = HUGE, [GET] = HUGE, [CALLBACK] = SMALL, [GIVEN_RECV] = SMALL, [ANY] = SMALL};

static void callback(const rank_envelope_t *env, void *arg)
{
    struct set *t = arg;

    t->reports++;
    t->reported_status = env->status;
}

static void open_keys(struct scene *s)
{
    struct key {
        int64_t len;
        char bytes[RANK_RKEY_MAX];
    } mine, *all = mp_alloc((size_t)s->mp.size * sizeof(*all));
    size_t len = sizeof(mine.bytes);

    memset(&mine, 0, sizeof(mine));
    s->memory = mp_alloc((size_t)2 * HUGE);
    memset(s->memory, 0, HUGE);
    mp_fill(s->memory + HUGE, HUGE, GET);
    MP_OK(rank_reg(s->memory, (int64_t)2 * HUGE, &s->own));
    MP_OK(rank_rkey_pack(s->own, mine.bytes, &len));
    mine.len = (int64_t)len;
    MP_OK(rank_allgather(&mine, all, sizeof(mine), RANK_BYTE, s->mp.world));
    if (s->mp.rank != s->victim) {
        for (struct set *t = &s->dead; t; t = t == &s->dead ? &s->alive : NULL)
            MP_OK(rank_rkey_open(s->mp.world, t->to, all[t->to].bytes, (size_t)all[t->to].len, &t->mem));
    }
    free(all);
    MP_OK(rank_barrier(s->mp.world)); /* no rank dies while another still opens its keys */
}

/* Requests without an answer yet. */
static void post(struct scene *s, struct set *t)
{
    rank_team_t w = s->mp.world;
    rank_request_t req;

    for (int i = 0; i < TAGS; i++) {
        t->in[i] = mp_alloc(room[i]);
        memset(t->in[i], 0, room[i]);
    }
    t->in_v = (rank_iov_t){.base = t->in[RECVV], .bytes = PIECE, .count = LARGE / PIECE, .stride = 2 * PIECE};
    t->out_v[0] = (rank_iov_t){.base = s->out, .bytes = LARGE / 2};
    t->out_v[1] = (rank_iov_t){.base = s->out + LARGE / 2, .bytes = LARGE / 2};
    MP_OK(rank_irecv(t->in[RECV], SMALL, RANK_BYTE, t->from, RECV, w, &t->req[RECV]));
    MP_OK(rank_irecv(t->in[ANY_TAG], SMALL, RANK_BYTE, t->from, RANK_ANY_TAG, s->dup, &t->req[ANY_TAG]));
    MP_OK(rank_irecvv(&t->in_v, 1, t->from, RECVV, w, &t->req[RECVV]));
    MP_OK(rank_recv_init(t->in[AGAIN_RECV], SMALL, RANK_BYTE, t->from, AGAIN_RECV, w, &t->req[AGAIN_RECV]));
    MP_OK(rank_ssend_init(s->out, SMALL, RANK_BYTE, t->to, AGAIN_SSEND, w, &t->req[AGAIN_SSEND]));
    MP_OK(rank_startall(2, &t->req[AGAIN_RECV]));
    MP_OK(rank_issend(s->out, SMALL, RANK_BYTE, t->to, SSEND, w, &t->req[SSEND]));
    MP_OK(rank_isend(s->out, LARGE, RANK_BYTE, t->to, SEND_LARGE, w, &t->req[SEND_LARGE]));
    MP_OK(rank_isendv(t->out_v, 2, t->to, SENDV, w, &t->req[SENDV]));
    MP_OK(rank_irecv(t->in[CALLBACK], SMALL, RANK_BYTE, t->from, CALLBACK, w, &req));
    MP_OK(rank_on_done(&req, callback, t));
    MP_OK(rank_irecv(t->in[GIVEN_RECV], SMALL, RANK_BYTE, t->from, GIVEN_RECV, w, &req));
    MP_OK(rank_request_free(&req));
    MP_OK(rank_issend(s->out, SMALL, RANK_BYTE, t->to, GIVEN_SSEND, w, &req));
    MP_OK(rank_request_free(&req));
    MP_OK(rank_mprobe(t->from, MRECV, w, &t->large, NULL));
}

/* What moves as soon as it is there. */
static void post_moving(struct scene *s, struct set *t)
{
    rank_team_t w = s->mp.world;

    MP_OK(rank_imrecv(t->in[MRECV], HUGE, RANK_BYTE, &t->large, &t->req[MRECV]));
    MP_OK(rank_isend(s->out, HUGE, RANK_BYTE, t->to, SEND_HALF, w, &t->req[SEND_HALF]));
    MP_OK(rank_iput(s->out, HUGE, t->to, t->mem, 0, &t->req[PUT]));
    MP_OK(rank_iget(t->in[GET], HUGE, t->to, t->mem, HUGE, &t->req[GET]));
    for (int i = 0; i < BURST; i++)
        MP_OK(rank_isend(s->out, MIDDLE, RANK_BYTE, t->to, SENDS, w, &t->req[SENDS + i]));
}

/* Whichever ends next, of both sets; what is idle or has ended is not found again. */
static void take_one(struct scene *s)
{
    rank_request_t all[2 * REQUESTS];
    rank_envelope_t env;
    int64_t index = -1, i;
    struct set *t;

    memcpy(all, s->dead.req, sizeof(s->dead.req));
    memcpy(all + REQUESTS, s->alive.req, sizeof(s->alive.req));
    rank_waitany(2 * REQUESTS, all, &index, &env);
    MP_CHECK(index >= 0 && index < 2 * REQUESTS);
    t = index < REQUESTS ? &s->dead : &s->alive;
    i = index % REQUESTS;
    t->req[i] = all[index];
    t->status[i] = env.status;
    MP_CHECK_EQ(++t->ended[i], 1);
    s->open--;
}

static int has_ended(const struct set *t)
{
    int n = 0;

    for (int i = 0; i < REQUESTS; i++)
        n += t->ended[i];
    return n;
}

static void check_whole(struct set *t, int tag, size_t bytes)
{
    MP_CHECK_EQ(mp_verify(t->in[tag], bytes, tag == GET ? GET : 0), -1);
}

static void all_dead(struct scene *s, rank_request_t *any)
{
    struct set *t = &s->dead;
    double t0 = mp_now();
    rank_status_t st;

    MP_OK(rank_send(s->out, SMALL, RANK_BYTE, s->victim, READY, s->mp.world)); /* it dies when all have sent this */
    while (has_ended(t) < REQUESTS)
        take_one(s);
    MP_STATUS(rank_wait(any, NULL), RANK_ERR_PEER_DEAD);
    while (!t->reports && mp_now() < t0 + in_time)
        MP_OK(rank_progress());
    if (mp_now() - t0 > in_time)
        mp_fail(__FILE__, __LINE__, "all has ended after %.3f s", mp_now() - t0);
    MP_CHECK_EQ(t->reports, 1);
    MP_STATUS(t->reported_status, RANK_ERR_PEER_DEAD);
    for (int i = 0; i < REQUESTS; i++) {
        if ((i < MRECV || t->status[i]) && t->status[i] != RANK_ERR_PEER_DEAD)
            mp_fail(__FILE__, __LINE__, "request %d ended with %d, not RANK_ERR_PEER_DEAD", i, (int)t->status[i]);
    }
    if (!t->status[MRECV])
        check_whole(t, MRECV, HUGE);
    if (!t->status[GET])
        check_whole(t, GET, HUGE);
    /* What is persistent can be started again, and ends again. */
    for (int i = AGAIN_RECV; i <= AGAIN_SSEND; i++) {
        MP_CHECK(t->req[i] != RANK_REQUEST_NULL);
        st = rank_start(&t->req[i]);
        MP_STATUS(st ? st : rank_wait(&t->req[i], NULL), RANK_ERR_PEER_DEAD);
    }
}

/* The other ends of what is open with the living. */
static void all_alive(struct scene *s, rank_request_t *announced)
{
    enum { TAKEN = 6, SENT = 6 };
    static const int taken[TAKEN] = {AGAIN_SSEND, SSEND, SEND_LARGE, SENDV, SEND_HALF, GIVEN_SSEND};
    static const size_t bytes[TAKEN] = {SMALL, SMALL, LARGE, LARGE, HUGE, SMALL};
    static const int sent[SENT] = {RECV, RECVV, AGAIN_RECV, CALLBACK, GIVEN_RECV, ANY};
    struct set *t = &s->alive;
    rank_request_t req[TAKEN + BURST + SENT + 2];
    char *in[TAKEN], *burst = mp_alloc((size_t)BURST * MIDDLE);
    rank_team_t w = s->mp.world;
    int n = 0;

    for (int i = 0; i < MRECV; i++)
        MP_CHECK_EQ(t->ended[i] && t->status[i], 0);
    for (int i = 0; i < TAKEN; i++) {
        in[i] = mp_alloc(bytes[i]);
        MP_OK(rank_irecv(in[i], (int64_t)bytes[i], RANK_BYTE, t->from, taken[i], w, &req[n++]));
    }
    for (int i = 0; i < BURST; i++)
        MP_OK(rank_irecv(burst + (size_t)i * MIDDLE, MIDDLE, RANK_BYTE, t->from, SENDS, w, &req[n++]));
    MP_OK(rank_isend(s->out, SMALL, RANK_BYTE, t->to, ANY_TAG, s->dup, &req[n++]));
    MP_OK(rank_irecv(t->in[ANY], SMALL, RANK_BYTE, RANK_ANY_SOURCE, ANY, w, &req[n++])); /* the death has been reported */
    for (int i = 0; i < SENT; i++)
        MP_OK(rank_isend(s->out, sent[i] == RECVV ? LARGE : SMALL, RANK_BYTE, t->to, sent[i], w, &req[n++]));
    MP_OK(rank_waitall(n, req, NULL));
    while (s->open)
        take_one(s);
    MP_OK(rank_wait(announced, NULL));
    while (!t->reports || memcmp(t->in[GIVEN_RECV], s->out, SMALL))
        MP_OK(rank_progress());
    MP_CHECK_EQ(t->reports, 1);
    MP_OK(t->reported_status);
    for (int i = 0; i < REQUESTS; i++) {
        MP_CHECK_EQ(t->ended[i], 1);
        if (t->status[i])
            mp_fail(__FILE__, __LINE__, "request %d with a living rank ended with %d", i, (int)t->status[i]);
    }
    for (int i = 0; i < LARGE; i++)
        MP_CHECK(t->in[RECVV][i / PIECE * 2 * PIECE + i % PIECE] == s->out[i]);
    for (int i = 0; i < TAKEN; i++)
        MP_CHECK_EQ(mp_verify(in[i], bytes[i], 0), -1);
    for (int i = 0; i < BURST; i++)
        MP_CHECK_EQ(mp_verify(burst + (size_t)i * MIDDLE, MIDDLE, 0), -1);
    for (int i = 0; i < TAGS; i++) {
        if (room[i] && i != RECVV)
            check_whole(t, i, room[i]);
    }
    mp_barrier(s->living);
    MP_OK(rank_flush(t->mem, t->to));
    mp_barrier(s->living);
    MP_CHECK_EQ(mp_verify(s->memory, HUGE, 0), -1);
    for (int i = 0; i < TAKEN; i++)
        free(in[i]);
    free(burst);
}

/* All have reported ready: some of what they send is taken, and in the midst of it the end comes. */
static _Noreturn void be_victim(struct scene *s)
{
    static rank_request_t req[RANKS];
    uint64_t seed = s->mp.seed;
    char c[SMALL];
    double until;

    for (int r = 0; r < s->victim; r++)
        MP_OK(rank_isend(s->out, HUGE, RANK_BYTE, r, MRECV, s->mp.world, &req[r]));
    for (int r = 0; r < s->victim; r++)
        MP_OK(rank_recv(c, SMALL, RANK_BYTE, r, READY, s->mp.world, NULL));
    for (int r = 0; r < s->victim; r++)
        MP_OK(rank_irecv(mp_alloc(HUGE), HUGE, RANK_BYTE, r, SEND_HALF, s->mp.world, &req[r]));
    until = mp_now() + (double)mp_below(&seed, 4000) * 1e-6;
    while (mp_now() < until)
        MP_OK(rank_progress());
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

static void take_down(struct scene *s)
{
    for (struct set *t = &s->dead; t; t = t == &s->dead ? &s->alive : NULL) {
        rank_status_t st = rank_rkey_close(&t->mem);

        MP_CHECK(st == RANK_OK || (st == RANK_ERR_PEER_DEAD && t == &s->dead));
        for (int i = AGAIN_RECV; i <= AGAIN_SSEND; i++)
            MP_OK(rank_request_free(&t->req[i]));
        for (int i = 0; i < REQUESTS; i++)
            MP_CHECK(t->req[i] == RANK_REQUEST_NULL);
        MP_CHECK_EQ(t->reports, 1);
    }
    mp_barrier(s->living);
    MP_OK(rank_dereg(&s->own));
    MP_OK(rank_team_free(&s->living));
}

int main(int argc, char **argv)
{
    static struct scene s;
    rank_request_t announced, any;
    int n;

    mp_start(&s.mp, &argc, argv);
    in_time = (double)mp_option(argc, argv, "--within", (int64_t)in_time);
    MP_CHECK(s.mp.size >= 3 && s.mp.size <= RANKS);
    s.victim = n = s.mp.size - 1;
    s.dead.to = s.dead.from = s.victim;
    s.alive.to = (s.mp.rank + 1) % n;
    s.alive.from = (s.mp.rank + n - 1) % n;
    s.open = 2 * REQUESTS;
    s.out = mp_alloc(HUGE);
    mp_fill(s.out, HUGE, 0);
    MP_OK(rank_team_split(s.mp.world, s.mp.rank == s.victim ? RANK_UNDEFINED : 0, 0, &s.living));
    MP_OK(rank_team_dup(s.mp.world, &s.dup));
    mp_case(&s.mp, "pending");
    open_keys(&s);
    if (s.mp.rank == s.victim)
        be_victim(&s);
    MP_OK(rank_isend(s.out, HUGE, RANK_BYTE, s.alive.to, MRECV, s.mp.world, &announced));
    post(&s, &s.dead);
    post(&s, &s.alive);
    MP_OK(rank_irecv(s.dead.in[ANY], SMALL, RANK_BYTE, RANK_ANY_SOURCE, ANY, s.mp.world, &any));
    mp_barrier(s.living);
    post_moving(&s, &s.dead);
    post_moving(&s, &s.alive);
    all_dead(&s, &any);
    mp_barrier(s.living); /* a fast rank does not send to a wildcard receive that others still have open */
    all_alive(&s, &announced);
    take_down(&s);
    mp_end_survivor(&s.mp);
    for (int i = 0; i < TAGS; i++) {
        free(s.dead.in[i]);
        free(s.alive.in[i]);
    }
    free(s.memory);
    free(s.out);
    return 0;
}

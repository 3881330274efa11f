/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p2p_unexpected_storm.c: send random messages on several teams, check all bytes.
 *
 * A round's plan (sender, receiver, team, ways to send and to receive of each message)
 * follows from the seed alone, so every rank has all of it. Because
 * messages of one stream (team, source, tag) are received in the order sent,
 * the k-th receive, in the order of posting, that got one of a stream must
 * hold the stream's k-th message: that is all there is to check. So each rank is
 * free to choose among calls of the same meaning: in pieces or in
 * one, persistent, matched by a probe, waited for one by one or reported by callbacks.
 *
 *   --rounds N --messages N (per rank and round) --max BYTES --no-teams --seed N --delay N (see mp_delay)
 */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>

enum { TEAMS = 4, TAGS = 6, SOURCED = 100 };
enum { ALL_WORLD, ALL_DUP, ALL_REVERSED, ALL_PARITY };

/* How receives of one team name what they want; all receives of a mode can take each other's
 * messages or none of them, so none starves. */
enum mode {
    EXACT,      /* source and tag; tags of SOURCED and above: any source and the tag */
    ANY_TAG_OF, /* a source, any tag */
    ANYTHING    /* not on the world, where barriers run */
};

enum shape {
    RECV_FIRST, /* all receives posted, then sends, also blocking ones */
    SEND_FIRST, /* all sends started, then receives: posted, blocking, or after a probe */
    MIXED,      /* nonblocking, shuffled */
    SHAPES
};

enum { CUTS = 4 };

enum how { ISEND, ISSEND, SEND, SSEND, HOWS };

struct message {
    int team, src, dst; /* world ranks */
    int64_t tag;
    size_t bytes;
    uint64_t key;
    enum how how;
};

struct receive {
    const struct message *taken; /* filled by the check */
    int team;
    int src; /* in the team, or RANK_ANY_SOURCE */
    int64_t tag;
    size_t room;
    char *buf;
    rank_request_t req;
    rank_envelope_t env;
    rank_status_t status;
    bool ended;
    bool persistent; /* with a callback, and not yet freed */
    rank_iov_t iov[CUTS];
};

struct storm {
    struct mp mp;
    rank_team_t team[TEAMS], control;
    int teams;
    int messages;
    size_t max;
    uint64_t plan; /* the random state that all ranks share */
    uint64_t own;
    struct message *msg;
    int nmsg;
    enum mode mode[TEAMS];
    enum shape shape;
    struct receive *recv;
    int nrecv;
    rank_request_t *sends;
    char **out;
    int nsends;
};

/* Membership is arithmetic, so that plans need no talk. */
static int team_size(const struct storm *s, int t, int world)
{
    return t == ALL_PARITY ? (s->mp.size + 1 - (world & 1)) / 2 : s->mp.size;
}

static int to_team(const struct storm *s, int t, int world)
{
    return t == ALL_PARITY ? world / 2 : t == ALL_REVERSED ? s->mp.size - 1 - world : world;
}

static int to_world(const struct storm *s, int t, int of, int rank)
{
    return t == ALL_PARITY ? 2 * rank + (of & 1) : t == ALL_REVERSED ? s->mp.size - 1 - rank : rank;
}

static size_t random_size(struct storm *s)
{
    uint64_t kind = mp_below(&s->plan, 100), top;

    top = kind < 35 ? 64 : kind < 45 ? 1 : kind < 65 ? 8192 : kind < 85 ? 65536 : kind < 97 ? 1 << 20 : 5 << 20;
    if (top > s->max)
        top = s->max;
    return mp_below(&s->plan, top + 1);
}

static void make_plan(struct storm *s)
{
    s->nmsg = s->messages * s->mp.size;
    s->shape = (enum shape)mp_below(&s->plan, SHAPES);
    for (int t = 0; t < s->teams; t++)
        s->mode[t] = (enum mode)mp_below(&s->plan, t == ALL_WORLD ? 2 : 3);
    for (int i = 0; i < s->nmsg; i++) {
        struct message *m = &s->msg[i];
        m->team = (int)mp_below(&s->plan, (uint64_t)s->teams);
        m->src = (int)mp_below(&s->plan, (uint64_t)s->mp.size);
        m->dst = to_world(s, m->team, m->src,
                          (int)mp_below(&s->plan, (uint64_t)team_size(s, m->team, m->src)));
        m->tag = (int64_t)mp_below(&s->plan, TAGS);
        if (s->mode[m->team] == EXACT && mp_below(&s->plan, 2))
            m->tag += SOURCED;
        m->bytes = random_size(s);
        m->key = mp_random(&s->plan);
        m->how = (enum how)mp_below(&s->plan, s->shape == RECV_FIRST ? HOWS : 2);
    }
}

/* One receive for each message to me, in an order of my own. */
static void make_receives(struct storm *s)
{
    s->nrecv = 0;
    for (int i = 0; i < s->nmsg; i++) {
        const struct message *m = &s->msg[i];
        struct receive *r = &s->recv[s->nrecv];
        if (m->dst != s->mp.rank)
            continue;
        memset(r, 0, sizeof(*r));
        r->team = m->team;
        r->src = to_team(s, m->team, m->src);
        r->tag = m->tag;
        switch (s->mode[m->team]) {
        case EXACT:
            if (m->tag >= SOURCED)
                r->src = RANK_ANY_SOURCE;
            break;
        case ANY_TAG_OF:
            r->tag = RANK_ANY_TAG;
            break;
        case ANYTHING:
            r->src = RANK_ANY_SOURCE;
            r->tag = RANK_ANY_TAG;
            break;
        }
        r->room = s->max;
        if (mp_below(&s->own, 20) == 0) /* too short for many */
            r->room = mp_below(&s->own, 5000);
        s->nrecv++;
    }
    for (int i = s->nrecv - 1; i > 0; i--) {
        int j = (int)mp_below(&s->own, (uint64_t)i + 1);
        struct receive t = s->recv[i];
        s->recv[i] = s->recv[j];
        s->recv[j] = t;
    }
}

/* Memory as pieces, at places of my own choice. */
static void cut(struct storm *s, rank_iov_t iov[CUTS], char *buf, size_t bytes)
{
    size_t at = 0;

    for (int i = 0; i < CUTS; i++) {
        size_t n = i == CUTS - 1 ? bytes - at : mp_below(&s->own, bytes - at + 1);
        iov[i] = (rank_iov_t){.base = buf + at, .bytes = (int64_t)n};
        if (n >= 4 && n % 4 == 0 && mp_below(&s->own, 2)) /* the same once more, as blocks */
            iov[i] = (rank_iov_t){.base = buf + at, .bytes = 4, .count = (int64_t)n / 4, .stride = 4};
        at += n;
    }
}

static void called(const rank_envelope_t *env, void *arg)
{
    struct receive *r = arg;

    MP_CHECK(!r->ended);
    r->env = *env;
    r->status = env->status;
    r->ended = true;
}

static void start_receive(struct storm *s, struct receive *r)
{
    rank_team_t team = s->team[r->team];

    switch (mp_below(&s->own, 6)) {
    case 0:
        cut(s, r->iov, r->buf, r->room);
        MP_OK(rank_irecvv(r->iov, CUTS, r->src, r->tag, team, &r->req));
        break;
    case 1:
        MP_OK(rank_recv_init(r->buf, (int64_t)r->room, RANK_BYTE, r->src, r->tag, team, &r->req));
        MP_OK(rank_start(&r->req));
        break;
    default:
        MP_OK(rank_irecv(r->buf, (int64_t)r->room, RANK_BYTE, r->src, r->tag, team, &r->req));
    }
}

/* A persistent request stays: it has done its work here. */
static void part_with(rank_request_t *req)
{
    if (*req != RANK_REQUEST_NULL)
        MP_OK(rank_request_free(req));
}

static void post(struct storm *s, struct receive *r)
{
    rank_status_t st;
    int done = 0;

    r->buf = mp_alloc(r->room);
    start_receive(s, r);
    if (mp_below(&s->own, 10) == 0) { /* thought better of it, twice */
        MP_OK(rank_cancel(&r->req));
        st = rank_test(&r->req, &done, &r->env);
        if (st == RANK_ERR_CANCELED) {
            MP_CHECK_EQ(done, 1);
            part_with(&r->req);
            start_receive(s, r);
        } else if (done) { /* it had matched */
            part_with(&r->req);
            r->status = st;
            r->ended = true;
            return;
        }
    }
    if (mp_below(&s->own, 6) == 0) {
        rank_request_t req = r->req;
        MP_OK(rank_on_done(&req, called, r));
        if (req == RANK_REQUEST_NULL || r->ended)
            r->req = RANK_REQUEST_NULL;
        else
            r->persistent = true; /* it is still mine, for later */
        if (req != RANK_REQUEST_NULL && r->ended)
            part_with(&req);
    }
}

/* Blocking; with a probe first a buffer that just fits. */
static void receive_now(struct storm *s, struct receive *r)
{
    int src = r->src;
    int64_t tag = r->tag;

    if (mp_below(&s->own, 2)) {
        rank_envelope_t seen;
        rank_message_t message;
        int found = 0;
        if (mp_below(&s->own, 2)) { /* what was probed, and nothing else */
            if (mp_below(&s->own, 2)) {
                MP_OK(rank_mprobe(src, tag, s->team[r->team], &message, &seen));
            } else {
                while (!found)
                    MP_OK(rank_improbe(src, tag, s->team[r->team], &found, &message, &seen));
            }
            r->room = (size_t)seen.bytes;
            r->buf = mp_alloc(r->room);
            r->status = rank_mrecv(r->buf, seen.bytes, RANK_BYTE, &message, &r->env);
            r->ended = true;
            return;
        }
        if (mp_below(&s->own, 2)) {
            MP_OK(rank_probe(src, tag, s->team[r->team], &seen));
        } else {
            while (!found)
                MP_OK(rank_iprobe(src, tag, s->team[r->team], &found, &seen));
        }
        r->room = (size_t)seen.bytes;
        src = seen.source;
        tag = seen.tag;
    }
    r->buf = mp_alloc(r->room);
    r->status = rank_recv(r->buf, (int64_t)r->room, RANK_BYTE, src, tag, s->team[r->team],
                          &r->env);
    r->ended = true;
}

static void start_send(struct storm *s, const struct message *m)
{
    rank_team_t team = s->team[m->team];
    int dst = to_team(s, m->team, m->dst);
    int64_t n = (int64_t)m->bytes;
    rank_iov_t *iov = mp_alloc(CUTS * sizeof(*iov) + m->bytes); /* the list stays with the data */
    char *buf = (char *)(iov + CUTS);
    uint64_t way = mp_below(&s->own, 5);

    mp_fill(buf, m->bytes, m->key);
    if (way == 0)
        cut(s, iov, buf, m->bytes);
    s->out[s->nsends] = (char *)iov;
    s->sends[s->nsends] = RANK_REQUEST_NULL;
    switch (m->how) {
    case ISEND:
        if (way == 0) {
            MP_OK(rank_isendv(iov, CUTS, dst, m->tag, team, &s->sends[s->nsends]));
            break;
        }
        if (way == 1) {
            MP_OK(rank_send_init(buf, n, RANK_BYTE, dst, m->tag, team, &s->sends[s->nsends]));
            MP_OK(rank_start(&s->sends[s->nsends]));
            break;
        }
        MP_OK(rank_isend(buf, n, RANK_BYTE, dst, m->tag, team, &s->sends[s->nsends]));
        break;
    case ISSEND:
        if (way == 1) {
            MP_OK(rank_ssend_init(buf, n, RANK_BYTE, dst, m->tag, team, &s->sends[s->nsends]));
            MP_OK(rank_startall(1, &s->sends[s->nsends]));
            break;
        }
        MP_OK(rank_issend(buf, n, RANK_BYTE, dst, m->tag, team, &s->sends[s->nsends]));
        break;
    case SEND:
        if (way == 0) {
            MP_OK(rank_sendv(iov, CUTS, dst, m->tag, team));
            break;
        }
        MP_OK(rank_send(buf, n, RANK_BYTE, dst, m->tag, team));
        break;
    case SSEND:
    case HOWS:
        MP_OK(rank_ssend(buf, n, RANK_BYTE, dst, m->tag, team));
        break;
    }
    s->nsends++;
}

/* The next message of mine to send at or after i; nmsg if there is none. */
static int next_send(const struct storm *s, int i)
{
    while (i < s->nmsg && s->msg[i].src != s->mp.rank)
        i++;
    return i;
}

static void run_round(struct storm *s)
{
    int i = next_send(s, 0), r = 0;

    while (i < s->nmsg || r < s->nrecv) {
        bool send = s->shape == RECV_FIRST ? r == s->nrecv
                    : s->shape == SEND_FIRST ? i < s->nmsg
                                             : mp_below(&s->own, 2);
        mp_delay(&s->mp, &s->own);
        if (i == s->nmsg)
            send = false;
        else if (r == s->nrecv)
            send = true;
        if (send) {
            start_send(s, &s->msg[i]);
            i = next_send(s, i + 1);
        } else if (s->shape == SEND_FIRST && mp_below(&s->own, 2)) {
            receive_now(s, &s->recv[r++]);
        } else {
            post(s, &s->recv[r++]);
        }
    }
}

static void ends(struct receive *r, rank_request_t *req, rank_status_t st,
                 const rank_envelope_t *env)
{
    MP_CHECK(!r->ended);
    part_with(req);
    r->status = st;
    r->env = *env;
    r->ended = true;
}

/* Wait for the posted receives by whichever call comes up. */
static void finish_receives(struct storm *s)
{
    size_t n = (size_t)s->nrecv + 1;
    rank_request_t *reqs = mp_alloc(n * sizeof(*reqs));
    rank_envelope_t *envs = mp_alloc(n * sizeof(*envs)), env;
    int64_t *indices = mp_alloc(n * sizeof(*indices)), index, some;
    int left = 0, done;

    for (int i = 0; i < s->nrecv; i++) {
        reqs[i] = s->recv[i].persistent ? RANK_REQUEST_NULL : s->recv[i].req;
        left += reqs[i] != RANK_REQUEST_NULL;
    }
    while (left > 0) {
        rank_status_t st = RANK_OK;
        memset(&env, 0, sizeof(env));
        done = 0;
        some = 0;
        switch (mp_below(&s->own, 6)) {
        case 0:
            st = rank_waitany(s->nrecv, reqs, &index, &env);
            done = 1;
            break;
        case 1:
            st = rank_testany(s->nrecv, reqs, &index, &done, &env);
            break;
        case 2:
            (void)rank_waitsome(s->nrecv, reqs, &some, indices, envs);
            MP_CHECK(some > 0);
            break;
        case 3:
            (void)rank_testsome(s->nrecv, reqs, &some, indices, envs);
            break;
        default:
            index = (int64_t)mp_below(&s->own, (uint64_t)s->nrecv);
            if (reqs[index] == RANK_REQUEST_NULL)
                continue;
            st = rank_test(&reqs[index], &done, &env);
        }
        for (int64_t k = 0; k < some; k++) {
            ends(&s->recv[indices[k]], &reqs[indices[k]], envs[k].status, &envs[k]);
            left--;
        }
        if (done) {
            MP_CHECK(index >= 0 && index < s->nrecv);
            ends(&s->recv[index], &reqs[index], st, &env);
            left--;
        }
    }
    for (int i = 0; i < s->nrecv; i++) { /* those with callbacks */
        while (!s->recv[i].ended)
            MP_OK(rank_progress());
        if (s->recv[i].persistent)
            part_with(&s->recv[i].req);
    }
    free(reqs);
    free(envs);
    free(indices);
}

static void check_receive(struct storm *s, struct receive *r, int i)
{
    const struct message *m = NULL;
    int64_t bad;

    MP_CHECK(r->ended);
    MP_CHECK(r->env.source >= 0 && r->env.source < team_size(s, r->team, s->mp.rank));
    for (int k = 0; k < s->nmsg && !m; k++) {
        const struct message *c = &s->msg[k];
        if (c->dst == s->mp.rank && c->team == r->team && c->tag == r->env.tag &&
            to_team(s, c->team, c->src) == r->env.source && c->how != HOWS)
            m = c;
    }
    if (!m)
        mp_fail(__FILE__, __LINE__, "receive %d: nothing like it was sent: team %d source %d tag %lld",
                i, r->team, r->env.source, (long long)r->env.tag);
    s->msg[m - s->msg].how = HOWS; /* taken */
    if ((size_t)r->env.sent_bytes != m->bytes)
        mp_fail(__FILE__, __LINE__,
                "receive %d got %lld bytes from %d tag %lld on team %d; the next in order has %zu",
                i, (long long)r->env.sent_bytes, r->env.source, (long long)r->env.tag, r->team,
                m->bytes);
    MP_STATUS(r->status, m->bytes > r->room ? RANK_ERR_TRUNCATED : RANK_OK);
    MP_STATUS(r->env.status, r->status);
    MP_CHECK_EQ(r->env.bytes, m->bytes > r->room ? r->room : m->bytes);
    bad = mp_verify(r->buf, (size_t)r->env.bytes, m->key);
    if (bad >= 0)
        mp_fail(__FILE__, __LINE__, "receive %d: byte %lld of %lld (sent %zu) from %d is wrong", i,
                (long long)bad, (long long)r->env.bytes, m->bytes, r->env.source);
    free(r->buf);
}

static void one_round(struct storm *s, int number)
{
    make_plan(s);
    make_receives(s);
    if (s->mp.rank == 0) {
        printf("round %d: shape %d, modes %d %d %d %d\n", number, s->shape, s->mode[0], s->mode[1],
               s->mode[2], s->mode[3]);
    }
    s->nsends = 0;
    run_round(s);
    finish_receives(s);
    MP_OK(rank_waitall(s->nsends, s->sends, NULL));
    for (int i = 0; i < s->nsends; i++) {
        part_with(&s->sends[i]);
        free(s->out[i]);
    }
    for (int i = 0; i < s->nrecv; i++)
        check_receive(s, &s->recv[i], i);
    mp_barrier(s->control);
}

int main(int argc, char **argv)
{
    struct storm s;
    int rounds;
    size_t most;

    memset(&s, 0, sizeof(s));
    mp_start(&s.mp, &argc, argv);
    rounds = (int)mp_rounds(mp_option(argc, argv, "--rounds", 10));
    s.messages = (int)mp_option(argc, argv, "--messages", 40);
    s.max = (size_t)mp_option(argc, argv, "--max", 5 << 20);
    s.plan = s.mp.seed;
    s.own = s.mp.seed * 31 + (uint64_t)s.mp.rank;
    s.control = s.team[ALL_WORLD] = s.mp.world;
    s.teams = 1;
    if (!mp_flag(argc, argv, "--no-teams")) {
        s.teams = TEAMS;
        MP_OK(rank_team_dup(s.mp.world, &s.team[ALL_DUP]));
        MP_OK(rank_team_split(s.mp.world, 0, -s.mp.rank, &s.team[ALL_REVERSED]));
        MP_OK(rank_team_split(s.mp.world, s.mp.rank & 1, 0, &s.team[ALL_PARITY]));
    }
    most = (size_t)s.messages * (size_t)s.mp.size;
    s.msg = mp_alloc(most * sizeof(*s.msg));
    s.recv = mp_alloc(most * sizeof(*s.recv));
    s.sends = mp_alloc(most * sizeof(rank_request_t));
    s.out = mp_alloc(most * sizeof(char *));
    mp_case(&s.mp, "storm");
    for (int i = 0; i < rounds; i++)
        one_round(&s, i);
    for (int t = 1; t < s.teams; t++)
        MP_OK(rank_team_free(&s.team[t]));
    free(s.msg);
    free(s.recv);
    free(s.sends);
    free(s.out);
    mp_end(&s.mp);
    return 0;
}

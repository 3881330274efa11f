/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * random_mixed.c: run random programs of calls against a sequential model.
 *
 * Messages on several teams, puts, gets, counts and cancels. A round's plan, a list of steps of all ranks, follows from the
 * seed alone, so every rank has all of it. Each rank does its own steps in order, and is free to choose among calls of the
 * same meaning: in pieces or in one, persistent, matched by a probe, waited for one by one or reported by callbacks.
 *   - Messages of one stream (team, source, tag) are received in the order sent: the k-th receive, in the order of posting,
 *     that got one of a stream must hold the stream's k-th message.
 *   - In every rank's memory each rank has a part of its own, so that its puts there act as if done one after the other, and
 *     each rank can compute what it will find: in what it gets, in its own memory at the end of a round, and at the moment
 *     when a message comes that was sent after a flush ("notice").
 *
 *   --rounds N --steps N (per rank and round) --max BYTES --seed N --delay N (see mp_delay)
 *   --large N   of 100 messages so many are of any length up to --max
 *   --cuts 0    no receive is too short for its message
 */
#include "tests/mp/mp.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 16, TEAMS = 4, TAGS = 6, SOURCED = 100, NOTICED = 200, CUTS = 4, SLOTS = 8 };
enum { ALL_WORLD, ALL_DUP, ALL_REVERSED, ALL_PARITY };
/* A rank's part of another's memory: bytes that are overwritten, places that are written once a round, a counter. */
enum { MEMS = 2, PART = 24 << 10, NOTICES = 16, NOTICE_BYTES = 512, AT_NOTICES = PART, AT_COUNT = AT_NOTICES + NOTICES * NOTICE_BYTES,
       STRIDE = AT_COUNT + 64 };

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

enum kind { MESSAGE, NOTICE, PUT, GET, COUNT }; /* NOTICE: a message after a put, with a tag of NOTICED and above */
enum how { ISEND, ISSEND, SEND, SSEND, HOWS };

struct step {
    enum kind kind;
    int team, src, dst; /* world ranks */
    int mem;
    int64_t tag;
    size_t offset, bytes;
    uint64_t key;
    enum how how; /* HOWS: taken */
};

struct receive {
    int team;
    int src; /* in the team, or RANK_ANY_SOURCE */
    int64_t tag;
    size_t room;
    char *buf, *canceled; /* canceled: of one that was taken back, where nothing may be written */
    size_t canceled_room;
    rank_request_t req;
    rank_envelope_t env;
    rank_status_t status;
    bool ended;
    bool persistent; /* with a callback, and not yet freed */
    rank_iov_t iov[CUTS];
};

struct mixed {
    struct mp mp;
    rank_team_t team[TEAMS], control;
    int steps;
    size_t max;
    uint64_t large; /* --large */
    int64_t cuts; /* --cuts */
    uint64_t plan;  /* the random state that all ranks share */
    uint64_t own;
    struct step *step;
    int nsteps;
    enum mode mode[TEAMS];
    enum shape shape;
    struct receive *recv;
    int nrecv;
    rank_request_t *sends;
    char **out;
    rank_iov_t (*out_iov)[CUTS];
    int nsends;
    char *mine[MEMS], *model[MEMS]; /* of my memory: what it will be */
    char *theirs[MEMS];             /* what my parts of all others' will be; by rank */
    bool dirty[MEMS][RANKS];        /* puts since the last fence */
    bool open[MEMS][RANKS];         /* puts since the last flush */
    uint64_t sum[MEMS][RANKS];      /* my counts there since the beginning */
    uint64_t expect[MEMS][RANKS];   /* theirs here */
    rank_mem_t window, reg, key[RANKS];
    rank_mem_t slots; /* what both of a message may have mapped */
    char *slot[SLOTS];
    bool used[SLOTS];
};

/* Memory for a message: some of it, if there is a slot, from rank_alloc. */
static char *get_buffer(struct mixed *m, size_t bytes)
{
    int i = (int)mp_below(&m->own, 2 * SLOTS);

    if (i >= SLOTS || m->used[i])
        return mp_alloc(bytes);
    m->used[i] = true;
    return m->slot[i];
}

static void drop_buffer(struct mixed *m, char *buf)
{
    for (int i = 0; i < SLOTS; i++) {
        if (buf == m->slot[i]) {
            m->used[i] = false;
            return;
        }
    }
    free(buf);
}

static rank_mem_t mem_of(struct mixed *m, int mem, int rank)
{
    return mem == 0 ? m->window : m->key[rank];
}

static int64_t place(int origin, size_t offset)
{
    return (int64_t)origin * STRIDE + (int64_t)offset;
}

static bool is_message(const struct step *t)
{
    return t->kind <= NOTICE;
}

/* Membership is arithmetic, so that plans need no talk. */
static int team_size(const struct mixed *s, int t, int world)
{
    return t == ALL_PARITY ? (s->mp.size + 1 - (world & 1)) / 2 : s->mp.size;
}

static int to_team(const struct mixed *s, int t, int world)
{
    return t == ALL_PARITY ? world / 2 : t == ALL_REVERSED ? s->mp.size - 1 - world : world;
}

static int to_world(const struct mixed *s, int t, int of, int rank)
{
    return t == ALL_PARITY ? 2 * rank + (of & 1) : t == ALL_REVERSED ? s->mp.size - 1 - rank : rank;
}

/* ----------------------------------------------------------------- the plan */

static size_t random_size(struct mixed *s)
{
    uint64_t kind = mp_below(&s->plan, 100), top;

    top = kind < 35 ? 64 : kind < 45 ? 1 : kind < 65 ? 8192 : kind < 85 ? 65536 : kind < 97 ? 1 << 20 : 5 << 20;
    if (top > s->max || (s->large && mp_below(&s->plan, 100) < s->large))
        top = s->max;
    return mp_below(&s->plan, top + 1);
}

static void make_plan(struct mixed *s)
{
    int noticed[RANKS][RANKS] = {{0}};

    s->nsteps = s->steps * s->mp.size;
    s->shape = (enum shape)mp_below(&s->plan, SHAPES);
    for (int t = 0; t < TEAMS; t++)
        s->mode[t] = (enum mode)mp_below(&s->plan, t == ALL_WORLD ? 2 : 3);
    for (int i = 0; i < s->nsteps; i++) {
        struct step *t = &s->step[i];
        uint64_t kind = mp_below(&s->plan, 9);

        t->kind = kind < 5 ? MESSAGE : (enum kind)(kind - 4);
        t->team = is_message(t) ? (int)mp_below(&s->plan, TEAMS) : ALL_WORLD;
        t->src = (int)mp_below(&s->plan, (uint64_t)s->mp.size);
        t->dst = to_world(s, t->team, t->src, (int)mp_below(&s->plan, (uint64_t)team_size(s, t->team, t->src)));
        t->mem = (int)mp_below(&s->plan, MEMS);
        t->tag = (int64_t)mp_below(&s->plan, TAGS);
        t->bytes = random_size(s);
        t->key = mp_random(&s->plan);
        t->how = (enum how)mp_below(&s->plan, s->shape == RECV_FIRST ? HOWS : 2);
        if (t->kind == NOTICE && noticed[t->src][t->dst] == NOTICES)
            t->kind = MESSAGE;
        if (t->kind == NOTICE) {
            t->tag = NOTICED + noticed[t->src][t->dst]++;
            t->offset = AT_NOTICES + (size_t)(t->tag - NOTICED) * NOTICE_BYTES;
        } else if (t->kind == MESSAGE && s->mode[t->team] == EXACT && mp_below(&s->plan, 2)) {
            t->tag += SOURCED;
        } else if (!is_message(t)) {
            t->bytes %= PART + 1;
            t->offset = mp_below(&s->plan, PART - t->bytes + 1);
        }
    }
}

/* One receive for each message to me, in an order of my own. */
static void make_receives(struct mixed *s)
{
    s->nrecv = 0;
    for (int i = 0; i < s->nsteps; i++) {
        const struct step *m = &s->step[i];
        struct receive *r = &s->recv[s->nrecv];
        if (!is_message(m) || m->dst != s->mp.rank)
            continue;
        memset(r, 0, sizeof(*r));
        r->team = m->team;
        r->src = to_team(s, m->team, m->src);
        r->tag = m->tag;
        switch (s->mode[m->team]) {
        case EXACT:
            if (m->tag >= SOURCED && m->tag < NOTICED)
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
        if (mp_below(&s->own, 20) == 0 && s->cuts) /* too short for many */
            r->room = mp_below(&s->own, s->max < 5000 ? s->max : 5000);
        s->nrecv++;
    }
    for (int i = s->nrecv - 1; i > 0; i--) {
        int j = (int)mp_below(&s->own, (uint64_t)i + 1);
        struct receive t = s->recv[i];
        s->recv[i] = s->recv[j];
        s->recv[j] = t;
    }
}

/* ---------------------------------------------------------------- receiving */

/* A message is here, now: so is what was put before a notice. */
static void came(struct mixed *s, struct receive *r, rank_status_t st, const rank_envelope_t *env)
{
    int src = to_world(s, r->team, s->mp.rank, env->source);
    const struct step *m = s->step;

    MP_CHECK(!r->ended);
    r->status = st;
    r->env = *env;
    r->ended = true;
    if (env->tag < NOTICED)
        return;
    while (m < s->step + s->nsteps && (m->kind != NOTICE || m->src != src || m->dst != s->mp.rank || m->tag != env->tag))
        m++;
    MP_CHECK(m < s->step + s->nsteps);
    MP_CHECK_EQ(mp_verify(s->mine[m->mem] + place(src, m->offset), NOTICE_BYTES, m->key), -1);
}

static struct mixed *running; /* for callbacks */

/* Memory as pieces, at places of my own choice. */
static void cut(struct mixed *s, rank_iov_t iov[CUTS], char *buf, size_t bytes)
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
    came(running, arg, env->status, env);
}

static void start_receive(struct mixed *s, struct receive *r)
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

static void post(struct mixed *s, struct receive *r)
{
    rank_status_t st;
    int done = 0;

    r->buf = get_buffer(s, r->room);
    start_receive(s, r);
    if (mp_below(&s->own, 10) == 0) { /* thought better of it, twice */
        MP_OK(rank_cancel(&r->req));
        st = rank_test(&r->req, &done, &r->env);
        if (st == RANK_ERR_CANCELED) {
            MP_CHECK_EQ(done, 1);
            part_with(&r->req);
            r->canceled = r->buf;
            r->canceled_room = r->room;
            mp_fill(r->canceled, r->room, 77);
            r->buf = get_buffer(s, r->room);
            start_receive(s, r);
        } else if (done) { /* it had matched */
            part_with(&r->req);
            came(s, r, st, &r->env);
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
static void receive_now(struct mixed *s, struct receive *r)
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
            r->buf = get_buffer(s, r->room);
            r->status = rank_mrecv(r->buf, seen.bytes, RANK_BYTE, &message, &r->env);
            came(s, r, r->status, &r->env);
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
    r->buf = get_buffer(s, r->room);
    r->status = rank_recv(r->buf, (int64_t)r->room, RANK_BYTE, src, tag, s->team[r->team],
                          &r->env);
    came(s, r, r->status, &r->env);
}

/* ------------------------------------------------------------------ sending */

static void start_send(struct mixed *s, const struct step *m)
{
    rank_team_t team = s->team[m->team];
    int dst = to_team(s, m->team, m->dst);
    int64_t n = (int64_t)m->bytes;
    rank_iov_t *iov = s->out_iov[s->nsends];
    char *buf = get_buffer(s, m->bytes);
    uint64_t way = mp_below(&s->own, 5);

    mp_fill(buf, m->bytes, m->key);
    if (way == 0)
        cut(s, iov, buf, m->bytes);
    s->out[s->nsends] = buf;
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

/* ---------------------------------------------------------------- one-sided */

static void flush(struct mixed *m, int mem, int dst)
{
    MP_OK(rank_flush(mem_of(m, mem, dst), dst));
    m->open[mem][dst] = m->dirty[mem][dst] = false;
}

static void put(struct mixed *m, const struct step *s)
{
    char *buf = mp_alloc(s->bytes);
    rank_mem_t mem = mem_of(m, s->mem, s->dst);
    rank_request_t req;

    if (m->dirty[s->mem][s->dst]) { /* it may write where the last one did */
        MP_OK(rank_fence(mem));
        m->dirty[s->mem][s->dst] = false;
    }
    mp_fill(buf, s->bytes, s->key);
    if (mp_below(&m->own, 2)) {
        MP_OK(rank_put(buf, (int64_t)s->bytes, s->dst, mem, place(m->mp.rank, s->offset)));
        memset(buf, 0x55, s->bytes); /* it is mine again */
    } else {
        MP_OK(rank_iput(buf, (int64_t)s->bytes, s->dst, mem, place(m->mp.rank, s->offset), &req));
        MP_OK(rank_wait(&req, NULL));
    }
    free(buf);
    mp_fill(m->theirs[s->mem] + place(s->dst, s->offset), s->bytes, s->key);
    m->dirty[s->mem][s->dst] = m->open[s->mem][s->dst] = true;
    if (mp_below(&m->own, 4) == 0)
        flush(m, s->mem, s->dst);
}

static void get(struct mixed *m, const struct step *s)
{
    char *buf = mp_alloc(s->bytes);

    if (m->open[s->mem][s->dst])
        flush(m, s->mem, s->dst);
    memset(buf, 0xaa, s->bytes);
    MP_OK(rank_get(buf, (int64_t)s->bytes, s->dst, mem_of(m, s->mem, s->dst), place(m->mp.rank, s->offset)));
    MP_CHECK(memcmp(buf, m->theirs[s->mem] + place(s->dst, s->offset), s->bytes) == 0);
    free(buf);
}

static void count(struct mixed *m, const struct step *s)
{
    rank_mem_t mem = mem_of(m, s->mem, s->dst);
    uint64_t by = s->key % 1000, was;

    if (mp_below(&m->own, 2)) {
        MP_OK(rank_atomic(RANK_AMO_ADD, RANK_UINT64, &by, s->dst, mem, place(m->mp.rank, AT_COUNT), NULL));
        m->open[s->mem][s->dst] = true;
    } else {
        MP_OK(rank_atomic(RANK_AMO_FETCH_ADD, RANK_UINT64, &by, s->dst, mem, place(m->mp.rank, AT_COUNT), &was));
        MP_CHECK_EQ(was, m->sum[s->mem][s->dst]);
    }
    m->sum[s->mem][s->dst] += by;
}

static void do_step(struct mixed *s, const struct step *t)
{
    char buf[NOTICE_BYTES];

    switch (t->kind) {
    case PUT: put(s, t); return;
    case GET: get(s, t); return;
    case COUNT: count(s, t); return;
    case NOTICE:
        mp_fill(buf, NOTICE_BYTES, t->key);
        MP_OK(rank_put(buf, NOTICE_BYTES, t->dst, mem_of(s, t->mem, t->dst), place(s->mp.rank, t->offset)));
        flush(s, t->mem, t->dst);
        break;
    case MESSAGE: break;
    }
    start_send(s, t);
}

/* ----------------------------------------------------------------- the program */

/* My next step at or after i; nsteps if there is none. */
static int next_step(const struct mixed *s, int i)
{
    while (i < s->nsteps && s->step[i].src != s->mp.rank)
        i++;
    return i;
}

static void run_round(struct mixed *s)
{
    int i = next_step(s, 0), r = 0;

    while (i < s->nsteps || r < s->nrecv) {
        bool send = s->shape == RECV_FIRST ? r == s->nrecv
                    : s->shape == SEND_FIRST ? i < s->nsteps
                                             : mp_below(&s->own, 2);
        mp_delay(&s->mp, &s->own);
        if (i == s->nsteps)
            send = false;
        else if (r == s->nrecv)
            send = true;
        if (send) {
            do_step(s, &s->step[i]);
            i = next_step(s, i + 1);
        } else if (s->shape == SEND_FIRST && mp_below(&s->own, 2)) {
            receive_now(s, &s->recv[r++]);
        } else {
            post(s, &s->recv[r++]);
        }
    }
}

/* Wait for the posted receives by whichever call comes up. */
static void finish_receives(struct mixed *s)
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
            part_with(&reqs[indices[k]]);
            came(s, &s->recv[indices[k]], envs[k].status, &envs[k]);
            left--;
        }
        if (done) {
            MP_CHECK(index >= 0 && index < s->nrecv);
            part_with(&reqs[index]);
            came(s, &s->recv[index], st, &env);
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

/* ------------------------------------------------------------------ the model */

static void check_receive(struct mixed *s, struct receive *r, int i)
{
    const struct step *m = NULL;
    int64_t bad;

    MP_CHECK(r->ended);
    MP_CHECK(r->env.source >= 0 && r->env.source < team_size(s, r->team, s->mp.rank));
    for (int k = 0; k < s->nsteps && !m; k++) {
        const struct step *c = &s->step[k];
        if (is_message(c) && c->dst == s->mp.rank && c->team == r->team && c->tag == r->env.tag &&
            to_team(s, c->team, c->src) == r->env.source && c->how != HOWS)
            m = c;
    }
    if (!m)
        mp_fail(__FILE__, __LINE__, "receive %d: nothing like it was sent: team %d source %d tag %lld",
                i, r->team, r->env.source, (long long)r->env.tag);
    s->step[m - s->step].how = HOWS; /* taken */
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
    if (r->canceled)
        MP_CHECK_EQ(mp_verify(r->canceled, r->canceled_room, 77), -1);
    drop_buffer(s, r->canceled);
    drop_buffer(s, r->buf);
}

/* What the plan makes of my memory, one step after the other. */
static void check_memory(struct mixed *m)
{
    for (int i = 0; i < m->nsteps; i++) {
        const struct step *s = &m->step[i];
        if (s->dst != m->mp.rank)
            continue;
        if (s->kind == PUT)
            mp_fill(m->model[s->mem] + place(s->src, s->offset), s->bytes, s->key);
        else if (s->kind == NOTICE)
            mp_fill(m->model[s->mem] + place(s->src, s->offset), NOTICE_BYTES, s->key);
        else if (s->kind == COUNT)
            m->expect[s->mem][s->src] += s->key % 1000;
    }
    for (int mem = 0; mem < MEMS; mem++) {
        for (int r = 0; r < m->mp.size; r++) {
            const char *is = m->mine[mem] + place(r, 0), *due = m->model[mem] + place(r, 0);
            memcpy(m->model[mem] + place(r, AT_COUNT), &m->expect[mem][r], 8);
            for (size_t k = 0; k < STRIDE; k++) {
                if (is[k] != due[k])
                    mp_fail(__FILE__, __LINE__, "memory %d, rank %d's part, byte %zu is %d, not %d", mem, r, k, is[k],
                            due[k]);
            }
        }
    }
}

static void one_round(struct mixed *s, int number)
{
    make_plan(s);
    make_receives(s);
    if (s->mp.rank == 0)
        printf("round %d: shape %d, modes %d %d %d %d\n", number, s->shape, s->mode[0], s->mode[1], s->mode[2], s->mode[3]);
    s->nsends = 0;
    run_round(s);
    finish_receives(s);
    MP_OK(rank_waitall(s->nsends, s->sends, NULL));
    for (int i = 0; i < s->nsends; i++) {
        part_with(&s->sends[i]);
        drop_buffer(s, s->out[i]);
    }
    MP_OK(rank_flush(s->window, RANK_ALL));
    for (int r = 0; r < s->mp.size; r++)
        MP_OK(rank_flush(s->key[r], r));
    memset(s->open, 0, sizeof(s->open));
    memset(s->dirty, 0, sizeof(s->dirty));
    for (int i = 0; i < s->nrecv; i++)
        check_receive(s, &s->recv[i], i);
    mp_barrier(s->control);
    check_memory(s);
    mp_barrier(s->control); /* no rank writes while another reads */
}

static void make(struct mixed *m)
{
    size_t bytes = (size_t)m->mp.size * STRIDE, steps = (size_t)m->steps * (size_t)m->mp.size;
    void *p;

    MP_CHECK(m->mp.size <= RANKS);
    MP_OK(rank_alloc(m->mp.world, RANK_MEM_HOST, (int64_t)bytes, &p, &m->window));
    m->mine[0] = p;
    MP_OK(rank_alloc(m->mp.world, RANK_MEM_HOST, (int64_t)(SLOTS * m->max), &p, &m->slots));
    for (int i = 0; i < SLOTS; i++)
        m->slot[i] = (char *)p + (size_t)i * m->max;
    m->mine[1] = mp_alloc(bytes);
    for (int mem = 0; mem < MEMS; mem++) {
        memset(m->mine[mem], 0, bytes);
        m->model[mem] = mp_alloc(bytes);
        memset(m->model[mem], 0, bytes);
        m->theirs[mem] = mp_alloc(bytes);
        memset(m->theirs[mem], 0, bytes);
    }
    MP_OK(rank_reg(m->mine[1], (int64_t)bytes, &m->reg));
    for (int r = 0; r < m->mp.size; r++) {
        char key[RANK_RKEY_MAX] = {0};
        size_t len = sizeof(key);
        uint64_t n = 0;
        if (r == m->mp.rank) {
            MP_OK(rank_rkey_pack(m->reg, key, &len));
            n = len;
        }
        MP_OK(rank_bcast(&n, 1, RANK_UINT64, r, m->mp.world));
        MP_OK(rank_bcast(key, (int64_t)n, RANK_BYTE, r, m->mp.world));
        MP_OK(rank_rkey_open(m->mp.world, r, key, n, &m->key[r]));
    }
    m->step = mp_alloc(steps * sizeof(*m->step));
    m->recv = mp_alloc(steps * sizeof(*m->recv));
    m->sends = mp_alloc(steps * sizeof(rank_request_t));
    m->out = mp_alloc(steps * sizeof(*m->out));
    m->out_iov = mp_alloc(steps * sizeof(*m->out_iov));
    MP_OK(rank_barrier(m->mp.world));
}

static void destroy(struct mixed *m)
{
    for (int r = 0; r < m->mp.size; r++)
        MP_OK(rank_rkey_close(&m->key[r]));
    MP_OK(rank_barrier(m->mp.world));
    MP_OK(rank_dereg(&m->reg));
    MP_OK(rank_free(&m->window));
    MP_OK(rank_free(&m->slots));
    free(m->mine[1]);
    for (int mem = 0; mem < MEMS; mem++) {
        free(m->model[mem]);
        free(m->theirs[mem]);
    }
    free(m->step);
    free(m->recv);
    free(m->sends);
    free(m->out);
    free(m->out_iov);
}

int main(int argc, char **argv)
{
    static struct mixed s;
    int rounds;

    mp_start(&s.mp, &argc, argv);
    running = &s;
    rounds = (int)mp_rounds(mp_option(argc, argv, "--rounds", 10));
    s.steps = (int)mp_option(argc, argv, "--steps", 70);
    s.max = (size_t)mp_option(argc, argv, "--max", 5 << 20);
    s.large = (uint64_t)mp_option(argc, argv, "--large", 0);
    s.cuts = mp_option(argc, argv, "--cuts", 1);
    s.plan = s.mp.seed;
    s.own = s.mp.seed * 31 + (uint64_t)s.mp.rank;
    s.control = s.team[ALL_WORLD] = s.mp.world;
    MP_OK(rank_team_dup(s.mp.world, &s.team[ALL_DUP]));
    MP_OK(rank_team_split(s.mp.world, 0, -s.mp.rank, &s.team[ALL_REVERSED]));
    MP_OK(rank_team_split(s.mp.world, s.mp.rank & 1, 0, &s.team[ALL_PARITY]));
    mp_case(&s.mp, "mixed");
    make(&s);
    for (int i = 0; i < rounds; i++)
        one_round(&s, i);
    destroy(&s);
    for (int t = 1; t < TEAMS; t++)
        MP_OK(rank_team_free(&s.team[t]));
    mp_end(&s.mp);
    return 0;
}

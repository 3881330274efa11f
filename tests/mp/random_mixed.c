/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * random_mixed.c: run random programs of calls against a sequential model.
 * Messages, matched probes, puts, gets, counts and cancels.
 *
 * A round's program, a list of steps of all ranks, follows from the seed alone; each rank does its own steps in
 * order. In every rank's memory each rank has a part of its own, so that its puts there act as if done one
 * after the other, and each rank can compute what it will find: in what it gets, in its own memory at the end of
 * a round, and at the moment when a message comes that was sent after a flush ("notice"). A message bears its number in
 * the plan; those of one stream (source, tag) have to come in the order of the plan. Each rank chooses at random among
 * calls of the same meaning: how to receive, how to order puts, when to poll, when to yield.
 *
 *   --rounds N --steps N (per rank and round) --max BYTES --seed N --delay N (see mp_delay)
 *   --large N   of 100 messages so many are of any length up to --max, and not only 8 of up to 300000
 */
#include "tests/mp/mp.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 16, TAGS = 4, PART = 24 << 10, NOTICES = 16, NOTICE_BYTES = 512, MEMS = 2, HEAD = 8, SLOTS = 8 };
/* A rank's part of another's memory: bytes that are overwritten, places that are written once a round, a counter. */
enum { AT_NOTICES = PART, AT_COUNT = AT_NOTICES + NOTICES * NOTICE_BYTES, STRIDE = AT_COUNT + 64 };

enum kind { SEND, PUT, GET, COUNT, NOTICE, KINDS };
enum mode { EXACT, ANY_TAG_OF, ANYTHING, MODES }; /* one a round: so no receive takes what another needs */

struct step {
    enum kind kind;
    int src, dst, mem;
    int64_t tag;
    size_t offset, bytes;
    uint64_t key;
    bool taken;
};

struct receive {
    int src;
    int64_t tag;
    char *buf;
    rank_request_t req;
    rank_envelope_t env;
    rank_status_t status;
    int64_t number; /* of the step; -1: not yet */
    char *canceled; /* the buffer of one that was taken back: nothing may be written there */
};

struct mixed {
    struct mp mp;
    rank_team_t team; /* not the world, where barriers run */
    int64_t steps;
    size_t max;
    uint64_t large; /* --large */
    uint64_t plan, own;
    struct step *step;
    int nsteps;
    enum mode mode;
    struct receive *recv;
    int nrecv, posted; /* the first so many are under way or over */
    rank_request_t *sends;
    char **out;
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

static bool is_message(const struct step *s)
{
    return s->kind == SEND || s->kind == NOTICE;
}

/* ----------------------------------------------------------------- the plan */

static void make_plan(struct mixed *m)
{
    int noticed[RANKS][RANKS] = {{0}};

    m->mode = (enum mode)mp_below(&m->plan, MODES);
    m->nsteps = (int)m->steps * m->mp.size;
    for (int i = 0; i < m->nsteps; i++) {
        struct step *s = &m->step[i];
        uint64_t big = mp_below(&m->plan, 100);
        size_t top = big < 50 ? 64 : big < 75 ? 2000 : big < 92 ? 20000 : 300000;
        if (m->large && mp_below(&m->plan, 100) < m->large)
            top = m->max;
        memset(s, 0, sizeof(*s));
        s->kind = (enum kind)mp_below(&m->plan, KINDS);
        s->src = (int)mp_below(&m->plan, (uint64_t)m->mp.size);
        s->dst = (int)mp_below(&m->plan, (uint64_t)m->mp.size);
        s->mem = (int)mp_below(&m->plan, MEMS);
        s->tag = (int64_t)mp_below(&m->plan, TAGS);
        s->key = mp_random(&m->plan);
        s->bytes = mp_below(&m->plan, (top < m->max ? top : m->max) + 1);
        if (s->kind == NOTICE && noticed[s->src][s->dst] == NOTICES)
            s->kind = SEND;
        switch (s->kind) {
        case PUT:
        case GET:
            s->bytes %= PART + 1;
            s->offset = mp_below(&m->plan, PART - s->bytes + 1);
            break;
        case NOTICE:
            s->offset = (size_t)noticed[s->src][s->dst]++ * NOTICE_BYTES;
            s->bytes = HEAD;
            break;
        default:
            s->bytes += HEAD;
        }
    }
}

/* One for each message to me, in an order of my own. */
static void make_receives(struct mixed *m)
{
    m->nrecv = m->posted = 0;
    for (int i = 0; i < m->nsteps; i++) {
        const struct step *s = &m->step[i];
        struct receive *r = &m->recv[m->nrecv];
        if (!is_message(s) || s->dst != m->mp.rank)
            continue;
        memset(r, 0, sizeof(*r));
        r->src = m->mode == ANYTHING ? RANK_ANY_SOURCE : s->src;
        r->tag = m->mode == EXACT ? s->tag : RANK_ANY_TAG;
        r->number = -1;
        m->nrecv++;
    }
    for (int i = m->nrecv - 1; i > 0; i--) {
        int j = (int)mp_below(&m->own, (uint64_t)i + 1);
        struct receive t = m->recv[i];
        m->recv[i] = m->recv[j];
        m->recv[j] = t;
    }
}

/* ---------------------------------------------------------------- receiving */

/* A message is here, now: what it bears, and what was put before it was sent. */
static void came(struct mixed *m, struct receive *r, rank_status_t st)
{
    const struct step *s;
    int64_t number = -1;

    MP_OK(st);
    MP_CHECK(r->env.bytes >= HEAD);
    memcpy(&number, r->buf, HEAD);
    MP_CHECK(number >= 0 && number < m->nsteps);
    s = &m->step[number];
    MP_CHECK(is_message(s) && s->dst == m->mp.rank);
    MP_CHECK_EQ(r->env.source, s->src);
    MP_CHECK_EQ(r->env.tag, s->tag);
    MP_CHECK_EQ(r->env.bytes, s->bytes);
    MP_CHECK_EQ(mp_verify(r->buf + HEAD, s->bytes - HEAD, s->key), -1);
    if (s->kind == NOTICE)
        MP_CHECK_EQ(mp_verify(m->mine[s->mem] + place(s->src, AT_NOTICES + s->offset), NOTICE_BYTES, s->key), -1);
    r->number = number;
    drop_buffer(m, r->buf);
    r->buf = NULL;
}

static void post(struct mixed *m, struct receive *r)
{
    int64_t room = (int64_t)m->max + HEAD;
    int done = 0;

    r->buf = get_buffer(m, (size_t)room);
    MP_OK(rank_irecv(r->buf, room, RANK_BYTE, r->src, r->tag, m->team, &r->req));
    if (mp_below(&m->own, 6) != 0)
        return;
    /* Taken back, perhaps while a message comes: then it has the message, or nothing of it. */
    if (mp_below(&m->own, 2))
        sched_yield();
    MP_OK(rank_cancel(&r->req));
    r->status = rank_test(&r->req, &done, &r->env);
    if (r->status == RANK_ERR_CANCELED) {
        MP_CHECK_EQ(done, 1);
        r->canceled = r->buf;
        mp_fill(r->canceled, (size_t)room, 77);
        r->buf = get_buffer(m, (size_t)room);
        MP_OK(rank_irecv(r->buf, room, RANK_BYTE, r->src, r->tag, m->team, &r->req));
    } else if (done) {
        came(m, r, r->status);
    } else {
        MP_OK(r->status);
    }
}

/* If there is one: with a buffer that just fits. */
static bool take(struct mixed *m, struct receive *r)
{
    rank_message_t message;
    rank_envelope_t seen;
    int found = 0;

    if (mp_below(&m->own, 2)) {
        MP_OK(rank_improbe(r->src, r->tag, m->team, &found, &message, &seen));
        if (!found)
            return false;
        r->buf = get_buffer(m, (size_t)seen.bytes);
        if (mp_below(&m->own, 2)) {
            MP_OK(rank_imrecv(r->buf, seen.bytes, RANK_BYTE, &message, &r->req));
            return true;
        }
        r->status = rank_mrecv(r->buf, seen.bytes, RANK_BYTE, &message, &r->env);
    } else {
        MP_OK(rank_iprobe(r->src, r->tag, m->team, &found, &seen));
        if (!found)
            return false;
        r->buf = get_buffer(m, (size_t)seen.bytes);
        r->status = rank_recv(r->buf, seen.bytes, RANK_BYTE, seen.source, seen.tag, m->team, &r->env);
    }
    came(m, r, r->status);
    return true;
}

static void look(struct mixed *m)
{
    int done = 0;

    mp_delay(&m->mp, &m->own);
    if (m->posted < m->nrecv) {
        struct receive *r = &m->recv[m->posted];
        if (mp_below(&m->own, 2)) {
            post(m, r);
            m->posted++;
        } else if (take(m, r)) {
            m->posted++;
        }
    }
    if (m->posted > 0) {
        struct receive *r = &m->recv[mp_below(&m->own, (uint64_t)m->posted)];
        if (r->req != RANK_REQUEST_NULL) {
            r->status = rank_test(&r->req, &done, &r->env);
            if (done)
                came(m, r, r->status);
        }
    }
    while (mp_below(&m->own, 8) == 0)
        sched_yield();
}

/* --------------------------------------------------------------- the program */

static void send(struct mixed *m, const struct step *s, int64_t number)
{
    char *buf = get_buffer(m, s->bytes);

    memcpy(buf, &number, HEAD);
    mp_fill(buf + HEAD, s->bytes - HEAD, s->key);
    m->out[m->nsends] = buf;
    if (mp_below(&m->own, 4) == 0)
        MP_OK(rank_issend(buf, (int64_t)s->bytes, RANK_BYTE, s->dst, s->tag, m->team, &m->sends[m->nsends]));
    else
        MP_OK(rank_isend(buf, (int64_t)s->bytes, RANK_BYTE, s->dst, s->tag, m->team, &m->sends[m->nsends]));
    m->nsends++;
}

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

static void send_notice(struct mixed *m, const struct step *s, int64_t number)
{
    char buf[NOTICE_BYTES];

    mp_fill(buf, NOTICE_BYTES, s->key);
    MP_OK(rank_put(buf, NOTICE_BYTES, s->dst, mem_of(m, s->mem, s->dst), place(m->mp.rank, AT_NOTICES + s->offset)));
    flush(m, s->mem, s->dst);
    send(m, s, number);
}

static void run_round(struct mixed *m)
{
    m->nsends = 0;
    for (int i = 0; i < m->nsteps; i++) {
        const struct step *s = &m->step[i];
        if (s->src != m->mp.rank)
            continue;
        switch (s->kind) {
        case SEND: send(m, s, i); break;
        case PUT: put(m, s); break;
        case GET: get(m, s); break;
        case COUNT: count(m, s); break;
        case NOTICE: send_notice(m, s, i); break;
        case KINDS: break;
        }
        look(m);
    }
    while (m->posted < m->nrecv)
        look(m);
    for (int i = 0; i < m->nrecv; i++) {
        struct receive *r = &m->recv[i];
        if (r->number < 0) {
            r->status = rank_wait(&r->req, &r->env);
            came(m, r, r->status);
        }
    }
    MP_OK(rank_waitall(m->nsends, m->sends, NULL));
    MP_OK(rank_flush(m->window, RANK_ALL));
    for (int r = 0; r < m->mp.size; r++)
        MP_OK(rank_flush(m->key[r], r));
    memset(m->open, 0, sizeof(m->open));
    memset(m->dirty, 0, sizeof(m->dirty));
}

/* ------------------------------------------------------------------ the model */

/* Streams in order, each message once; receives are in the order in which they could match. */
static void check_messages(struct mixed *m)
{
    int64_t last[RANKS][TAGS];

    memset(last, 0xff, sizeof(last));
    for (int i = 0; i < m->nrecv; i++) {
        struct receive *r = &m->recv[i];
        struct step *s = &m->step[r->number];
        MP_CHECK(!s->taken);
        s->taken = true;
        if (r->number <= last[s->src][s->tag])
            mp_fail(__FILE__, __LINE__, "receive %d got message %lld of %d with tag %lld after message %lld", i,
                    (long long)r->number, s->src, (long long)s->tag, (long long)last[s->src][s->tag]);
        last[s->src][s->tag] = r->number;
        if (r->canceled)
            MP_CHECK_EQ(mp_verify(r->canceled, m->max + HEAD, 77), -1);
        drop_buffer(m, r->canceled);
    }
    for (int i = 0; i < m->nsteps; i++)
        MP_CHECK(m->step[i].taken == (is_message(&m->step[i]) && m->step[i].dst == m->mp.rank));
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
            mp_fill(m->model[s->mem] + place(s->src, AT_NOTICES + s->offset), NOTICE_BYTES, s->key);
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

static void make(struct mixed *m)
{
    size_t bytes = (size_t)m->mp.size * STRIDE, steps = (size_t)m->steps * (size_t)m->mp.size;
    void *p;

    MP_CHECK(m->mp.size <= RANKS);
    MP_OK(rank_team_dup(m->mp.world, &m->team));
    MP_OK(rank_alloc(m->mp.world, RANK_MEM_HOST, (int64_t)bytes, 0, &p, &m->window));
    m->mine[0] = p;
    MP_OK(rank_alloc(m->mp.world, RANK_MEM_HOST, (int64_t)(SLOTS * (m->max + HEAD)), 0, &p, &m->slots));
    for (int i = 0; i < SLOTS; i++)
        m->slot[i] = (char *)p + (size_t)i * (m->max + HEAD);
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
    MP_OK(rank_team_free(&m->team));
    free(m->mine[1]);
    for (int mem = 0; mem < MEMS; mem++) {
        free(m->model[mem]);
        free(m->theirs[mem]);
    }
    free(m->step);
    free(m->recv);
    free(m->sends);
    free(m->out);
}

int main(int argc, char **argv)
{
    static struct mixed m;
    int64_t rounds;

    mp_start(&m.mp, &argc, argv);
    rounds = mp_rounds(mp_option(argc, argv, "--rounds", 10));
    m.steps = mp_option(argc, argv, "--steps", 60);
    m.max = (size_t)mp_option(argc, argv, "--max", 300000);
    m.large = (uint64_t)mp_option(argc, argv, "--large", 0);
    m.plan = m.mp.seed;
    m.own = m.mp.seed ^ (uint64_t)(m.mp.rank + 1) * 7919;
    mp_case(&m.mp, "mixed");
    make(&m);
    for (int64_t i = 0; i < rounds; i++) {
        make_plan(&m);
        make_receives(&m);
        run_round(&m);
        MP_OK(rank_barrier(m.mp.world));
        check_messages(&m);
        check_memory(&m);
        for (int k = 0; k < m.nsends; k++)
            drop_buffer(&m, m.out[k]);
        MP_OK(rank_barrier(m.mp.world)); /* no rank writes while another reads */
    }
    destroy(&m);
    mp_end(&m.mp);
    return 0;
}

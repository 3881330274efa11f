/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_steps.c: see conn_steps.h.
 *
 * Both sides draw the same random numbers, so that each side derives the data of the other one.
 */
#include "tests/conn/conn_steps.h"

#include <stdlib.h>
#include <string.h>

enum {
    MESSAGES = 12,       /* each way and step */
    SIZE_MAX_BITS = 21,  /* of a message */
    OPS = 24,            /* one-sided operations of a step */
    CELLS = 4096,        /* bytes at the begin of a region: a signal, and numbers for atomics */
    TAG_KEY = 1000, TAG_HASH, TAG_LATE
};

static uint64_t hash(const unsigned char *data, size_t n)
{
    uint64_t h = 14695981039346656037u;

    for (size_t i = 0; i < n; i++)
        h = (h ^ data[i]) * 1099511628211u;
    return h;
}

/* -------------------------------------------------------------------------- messages */

struct message {
    size_t bytes;
    int64_t tag;
    uint64_t seed;
    int how; /* of the sender and of the receiver */
    unsigned char *out, *in;
    rank_iov_t iov[2]; /* kept until the request is complete */
};

static void draw_messages(struct steps *s, struct message *m)
{
    for (int i = 0; i < MESSAGES; i++) {
        m[i].bytes = mp_below(&s->random, 1ull << mp_below(&s->random, (uint64_t)s->size_bits));
        m[i].tag = (int64_t)mp_below(&s->random, 3);
        m[i].seed = mp_random(&s->random);
        m[i].how = (int)mp_below(&s->random, 12);
        m[i].out = m[i].in = NULL;
    }
}

static void post_send(struct steps *s, struct message *m, rank_request_t *req)
{
    int other = 1 - s->me;
    int64_t half = (int64_t)m->bytes / 2;

    m->out = mp_alloc(m->bytes);
    mp_fill(m->out, m->bytes, m->seed);
    if (m->how % 3 == 0) {
        OK(rank_issend(m->out, (int64_t)m->bytes, RANK_BYTE, other, m->tag, s->conn, req));
    } else if (m->how % 3 == 1) {
        m->iov[0] = (rank_iov_t){m->out, half, 1, 0};
        m->iov[1] = (rank_iov_t){m->out + half, (int64_t)m->bytes - half, 1, 0};
        OK(rank_isendv(m->iov, 2, other, m->tag, s->conn, req));
    } else {
        OK(rank_isend(m->out, (int64_t)m->bytes, RANK_BYTE, other, m->tag, s->conn, req));
    }
}

static void receive(struct steps *s, struct message *m, rank_request_t *req)
{
    int other = 1 - s->me, source = m->how % 2 ? other : RANK_ANY_SOURCE;
    int64_t half = (int64_t)m->bytes / 3;
    rank_message_t claimed;
    rank_envelope_t e;

    m->in = mp_alloc(m->bytes);
    memset(m->in, 0xee, m->bytes);
    *req = RANK_REQUEST_NULL;
    if (m->how / 3 == 0) {
        OK(rank_irecv(m->in, (int64_t)m->bytes, RANK_BYTE, source, m->tag, s->conn, req));
    } else if (m->how / 3 == 1) {
        m->iov[0] = (rank_iov_t){m->in, half, 1, 0};
        m->iov[1] = (rank_iov_t){m->in + half, (int64_t)m->bytes - half, 1, 0};
        OK(rank_irecvv(m->iov, 2, source, m->tag, s->conn, req));
    } else if (m->how / 3 == 2) {
        OK(rank_mprobe_timed(source, m->tag, s->conn, 20 * SECOND, &claimed, &e));
        CHECK(e.source == other && e.tag == m->tag && (size_t)e.bytes == m->bytes);
        OK(rank_mrecv(m->in, (int64_t)m->bytes, RANK_BYTE, &claimed, &e));
    } else {
        OK(rank_probe(source, m->tag, s->conn, &e));
        CHECK((size_t)e.bytes == m->bytes);
        OK(rank_recv(m->in, (int64_t)m->bytes, RANK_BYTE, source, m->tag, s->conn, &e));
    }
}

static void step_messages(struct steps *s)
{
    struct message way[2][MESSAGES], *mine = way[s->me], *theirs = way[1 - s->me];
    rank_request_t reqs[2 * MESSAGES];
    int n = 0;

    draw_messages(s, way[0]);
    draw_messages(s, way[1]);
    for (int i = 0; i < MESSAGES; i++)
        post_send(s, &mine[i], &reqs[n++]);
    for (int i = 0; i < MESSAGES; i++)
        receive(s, &theirs[i], &reqs[n++]);
    OK(rank_waitall_timed(n, reqs, 30 * SECOND, NULL));
    for (int i = 0; i < MESSAGES; i++) {
        CHECK(mp_verify(theirs[i].in, theirs[i].bytes, theirs[i].seed) < 0);
        free(theirs[i].in);
        free(mine[i].out);
    }
}

/* A receive that times out stays posted. */
static void step_late(struct steps *s)
{
    int sender = (int)mp_below(&s->random, 2);
    rank_request_t req;
    uint64_t x = 0;

    if (s->me == sender) {
        OK(rank_recv(NULL, 0, RANK_BYTE, 1 - s->me, TAG_LATE, s->conn, NULL));
        x = 42;
        OK(rank_send(&x, 1, RANK_UINT64, 1 - s->me, TAG_LATE, s->conn));
        return;
    }
    OK(rank_irecv(&x, 1, RANK_UINT64, 1 - s->me, TAG_LATE, s->conn, &req));
    STATUS(rank_wait_timed(&req, 1000, NULL), RANK_ERR_TIMED_OUT);
    STATUS(rank_mprobe_timed(1 - s->me, TAG_LATE, s->conn, 0, &(rank_message_t){0}, NULL), RANK_ERR_TIMED_OUT);
    OK(rank_send(NULL, 0, RANK_BYTE, 1 - s->me, TAG_LATE, s->conn));
    OK(rank_wait_timed(&req, 20 * SECOND, NULL));
    CHECK(x == 42);
}

/* -------------------------------------------------------------------------- one-sided */

static void one_sided(struct steps *s)
{
    size_t bytes = 1 + mp_below(&s->random, mp_below(&s->random, 4) ? 512 : STEPS_REGION - CELLS);
    size_t at = CELLS + mp_below(&s->random, STEPS_REGION - CELLS - bytes + 1), cell = 8 + 8 * mp_below(&s->random, CELLS / 8 - 1);
    uint64_t seed = mp_random(&s->random), old, before, *model = (uint64_t *)(void *)(s->model + cell);
    unsigned char *data = mp_alloc(bytes);
    int other = 1 - s->me;

    switch (mp_below(&s->random, 5)) {
    case 0:
    case 1:
        mp_fill(data, bytes, seed);
        OK(rank_put(data, (int64_t)bytes, other, s->remote, (int64_t)at));
        memcpy(s->model + at, data, bytes);
        OK(rank_flush(s->remote, other));
        break;
    case 2:
        OK(rank_get(data, (int64_t)bytes, other, s->remote, (int64_t)at));
        CHECK(memcmp(data, s->model + at, bytes) == 0);
        break;
    case 3:
        OK(rank_atomic(RANK_AMO_FETCH_ADD, RANK_UINT64, &seed, other, s->remote, (int64_t)cell, &old));
        CHECK(old == *model);
        *model += seed;
        break;
    default:
        before = *model;
        OK(rank_atomic_cas(RANK_UINT64, &before, &seed, other, s->remote, (int64_t)cell, &old));
        CHECK(old == before);
        *model = seed;
    }
    free(data);
}

static void step_one_sided(struct steps *s)
{
    int origin = (int)mp_below(&s->random, 2), other = 1 - s->me;
    unsigned char data[64];
    uint64_t random, h;

    if (s->me != origin) {
        random = mp_random(&s->random);
        OK(rank_signal_wait_timed(s->mem, 0, RANK_CMP_GE, ++s->sum, s->source, 30 * SECOND, NULL));
        OK(rank_recv(&h, 1, RANK_UINT64, other, TAG_HASH, s->conn, NULL));
        CHECK(h == hash(s->region + 8, STEPS_REGION - 8));
        OK(rank_send(NULL, 0, RANK_BYTE, other, TAG_HASH, s->conn)); /* only now the origin goes on to write */
        return;
    }
    random = s->random;
    for (int i = 0; i < OPS; i++)
        one_sided(s);
    s->random = random;
    random = mp_random(&s->random);
    mp_fill(data, sizeof(data), random);
    memcpy(s->model + CELLS, data, sizeof(data));
    OK(rank_put_signal(data, sizeof(data), other, s->remote, CELLS, s->remote, 0, 1, RANK_SIGNAL_ADD));
    OK(rank_flush(s->remote, other));
    h = hash(s->model + 8, STEPS_REGION - 8);
    OK(rank_send(&h, 1, RANK_UINT64, other, TAG_HASH, s->conn));
    OK(rank_recv(NULL, 0, RANK_BYTE, other, TAG_HASH, s->conn, NULL));
}

/* ------------------------------------------------------------------------ collectives */

static void step_collective(struct steps *s)
{
    int64_t n = 1 + (int64_t)mp_below(&s->random, 1ull << mp_below(&s->random, 16));
    int root = (int)mp_below(&s->random, 2);
    int64_t *in = mp_alloc((size_t)n * 8), *out = mp_alloc((size_t)n * 16);

    for (int64_t i = 0; i < n; i++)
        in[i] = i * 3 + s->me;
    switch (mp_below(&s->random, 4)) {
    case 0:
        OK(rank_allreduce(in, out, n, RANK_INT64, RANK_SUM, s->conn));
        for (int64_t i = 0; i < n; i++)
            CHECK(out[i] == i * 6 + 1);
        break;
    case 1:
        OK(rank_bcast(in, n, RANK_INT64, root, s->conn));
        for (int64_t i = 0; i < n; i++)
            CHECK(in[i] == i * 3 + root);
        break;
    case 2:
        OK(rank_allgather(in, out, n, RANK_INT64, s->conn));
        for (int64_t i = 0; i < 2 * n; i++)
            CHECK(out[i] == i % n * 3 + i / n);
        break;
    default:
        OK(rank_barrier(s->conn));
    }
    free(in);
    free(out);
}

/* --------------------------------------------------------------------------- public */

void steps_next(struct steps *s)
{
    switch (mp_below(&s->random, 6)) {
    case 0:
    case 1:
        step_messages(s);
        break;
    case 2:
    case 3:
        step_one_sided(s);
        break;
    case 4:
        step_collective(s);
        break;
    default:
        step_late(s);
    }
}

void steps_open(struct steps *s, rank_ctx_t ctx, rank_team_t conn, uint64_t seed)
{
    unsigned char key[RANK_RKEY_MAX], theirs[RANK_RKEY_MAX];
    size_t len = sizeof(key);
    int other;

    *s = (struct steps){.conn = conn, .me = rank_team_rank(conn), .random = seed, .source = RANK_ANY_SOURCE,
                        .size_bits = SIZE_MAX_BITS};
    other = 1 - s->me;
    CHECK(rank_team_size(conn) == 2);
    s->region = aligned_alloc(64, STEPS_REGION);
    s->model = aligned_alloc(64, STEPS_REGION);
    CHECK(s->region && s->model);
    memset(s->region, 0, STEPS_REGION);
    memset(s->model, 0, STEPS_REGION);
    OK(rank_ctx_reg(ctx, s->region, STEPS_REGION, RANK_ACCESS_READ | RANK_ACCESS_WRITE, &s->mem));
    OK(rank_rkey_pack(s->mem, key, &len));
    OK(rank_sendrecv(key, sizeof(key), RANK_BYTE, other, TAG_KEY, theirs, sizeof(theirs), RANK_BYTE, other, TAG_KEY, conn,
                     NULL));
    OK(rank_rkey_open(conn, other, theirs, len, &s->remote));
}

void steps_close(struct steps *s)
{
    OK(rank_barrier(s->conn));
    OK(rank_rkey_close(&s->remote));
    OK(rank_barrier(s->conn));
    OK(rank_dereg(&s->mem));
    free(s->region);
    free(s->model);
}

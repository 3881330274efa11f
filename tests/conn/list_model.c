/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * list_model.c: see list_model.h.
 *
 * The transfers of a step run at the same time, in both directions. Their blocks are disjoint at the peer, as lists have no
 * order.
 */
#include "tests/conn/list_model.h"
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>

enum { TRANSFERS = 3, BLOCKS_MAX = 2000, TAG_KEYS = 5001, TAG_MEET, TAG_NOTICE = 6000, TAG_SAVED = 7000, MIB = 1 << 20 };

/* Both sides have come here. */
static void meet(struct list_model *m)
{
    char out = 1, in = 0;

    MP_OK(rank_sendrecv(&out, 1, RANK_BYTE, m->other, TAG_MEET, &in, 1, RANK_BYTE, m->other, TAG_MEET, m->team, NULL));
}

/* ------------------------------------------------------------------------ transfers */

struct block {
    int mem;
    int64_t bytes, offset, at; /* at: in the local memory of the transfer */
};

struct transfer {
    int side; /* that moves it */
    rank_xfer_op_t op;
    int n;
    struct block *blocks;
    int64_t local_bytes;
    unsigned char *local;
    uint64_t seed;
    bool notifies;
    int64_t tag, notice_bytes;
    int how; /* of the wait */
    rank_request_t req;
    _Atomic int called;
};

/* Next free offset of each memory. */
struct cursor {
    int64_t at[LIST_MEMS];
};

static int64_t draw_bytes(uint64_t *r, int64_t left)
{
    int64_t n;

    switch (mp_below(r, 16)) {
    case 0:
        n = 0;
        break;
    case 1:
        n = (int64_t)mp_below(r, 3 * MIB);
        break;
    case 2:
    case 3:
        n = 4000 + (int64_t)mp_below(r, 60000);
        break;
    case 4:
    case 5:
        n = mp_below(r, 2) ? 4 : 8;
        break;
    default:
        n = 1 + (int64_t)mp_below(r, 600);
    }
    return n < left ? n : left > 0 ? left : 0;
}

static void draw_blocks(struct list_model *m, struct transfer *t, struct cursor *c, int first, int end, int64_t limit)
{
    uint64_t *r = &m->random;
    int mem = first;

    for (int i = 0; i < t->n; i++) {
        struct block *b = &t->blocks[i];
        bool apart = mp_below(r, 3) == 0;

        if (apart)
            mem = first + (int)mp_below(r, (uint64_t)(end - first));
        if (apart && mp_below(r, 2) && c->at[mem] + 100 < (limit < m->mem[mem].bytes ? limit : m->mem[mem].bytes))
            c->at[mem] += (int64_t)mp_below(r, 100);
        b->mem = mem;
        b->offset = c->at[mem];
        b->bytes = draw_bytes(r, (limit < m->mem[mem].bytes ? limit : m->mem[mem].bytes) - c->at[mem]);
        if (t->local_bytes + b->bytes > 12 * MIB)
            b->bytes = 0;
        if (mp_below(r, 4) == 0)
            t->local_bytes += (int64_t)mp_below(r, 40);
        b->at = t->local_bytes;
        t->local_bytes += b->bytes;
        c->at[mem] += b->bytes;
    }
}

static void draw_transfer(struct list_model *m, struct transfer *t, int side, int number, struct cursor *c)
{
    uint64_t *r = &m->random;

    *t = (struct transfer){.side = side, .op = mp_below(r, 2) ? RANK_XFER_WRITE : RANK_XFER_READ};
    switch (mp_below(r, 5)) {
    case 0:
        t->n = (int)mp_below(r, 2);
        break;
    case 1:
        t->n = BLOCKS_MAX;
        break;
    default:
        t->n = 1 + (int)mp_below(r, 60);
    }
    t->blocks = mp_alloc((size_t)t->n * sizeof(*t->blocks));
    draw_blocks(m, t, c, 0, m->nmems - 1, INT64_MAX);
    t->seed = mp_below(r, 1u << 30);
    t->notifies = mp_below(r, 3) > 0;
    t->tag = TAG_NOTICE + side * 100 + number;
    t->notice_bytes = mp_below(r, 2) ? (int64_t)mp_below(r, RANK_NOTICE_MAX + 1) : 0;
    t->how = (int)mp_below(r, 4);
    t->local = mp_alloc((size_t)t->local_bytes);
}

static void make_list(const struct list_model *m, const struct transfer *t, rank_block_t *list)
{
    for (int i = 0; i < t->n; i++) {
        const struct block *b = &t->blocks[i];
        list[i] = (rank_block_t){b->bytes ? t->local + b->at : NULL, b->bytes, m->mem[b->mem].remote, b->offset};
    }
}

/* Before the start: writes have their data, reads must change all of theirs. */
static void prepare(const struct transfer *t)
{
    mp_fill(t->local, (size_t)t->local_bytes, t->op == RANK_XFER_WRITE ? t->seed : ~t->seed);
}

static void on_done(const rank_envelope_t *e, void *arg)
{
    struct transfer *t = arg;

    MP_CHECK(e->status == RANK_OK);
    t->called++;
}

static void start(struct list_model *m, struct transfer *t)
{
    rank_block_t *list = mp_alloc((size_t)t->n * sizeof(*list));
    unsigned char data[RANK_NOTICE_MAX];
    rank_notice_t notice = {t->tag, data, t->notice_bytes};

    make_list(m, t, list);
    prepare(t);
    mp_fill(data, (size_t)t->notice_bytes, t->seed + 1);
    MP_OK(rank_xfer(t->op, list, t->n, m->other, m->team, t->notifies ? &notice : NULL, &t->req));
    memset(list, 0xee, (size_t)t->n * sizeof(*list));
    memset(data, 0xee, sizeof(data));
    free(list);
    if (t->how == 0)
        MP_OK(rank_on_done(&t->req, on_done, t));
}

static void end(struct transfer *t)
{
    int done = 0;

    if (t->how == 1)
        while (!done)
            MP_OK(rank_test(&t->req, &done, NULL));
    else if (t->how > 1)
        MP_OK(rank_wait(&t->req, NULL));
    MP_CHECK(t->req == RANK_REQUEST_NULL);
}

/* What a write puts into the peer's memories. */
static void model_write(struct list_model *m, const struct transfer *t)
{
    unsigned char *data = mp_alloc((size_t)t->local_bytes);

    mp_fill(data, (size_t)t->local_bytes, t->seed);
    for (int i = 0; i < t->n && t->op == RANK_XFER_WRITE; i++) {
        const struct block *b = &t->blocks[i];
        memcpy(m->mem[b->mem].model[1 - t->side] + b->offset, data + b->at, (size_t)b->bytes);
    }
    free(data);
}

static void check_read(const struct list_model *m, const struct transfer *t)
{
    for (int i = 0; i < t->n && t->op == RANK_XFER_READ; i++) {
        const struct block *b = &t->blocks[i];
        MP_CHECK(memcmp(m->mem[b->mem].model[1 - t->side] + b->offset, t->local + b->at, (size_t)b->bytes) == 0);
    }
}

/* Receive the notice of the other side's transfer. What it has written is here. */
static void take_notice(struct list_model *m, const struct transfer *t)
{
    unsigned char data[RANK_NOTICE_MAX + 1], want[RANK_NOTICE_MAX];
    rank_envelope_t e;

    MP_OK(rank_recv(data, sizeof(data), RANK_BYTE, m->other, t->tag, m->team, &e));
    mp_fill(want, (size_t)t->notice_bytes, t->seed + 1);
    MP_CHECK(e.bytes == t->notice_bytes && memcmp(data, want, (size_t)t->notice_bytes) == 0);
    for (int i = 0; i < t->n && t->op == RANK_XFER_WRITE; i++) {
        const struct block *b = &t->blocks[i];
        MP_CHECK(memcmp(m->mem[b->mem].mine + b->offset, m->mem[b->mem].model[m->me] + b->offset, (size_t)b->bytes) == 0);
    }
}

static void check_memories(const struct list_model *m)
{
    for (int j = 0; j < m->nmems; j++)
        MP_CHECK(memcmp(m->mem[j].mine, m->mem[j].model[m->me], (size_t)m->mem[j].bytes) == 0);
}

static void check_no_notice(struct list_model *m)
{
    rank_envelope_t e;
    int flag;

    for (int tag = TAG_NOTICE; tag < TAG_NOTICE + 200; tag++) {
        MP_OK(rank_iprobe(m->other, tag, m->team, &flag, &e));
        MP_CHECK(!flag);
    }
}

/* ------------------------------------------------------------------------- persistent */

struct list_saved {
    struct transfer t;
    rank_request_t req;
};

/* A write and a read of each side, in different halves of the last memory. */
static void save_lists(struct list_model *m)
{
    int last = m->nmems - 1;
    rank_block_t list[50];

    for (int side = 0; side < 2; side++) {
        for (int op = 0; op < 2; op++) {
            struct list_saved *s = mp_alloc(sizeof(*s));
            struct transfer *t = &s->t;
            struct cursor c = {{0}};
            rank_notice_t notice = {TAG_SAVED + 2 * side + op, "once more", 9};

            c.at[last] = op ? m->mem[last].bytes / 2 : 0;
            *t = (struct transfer){.side = side, .op = (rank_xfer_op_t)op, .n = 50};
            t->blocks = mp_alloc((size_t)t->n * sizeof(*t->blocks));
            draw_blocks(m, t, &c, last, last + 1, op ? INT64_MAX : m->mem[last].bytes / 2);
            t->local = mp_alloc((size_t)t->local_bytes);
            make_list(m, t, list);
            if (side == m->me)
                MP_OK(rank_xfer_init(t->op, list, t->n, m->other, m->team, &notice, &s->req));
            m->saved[side][op] = s;
        }
    }
}

static void start_saved(struct list_model *m)
{
    rank_request_t reqs[2];

    for (int side = 0; side < 2; side++)
        for (int op = 0; op < 2; op++)
            m->saved[side][op]->t.seed = mp_below(&m->random, 1u << 30);
    for (int op = 0; op < 2; op++) {
        prepare(&m->saved[m->me][op]->t);
        reqs[op] = m->saved[m->me][op]->req;
    }
    MP_OK(rank_startall(2, reqs));
}

static void end_saved(struct list_model *m)
{
    char data[10];

    for (int op = 0; op < 2; op++) {
        MP_OK(rank_recv(data, 9, RANK_BYTE, m->other, TAG_SAVED + 2 * (1 - m->me) + op, m->team, NULL));
        MP_CHECK(memcmp(data, "once more", 9) == 0);
        MP_OK(rank_wait(&m->saved[m->me][op]->req, NULL));
        MP_CHECK(m->saved[m->me][op]->req != RANK_REQUEST_NULL);
    }
    for (int side = 0; side < 2; side++)
        model_write(m, &m->saved[side][RANK_XFER_WRITE]->t);
    check_read(m, &m->saved[m->me][RANK_XFER_READ]->t);
}

static void free_saved(struct list_model *m)
{
    for (int side = 0; side < 2; side++) {
        for (int op = 0; op < 2; op++) {
            struct list_saved *s = m->saved[side][op];
            if (side == m->me)
                MP_OK(rank_request_free(&s->req));
            free(s->t.blocks);
            free(s->t.local);
            free(s);
        }
    }
}

/* -------------------------------------------------------------------------- public */

void list_step(struct list_model *m)
{
    struct transfer t[2][TRANSFERS];
    int n[2];
    bool saved;

    if (!m->saved[0][0])
        save_lists(m);
    for (int side = 0; side < 2; side++) {
        struct cursor c = {{0}};

        for (int j = 0; j < m->nmems; j++)
            c.at[j] = (int64_t)mp_below(&m->random, (uint64_t)m->mem[j].bytes / 4 + 1);
        n[side] = 1 + (int)mp_below(&m->random, TRANSFERS);
        for (int i = 0; i < n[side]; i++) {
            draw_transfer(m, &t[side][i], side, i, &c);
            model_write(m, &t[side][i]);
            m->moved += t[side][i].n;
            m->notices += t[side][i].notifies;
        }
    }
    saved = mp_below(&m->random, 2);
    if (saved)
        start_saved(m);
    for (int i = 0; i < n[m->me]; i++)
        start(m, &t[m->me][i]);
    for (int i = 0; i < n[1 - m->me]; i++)
        if (t[1 - m->me][i].notifies)
            take_notice(m, &t[1 - m->me][i]);
    if (saved)
        end_saved(m);
    for (int i = 0; i < n[m->me]; i++)
        end(&t[m->me][i]);
    for (int i = 0; i < n[m->me]; i++) {
        while (t[m->me][i].how == 0 && !t[m->me][i].called)
            MP_OK(rank_ctx_progress(m->ctx));
        check_read(m, &t[m->me][i]);
    }
    meet(m);
    check_memories(m);
    check_no_notice(m);
    meet(m);
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < n[side]; i++) {
            MP_CHECK(side != m->me || t[side][i].called == (t[side][i].how == 0));
            free(t[side][i].blocks);
            free(t[side][i].local);
        }
    }
}

void list_wrong(struct list_model *m)
{
    struct list_memory *a = &m->mem[0];
    unsigned char data[64];
    rank_block_t b[3] = {{data, 8, a->remote, 0}, {data + 8, 8, a->remote, 8}, {data + 16, 8, a->remote, 16}};
    rank_notice_t notice = {TAG_NOTICE, data, 8};
    rank_request_t req = RANK_REQUEST_NULL;

    memset(data, 0xdd, sizeof(data));
    b[2].offset = a->bytes - 7;
    MP_STATUS(rank_xfer(RANK_XFER_WRITE, b, 3, m->other, m->team, &notice, &req), RANK_ERR_BOUNDS);
    b[2].offset = -1;
    MP_STATUS(rank_xfer(RANK_XFER_WRITE, b, 3, m->other, m->team, &notice, &req), RANK_ERR_BOUNDS);
    b[2] = (rank_block_t){data, -1, a->remote, 0};
    MP_STATUS(rank_xfer(RANK_XFER_WRITE, b, 3, m->other, m->team, &notice, &req), RANK_ERR_COUNT);
    b[2] = (rank_block_t){NULL, 1, a->remote, 0};
    MP_STATUS(rank_xfer(RANK_XFER_WRITE, b, 3, m->other, m->team, &notice, &req), RANK_ERR_ARG);
    b[2] = (rank_block_t){data, 1, RANK_MEM_NULL, 0};
    MP_STATUS(rank_xfer(RANK_XFER_WRITE, b, 3, m->other, m->team, &notice, &req), RANK_ERR_HANDLE);
    if (a->own) {
        b[2] = (rank_block_t){data, 1, a->own, 0};
        MP_STATUS(rank_xfer(RANK_XFER_WRITE, b, 3, m->other, m->team, &notice, &req), RANK_ERR_ARG);
    }
    MP_STATUS(rank_xfer((rank_xfer_op_t)2, b, 2, m->other, m->team, &notice, &req), RANK_ERR_ARG);
    MP_STATUS(rank_xfer(RANK_XFER_WRITE, b, -1, m->other, m->team, &notice, &req), RANK_ERR_COUNT);
    MP_STATUS(rank_xfer(RANK_XFER_WRITE, NULL, 2, m->other, m->team, &notice, &req), RANK_ERR_ARG);
    MP_STATUS(rank_xfer(RANK_XFER_WRITE, b, 2, -7, m->team, &notice, &req), RANK_ERR_RANK);
    MP_STATUS(rank_xfer(RANK_XFER_WRITE, b, 2, m->other, RANK_TEAM_NULL, &notice, &req), RANK_ERR_HANDLE);
    MP_STATUS(rank_xfer(RANK_XFER_WRITE, b, 2, m->other, m->team, &notice, NULL), RANK_ERR_ARG);
    notice.bytes = RANK_NOTICE_MAX + 1;
    MP_STATUS(rank_xfer(RANK_XFER_WRITE, b, 2, m->other, m->team, &notice, &req), RANK_ERR_COUNT);
    notice = (rank_notice_t){-1, data, 1};
    MP_STATUS(rank_xfer(RANK_XFER_WRITE, b, 2, m->other, m->team, &notice, &req), RANK_ERR_TAG);
    MP_CHECK(req == RANK_REQUEST_NULL);
    MP_OK(rank_xfer(RANK_XFER_WRITE, b, 2, RANK_PROC_NULL, m->team, &(rank_notice_t){1, NULL, 0}, &req));
    MP_OK(rank_wait(&req, NULL));
    meet(m);
    check_memories(m);
    meet(m);
}

void list_add(struct list_model *m, void *mine, int64_t bytes, rank_mem_t mem)
{
    struct list_memory *l = &m->mem[m->nmems++];

    MP_CHECK(m->nmems <= LIST_MEMS);
    *l = (struct list_memory){.mine = mine, .bytes = bytes, .remote = mem, .own = RANK_MEM_NULL};
    for (int side = 0; side < 2; side++) {
        l->model[side] = mp_alloc((size_t)bytes);
        mp_fill(l->model[side], (size_t)bytes, (uint64_t)(100 * m->nmems + side));
    }
    memcpy(mine, l->model[m->me], (size_t)bytes);
}

void list_open(struct list_model *m, rank_ctx_t ctx, rank_team_t team, int other, int me, uint64_t seed, list_reg_fn reg, void *arg)
{
    static const int64_t sizes[] = {4 * MIB, 100, 4096 + 13, 200000, 7 * MIB + 1, 2 * MIB};
    unsigned char out[RANK_RKEY_MAX], in[RANK_RKEY_MAX];

    *m = (struct list_model){.ctx = ctx, .team = team, .other = other, .me = me, .random = seed};
    for (size_t j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++) {
        struct list_memory *l = &m->mem[m->nmems];
        void *mine = mp_alloc((size_t)sizes[j]);
        size_t len = sizeof(out);
        rank_envelope_t e;
        rank_mem_t own;

        list_add(m, mine, sizes[j], RANK_MEM_NULL);
        MP_OK(reg(arg, mine, sizes[j], &own));
        l->own = own;
        l->allocated = true;
        MP_OK(rank_rkey_pack(own, out, &len));
        MP_OK(rank_sendrecv(out, (int64_t)len, RANK_BYTE, other, TAG_KEYS, in, sizeof(in), RANK_BYTE, other, TAG_KEYS, team, &e));
        MP_OK(rank_rkey_open(team, other, in, (size_t)e.bytes, &l->remote));
    }
    meet(m);
}

void list_close(struct list_model *m)
{
    if (m->saved[0][0])
        free_saved(m);
    meet(m);
    for (int j = 0; j < m->nmems; j++) {
        if (m->mem[j].allocated && m->mem[j].remote)
            MP_OK(rank_rkey_close(&m->mem[j].remote));
    }
    meet(m);
    for (int j = 0; j < m->nmems; j++) {
        if (m->mem[j].allocated)
            MP_OK(rank_dereg(&m->mem[j].own));
    }
    list_free(m);
}

void list_free(struct list_model *m)
{
    for (int j = 0; j < m->nmems; j++) {
        if (m->mem[j].allocated)
            free(m->mem[j].mine);
        free(m->mem[j].model[0]);
        free(m->mem[j].model[1]);
    }
}

rank_status_t list_start_long(struct list_model *m, rank_xfer_op_t op, int64_t bytes, rank_request_t *req)
{
    static unsigned char local[MIB];
    int64_t n = bytes / MIB;
    rank_block_t *b = mp_alloc((size_t)n * sizeof(*b));
    rank_status_t st;

    for (int64_t i = 0; i < n; i++)
        b[i] = (rank_block_t){local, MIB, m->mem[0].remote, i % 3 * MIB};
    st = rank_xfer(op, b, n, m->other, m->team, NULL, req);
    if (st == RANK_ERR_ARG && op == RANK_XFER_READ) /* a build that refuses blocks that overlap here */
        st = rank_xfer(RANK_XFER_WRITE, b, n, m->other, m->team, NULL, req);
    free(b);
    return st;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* rma_kind.c: move to and from memory of other kinds than host memory. */
#include "lib/base/arg_error.h"
#include "lib/core/threads.h"
#include "lib/rma/rma_internal.h"

#include <sched.h>

RK_COLD rank_status_t rk_stage_move(const char *call, bool put, void *local, int64_t bytes, int peer, struct rank_mem *mem,
                                    int64_t offset)
{
    rank_status_t st = rk_mem_check_range(call, mem, local, bytes, peer, offset);

    return st ? rk_peer_null_ok(st) : rk_stage_pieces(put, &(rank_piece_t){local, bytes, offset}, 1, peer, mem);
}

/* The next pieces to move, with their payload in host memory. */
struct batch {
    rank_piece_t host[RK_PIECE_BATCH];
    char *local[RK_PIECE_BATCH]; /* their places, */
    const struct rk_kind *kind[RK_PIECE_BATCH]; /* and kinds */
    int n;
    struct rk_bounce *room;
};

/* Where in the list the next piece begins. */
struct batch_place {
    int64_t i, in; /* the first piece that has not been taken, and its bytes that have */
};

/* Begin the copies of a batch, of which some may be complete. */
static rank_status_t batch_begin(struct batch *s, bool put)
{
    rank_status_t st = RANK_OK;

    for (int i = 0; i < s->n && !st; i++) {
        size_t bytes = (size_t)s->host[i].bytes;
        const void *from = put ? s->local[i] : s->host[i].local;
        void *to = put ? s->host[i].local : s->local[i];

        if (s->kind[i])
            st = rk_kind_begin(!put, to, from, s->kind[i], bytes, &s->room->copies);
    }
    return st;
}

/* Wait for the copies that have begun. */
static rank_status_t batch_wait(struct batch *s)
{
    rank_status_t st = RANK_OK;

    while (s->room && !rk_kind_over(&s->room->copies, &st))
        sched_yield();
    return st;
}

/* Take the next batch of the list. */
static void batch_take(struct batch *s, struct batch_place *next, const rank_piece_t *pieces, int64_t n)
{
    int64_t used = 0;

    for (s->n = 0; s->n < RK_PIECE_BATCH && next->i < n && used < RK_BOUNCE_BYTES; s->n++) {
        const rank_piece_t *whole = &pieces[next->i];
        rank_piece_t p = {(char *)whole->local + next->in, whole->bytes - next->in, whole->offset + next->in};

        s->local[s->n] = p.local;
        s->kind[s->n] = rk_kind_of(whole->local, (size_t)whole->bytes);
        if (s->kind[s->n]) {
            p.bytes = p.bytes < RK_BOUNCE_BYTES - used ? p.bytes : RK_BOUNCE_BYTES - used;
            p.local = s->room->data + used;
            used += p.bytes;
        }
        s->host[s->n] = p;
        next->in += p.bytes;
        if (next->in == whole->bytes) {
            next->i++;
            next->in = 0;
        }
    }
}

static struct rk_bounce *take_room(struct rank_mem *mem, const struct rk_kind *kind, bool extra)
{
    RK_ENTER(mem->ctx);
    return rk_bounce_take(&mem->ctx->rma->bounces, kind, extra);
}

static void put_room(struct rank_mem *mem, struct batch *s)
{
    RK_ENTER(mem->ctx);
    if (s->room)
        rk_bounce_put(&mem->ctx->rma->bounces, s->room);
}

/* Put or get in batches. They take turns if s[1] has room: the copies of one go on while the other one moves. */
static rank_status_t put_batches(struct batch s[2], const rank_piece_t *pieces, int64_t n, int peer, struct rank_mem *mem)
{
    struct batch *this = &s[0], *then = &s[s[1].room ? 1 : 0], *swap;
    struct batch_place next = {0, 0};
    rank_status_t st;

    batch_take(this, &next, pieces, n);
    st = batch_begin(this, true);
    while (this->n && !st) {
        st = batch_wait(this);
        if (this != then) {
            batch_take(then, &next, pieces, n);
            st = st ? st : batch_begin(then, true);
        }
        st = st ? st : rk_move_pieces(true, this->host, this->n, peer, mem);
        if (this == then) {
            batch_take(this, &next, pieces, n);
            st = st ? st : batch_begin(this, true);
        }
        swap = this;
        this = then;
        then = swap;
    }
    return st;
}

static rank_status_t get_batches(struct batch s[2], const rank_piece_t *pieces, int64_t n, int peer, struct rank_mem *mem)
{
    struct batch_place next = {0, 0};
    rank_status_t st = RANK_OK;

    for (int turn = 0; next.i < n && !st; turn++) {
        struct batch *this = &s[s[1].room ? turn % 2 : 0];

        st = batch_wait(this); /* of its last turn */
        batch_take(this, &next, pieces, n);
        if (!st)
            st = rk_move_pieces(false, this->host, this->n, peer, mem);
        if (!st)
            st = batch_begin(this, false);
    }
    return st;
}

/* To and from a mapped part that is no host memory. */
static rank_status_t copy_mapped(bool put, const rank_piece_t *pieces, int64_t n, char *part, struct rank_mem *mem)
{
    rank_status_t st = RANK_OK;

    for (int64_t i = 0; i < n && !st; i++) {
        const rank_piece_t *p = &pieces[i];
        const struct rk_kind *kind = rk_kind_of(p->local, (size_t)p->bytes);

        st = put ? rk_kind_copy(part + p->offset, mem->kind, p->local, kind, (size_t)p->bytes)
                 : rk_kind_copy(p->local, kind, part + p->offset, mem->kind, (size_t)p->bytes);
        rk_mem_moved(mem, (uint64_t)p->bytes);
    }
    return st;
}

RK_COLD rank_status_t rk_stage_pieces(bool put, const rank_piece_t *pieces, int64_t n, int peer, struct rank_mem *mem)
{
    const struct rk_kind *kind = n ? rk_kind_of(pieces[0].local, (size_t)pieces[0].bytes) : NULL;
    struct batch s[2];
    rank_status_t st;

    if (mem->kind && mem->part[peer]) {
        st = copy_mapped(put, pieces, n, mem->part[peer], mem);
        return st || put ? st : rk_mem_check_death(mem, peer);
    }
    for (int i = 0; i < 2; i++) /* one at least: other threads may keep theirs until a peer serves them */
        s[i].room = take_room(mem, kind, i == 0);
    if (!s[0].room) {
        return rk_fail(RANK_ERR_NO_MEMORY, "out of memory for copies of buffers of other kinds");
    }
    st = put ? put_batches(s, pieces, n, peer, mem) : get_batches(s, pieces, n, peer, mem);
    for (int i = 0; i < 2; i++) {
        rank_status_t end = batch_wait(&s[i]);

        st = st ? st : end;
        put_room(mem, &s[i]);
    }
    return st;
}

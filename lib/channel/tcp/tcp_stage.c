/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_stage.c: copy chunks of device memory while others are on the socket.
 *
 * Each direction of a link has two bounce buffers at most: one with the socket, and one with a copy under way. The sender
 * copies the next chunk while one is sent, and sends no chunk before its copy is complete: the set, which watches for room,
 * polls it. The receiver copies a chunk to the device while the next one arrives. Copies end before the request completes.
 */
#include "lib/channel/tcp/tcp_channel.h"

#include <sched.h>

static struct rk_bounce *stage_take(struct rk_tcp_link *l, const struct rk_tcp_op *op, uint64_t offset)
{
    struct rk_bounce *b = rk_bounce_take(&l->tcp->bounces, op->view.ops->kind, true);

    if (b) {
        b->offset = offset;
        b->bytes = 0;
    }
    return b;
}

static void stage_put(struct rk_tcp_link *l, struct rk_bounce **b)
{
    if (*b)
        rk_bounce_put(&l->tcp->bounces, *b);
    *b = NULL;
}

/* Begin the copy of a buffer, which takes the place of one without copies. */
static void stage_begin(struct rk_tcp_stage *s, struct rk_tcp_op *op, bool in, struct rk_bounce *b, bool overlaps)
{
    struct rk_tcp *tcp = op->of->tcp;
    rank_status_t st = op->view.ops->begin(&op->view, in, b->offset, b->data, b->bytes, &b->copies);

    s->copying = b;
    s->op = op;
    if (st && !op->copied)
        op->copied = st;
    tcp->pieces++;
    tcp->overlapped += overlaps;
}

/* Wait for the copy under way, if any, and release its buffer. */
static void stage_wait(struct rk_tcp_link *l, struct rk_tcp_stage *s)
{
    while (s->copying && !rk_kind_over(&s->copying->copies, &s->op->copied))
        sched_yield();
    stage_put(l, &s->copying);
    s->op = NULL;
}

void rk_tcp_stage_end(struct rk_tcp_op *op)
{
    struct rk_tcp_link *l = op->of;

    if (l->receives.op == op)
        stage_wait(l, &l->receives);
    if (l->sends.op == op)
        stage_wait(l, &l->sends);
    if (l->into == op)
        stage_put(l, &l->receives.wire);
    if (l->sending == op)
        stage_put(l, &l->sends.wire);
}

/* ------------------------------------------------------------------------ sender */

static void begin_next(struct rk_tcp_link *l, struct rk_tcp_op *op, uint64_t offset)
{
    uint64_t left = op->bytes - offset;
    struct rk_bounce *b = stage_take(l, op, offset);

    if (!b) {
        if (!l->sends.wire) /* else that one is free soon, and rk_tcp_stage_is_ready tries again */
            op->copied = RANK_ERR_NO_MEMORY;
        return;
    }
    b->bytes = left < RK_TCP_CHUNK_MAX ? (size_t)left : RK_TCP_CHUNK_MAX;
    stage_begin(&l->sends, op, false, b, offset > op->done);
}

bool rk_tcp_stage_is_ready(struct rk_tcp_link *l, struct rk_tcp_op *op)
{
    struct rk_tcp_stage *s = &l->sends;

    if (!s->copying && !op->copied)
        begin_next(l, op, op->done);
    if (op->copied)
        return true;
    return s->op == op && rk_kind_over(&s->copying->copies, &op->copied);
}

void rk_tcp_stage_send(struct rk_tcp_link *l, struct rk_tcp_op *op)
{
    struct rk_tcp_stage *s = &l->sends;
    struct rk_link *at;

    if (op->copied)
        return;
    s->wire = s->copying;
    s->copying = NULL;
    s->op = NULL;
    rk_list_for_each(at, &l->jobs) /* the op is the last */
    {
        struct rk_tcp_op *next = rk_list_entry(at, struct rk_tcp_op, link);
        uint64_t offset = next == op ? op->done + s->wire->bytes : next->done;

        if (rk_tcp_stages(&next->view) && !next->copied && offset < next->bytes) {
            begin_next(l, next, offset);
            return;
        }
    }
}

void rk_tcp_stage_sent(struct rk_tcp_link *l)
{
    stage_put(l, &l->sends.wire);
}

/* ---------------------------------------------------------------------- receiver */

char *rk_tcp_stage_at(struct rk_tcp_link *l, struct rk_tcp_op *op)
{
    struct rk_tcp_stage *s = &l->receives;

    if (!s->wire && !op->copied)
        s->wire = stage_take(l, op, op->done);
    return s->wire ? s->wire->data + s->wire->bytes : NULL;
}

void rk_tcp_stage_received(struct rk_tcp_link *l, struct rk_tcp_op *op, size_t bytes, bool last)
{
    struct rk_tcp_stage *s = &l->receives;
    struct rk_bounce *b = s->wire;

    if (!b)
        return;
    b->bytes += bytes;
    if (!last)
        return;
    stage_wait(l, s);
    s->wire = NULL;
    stage_begin(s, op, true, b, op->done + bytes < op->bytes);
}

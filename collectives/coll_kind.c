/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_kind.c: stage buffers that are no host memory. */
#include "collectives/coll_kind.h"
#include "collectives/coll_failure.h"
#include "lib/base/arg_error.h"

#include <stdlib.h>

/* Find the buffers that are to be staged. */
static void stage_find(const struct rk_coll_call *c, struct rk_staged *send, struct rk_staged *recv)
{
    size_t s, r;

    rk_coll_buffers(c, &s, &r);
    *send = (struct rk_staged){.view = rk_view_of(c->sbuf, s)};
    *recv = (struct rk_staged){.view = rk_view_of(c->rbuf, r)};
    if (!send->view.ops)
        send->view.bytes = 0;
    if (!recv->view.ops)
        recv->view.bytes = 0;
}

/* The struct, its blocks and copies of the count arrays: the caller's may be gone when the first step runs. */
static size_t stage_head(const struct rk_coll_call *c)
{
    size_t blocks = rk_blocks_received(c).counts ? (size_t)c->team->size : 0;

    return rk_round_up(sizeof(struct rk_stage) + blocks * sizeof(struct rk_stage_block) + rk_coll_counts(c) * sizeof(int64_t),
                       RK_CACHE_LINE);
}

size_t rk_stage_bytes(const struct rk_coll_call *c)
{
    struct rk_staged s, r;

    stage_find(c, &s, &r);
    if (!s.view.bytes && !r.view.bytes)
        return 0;
    return stage_head(c) + rk_round_up(s.view.bytes, RK_CACHE_LINE) + r.view.bytes;
}

/* Does the view begin within the other one? */
static bool stage_within(const struct rk_view *in, const struct rk_view *of)
{
    return in->bytes && (uintptr_t)in->base - (uintptr_t)of->base < of->bytes;
}

static rank_status_t stage_copy_out(const struct rk_coll_call *c, const struct rk_staged *s)
{
    struct rk_block_list list = rk_blocks_sent(c);
    rank_status_t st = RANK_OK;

    if (!list.counts)
        return rk_copy_out(s->host, &s->view, 0, s->view.bytes);
    for (int i = 0; !st && i < c->team->size; i++) {
        size_t at = (size_t)list.displs[i] * c->elem;

        if (list.counts[i])
            st = rk_copy_out(s->host + at, &s->view, at, (size_t)list.counts[i] * c->elem);
    }
    return st;
}

static rank_status_t stage_fill(const struct rk_stage *g)
{
    const struct rk_coll_call *c = &g->host;

    rank_status_t st = g->send.view.bytes ? stage_copy_out(c, &g->send) : RANK_OK;

    if (!st && g->recv.view.bytes && c->kind == RK_COLL_BCAST && c->team->rank == c->root)
        st = rk_copy_out(g->recv.host, &g->recv.view, 0, g->recv.view.bytes);
    return st;
}

rank_status_t rk_stage_begin(void *stage)
{
    const struct rk_stage *g = stage;

    return g->deferred ? RANK_OK : stage_fill(g);
}

static rank_status_t fill_later(struct rk_stage *stage)
{
    rank_status_t st = stage_fill(stage);

    if (!st && stage->filled)
        stage->filled(stage->filled_arg);
    return st;
}

struct rk_stage *rk_stage_layout(const struct rk_coll_call *c, void *mem)
{
    struct rk_stage *g = mem;
    struct rk_staged *s = &g->send, *r = &g->recv;
    struct rk_block_list received = rk_blocks_received(c);

    *g = (struct rk_stage){.host = *c, .fill = fill_later};
    g->host.stage = g;
    stage_find(c, s, r);
    s->host = (char *)mem + stage_head(c);
    r->host = s->host + rk_round_up(s->view.bytes, RK_CACHE_LINE);
    if (c->in_place && stage_within(&r->view, &s->view))
        r->host = s->host + ((char *)r->view.base - (char *)s->view.base);
    else if (c->in_place && stage_within(&s->view, &r->view))
        s->host = r->host + ((char *)s->view.base - (char *)r->view.base);
    if (s->view.bytes)
        g->host.sbuf = s->host;
    if (r->view.bytes)
        g->host.rbuf = r->host;
    if (received.counts) { /* what lies between the blocks is not the call's */
        g->blocks = (void *)(g + 1);
        g->nblocks = c->team->size;
        for (int i = 0; i < g->nblocks; i++)
            g->blocks[i] =
                (struct rk_stage_block){(size_t)received.displs[i] * c->elem, (size_t)received.counts[i] * c->elem};
    }
    rk_coll_copy_counts(&g->host, (int64_t *)(void *)((struct rk_stage_block *)(void *)(g + 1) + g->nblocks));
    return g;
}

rank_status_t rk_stage_end(void *stage)
{
    const struct rk_stage *g = stage;
    const struct rk_staged *r = &g->recv;

    rank_status_t st = RANK_OK;

    if (g->skipped)
        return RANK_OK;
    if (!g->blocks && r->view.bytes)
        st = rk_copy_in(&r->view, 0, r->host, r->view.bytes);
    for (int i = 0; r->view.bytes && i < g->nblocks && !st; i++)
        st = rk_copy_in(&r->view, g->blocks[i].at, r->host + g->blocks[i].at, g->blocks[i].bytes);
    return st;
}

rank_status_t rk_stage_in_arena(struct rk_arena *a, const struct rk_coll_call *c)
{
    size_t bytes = rk_stage_bytes(c);
    struct rk_stage *stage;
    rank_status_t st;
    void *mem;

    if (!bytes)
        return rk_coll_in_arena(a, c);
    mem = malloc(bytes);
    if (!mem) {
        rk_fail(RANK_ERR_NO_MEMORY, "out of memory for a collective (%zu bytes)", bytes);
        return rk_coll_failed_alone(c, RANK_ERR_NO_MEMORY);
    }
    stage = rk_stage_layout(c, mem);
    st = rk_stage_begin(stage);
    if (st)
        st = rk_coll_failed_alone(c, st);
    else if ((st = rk_coll_in_arena(a, &stage->host)) == RANK_OK)
        st = rk_stage_end(stage);
    free(mem);
    return st;
}

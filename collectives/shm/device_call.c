/* SPDX-License-Identifier: BSD-3-Clause */
/* device_call.c: decide if a call runs on the devices (device_call.h). */
#include "collectives/coll_args.h"
#include "collectives/shm/direct_call.h"
#include "collectives/state.h"
#include "lib/base/log.h"
#include "lib/core/engine.h"

enum { OWN_COUNTS_MIN = 32 << 10 /* bytes of the longest block of gatherv, scatterv, alltoallv; as MOVES_MIN in select.c */ };

/* ------------------------------------------------------------------------------ build */

/* Of the buffers that this rank uses: are all of one kind that can do it? */
static void classify_buffers(struct rk_device_call *d, const struct rk_coll_call *c)
{
    const struct rk_stage *g = c->stage;
    size_t send, recv;

    rk_coll_buffers(c, &send, &recv);
    d->sent = send;
    d->received = recv;
    if (!send && !recv)
        return;
    d->buffers = RK_DEVICE_IN_HOST;
    if (!g || (send && !g->send.view.bytes) || (recv && !g->recv.view.bytes))
        return;
    d->ops = send ? g->send.view.ops : g->recv.view.ops;
    if (send && recv && g->send.view.ops != g->recv.view.ops)
        return;
    d->kind = d->ops->kind;
    if (!d->kind || !d->kind->import || !d->kind->export)
        return;
    d->buffers = RK_DEVICE_ALL;
    d->sbuf = send ? g->send.view.base : NULL;
    d->rbuf = recv ? g->recv.view.base : NULL;
    if (c->kind == RK_COLL_BCAST)
        d->sbuf = d->rbuf;
}

struct rk_device_call *rk_device_add(struct rk_sched *s, const struct rk_coll_call *c, struct rk_arena *a)
{
    struct rk_device_call *d = rk_sched_scratch(s, sizeof(*d));

    if (s->status)
        return NULL;
    *d = (struct rk_device_call){.stage = c->stage, .dtype = c->dtype, .op = c->op, .host_sbuf = (char *)(uintptr_t)c->sbuf, .host_rbuf = c->rbuf};
    if (c->kind == RK_COLL_BCAST)
        d->host_sbuf = c->rbuf;
    classify_buffers(d, c);
    if (d->buffers == RK_DEVICE_ALL && rk_coll_shape[c->kind].reduces)
        rk_device_add_reduction(s, d, c, a);
    if (d->stage)
        d->stage->deferred = true;
    return d;
}

/* ------------------------------------------------------------------------------ posts */

static void release_buffers(const struct rk_ctx *ctx, struct rk_arena *a)
{
    for (int i = 0; i < (int)RK_ARRAY_LEN(a->held); i++) {
        void *state;
        const struct rk_peer_device_ops *ops = a->held[i].slots ? rk_engine_device(ctx, &state) : NULL;

        if (ops)
            ops->release(state, &a->held[i]);
        a->held[i].slots = 0;
    }
}

/* A team's calls are in the arena one after another: it holds the buffers of one. */
static struct rk_device_name hold_buffer(const struct rk_direct *x, int i, void *buf, size_t bytes)
{
    struct rk_device_export *held = &x->a->held[i];
    struct rk_view view = {buf, bytes, x->device->ops};
    void *state;
    const struct rk_peer_device_ops *ops = rk_engine_device(x->sched->all->ctx, &state);

    held->name = 0;
    if (ops && bytes)
        ops->hold(state, &view, held);
    return (struct rk_device_name){held->name, held->offset};
}

/* Bytes of the longest block of this rank. */
static size_t longest_block(const struct rk_direct *x)
{
    size_t longest = x->bytes;

    for (int r = 0; r < x->a->n; r++) {
        if (x->given && x->given[r].bytes > longest)
            longest = x->given[r].bytes;
        if (x->blocks && x->blocks[r].bytes > longest)
            longest = x->blocks[r].bytes;
    }
    return longest;
}

void rk_device_post(const struct rk_direct *x, struct rk_device_post *post)
{
    struct rk_device_call *d = x->device;

    post->buffers = d->buffers;
    post->staged = d->stage != NULL;
    post->kind = d->kind ? (uint32_t)d->kind->id : RANK_MEM_HOST;
    post->able = d->buffers != RK_DEVICE_IN_HOST;
    post->len = 0;
    post->longest = rk_coll_has_own_counts(x->kind) ? longest_block(x) : 0;
    post->input = post->result = (struct rk_device_name){0, 0};
    atomic_store_explicit(&post->vote, 0, memory_order_relaxed);
    atomic_store_explicit(&post->filled, 0, memory_order_relaxed);
    atomic_store_explicit(&post->reduced, 0, memory_order_relaxed);
    atomic_store_explicit(&post->emptied, 0, memory_order_relaxed);
    d->round = 0;
    d->phase = RK_DEVICE_FILL;
    if (d->stage)
        d->stage->skipped = false;
    release_buffers(x->sched->all->ctx, x->a); /* of a call that has failed */
    if (x->reduces)
        rk_device_post_scratch(d, post);
    if (d->buffers == RK_DEVICE_ALL && post->able)
        post->input = hold_buffer(x, 0, d->sbuf, x->reduces ? d->sent : x->sent);
    if (x->reduces && x->kind == RK_COLL_ALLREDUCE && post->input.name)
        post->result = hold_buffer(x, 1, d->rbuf, d->received);
    if (post->result.name && d->kind->device_id)
        post->device = d->kind->device_id(d->rbuf);
    if (!x->reduces && x->sent)
        post->able = post->able && (d->buffers != RK_DEVICE_ALL || post->input.name);
}

void rk_device_end(const struct rk_direct *x)
{
    release_buffers(x->sched->all->ctx, x->a);
}

void rk_device_end_of_team(struct rank_team *team)
{
    if (team->coll->arena)
        release_buffers(team->ctx, team->coll->arena);
}

/* ------------------------------------------------------------------------------ votes */

/* By the posts, could the call run on devices? Of blocks of lengths that ranks do not share, the longest one decides. */
static bool is_possible(const struct rk_direct *x)
{
    const struct rk_device_post *one = NULL;
    uint64_t longest = rk_coll_has_own_counts(x->kind) ? 0 : OWN_COUNTS_MIN;

    for (int r = 0; r < x->a->n; r++) {
        const struct rk_post *p = rk_post_of(x, r);

        if (p->device.longest > longest)
            longest = p->device.longest;
        if (p->device.buffers == RK_DEVICE_UNUSED)
            continue;
        if (!p->device.able || (p->overlaps && !x->reduces) || (one && p->device.kind != one->kind))
            return false;
        one = &p->device;
    }
    return one && longest >= OWN_COUNTS_MIN;
}

static RK_COLD void report_unmapped(void)
{
    static bool reported;

    if (!__atomic_exchange_n(&reported, true, __ATOMIC_RELAXED))
        rk_info("this rank cannot map device memory of the other ranks in a collective: its buffers go through host memory");
}

void rk_device_vote(const struct rk_direct *x)
{
    struct rk_device_call *d = x->device;
    uint32_t vote = RK_DEVICE_VOTED;

    d->asks = is_possible(x);
    if (!d->asks)
        return;
    if (x->reduces ? rk_device_map_scratch(x) : rk_device_may_read(x))
        vote |= RK_DEVICE_CAN;
    else
        report_unmapped();
    if (x->reduces && (vote & RK_DEVICE_CAN) && rk_device_may_reduce_inputs(x))
        vote |= RK_DEVICE_CAN_INPUTS;
    atomic_store_explicit(&rk_post_of(x, x->a->me)->device.vote, vote, memory_order_release);
    rk_wake_members(x->a, 0, x->a->n);
    x->sched->all->moved++;
}

static uint32_t vote_of(const struct rk_direct *x, int r)
{
    return atomic_load_explicit(&rk_post_of(x, r)->device.vote, memory_order_acquire);
}

bool rk_device_have_voted(const struct rk_direct *x)
{
    for (int r = 0; x->device->asks && r < x->a->n; r++) {
        if (!vote_of(x, r))
            return false;
    }
    return true;
}

enum rk_device_way rk_device_decide(struct rk_direct *x, rank_status_t *status)
{
    struct rk_device_call *d = x->device;
    bool any = false, runs = d->asks;

    d->reads_inputs = x->reduces;
    for (int r = 0; r < x->a->n; r++) {
        const struct rk_device_post *p = &rk_post_of(x, r)->device;

        any = any || p->staged;
        runs = runs && (vote_of(x, r) & RK_DEVICE_CAN);
        d->reads_inputs = d->reads_inputs && (vote_of(x, r) & RK_DEVICE_CAN_INPUTS);
    }
    if (d->stage)
        d->stage->skipped = runs;
    x->sbuf = runs ? d->sbuf : d->host_sbuf;
    x->rbuf = runs ? d->rbuf : d->host_rbuf;
    if (runs)
        return RK_DEVICE_RUNS;
    if (d->stage)
        *status = d->stage->fill(d->stage);
    return any ? RK_DEVICE_HOST : RK_DEVICE_NONE;
}

void rk_device_describe(const struct rk_direct *x, struct rk_wait_for *out)
{
    for (int r = 0; r < x->a->n; r++) {
        if (x->state == RK_DIRECT_VOTE ? !vote_of(x, r) : rk_device_waits_for(x, r))
            rk_describe_peer(out, rk_arena_world_rank(x->a, r));
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* device_reduce.c: reduce device buffers of a node (device_reduce.h). */
#include "collectives/shm/device_reduce.h"
#include "collectives/coll_args.h"
#include "collectives/coll_kind.h"
#include "collectives/shm/direct_call.h"
#include "collectives/state.h"
#include "lib/base/log.h"

#include <stdlib.h>
#include <string.h>

enum { SCRATCH_BYTES = 8 << 20, SLICE_UNIT = 256 };

/* Of a team, for the life of the team. */
struct rk_device_scratch {
    const struct rk_kind *kind;
    int n, me;
    bool mapped, refused; /* all of it; it cannot be */
    uint32_t len;
    unsigned char handle[RK_KIND_HANDLE_MAX];
    void *part[RK_KIND_OPERANDS]; /* by rank; the own one is of alloc */
};

struct rk_device_call {
    struct rk_device_scratch *scratch;
    struct rk_stage *stage;
    rank_dtype_t dtype;
    rank_op_t op;
    const char *sbuf;
    char *rbuf;
    bool has_kernel;
    uint64_t round;
    enum { DEVICE_FILL, DEVICE_REDUCE, DEVICE_EMPTY } phase;
};

/* -------------------------------------------------------------------------- scratch */

void rk_device_scratch_free(struct rk_device_scratch *g)
{
    if (!g)
        return;
    for (int r = 0; r < g->n; r++) {
        if (g->part[r])
            g->kind->free(g->part[r]);
    }
    if (g->len && g->kind->export_end)
        g->kind->export_end(g->handle, g->len);
    free(g);
}

/* Without memory or a handle it is refused: the call goes through the host. NULL: out of host memory. */
static struct rk_device_scratch *scratch_new(const struct rk_kind *kind, const struct rk_arena *a)
{
    struct rk_device_scratch *g = calloc(1, sizeof(*g));

    if (!g)
        return NULL;
    *g = (struct rk_device_scratch){.kind = kind, .n = a->n, .me = a->me};
    if (kind->alloc(SCRATCH_BYTES, &g->part[a->me]) != RANK_OK)
        g->part[a->me] = NULL;
    else if (kind->outlives && kind->outlives(g->part[a->me])) /* a team is freed without a barrier */
        g->len = (uint32_t)kind->export(g->part[a->me], SCRATCH_BYTES, g->handle, sizeof(g->handle));
    g->refused = g->len == 0;
    if (g->refused)
        rk_info("no device memory that other ranks can map: reductions go through the host");
    return g;
}

/* Map the others' scratch memory, once. */
static void scratch_map(const struct rk_direct *x, struct rk_device_scratch *g)
{
    if (g->mapped || g->refused)
        return;
    for (int r = 0; r < g->n; r++) {
        const struct rk_device_post *p = &rk_post_of(x, r)->device;

        if (r != g->me && p->len && g->kind->import(p->handle, p->len, g->part[g->me], &g->part[r]) != RANK_OK)
            g->part[r] = NULL;
        if (!g->part[r])
            g->refused = true;
    }
    g->mapped = !g->refused;
}

/* ----------------------------------------------------------------------------- posts */

bool rk_device_may_reduce(const struct rk_case *c, const struct rk_algo *algo)
{
    return c->kind == RK_COLL_ALLREDUCE && c->one_node && c->size <= RK_KIND_OPERANDS && strcmp(algo->name, "direct") == 0;
}

struct rk_device_call *rk_device_add(struct rk_sched *s, const struct rk_coll_call *c, struct rk_arena *a)
{
    struct rk_coll_team *t = c->team->coll;
    const struct rk_kind *from, *to;
    struct rk_device_call *d;
    const void *own;

    if (!c->stage || c->kind != RK_COLL_ALLREDUCE || c->user || c->bytes < RK_DEVICE_BYTES || a->n > RK_KIND_OPERANDS || t->arena != a)
        return NULL;
    if (c->op == RANK_AVG && rk_op_scales(c->dtype)) /* its inputs are scaled before */
        return NULL;
    if (sizeof(struct rk_post) > a->cell_bytes)
        return NULL;
    from = c->stage->send.view.bytes ? rk_kind_of(c->stage->send.view.base, c->bytes) : NULL;
    to = c->stage->recv.view.bytes ? rk_kind_of(c->stage->recv.view.base, c->bytes) : NULL;
    if (!from || from != to || !from->reduce || !from->export || !from->import)
        return NULL;
    if (!t->device)
        t->device = scratch_new(from, a);
    if (!t->device || t->device->kind != from)
        return NULL;
    d = rk_sched_scratch(s, sizeof(*d));
    if (s->status)
        return NULL;
    *d = (struct rk_device_call){.scratch = t->device, .stage = c->stage, .dtype = c->dtype, .op = c->op,
                                 .sbuf = c->stage->send.view.base, .rbuf = c->stage->recv.view.base};
    own = d->scratch->part[a->me];
    d->has_kernel = d->scratch->len && from->reduce(d->scratch->part[a->me], &own, 1, 0, c->dtype, c->op, 0) == RANK_OK;
    c->stage->deferred = true;
    return d;
}

void rk_device_post(struct rk_device_call *d, struct rk_device_post *post)
{
    const struct rk_device_scratch *g = d ? d->scratch : NULL;

    post->present = d != NULL;
    post->len = post->ready = 0;
    atomic_store_explicit(&post->filled, 0, memory_order_relaxed);
    atomic_store_explicit(&post->reduced, 0, memory_order_relaxed);
    atomic_store_explicit(&post->emptied, 0, memory_order_relaxed);
    if (!d)
        return;
    d->round = 0;
    d->phase = DEVICE_FILL;
    d->stage->skipped = false;
    post->len = g->len;
    memcpy(post->handle, g->handle, g->len);
    post->ready = g->mapped && d->has_kernel;
}

enum rk_device_way rk_device_decide(const struct rk_direct *x, rank_status_t *status)
{
    bool any = false, all = true;

    for (int r = 0; r < x->a->n; r++) {
        const struct rk_device_post *p = &rk_post_of(x, r)->device;

        any = any || p->present;
        all = all && p->ready;
    }
    if (x->device && all) {
        x->device->stage->skipped = true;
        return RK_DEVICE_RUNS;
    }
    if (x->device) {
        scratch_map(x, x->device->scratch);
        *status = x->device->stage->fill(x->device->stage);
    }
    return any ? RK_DEVICE_HOST : RK_DEVICE_NONE;
}

/* ------------------------------------------------------------------------------ work */

/* Slice of a round that rank r reduces; from the start of the scratch memory. */
static struct rk_span device_slice(const struct rk_direct *x, int r, size_t round_bytes)
{
    size_t n = (size_t)x->a->n, each = rk_round_up((round_bytes + n - 1) / n, SLICE_UNIT), at = each * (size_t)r;

    at = at < round_bytes ? at : round_bytes;
    return (struct rk_span){at, round_bytes - at < each ? round_bytes - at : each};
}

static rank_status_t device_reduce_slice(const struct rk_direct *x, const struct rk_device_call *d, size_t len)
{
    const struct rk_device_scratch *g = d->scratch;
    struct rk_span s = device_slice(x, g->me, len);
    const void *src[RK_KIND_OPERANDS];

    for (int r = 0; r < g->n; r++)
        src[r] = (const char *)g->part[r] + s.at;
    if (s.bytes == 0)
        return RANK_OK;
    return g->kind->reduce((char *)g->part[g->me] + s.at, src, g->n, s.bytes / x->elem, d->dtype, d->op, d->op == RANK_AVG ? g->n : 0);
}

static rank_status_t device_empty(const struct rk_direct *x, const struct rk_device_call *d, size_t at, size_t len)
{
    rank_status_t st = RANK_OK;

    for (int i = 0; i < x->a->n && !st; i++) {
        int r = (x->a->me + i) % x->a->n;
        struct rk_span s = device_slice(x, r, len);

        st = rk_kind_copy(d->rbuf + at + s.at, d->scratch->kind, (const char *)d->scratch->part[r] + s.at, d->scratch->kind, s.bytes);
    }
    return st;
}

/* The counter of a post that the present phase waits for, and its least value. */
static const _Atomic uint64_t *device_awaited(const struct rk_device_call *d, const struct rk_device_post *p, uint64_t *want)
{
    *want = d->phase == DEVICE_FILL ? d->round : d->round + 1;
    return d->phase == DEVICE_FILL ? &p->emptied : d->phase == DEVICE_REDUCE ? &p->filled : &p->reduced;
}

static bool device_waits_for(const struct rk_direct *x, int r)
{
    const struct rk_device_post *p = &rk_post_of(x, r)->device;
    uint64_t want;
    const _Atomic uint64_t *count = device_awaited(x->device, p, &want);

    return r != x->a->me && atomic_load_explicit(count, memory_order_acquire) < want;
}

/* This rank's part in the present phase. */
static rank_status_t device_part(const struct rk_direct *x, const struct rk_device_call *d)
{
    size_t at = d->round * SCRATCH_BYTES, len = x->bytes - at < SCRATCH_BYTES ? x->bytes - at : SCRATCH_BYTES;

    switch (d->phase) {
    case DEVICE_FILL:
        return rk_kind_copy(d->scratch->part[x->a->me], d->scratch->kind, d->sbuf + at, d->scratch->kind, len);
    case DEVICE_REDUCE:
        return device_reduce_slice(x, d, len);
    default:
        return device_empty(x, d, at, len);
    }
}

/* After an error the others wait: they learn of the failure, and take no part of the result. */
bool rk_device_work(const struct rk_direct *x, rank_status_t *status)
{
    struct rk_device_call *d = x->device;
    struct rk_device_post *own = &rk_post_of(x, x->a->me)->device;

    for (int r = 0; r < x->a->n; r++) {
        if (device_waits_for(x, r))
            return false;
    }
    *status = device_part(x, d);
    if (*status)
        return false;
    atomic_store_explicit(d->phase == DEVICE_FILL     ? &own->filled
                          : d->phase == DEVICE_REDUCE ? &own->reduced
                                                      : &own->emptied,
                          d->round + 1, memory_order_release);
    d->round += d->phase == DEVICE_EMPTY;
    d->phase = d->phase == DEVICE_FILL ? DEVICE_REDUCE : d->phase == DEVICE_REDUCE ? DEVICE_EMPTY : DEVICE_FILL;
    rk_wake_members(x->a, 0, x->a->n);
    x->sched->all->moved++;
    return d->round * SCRATCH_BYTES >= x->bytes;
}

void rk_device_describe(const struct rk_direct *x, struct rk_wait_for *out)
{
    for (int r = 0; r < x->a->n; r++) {
        if (device_waits_for(x, r))
            rk_describe_peer(out, rk_arena_world_rank(x->a, r));
    }
}

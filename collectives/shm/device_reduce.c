/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_reduce.c: reduce device buffers of a node by kernels (device_call.h).
 *
 * Each rank of the team has a block of scratch memory on its device, which the others map. A round copies a piece of each
 * input there, reduces it, and copies results out. Inputs that can be mapped are reduced where they are instead, and only
 * the sums go through scratch memory; those of an allreduce do not. The lowest rank of each device reduces for all of its ranks, since
 * kernels of several processes take turns on a device: a slice of an allreduce or reduce, the blocks of its ranks in a
 * reduce_scatter. So an input may be overwritten by the result of the same round.
 */
#include "collectives/coll_args.h"
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
    uint32_t len;         /* of the handle; 0: none, and no own part */
    uint64_t device;
    unsigned char handle[RK_KIND_HANDLE_MAX];
    void *part[RK_KIND_OPERANDS]; /* by rank; the own one is of alloc */
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

/* Without device memory or a handle, len is 0, and calls go through the host. NULL: out of host memory. */
static struct rk_device_scratch *scratch_new(const struct rk_kind *kind, const struct rk_arena *a)
{
    struct rk_device_scratch *g = calloc(1, sizeof(*g));
    void *own;

    if (!g)
        return NULL;
    *g = (struct rk_device_scratch){.kind = kind, .n = a->n, .me = a->me};
    if (kind->alloc(SCRATCH_BYTES, &own) == RANK_OK) {
        if (kind->outlives && kind->outlives(own)) /* a team is freed without a barrier */
            g->len = (uint32_t)kind->export(own, SCRATCH_BYTES, g->handle, sizeof(g->handle));
        if (g->len)
            g->part[a->me] = own;
        else
            kind->free(own);
    }
    if (!g->len)
        rk_info("no device memory that other ranks can map: reductions go through the host");
    else if (kind->device_id)
        g->device = kind->device_id(g->part[a->me]);
    return g;
}

bool rk_device_map_scratch(const struct rk_direct *x)
{
    struct rk_device_scratch *g = x->device->scratch;

    if (g->mapped || g->refused)
        return g->mapped;
    for (int r = 0; r < g->n; r++) {
        const struct rk_device_post *p = &rk_post_of(x, r)->device;

        if (r != g->me && g->kind->import(p->handle, p->len, g->part[g->me], &g->part[r]) != RANK_OK)
            g->part[r] = NULL;
        if (!g->part[r])
            g->refused = true;
    }
    g->mapped = !g->refused;
    return g->mapped;
}

/* ------------------------------------------------------------------------------ build */

/* The input of each rank's block. */
static struct rk_span *blocks_of(struct rk_sched *s, const struct rk_coll_call *c, int n)
{
    struct rk_span *b = rk_sched_scratch(s, (size_t)n * sizeof(*b));
    size_t end = 0;

    for (int r = 0; r < n && !s->status; r++) {
        b[r] = (struct rk_span){end, c->rcounts ? (size_t)c->rcounts[r] * c->elem : c->bytes};
        end += b[r].bytes;
    }
    return s->status ? NULL : b;
}

void rk_device_add_reduction(struct rk_sched *s, struct rk_device_call *d, const struct rk_coll_call *c, struct rk_arena *a)
{
    struct rk_coll_team *t = c->team->coll;
    const void *own;

    if (c->user || a->n > RK_KIND_OPERANDS || t->arena != a || !d->kind->reduce)
        return;
    if (!t->device)
        t->device = scratch_new(d->kind, a);
    if (!t->device || t->device->kind != d->kind || !t->device->len)
        return;
    if (rk_coll_shape[c->kind].sbuf == RK_ALL_BLOCKS) {
        d->blocks = blocks_of(s, c, a->n);
        if (!d->blocks)
            return;
    }
    d->scratch = t->device;
    own = d->own_scratch = d->scratch->part[a->me];
    d->has_kernel = d->kind->reduce(d->own_scratch, &own, 1, 0, c->dtype, c->op, 0) == RANK_OK;
}

void rk_device_post_scratch(const struct rk_device_call *d, struct rk_device_post *post)
{
    const struct rk_device_scratch *g = d->scratch;

    post->able = g && d->has_kernel;
    if (!g)
        return;
    post->len = g->len;
    post->device = g->device;
    memcpy(post->handle, g->handle, g->len);
}

/* --------------------------------------------------------------------------- geometry */

/* Do kernels write to the results of the ranks that run them? */
static bool writes_results(const struct rk_direct *x)
{
    return x->device->reads_inputs && x->kind == RK_COLL_ALLREDUCE;
}

/* Bytes of a block that a round moves at most. */
static size_t round_bytes(const struct rk_direct *x)
{
    size_t n = (size_t)x->a->n;

    if (writes_results(x))
        return x->bytes;
    return x->device->blocks ? SCRATCH_BYTES / n / SLICE_UNIT * SLICE_UNIT : SCRATCH_BYTES;
}

/* The part of a block of bytes that the present round moves. */
static struct rk_span part_of_round(const struct rk_direct *x, size_t bytes)
{
    size_t most = round_bytes(x), at = (size_t)x->device->round * most, left = bytes > at ? bytes - at : 0;

    return (struct rk_span){at, left < most ? left : most};
}

/*
 * What of the scratch memory is reduced on behalf of rank r, by which rank: its block, or else its slice of the one block if it
 * reduces one.
 */
static struct rk_span device_piece(const struct rk_direct *x, int r, int *reducer)
{
    size_t len = part_of_round(x, x->bytes).bytes, each, at;
    int reducers = 0, before = 0;

    *reducer = rk_device_reducer_of(x, r);
    if (x->device->blocks)
        return (struct rk_span){(size_t)r * round_bytes(x), part_of_round(x, x->device->blocks[r].bytes).bytes};
    for (int i = 0; i < x->a->n; i++) {
        bool reduces = rk_device_reducer_of(x, i) == i;

        reducers += reduces;
        before += reduces && i < r;
    }
    if (*reducer != r)
        return (struct rk_span){0, 0};
    each = rk_round_up((len + (size_t)reducers - 1) / (size_t)reducers, SLICE_UNIT);
    at = each * (size_t)before < len ? each * (size_t)before : len;
    return (struct rk_span){at, len - at < each ? len - at : each};
}

/* ------------------------------------------------------------------------------- work */

static rank_status_t device_fill(const struct rk_direct *x, const struct rk_device_call *d)
{
    struct rk_span part = part_of_round(x, x->bytes);
    char *to = d->own_scratch;
    rank_status_t st = RANK_OK;

    if (d->reads_inputs)
        return RANK_OK;
    if (!d->blocks)
        return part.bytes ? rk_kind_copy(to, d->kind, d->sbuf + part.at, d->kind, part.bytes) : RANK_OK;
    for (int r = 0; r < x->a->n && !st; r++) {
        part = part_of_round(x, d->blocks[r].bytes);
        if (part.bytes)
            st = rk_kind_copy(to + (size_t)r * round_bytes(x), d->kind, d->sbuf + d->blocks[r].at + part.at, d->kind, part.bytes);
    }
    return st;
}

/* Into this rank's scratch memory, or its result. */
static rank_status_t device_reduce_pieces(const struct rk_direct *x, const struct rk_device_call *d)
{
    const struct rk_device_scratch *g = d->scratch;
    rank_status_t st = RANK_OK;

    for (int r = 0; r < g->n && !st; r++) {
        const void *src[RK_KIND_OPERANDS];
        size_t at;
        int reducer;
        struct rk_span s = device_piece(x, r, &reducer);

        if (reducer != g->me || s.bytes == 0)
            continue;
        if (d->reads_inputs) {
            at = part_of_round(x, x->bytes).at + (d->blocks ? d->blocks[r].at : s.at);
            st = rk_device_reduce_inputs(x, rk_device_result(x) + s.at, at, s.bytes);
            continue;
        }
        for (int i = 0; i < g->n; i++)
            src[i] = (const char *)g->part[i] + s.at;
        st = g->kind->reduce((char *)g->part[g->me] + s.at, src, g->n, s.bytes / x->elem, d->dtype, d->op, d->op == RANK_AVG ? g->n : 0);
    }
    return st;
}

static rank_status_t device_empty(const struct rk_direct *x, const struct rk_device_call *d)
{
    size_t at = (size_t)d->round * round_bytes(x);
    bool receives = x->kind != RK_COLL_REDUCE || x->a->me == x->root;
    rank_status_t st = RANK_OK;

    for (int i = 0; i < x->a->n && !st && receives; i++) {
        int r = (x->a->me + i) % x->a->n, reducer;
        struct rk_span s = device_piece(x, r, &reducer);
        const char *from = (const char *)d->scratch->part[reducer] + s.at;

        if (!s.bytes) /* rbuf may be NULL */
            continue;
        if (writes_results(x))
            st = rk_device_read_result(x, reducer, s.at, s.bytes);
        else if (d->blocks && r == x->a->me)
            st = rk_kind_copy(d->rbuf + at, d->kind, from, d->kind, s.bytes);
        else if (!d->blocks)
            st = rk_kind_copy(d->rbuf + at + s.at, d->kind, from, d->kind, s.bytes);
    }
    return st;
}

/* The counter of a post that the present phase waits for, and its least value. */
static const _Atomic uint64_t *device_awaited(const struct rk_device_call *d, const struct rk_device_post *p, uint64_t *want)
{
    *want = d->phase == RK_DEVICE_FILL ? d->round : d->round + 1;
    return d->phase == RK_DEVICE_FILL ? &p->emptied : d->phase == RK_DEVICE_REDUCE ? &p->filled : &p->reduced;
}

bool rk_device_waits_for(const struct rk_direct *x, int r)
{
    const struct rk_device_post *p = &rk_post_of(x, r)->device;
    uint64_t want;
    const _Atomic uint64_t *count = device_awaited(x->device, p, &want);

    return r != x->a->me && atomic_load_explicit(count, memory_order_acquire) < want;
}

/* This rank's part in the present phase. */
static rank_status_t device_part(const struct rk_direct *x, const struct rk_device_call *d)
{
    switch (d->phase) {
    case RK_DEVICE_FILL:
        return device_fill(x, d);
    case RK_DEVICE_REDUCE:
        return device_reduce_pieces(x, d);
    default:
        return device_empty(x, d);
    }
}

/* Publish the phase, and begin the next one. True: it was the last one. */
static bool device_go_on(const struct rk_direct *x, struct rk_device_post *own)
{
    struct rk_device_call *d = x->device;

    atomic_store_explicit(d->phase == RK_DEVICE_FILL     ? &own->filled
                          : d->phase == RK_DEVICE_REDUCE ? &own->reduced
                                                         : &own->emptied,
                          d->round + 1, memory_order_release);
    d->round += d->phase == RK_DEVICE_EMPTY;
    d->phase = d->phase == RK_DEVICE_FILL ? RK_DEVICE_REDUCE : d->phase == RK_DEVICE_REDUCE ? RK_DEVICE_EMPTY : RK_DEVICE_FILL;
    rk_wake_members(x->a, 0, x->a->n);
    x->sched->all->moved++;
    return (size_t)d->round * round_bytes(x) >= x->bytes;
}

/* After an error the others wait: they learn of the failure, and take no part of the result. */
bool rk_device_reduce(const struct rk_direct *x, rank_status_t *status)
{
    struct rk_device_call *d = x->device;
    struct rk_device_post *own = &rk_post_of(x, x->a->me)->device;

    for (int r = 0; r < x->a->n; r++) {
        if (rk_device_waits_for(x, r))
            return false;
    }
    *status = device_part(x, d);
    if (*status == RK_AGAIN) /* a rank is dead: the call will fail */
        *status = RANK_OK;
    else if (!*status)
        return device_go_on(x, own);
    return false;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * segments.c: build long collectives in segments, one after the other.
 *
 * Ranks do not wait for each other between segments: a rank that is ahead sends the messages of its next segment, which
 * match in order. Each element is reduced as without segments. All ranks cut at the same elements, so the cut depends on
 * the call and its algorithm only, never on a rank's buffers.
 *
 * A segment of a reduce_scatter is a part of each block. Builders that read the blocks one by one take them where they
 * are (stride); for the others the parts are packed, which also stages memory that is no host memory.
 *
 * Other calls are not cut: their algorithms for long messages need no scratch memory. Their buffers that are no host
 * memory are staged as a whole, since other ranks, which have host memory, would have to cut the call, too.
 */
#include "collectives/segments.h"
#include "collectives/average.h"
#include "collectives/coll_kind.h"
#include "lib/mem/kind.h"

enum {
    SEGMENT_BYTES = 768 << 10, /* algorithms take at most four times a segment of scratch memory: 3 MiB */
    PACKED_BYTES = 512 << 10,  /* all blocks of a segment that is packed: six times that */
    SCAN_BYTES = 8 << 20       /* builders cut this again, and take up to 2 MiB */
};

struct rk_segments {
    struct rk_coll_call call;
    const struct rk_algo *algo;
    int64_t each, next; /* elements of a segment; start of the next one */
    int64_t *counts, *displs; /* REDUCE_SCATTERV: of the blocks */
    bool packs;
};

/* -------------------------------------------------------------------------- staging */

/* With buffers that are no host memory: a first step copies what is sent, a last one copies the result back. */
static RK_COLD void build_staged(struct rk_sched *s, const struct rk_algo *algo, const struct rk_coll_call *c, size_t bytes)
{
    void *mem = rk_sched_scratch(s, bytes);
    struct rk_step *begin, *end, *step;
    struct rk_stage *stage;

    if (s->status)
        return;
    stage = rk_stage_layout(c, mem);
    rk_build_call(s, algo, &stage->host);
    s->entry = NULL;
    begin = rk_sched_call(s, NULL, rk_stage_begin, stage);
    end = rk_sched_call(s, NULL, rk_stage_end, stage);
    for (step = s->steps; begin && end && step != end; step = step->next) {
        if (step != begin && step->waits_for == 0)
            rk_sched_order(begin, step);
        rk_sched_order(step, end);
    }
}

static void build_part(struct rk_sched *s, const struct rk_algo *algo, const struct rk_coll_call *c)
{
    size_t staged = rk_unlikely(rk_device_kind) ? rk_stage_bytes(c) : 0;

    if (staged)
        build_staged(s, algo, c, staged);
    else
        rk_build_call(s, algo, c);
}

/* -------------------------------------------------------------------------- packing */

/* Of a reduction with a scattered result: the part of each block, in elements of sbuf, and the place of the result. */
struct blocks {
    int64_t *counts, *displs;
    char *result;
};

/* Parts of a segment from element first on. Returns false without memory. */
static bool find_blocks(struct rk_sched *s, const struct rk_segments *g, int64_t first, int64_t count, struct blocks *b)
{
    const struct rk_coll_call *c = &g->call;
    int size = c->team->size, me = c->team->rank;
    int64_t at;

    b->counts = rk_sched_scratch(s, 2 * (size_t)size * sizeof(*b->counts));
    b->displs = b->counts + size;
    for (int r = 0; r < size && !s->status; r++) {
        int64_t whole = g->counts ? g->counts[r] : c->count, left = whole > first ? whole - first : 0;

        b->counts[r] = left < count ? left : count;
        b->displs[r] = (g->counts ? g->displs[r] : r * c->count) + (whole < first ? whole : first);
    }
    if (s->status)
        return false;
    at = first < c->count ? first : c->count;
    if (g->counts && g->counts[me] < at)
        at = g->counts[me];
    b->result = g->counts && c->in_place ? rk_block_at(c->sbuf, b->displs[me], c->elem) : rk_block_at(c->rbuf, at, c->elem);
    return true;
}

struct pack {
    struct rk_coll_call part; /* packed */
    struct blocks of;
    const char *from;
    char *to, *result;
};

static rank_status_t pack_blocks(void *arg)
{
    const struct pack *p = arg;
    char *to = p->to;

    for (int r = 0; r < p->part.team->size; r++) {
        size_t bytes = (size_t)p->of.counts[r] * p->part.elem;
        const char *from = rk_block_at(p->from, p->of.displs[r], p->part.elem);

        rank_status_t st = bytes ? rk_kind_copy(to, NULL, from, rk_kind_of(from, bytes), bytes) : RANK_OK;

        if (st)
            return st;
        to += bytes;
    }
    return RANK_OK;
}

static rank_status_t unpack_result(void *arg)
{
    const struct pack *p = arg;
    size_t bytes = (size_t)p->of.counts[p->part.team->rank] * p->part.elem;

    return bytes ? rk_kind_copy(p->of.result, rk_kind_of(p->of.result, bytes), p->result, NULL, bytes) : RANK_OK;
}

/* In place the result lies in a part that is packed before. */
static void build_packed(struct rk_sched *s, const struct rk_segments *g, const struct rk_coll_call *part, const struct blocks *of)
{
    size_t all = 0;
    struct pack *p = rk_sched_scratch(s, sizeof(*p));
    char *to, *result = rk_sched_scratch(s, part->bytes);
    struct rk_step *begin, *end;

    for (int r = 0; r < part->team->size; r++)
        all += (size_t)of->counts[r] * part->elem;
    to = rk_sched_scratch(s, all);
    if (s->status)
        return;
    *p = (struct pack){*part, *of, g->call.sbuf, to, result};
    p->part.sbuf = to;
    p->part.rbuf = result;
    p->part.rcounts = g->counts ? of->counts : NULL;
    p->part.in_place = false;
    rk_build_call(s, g->algo, &p->part);
    s->entry = NULL;
    begin = rk_sched_call(s, NULL, pack_blocks, p);
    end = rk_sched_call(s, NULL, unpack_result, p);
    for (struct rk_step *step = s->steps; begin && end && step != end; step = step->next) {
        if (step != begin && step->waits_for == 0)
            rk_sched_order(begin, step);
        rk_sched_order(step, end);
    }
}

/*
 * In place, a reduce_scatterv collects its result in its own block, since the start of the buffer holds other blocks. The last
 * step moves it there: forwards, as the ranges may overlap.
 */
static rank_status_t move_result_down(void *arg)
{
    const struct rk_segments *g = arg;
    int me = g->call.team->rank;
    size_t left = (size_t)g->counts[me] * g->call.elem;
    char *to = g->call.rbuf, *from = rk_block_at(g->call.sbuf, g->displs[me], g->call.elem);

    for (size_t n; left; left -= n, to += n, from += n) {
        char piece[4096];
        rank_status_t st;

        n = left < sizeof(piece) ? left : sizeof(piece);
        st = rk_kind_copy(piece, NULL, from, rk_kind_of(from, n), n);
        if (!st)
            st = rk_kind_copy(to, rk_kind_of(to, n), piece, NULL, n);
        if (st)
            return st;
    }
    return RANK_OK;
}

/* ------------------------------------------------------------------------- segments */

/* A part of each block: packed, or where it is. */
static void build_blocks(struct rk_sched *s, const struct rk_segments *g, struct rk_coll_call *part, int64_t first)
{
    struct blocks of;

    if (!find_blocks(s, g, first, part->count, &of))
        return;
    if (g->packs) {
        build_packed(s, g, part, &of);
        return;
    }
    part->rbuf = of.result;
    if (g->counts) {
        part->rcounts = of.counts;
        part->rdispls = of.displs;
    } else {
        part->sbuf += (size_t)first * part->elem;
        part->stride = g->call.bytes;
    }
    rk_build_call(s, g->algo, part);
}

static bool next_segment(struct rk_sched *s)
{
    struct rk_segments *g = s->segments;
    struct rk_coll_call part = g->call;
    int64_t first = g->next;

    if (first > g->call.count)
        return false;
    if (first == g->call.count) { /* all segments are done */
        g->next++;
        if (!g->counts || !g->call.in_place)
            return false;
        rk_sched_call(s, NULL, move_result_down, g);
        return true;
    }
    part.count = g->call.count - first < g->each ? g->call.count - first : g->each;
    part.bytes = (size_t)part.count * part.elem;
    g->next += part.count;
    if (part.kind == RK_COLL_REDUCE_SCATTER || part.kind == RK_COLL_REDUCE_SCATTERV) {
        build_blocks(s, g, &part, first);
        return true;
    }
    part.sbuf += (size_t)first * part.elem;
    if (part.rbuf) /* not used beside the root of a reduce */
        part.rbuf += (size_t)first * part.elem;
    build_part(s, g->algo, &part);
    return true;
}

static bool more(struct rk_sched *s, bool again)
{
    if (again)
        s->segments->next = 0;
    rk_sched_reset(s);
    return next_segment(s);
}

/* Does the builder read the blocks where they are? The inputs of an average are scaled first. */
static bool takes_blocks(const struct rk_algo *algo, const struct rk_coll_call *c)
{
    return algo->strided && (c->op != RANK_AVG || !rk_op_scales(c->dtype));
}

/* Bytes of a block in a segment; 0: such calls are not cut. */
static size_t segment_limit(const struct rk_algo *algo, const struct rk_coll_call *c)
{
    size_t size = (size_t)c->team->size, least = c->elem > RK_CACHE_LINE ? c->elem : RK_CACHE_LINE, each;

    if (algo->needs & RK_NEEDS_CELLS)
        return 0;
    switch (c->kind) {
    case RK_COLL_REDUCE:
    case RK_COLL_ALLREDUCE:
        each = algo->segment ? algo->segment * size : SEGMENT_BYTES;
        return c->elem > each ? 0 : each;
    case RK_COLL_SCAN:
    case RK_COLL_EXSCAN:
        return SCAN_BYTES;
    case RK_COLL_REDUCE_SCATTER:
    case RK_COLL_REDUCE_SCATTERV:
        each = takes_blocks(algo, c) ? SEGMENT_BYTES : PACKED_BYTES / size;
        return each < least ? least : each;
    default:
        return 0;
    }
}

/* Does this rank need the parts of the blocks packed? */
static bool needs_packing(const struct rk_algo *algo, const struct rk_coll_call *c)
{
    return (c->kind == RK_COLL_REDUCE_SCATTER || c->kind == RK_COLL_REDUCE_SCATTERV) &&
           (!takes_blocks(algo, c) || (rk_device_kind && rk_stage_bytes(c) > 0));
}

/* The caller's array is valid during the call only. Returns false without memory. */
static bool copy_blocks_of(struct rk_sched *s, struct rk_segments *g)
{
    int size = g->call.team->size;
    int64_t at = 0;

    g->counts = rk_sched_scratch(s, 2 * (size_t)size * sizeof(*g->counts));
    g->displs = g->counts + size;
    for (int r = 0; r < size && !s->status; r++) {
        g->counts[r] = g->call.rcounts[r];
        g->displs[r] = at;
        at += g->counts[r];
    }
    return !s->status;
}

void rk_build_segments(struct rk_sched *s, const struct rk_algo *algo, const struct rk_coll_call *c)
{
    size_t limit = segment_limit(algo, c);
    struct rk_segments *g;

    if (!limit || c->bytes <= limit) {
        build_part(s, algo, c);
        return;
    }
    g = rk_sched_scratch(s, sizeof(*g));
    if (s->status)
        return;
    *g = (struct rk_segments){.call = *c, .algo = algo, .each = (int64_t)(limit / c->elem), .packs = needs_packing(algo, c)};
    if (c->kind == RK_COLL_REDUCE_SCATTERV && !copy_blocks_of(s, g))
        return;
    rk_sched_keep(s);
    s->segments = g;
    s->more = more;
    next_segment(s);
}

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
    size_t staged = rk_unlikely(rk_nkinds) ? rk_stage_bytes(c) : 0;

    if (staged)
        build_staged(s, algo, c, staged);
    else
        rk_build_call(s, algo, c);
}

/* -------------------------------------------------------------------------- packing */

/* A part of each block, from element at on. */
struct pack {
    struct rk_coll_call whole, part; /* part: packed */
    int64_t at;
    char *to, *result;
};

static rank_status_t pack_blocks(void *arg)
{
    const struct pack *p = arg;

    for (int r = 0; r < p->whole.team->size; r++) {
        const char *from = p->whole.sbuf + (size_t)r * p->whole.bytes + (size_t)p->at * p->whole.elem;

        rk_kind_copy(p->to + (size_t)r * p->part.bytes, NULL, from, rk_kind_of(from, p->part.bytes), p->part.bytes);
    }
    return RANK_OK;
}

static rank_status_t unpack_result(void *arg)
{
    const struct pack *p = arg;
    char *to = p->whole.rbuf + (size_t)p->at * p->whole.elem;

    rk_kind_copy(to, rk_kind_of(to, p->part.bytes), p->result, NULL, p->part.bytes);
    return RANK_OK;
}

/* In place the result lies in the first block's part, which is packed before. */
static void build_packed(struct rk_sched *s, const struct rk_segments *g, const struct rk_coll_call *part, int64_t at)
{
    size_t all = part->bytes * (size_t)part->team->size;
    struct pack *p = rk_sched_scratch(s, sizeof(*p));
    char *to = rk_sched_scratch(s, all), *result = rk_sched_scratch(s, part->bytes);
    struct rk_step *begin, *end;

    if (s->status)
        return;
    *p = (struct pack){g->call, *part, at, to, result};
    p->part.sbuf = to;
    p->part.rbuf = result;
    p->part.stride = 0;
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

/* ------------------------------------------------------------------------- segments */

static bool next_segment(struct rk_sched *s)
{
    struct rk_segments *g = s->segments;
    struct rk_coll_call part = g->call;
    int64_t first = g->next;
    size_t at = (size_t)first * part.elem;

    if (first == g->call.count)
        return false;
    part.count = g->call.count - first < g->each ? g->call.count - first : g->each;
    part.bytes = (size_t)part.count * part.elem;
    g->next += part.count;
    if (g->packs) {
        build_packed(s, g, &part, first);
        return true;
    }
    part.sbuf += at;
    if (part.rbuf) /* not used beside the root of a reduce */
        part.rbuf += at;
    if (part.kind == RK_COLL_REDUCE_SCATTER)
        part.stride = g->call.bytes;
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
        each = takes_blocks(algo, c) ? SEGMENT_BYTES : PACKED_BYTES / size;
        return each < least ? least : each;
    default:
        return 0;
    }
}

/* Does this rank need the parts of the blocks packed? */
static bool needs_packing(const struct rk_algo *algo, const struct rk_coll_call *c)
{
    return c->kind == RK_COLL_REDUCE_SCATTER &&
           (!takes_blocks(algo, c) || (rk_nkinds && rk_stage_bytes(c) > 0));
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
    rk_sched_keep(s);
    s->segments = g;
    s->more = more;
    next_segment(s);
}

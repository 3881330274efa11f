/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * segments.c: build long reductions in segments, one after the other.
 *
 * Ranks do not wait for each other between segments: a rank that is ahead sends the messages of its next segment, which
 * match in order. Each element is reduced as without segments.
 */
#include "collectives/segments.h"
#include "collectives/average.h"

/* Algorithms take at most four times a segment of scratch memory: 3 MiB. */
enum { SEGMENT_BYTES = 768 << 10 };

struct rk_segments {
    struct rk_coll_call call;
    const struct rk_algo *algo;
    int64_t each, next; /* elements of a segment; start of the next one */
};

static bool next_segment(struct rk_sched *s)
{
    struct rk_segments *g = s->segments;
    struct rk_coll_call part = g->call;
    size_t at = (size_t)g->next * part.elem;

    if (g->next == g->call.count)
        return false;
    part.count = g->call.count - g->next < g->each ? g->call.count - g->next : g->each;
    part.bytes = (size_t)part.count * part.elem;
    part.sbuf += at;
    if (part.rbuf) /* not used beside the root of a reduce */
        part.rbuf += at;
    g->next += part.count;
    rk_build_call(s, g->algo, &part);
    return true;
}

static bool more(struct rk_sched *s, bool again)
{
    if (again)
        s->segments->next = 0;
    rk_sched_reset(s);
    return next_segment(s);
}

void rk_build_segments(struct rk_sched *s, const struct rk_algo *algo, const struct rk_coll_call *c)
{
    size_t limit = algo->segment ? algo->segment * (size_t)c->team->size : SEGMENT_BYTES;
    struct rk_segments *g;

    if ((c->kind != RK_COLL_REDUCE && c->kind != RK_COLL_ALLREDUCE) || c->bytes <= limit || c->elem > limit ||
        (algo->needs & RK_NEEDS_CELLS)) {
        rk_build_call(s, algo, c);
        return;
    }
    g = rk_sched_scratch(s, sizeof(*g));
    if (s->status)
        return;
    *g = (struct rk_segments){.call = *c, .algo = algo, .each = (int64_t)(limit / c->elem)};
    rk_sched_keep(s);
    s->segments = g;
    s->more = more;
    next_segment(s);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reduce_scatterv.c: build schedules of reduce_scatterv. n: the longest block.
 *
 * recursive_halving  as of reduce_scatter, with parts of these lengths (Thakur,
 *                    Rabenseifner, Gropp 2005).
 * pairwise           every rank sends each block to its owner, in segments. The
 *                    operands of higher ranks come first, in order, then those of
 *                    lower ranks: two sums, so that the order is that of ranks.
 *                    Cost: (p-1)(alpha + n beta + n gamma), nothing forwarded.
 */
#include "collectives/algorithms/recursive_halving.h"

#include <string.h>

enum { SEGMENT_BYTES = 256 << 10, SLOTS = 4, SENDS = 4 /* under way */ };

/* Copy of a call with the start of each block as rdispls; a segment has them. */
static struct rk_coll_call with_displs(struct rk_sched *s, const struct rk_coll_call *c)
{
    int size = c->team->size;
    int64_t *displs, at = 0;
    struct rk_coll_call v = *c;

    if (c->rdispls)
        return v;
    v.rdispls = displs = rk_sched_scratch(s, (size_t)size * sizeof(*displs));
    for (int r = 0; r < size && !s->status; r++) {
        displs[r] = at;
        at += c->rcounts[r];
    }
    return v;
}

/* The result and the input may overlap in place. */
struct move {
    void *to;
    const void *from;
    size_t bytes;
};

static rank_status_t move_result(void *arg)
{
    const struct move *m = arg;

    if (m->bytes)
        memmove(m->to, m->from, m->bytes);
    return RANK_OK;
}

static struct rk_step *build_move(struct rk_sched *s, struct rk_step *after, void *to, const void *from, size_t bytes)
{
    struct move *m = rk_sched_scratch(s, sizeof(*m));

    *m = (struct move){to, from, bytes};
    return rk_sched_call(s, after, move_result, m);
}

/* ------------------------------------------------------------------------------- halving */

static int64_t end_of(const struct rk_coll_call *v, int r)
{
    return v->rdispls[r] + v->rcounts[r];
}

static int64_t uneven_part(const struct rk_coll_call *v, int pow2, int i)
{
    int first, n;

    if (i == pow2)
        return end_of(v, v->team->size - 1);
    rk_fold_members(i, v->team->size, &first, &n);
    return v->rdispls[first];
}

/* If the order counts: parts at the places of their vranks. with_places has set the starts. */
static int64_t uneven_placed(const struct rk_coll_call *v, int pow2, int i)
{
    (void)pow2;
    return v->sdispls[i];
}

static int64_t uneven_of_place(const struct rk_coll_call *v, int pow2, int i)
{
    return uneven_part(v, pow2, rk_place(i, pow2));
}

static void with_places(struct rk_sched *s, struct rk_coll_call *v)
{
    int pow2 = rk_pow2_floor(v->team->size);
    int64_t *at = rk_sched_scratch(s, (size_t)(pow2 + 1) * sizeof(*at));

    v->sdispls = at;
    if (s->status)
        return;
    at[0] = 0;
    for (int i = 0; i < pow2; i++) {
        int vrank = rk_place(i, pow2);

        at[i + 1] = at[i] + uneven_part(v, pow2, vrank + 1) - uneven_part(v, pow2, vrank);
    }
}

void rk_build_reduce_scatterv_halving(struct rk_sched *s, const struct rk_coll_call *c)
{
    int rank = c->team->rank;
    struct rk_coll_call v = with_displs(s, c);
    struct rk_halving_of of = {.at = c->ordered ? uneven_placed : uneven_part,
                               .from = c->ordered ? uneven_of_place : NULL,
                               .near = c->ordered};
    struct rk_fold f = rk_fold(rank, c->team->size);
    size_t bytes = (size_t)c->rcounts[rank] * c->elem;
    char *work = NULL, *mine;
    struct rk_halved h;
    struct rk_step *done;

    if (c->ordered && !s->status)
        with_places(s, &v);
    if (s->status)
        return;
    of.total = end_of(&v, c->team->size - 1);
    if (f.vrank >= 0)
        work = rk_sched_scratch(s, (size_t)of.total * c->elem);
    rk_build_halved(s, &v, &of, c->sbuf, work, &h);
    if (f.vrank < 0) {
        /* In place, the result overwrites what is sent. */
        done = rk_sched_recv(s, h.sent, f.partner, RK_HALVED_TAGS, c->rbuf, bytes);
        rk_build_finish(s, done, c, c->rbuf, c->rcounts[rank]);
        return;
    }
    mine = work + (size_t)of.at(&v, f.pow2, h.place) * c->elem;
    if (f.partner >= 0) { /* the first of the two blocks is the partner's */
        size_t first = (size_t)c->rcounts[f.partner] * c->elem;

        rk_sched_send(s, h.reduced, f.partner, RK_HALVED_TAGS, mine, first);
        mine += first;
    }
    done = rk_sched_join(s, h.reduced, h.sent);
    done = rk_sched_copy(s, done, c->rbuf, mine, bytes);
    rk_build_finish(s, done, c, c->rbuf, c->rcounts[rank]);
}

/* ------------------------------------------------------------------------------ pairwise */

/* What is under way. */
struct flow {
    char *in[SLOTS], *low;
    struct rk_step *used[SLOTS], *sent[SENDS], *low_used, *all_sent;
    int recvs, sends;
};

static struct rk_step *flow_recv(struct rk_sched *s, struct flow *f, int from, uint32_t tag, size_t bytes, char **in)
{
    int slot = f->recvs++ % SLOTS;

    *in = f->in[slot];
    return rk_sched_recv(s, f->used[slot], from, tag, *in, bytes);
}

static void flow_used(struct flow *f, struct rk_step *step)
{
    f->used[(f->recvs - 1) % SLOTS] = step;
}

static void flow_send(struct rk_sched *s, struct flow *f, int to, uint32_t tag, const char *from, size_t bytes)
{
    struct rk_step **slot = &f->sent[f->sends++ % SENDS];

    *slot = rk_sched_send(s, *slot, to, tag, from, bytes);
    rk_sched_order(*slot, f->all_sent);
}

/* Elements of segment i of a block. */
static int64_t part_of(int64_t count, int64_t segment, int64_t i)
{
    int64_t left = count - i * segment;

    return left < 0 ? 0 : left < segment ? left : segment;
}

void rk_build_reduce_scatterv_pairwise(struct rk_sched *s, const struct rk_coll_call *c)
{
    int rank = c->team->rank, size = c->team->size;
    struct rk_coll_call v = with_displs(s, c);
    int64_t most = SEGMENT_BYTES / (int64_t)c->elem, segment = c->count < most ? c->count : most ? most : 1;
    const char *own = NULL;
    struct flow f = {.recvs = 0};
    struct rk_step *done = NULL, *end;
    char *sum;

    for (int i = 0; i < SLOTS; i++)
        f.in[i] = rk_sched_scratch(s, (size_t)segment * c->elem);
    f.low = rk_sched_scratch(s, (size_t)segment * c->elem);
    f.all_sent = rk_sched_join(s, NULL, NULL);
    end = rk_sched_join(s, NULL, NULL);
    if (s->status)
        return;
    own = c->sbuf + (size_t)v.rdispls[rank] * c->elem;
    sum = c->in_place ? (char *)(uintptr_t)own : c->rbuf; /* in place the start of rbuf is another rank's block */
    for (int64_t i = 0; i * segment < c->count; i++) {
        int64_t n = part_of(c->rcounts[rank], segment, i);
        size_t at = (size_t)(i * segment) * c->elem;
        const char *high = own + at;
        struct rk_step *highs = NULL, *lows = NULL;

        for (int k = 1; k < size; k++) {
            int from = rk_ring(rank, k, size), to = rk_ring(rank, -k, size);
            int64_t out = part_of(c->rcounts[to], segment, i);
            struct rk_step *recv;
            char *in;

            if (out || !i)
                flow_send(s, &f, to, (uint32_t)i, c->sbuf + (size_t)v.rdispls[to] * c->elem + at, (size_t)out * c->elem);
            if (!n && i)
                continue;
            recv = flow_recv(s, &f, from, (uint32_t)i, (size_t)n * c->elem, &in);
            if (from > rank) {
                struct rk_step *step = rk_sched_reduce(s, recv, sum + at, high, in, (size_t)n);

                rk_sched_order(highs, step);
                highs = step;
                high = sum + at;
                flow_used(&f, highs);
            } else {
                struct rk_step *step;

                if (from == 0) {
                    step = rk_sched_copy(s, recv, f.low, in, (size_t)n * c->elem);
                    rk_sched_order(f.low_used, step);
                } else {
                    step = rk_sched_reduce(s, recv, f.low, f.low, in, (size_t)n);
                }
                rk_sched_order(lows, step);
                lows = step;
                flow_used(&f, lows);
            }
        }
        done = highs;
        if (lows) {
            done = rk_sched_reduce(s, lows, sum + at, f.low, high, (size_t)n);
            rk_sched_order(highs, done);
            f.low_used = done;
        }
        rk_sched_order(done, end);
    }
    rk_sched_order(f.all_sent, end);
    if (sum != c->rbuf)
        end = build_move(s, end, c->rbuf, sum, (size_t)c->rcounts[rank] * c->elem);
    rk_build_finish(s, end, c, c->rbuf, c->rcounts[rank]);
}

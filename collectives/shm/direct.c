/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * direct.c: move large messages straight from the other ranks' buffers (direct.h).
 *
 * Source: Katevenis et al., xhc, CLUSTER 2022 (single copy; by hierarchy there). Cost, with blocks of n bytes: one copy or
 * reduction of what the rank receives. An allreduce reduces a share of each chunk, and copies the others' shares. In a scan
 * rank r reduces r + 1 inputs.
 *
 * A reduction with a shared sum has chunks of a piece a rank. Other calls are one chunk.
 */
#include "collectives/coll_args.h"
#include "collectives/shm/direct_call.h"
#include "collectives/state.h"

enum {
    PIECE = 64 << 10,         /* of a chunk, for a rank that reduces it */
    OPERAND_BYTES = 32 << 10, /* at most, of an operand that is read by the kernel */
    ALL_OPERANDS = 512 << 10, /* at most, of all of them */
    SHORT_BYTES = 16 << 10,   /* longest block that goes through cells in any memory, if ranks agree on it */
    SHARED_SUM_RANKS = 4      /* of more ranks, all share the sum of a reduce */
};

/* ---------------------------------------------------------------------------- step */

static void direct_begin(struct rk_direct *x)
{
    x->begun = true;
    x->state = RK_DIRECT_POST;
    x->base = x->a->chunks_begun;
    x->a->chunks_begun += x->chunks;
    x->summed = x->sums ? 0 : x->chunks;
    x->copied = x->copies ? 0 : x->chunks;
    x->source = 0;
    x->moved = x->reduced = 0;
    x->status = RANK_OK;
}

/* Does the call run here, in either way? False: slices move it. */
static bool direct_decide_way(struct rk_direct *x)
{
    bool runs = rk_direct_decide(x);
    enum rk_device_way way = x->device ? rk_device_decide(x, &x->status) : RK_DEVICE_NONE;

    x->on_device = way == RK_DEVICE_RUNS;
    if (x->device && !x->on_device && x->sched->trace)
        x->sched->trace->algo = way == RK_DEVICE_HOST ? "staged" : "direct";
    return way == RK_DEVICE_NONE ? runs : x->on_device;
}

/* Has this rank's memory been read? */
static bool is_read(const struct rk_direct *x)
{
    if (rk_direct_one_reader(x))
        return x->a->me == x->root || rk_chunk_counter(x->a, x->root, RK_CHUNK_OUT) >= x->base + x->chunks;
    return (rk_direct_one_source(x) && x->a->me != x->root) || rk_direct_reached(x, RK_CHUNK_OUT, x->base + x->chunks);
}

/*
 * After the failure of its call a rank may write to its buffers while others read them. They wait for the failure then, of which
 * all learn.
 */
static bool is_abandoned(const struct rk_direct *x)
{
    atomic_thread_fence(memory_order_acquire); /* after the reads */
    for (int r = 0; r < x->a->n; r++) {
        uint64_t first = atomic_load_explicit(&x->a->chunks[r].abandoned, memory_order_relaxed);

        if (first && first <= x->sched->number) /* earlier calls go on */
            return true;
    }
    return false;
}

/* Advance. True: this rank has what it receives. A reduction on devices waits for each rank in each phase. */
static bool direct_move(struct rk_direct *x)
{
    rank_status_t st = RANK_OK;
    bool over;

    if (!x->on_device || !x->reduces)
        return rk_direct_work(x) && !is_abandoned(x);
    over = rk_device_reduce(x, &st);
    if (st)
        rk_sched_fail(x->sched, st);
    return over;
}

bool rk_direct_advance(void *direct)
{
    struct rk_direct *x = direct;
    bool runs;

    if (x->before && !rk_slices_is_too_long(x->before)) {
        rk_slices_skip(x->slices, true);
        return true;
    }
    if (!rk_sched_has_turn(x->sched, x->a->line))
        return false; /* an earlier call is under way */
    if (!x->begun)
        direct_begin(x);
    if (x->state == RK_DIRECT_POST) {
        if (rk_direct_all_post(x) || x->a->me == x->root) {
            if (!rk_direct_cell_is_free(x))
                return false;
            rk_direct_post(x);
            x->sched->all->moved++;
        }
        x->state = RK_DIRECT_MEET;
    }
    if (x->state == RK_DIRECT_MEET) {
        if (!rk_direct_have_met(x))
            return false;
        if (x->device)
            rk_device_vote(x);
        x->state = RK_DIRECT_VOTE;
    }
    if (x->state == RK_DIRECT_VOTE) {
        if (x->device && !rk_device_have_voted(x))
            return false;
        runs = direct_decide_way(x);
        rk_slices_skip(x->slices, runs);
        x->state = runs ? RK_DIRECT_WORK : RK_DIRECT_LEAVE;
        if (!runs)
            rk_direct_publish(x, RK_CHUNK_OUT, x->base + x->chunks);
    }
    if (x->state == RK_DIRECT_WORK) {
        if (!direct_move(x))
            return false;
        rk_direct_publish(x, RK_CHUNK_OUT, x->base + x->chunks);
        x->state = RK_DIRECT_LEAVE;
    }
    if (rk_slices_is_skipped(x->slices) && !is_read(x))
        return false;
    x->begun = false; /* a persistent one starts again */
    if (x->device)
        rk_device_end(x);
    if (x->status)
        rk_sched_fail(x->sched, x->status);
    return !x->status;
}

void rk_direct_describe(const void *direct, struct rk_wait_for *out)
{
    static const enum rk_chunk_phase phase[] = {RK_CHUNK_OUT, RK_CHUNK_IN, RK_CHUNK_IN, RK_CHUNK_SUM, RK_CHUNK_OUT};
    const struct rk_direct *x = direct;
    const struct rk_arena *a = x->a;
    uint64_t want = x->base + (x->state == RK_DIRECT_WORK ? x->copied + 1 : x->chunks);
    bool root_only = (x->state == RK_DIRECT_MEET && !rk_direct_all_post(x)) || (x->state == RK_DIRECT_LEAVE && rk_direct_one_reader(x));

    if (!x->begun)
        return;
    if (x->device && (x->state == RK_DIRECT_VOTE || (x->state == RK_DIRECT_WORK && x->on_device && x->reduces))) {
        rk_device_describe(x, out);
        return;
    }
    if (x->state == RK_DIRECT_WORK && !x->shares)
        return; /* it copies, and waits for no rank */
    if (x->state == RK_DIRECT_POST)
        want = a->cell_use[x->base % (size_t)a->cell_depth].number;
    for (int r = 0; r < a->n; r++) {
        bool there = x->state == RK_DIRECT_MEET ? rk_direct_has_posted(x, r) : rk_chunk_counter(x->a, r, phase[x->state]) >= want;

        if (r != a->me && (!root_only || r == x->root) && !there)
            rk_describe_peer(out, rk_arena_world_rank(a, r));
    }
}

/* --------------------------------------------------------------------------- build */

/* Lengths and places of a call with blocks of their own. */
static void set_counts(struct rk_direct *x, const struct rk_coll_call *c)
{
    size_t n = (size_t)x->a->n, me = (size_t)x->a->me, end = 0;
    const int64_t *at = c->kind == RK_COLL_ALLTOALLV || (c->kind == RK_COLL_SCATTERV && x->a->me == c->root) ? c->sdispls : NULL;

    if (c->kind == RK_COLL_REDUCE_SCATTERV) {
        for (size_t r = 0; r < n; end += (size_t)c->rcounts[r++] * c->elem) {
            if (r == me)
                x->own = (struct rk_span){end, (size_t)c->rcounts[r] * c->elem};
        }
        x->sent = end;
        return;
    }
    if (at) {
        x->given = rk_sched_scratch(x->sched, n * sizeof(x->given[0]));
        for (size_t r = 0; r < n && !x->sched->status; r++) {
            struct rk_span block = {(size_t)at[r] * c->elem, (size_t)c->scounts[r] * c->elem};

            x->given[r] = block;
            end = block.at + block.bytes > end ? block.at + block.bytes : end;
        }
        x->sent = end;
        x->own.at = (size_t)at[me] * c->elem;
    }
    if (c->rcounts && (c->kind != RK_COLL_GATHERV || x->a->me == c->root)) {
        x->blocks = rk_sched_scratch(x->sched, n * sizeof(x->blocks[0]));
        for (size_t r = 0; r < n && !x->sched->status; r++) {
            x->blocks[r] = (struct rk_span){(size_t)c->rdispls[r] * c->elem, (size_t)c->rcounts[r] * c->elem};
        }
    }
    if (c->kind == RK_COLL_ALLGATHERV)
        x->sent = (size_t)c->rcounts[me] * c->elem;
}

/* What this rank does, and what of it others read. */
static void set_part(struct rk_direct *x)
{
    const struct rk_arena *a = x->a;
    bool at_root = a->me == x->root, all_blocks = rk_coll_shape[x->kind].sbuf == RK_ALL_BLOCKS;

    x->shares = x->kind == RK_COLL_ALLREDUCE || (x->kind == RK_COLL_REDUCE && a->n > SHARED_SUM_RANKS);
    x->sums = x->reduces && (x->shares || x->kind != RK_COLL_REDUCE || at_root) && (x->kind != RK_COLL_EXSCAN || a->me > 0);
    x->copies = x->reduces ? x->shares && (x->kind == RK_COLL_ALLREDUCE || at_root) : !rk_direct_one_reader(x) || at_root;
    x->sent = rk_direct_one_source(x) ? 0 : all_blocks ? (size_t)a->n * x->bytes : x->bytes;
    if (rk_direct_one_source(x) && at_root)
        x->sent = x->kind == RK_COLL_BCAST ? x->bytes : (size_t)a->n * x->bytes;
    if (rk_direct_one_reader(x) && at_root)
        x->sent = 0;
    x->own = (struct rk_span){all_blocks ? (size_t)a->me * x->bytes : 0, x->bytes};
}

/* before: a step that may have moved the call, or NULL. device: if all ranks have device buffers, it runs there. */
static void add_direct(struct rk_sched *s, const struct rk_coll_call *c, const struct slices *before, bool device)
{
    struct rk_arena *a = c->team->coll->arena;
    struct rk_direct *x = rk_sched_scratch(s, sizeof(*x) + (size_t)a->n * sizeof(x->operands[0]));
    size_t unit = RK_CACHE_LINE % c->elem ? c->elem : RK_CACHE_LINE, operand = ALL_OPERANDS / (size_t)a->n;
    struct rk_step *step;

    if (s->status)
        return;
    *x = (struct rk_direct){.sched = s, .a = a, .before = before, .kind = c->kind, .root = c->root, .rbuf = c->rbuf, .bytes = c->bytes, .elem = c->elem,
                         .sbuf = c->kind == RK_COLL_BCAST ? c->rbuf : c->sbuf, .dtype = c->dtype, .avg = c->op == RANK_AVG,
                         .reduces = rk_coll_shape[c->kind].reduces, .piece = PIECE - PIECE % unit, .chunks = 1};
    x->device = device ? rk_device_add(s, c, a) : NULL;
    x->overlaps = c->in_place && ((rk_coll_shape[c->kind].sbuf == RK_ALL_BLOCKS && !rk_coll_shape[c->kind].root) ||
                                  c->kind == RK_COLL_SCAN || c->kind == RK_COLL_EXSCAN);
    set_part(x);
    if (rk_coll_has_counts(c->kind))
        set_counts(x, c);
    if (rk_coll_has_own_counts(c->kind) && sizeof(struct rk_post) + (size_t)a->n * sizeof(struct rk_span) > a->cell_bytes) {
        x->overlaps = true; /* no cell holds a post: not direct */
        x->given = NULL;
    }
    if (x->shares)
        x->chunks = (c->bytes + x->piece * (size_t)a->n - 1) / (x->piece * (size_t)a->n);
    if (x->shares && c->kind == RK_COLL_REDUCE && a->me != c->root)
        x->results = rk_sched_scratch(s, RK_DIRECT_RESULTS * x->piece);
    if (x->reduces) {
        operand = operand < OPERAND_BYTES ? operand : OPERAND_BYTES;
        x->operand = operand < unit ? unit : operand - operand % unit;
        x->temp = rk_sched_scratch(s, (size_t)a->n * x->operand);
    }
    rk_sched_line_up(s, 0, &c->team->coll->in_cells[0]);
    step = rk_sched_event(s, before ? rk_slices_step(before) : NULL, rk_direct_advance, x);
    rk_sched_in_line(step, a->line);
    x->slices = rk_slices_add(s, a, c, step);
}

void rk_build_direct(struct rk_sched *s, const struct rk_coll_call *c)
{
    add_direct(s, c, NULL, false);
}

void rk_build_device(struct rk_sched *s, const struct rk_coll_call *c)
{
    add_direct(s, c, NULL, true);
}

void rk_build_by_length(struct rk_sched *s, const struct rk_coll_call *c)
{
    struct slices *first = rk_slices_add(s, c->team->coll->arena, c, NULL);

    if (!first)
        return;
    rk_slices_limit(first, SHORT_BYTES);
    add_direct(s, c, first, false);
}

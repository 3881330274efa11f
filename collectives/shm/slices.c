/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slices.c: move large messages of one node through chunked cells (slices.h).
 *
 * Source: Jain et al., Framework for scalable intra-node collective operations using shared memory, SC 2018
 * (release_gather); Katevenis et al., xhc, CLUSTER 2022 (copy in, copy out). Cost, with p ranks and blocks of n
 * bytes: one copy in, and one copy or reduction of what the rank receives.
 *
 * One EVENT step runs a call, so the blocking, the nonblocking and the persistent form share it. The calls of a
 * team run one after another, in the order of their start.
 */
#include "collectives/shm/slices_call.h"
#include "collectives/coll_args.h"
#include "collectives/shm/slot.h"
#include "collectives/state.h"

enum { SHARED_SUM_RANKS = 4, SHARED_SUM_BYTES = 16 << 10 };

/* -------------------------------------------------------------------------- waits */

/* Has rank r raised the counter to want? The first chunk must be of this call: all chunks are then. */
static bool slices_has(const struct slices *x, int r, enum rk_chunk_phase phase, uint64_t want)
{
    return rk_chunk_counter(x->a, r, phase) >= want &&
           (phase != RK_CHUNK_IN || want != x->base + 1 || rk_cell_has_turn(x->a, x->sched, r, want));
}

/* Has that rank, or all others, raised the counter to want? A pass through the ranks has one want. */
static bool slices_reached(struct slices *x, int r, enum rk_chunk_phase phase, uint64_t want)
{
    struct rk_slices_seen *seen = &x->seen[phase];
    const struct rk_arena *a = x->a;
    int n = phase == RK_CHUNK_IN ? x->givers : a->n;

    if (r != RK_SLICES_ALL)
        return slices_has(x, r, phase, want);
    if (seen->least >= want)
        return true;
    for (; seen->next < n; seen->next++) {
        uint64_t v;

        if (seen->next == a->me)
            continue;
        if (!slices_has(x, seen->next, phase, want))
            return false;
        v = rk_chunk_counter(a, seen->next, phase);
        if (v < seen->lowest)
            seen->lowest = v;
    }
    *seen = (struct rk_slices_seen){seen->lowest, UINT64_MAX, 0};
    return true;
}

/* What phase p of chunk i waits for: one rank's counter or that of all, to be *want. False: nothing. */
static bool awaited(const struct slices *x, enum rk_chunk_phase p, uint64_t i, int *r, enum rk_chunk_phase *counts,
                    uint64_t *want)
{
    const struct rk_arena *a = x->a;
    const struct rk_cell_use *last = &a->cell_use[(x->base + i) & (uint64_t)(a->cell_depth - 1)];

    *r = RK_SLICES_ALL;
    *want = x->base + i + 1;
    switch (p) {
    case RK_CHUNK_IN: /* its cell is to be read to the end first */
        *counts = RK_CHUNK_OUT;
        *r = last->reader;
        *want = last->number;
        return last->number > a->left_by_all;
    case RK_CHUNK_SUM:
        *counts = RK_CHUNK_IN;
        return true;
    default:
        *counts = x->does[RK_CHUNK_SUM] ? RK_CHUNK_SUM : RK_CHUNK_IN;
        *r = x->writer;
        return !x->does[RK_CHUNK_SUM] || x->sums_for_all || a->me == x->root;
    }
}

static bool may_go_on(struct slices *x, enum rk_chunk_phase p, uint64_t i)
{
    enum rk_chunk_phase counts;
    uint64_t want;
    int r;

    if (p == RK_CHUNK_OUT && x->limit && !x->agreed)
        return false; /* in place, a later step may need the input */
    if (p == RK_CHUNK_IN && i >= x->done[RK_CHUNK_OUT] + (uint64_t)x->a->cell_depth)
        return false; /* its cell holds a sum that this rank has still to copy out */
    for (int before = 0; before < (int)p; before++) {
        if (x->done[before] <= i) /* its cell may not be free yet; in place, its input is still needed */
            return false;
    }
    return !awaited(x, p, i, &r, &counts, &want) || slices_reached(x, r, counts, want);
}

/* Publish that chunk i has passed phase p. */
static void raise_counter(const struct slices *x, enum rk_chunk_phase p, uint64_t i)
{
    const struct rk_arena *a = x->a;
    int r = p == RK_CHUNK_IN ? x->reader : p == RK_CHUNK_OUT ? x->writer : RK_SLICES_ALL;

    atomic_store_explicit(&a->chunks[a->me].count[p], x->base + i + 1, memory_order_release);
    if (r == RK_SLICES_ALL)
        rk_wake_members(a, 0, a->n);
    else
        rk_wake_member(a, r);
}

/* --------------------------------------------------------------------------- step */

static void run_phase(struct slices *x, enum rk_chunk_phase p)
{
    uint64_t i = x->done[p];

    if (p == RK_CHUNK_IN) {
        x->a->cell_use[(x->base + i) & (uint64_t)(x->a->cell_depth - 1)] = (struct rk_cell_use){x->base + i + 1, x->reader};
        rk_slices_copy_in(x, i);
        if (i == 0)
            rk_raise_turn(rk_cell_line(x->a, x->a->me, x->base + 1), rk_cell_turn(x->sched, x->base + 1));
    } else if (p == RK_CHUNK_SUM) {
        rk_slices_sum(x, i);
    } else if (!x->too_long) {
        rk_slices_copy_out(x, i);
    }
    raise_counter(x, p, i);
    x->done[p]++;
}

/* Set the number of chunks: of this call, and so of all. */
static void slices_set_chunks(struct slices *x, uint64_t chunks)
{
    x->a->chunks_begun += chunks - x->chunks;
    x->chunks = chunks;
    for (int p = 0; p < RK_CHUNK_PHASES; p++) {
        if (!x->does[p])
            x->done[p] = chunks;
    }
}

/* Announce the longest block: in one of two words, in turn. */
static void slices_announce(struct slices *x)
{
    struct rk_chunk_line *own = &x->a->chunks[x->a->me];
    uint64_t turn = x->a->announced + 1;

    x->arrived = 0;
    x->longest = x->bytes;
    atomic_store_explicit(&own->most[turn % 2], x->bytes, memory_order_relaxed);
    atomic_store_explicit(&own->announced, turn, memory_order_release);
    rk_wake_members(x->a, 0, x->a->n);
    x->sched->all->moved++;
}

/*
 * Take the chunks' numbers: the schedule has its turn, so the chunks of all earlier calls are known. A call that is to be
 * agreed on has at least one.
 */
static void slices_begin(struct slices *x)
{
    x->begun = true;
    x->base = x->a->chunks_begun;
    x->chunks = 0;
    x->agreed = !x->agrees;
    x->too_long = false;
    x->status = RANK_OK;
    for (int p = 0; p < RK_CHUNK_PHASES; p++) {
        x->done[p] = 0;
        x->seen[p] = (struct rk_slices_seen){0, UINT64_MAX, 0};
    }
    slices_set_chunks(x, x->agrees ? 1 : rk_slices_chunks(x, x->bytes));
    if (x->agrees)
        slices_announce(x);
}

/*
 * Agree on the longest block of any rank. False: not yet. No rank ends this before all have announced, so all have read the
 * word before the last one.
 */
static bool slices_agree(struct slices *x)
{
    struct rk_arena *a = x->a;
    uint64_t turn = a->announced + 1;

    for (; x->arrived < a->n; x->arrived++) {
        const struct rk_chunk_line *line = &a->chunks[x->arrived];
        uint64_t most;

        if (atomic_load_explicit(&line->announced, memory_order_acquire) < turn)
            return false;
        most = atomic_load_explicit(&line->most[turn % 2], memory_order_relaxed);
        x->longest = most > x->longest ? most : x->longest;
        if (x->kind == RK_COLL_GATHERV && x->to && x->arrived != a->me) /* that rank has no other block */
            rk_slices_compare(x, most, x->to[x->arrived].bytes);
    }
    a->announced = turn;
    x->agreed = true;
    x->too_long = x->limit && x->longest > x->limit;
    if (!x->too_long)
        slices_set_chunks(x, rk_slices_chunks(x, x->longest));
    x->sched->all->moved++;
    return true;
}

static void move_chunks(struct slices *x)
{
    bool moved = true;

    while (moved) {
        moved = false;
        for (int p = 0; p < RK_CHUNK_PHASES; p++) {
            if (x->done[p] < x->chunks && may_go_on(x, (enum rk_chunk_phase)p, x->done[p])) {
                run_phase(x, (enum rk_chunk_phase)p);
                moved = true;
                x->sched->all->moved++;
            }
        }
    }
}

bool rk_slices_advance(void *slices)
{
    struct slices *x = slices;
    bool over = true;

    if (x->skip)
        return true;
    if (!rk_sched_has_turn(x->sched, x->a->line))
        return false; /* an earlier call is under way */
    if (!x->begun)
        slices_begin(x);
    move_chunks(x);
    if (!x->agreed) {
        if (!slices_agree(x))
            return false;
        move_chunks(x);
    }
    for (int p = 0; p < RK_CHUNK_PHASES; p++)
        over = over && x->done[p] == x->chunks;
    if (!over)
        return false;
    x->begun = false; /* a persistent one starts again */
    if (x->last)
        rk_sched_leave_line(x->sched, x->a->line);
    if (rk_unlikely(x->status != RANK_OK))
        rk_sched_fail(x->sched, x->status);
    return x->status == RANK_OK;
}

void rk_slices_describe(const void *slices, struct rk_wait_for *out)
{
    static const enum rk_chunk_phase order[] = {RK_CHUNK_SUM, RK_CHUNK_OUT, RK_CHUNK_IN};
    const struct slices *x = slices;
    const struct rk_arena *a = x->a;

    if (!x->begun)
        return;
    for (int r = 0; r < a->n && !x->agreed; r++) {
        if (atomic_load_explicit(&a->chunks[r].announced, memory_order_acquire) <= a->announced)
            rk_describe_peer(out, rk_arena_world_rank(a, r));
    }
    for (int k = 0; k < RK_CHUNK_PHASES && !out->npeers; k++) {
        enum rk_chunk_phase p = order[k], counts;
        uint64_t want;
        int only;

        if (x->done[p] == x->chunks || !awaited(x, p, x->done[p], &only, &counts, &want))
            continue;
        for (int r = 0; r < (counts == RK_CHUNK_IN ? x->givers : a->n); r++) {
            if (r != a->me && (only == RK_SLICES_ALL || r == only) && !slices_has(x, r, counts, want))
                rk_describe_peer(out, rk_arena_world_rank(a, r));
        }
    }
}

/* -------------------------------------------------------------------------- build */

/* Each rank reads the inputs of the ranks below it, or all reduce a slice of all prefixes. */
static void set_scan_roles(struct slices *x)
{
    const struct rk_arena *a = x->a;
    bool last = a->me == a->n - 1;

    x->does[RK_CHUNK_SUM] = x->sums_for_all = a->n > SHARED_SUM_RANKS && x->bytes > SHARED_SUM_BYTES;
    if (!x->does[RK_CHUNK_SUM])
        x->givers = a->me;
    if (last && (x->kind == RK_COLL_EXSCAN || !x->does[RK_CHUNK_SUM]))
        x->gives = 0; /* it is in no other rank's prefix */
}

static void set_roles(struct slices *x)
{
    const struct rk_arena *a = x->a;
    bool at_root = a->me == x->root, *does = x->does;

    does[RK_CHUNK_IN] = does[RK_CHUNK_OUT] = true;
    x->reader = x->writer = RK_SLICES_ALL;
    x->givers = a->n;
    switch (x->kind) {
    case RK_COLL_BCAST:
    case RK_COLL_SCATTER:
    case RK_COLL_SCATTERV:
        does[RK_CHUNK_IN] = at_root;
        does[RK_CHUNK_OUT] = !at_root;
        x->writer = x->root;
        break;
    case RK_COLL_ALLREDUCE: /* of two, or if it is short, each reduces all itself */
        does[RK_CHUNK_SUM] = x->sums_for_all = a->n > 2 && (x->bytes > RK_SLOT_DATA || a->n > RK_FLAT_MAX);
        break;
    case RK_COLL_SCAN:
    case RK_COLL_EXSCAN:
        set_scan_roles(x);
        break;
    case RK_COLL_REDUCE:
        does[RK_CHUNK_SUM] = a->n > SHARED_SUM_RANKS && x->bytes > SHARED_SUM_BYTES;
        if (does[RK_CHUNK_SUM])
            break;
        /* fallthrough */
    case RK_COLL_GATHER:
    case RK_COLL_GATHERV:
        does[RK_CHUNK_IN] = !at_root;
        does[RK_CHUNK_OUT] = at_root;
        x->reader = x->root;
        break;
    default:
        break;
    }
}

struct slices *rk_slices_add(struct rk_sched *s, struct rk_arena *a, const struct rk_coll_call *c, struct rk_step *after)
{
    struct slices *x = rk_sched_scratch(s, sizeof(*x) + (size_t)a->n * sizeof(x->operands[0]));

    if (s->status)
        return NULL;
    *x = (struct slices){.sched = s, .a = a, .kind = c->kind, .root = c->root, .sbuf = c->sbuf, .rbuf = c->rbuf,
                         .elem = c->elem, .dtype = c->dtype, .avg = c->op == RANK_AVG,
                         .agrees = rk_coll_has_own_counts(c->kind), .reduces = rk_coll_shape[c->kind].reduces};
    if (!rk_slices_set_blocks(x, c))
        return NULL;
    set_roles(x);
    x->step = rk_sched_event(s, after, rk_slices_advance, x);
    rk_sched_in_line(x->step, a->line);
    return x;
}

void rk_slices_skip(struct slices *x, bool skip)
{
    x->skip = skip;
}

void rk_slices_set_last(struct slices *x)
{
    x->last = true;
}

bool rk_slices_is_skipped(const struct slices *x)
{
    return x->skip;
}

void rk_slices_limit(struct slices *x, size_t bytes)
{
    x->limit = bytes;
}

bool rk_slices_is_too_long(const struct slices *x)
{
    return x->too_long;
}

struct rk_step *rk_slices_step(const struct slices *x)
{
    return x->step;
}

void rk_build_slices(struct rk_sched *s, const struct rk_coll_call *c)
{
    rk_sched_line_up(s, 0, &c->team->coll->in_cells[0]);
    rk_slices_add(s, c->team->coll->arena, c, NULL);
}

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
#include "collectives/shm/slices.h"
#include "collectives/coll_args.h"
#include "collectives/shm/slot.h"
#include "collectives/state.h"

enum { ALL = -1, SHARED_SUM_RANKS = 4, SHARED_SUM_BYTES = 16 << 10 };

/* A counter of all ranks, read no more often than necessary. */
struct seen {
    uint64_t least;  /* all other ranks have reached it */
    uint64_t lowest; /* of the ranks before next, in the present pass */
    int next;
};

/* A block of an allgatherv in rbuf. */
struct own_block {
    size_t at, bytes;
};

struct slices {
    struct rk_sched *sched;
    struct rk_arena *a;
    enum rk_coll_kind kind;
    int root;
    const char *sbuf;
    char *rbuf;
    size_t bytes, elem;  /* of a block (the longest one), of an element */
    struct own_block *blocks; /* of their own lengths; NULL: equal ones, one after another */
    size_t piece;        /* bytes of a block in a chunk */
    size_t stride;       /* between the pieces for two ranks in one cell; 0: all read the same */
    rank_dtype_t dtype;
    bool reduces, avg;
    bool begun, skip;
    bool does[RK_CHUNK_PHASES]; /* this rank has that phase */
    int reader;          /* the only one of this rank's cells, or ALL */
    int writer;          /* the only rank whose cells this one reads, or ALL */
    uint64_t base;       /* number of the first chunk */
    uint64_t chunks;
    uint64_t done[RK_CHUNK_PHASES]; /* chunks of this call */
    struct seen seen[RK_CHUNK_PHASES];
    const void *operands[];
};

/* ----------------------------------------------------------------------- geometry */

/* Share of a cell for each rank. */
static size_t cell_share(size_t cell, int n)
{
    return cell / (size_t)n & ~(size_t)(RK_CACHE_LINE - 1);
}

static bool has_share_per_rank(enum rk_coll_kind kind)
{
    return rk_coll_shape[kind].sbuf == RK_ALL_BLOCKS;
}

bool rk_slices_fit(enum rk_coll_kind kind, int n, size_t elem)
{
    size_t cell = rk_arena_cell_min(n), room = has_share_per_rank(kind) ? cell_share(cell, n) : cell;

    return room > 0 && (!rk_coll_shape[kind].reduces || elem <= room);
}

static char *slices_cell(const struct slices *x, int r, uint64_t i)
{
    const struct rk_arena *a = x->a;
    size_t depth = (size_t)a->cell_depth;

    return a->cells + ((size_t)r * depth + (size_t)((x->base + i) % depth)) * a->cell_bytes;
}

/* Bytes in chunk i of a block of that many. */
static size_t piece_of_block(const struct slices *x, uint64_t i, size_t bytes)
{
    size_t at = (size_t)i * x->piece;

    return at >= bytes ? 0 : bytes - at < x->piece ? bytes - at : x->piece;
}

static size_t piece_of(const struct slices *x, uint64_t i)
{
    return piece_of_block(x, i, x->bytes);
}

static struct own_block place_of_block(const struct slices *x, int r)
{
    return x->blocks ? x->blocks[r] : (struct own_block){(size_t)r * x->bytes, x->bytes};
}

/* The slice of a chunk of len bytes that rank r reduces: bytes first to *end. */
static size_t slice_of(const struct slices *x, size_t len, int r, size_t *end)
{
    size_t n = (size_t)x->a->n, unit = RK_CACHE_LINE % x->elem ? x->elem : RK_CACHE_LINE;
    size_t each = (len + n * unit - 1) / (n * unit) * unit, first = each * (size_t)r;

    first = first < len ? first : len;
    *end = len - first < each ? len : first + each;
    return first;
}

/* ------------------------------------------------------------------------- phases */

static void move(void *to, const void *from, size_t bytes)
{
    if (bytes && to != from)
        memcpy(to, from, bytes);
}

static void copy_in(const struct slices *x, uint64_t i)
{
    size_t len = piece_of(x, i), at = (size_t)i * x->piece, first, end;
    int n = x->a->n, me = x->a->me;
    char *cell = slices_cell(x, me, i);

    if (x->stride) {
        for (int k = 1; k < n; k++) {
            int r = (me + k) % n;
            move(cell + (size_t)r * x->stride, x->sbuf + (size_t)r * x->bytes + at, len);
        }
        if (x->kind == RK_COLL_SCATTER)
            move(x->rbuf + at, x->sbuf + (size_t)me * x->bytes + at, len);
    } else if (x->does[RK_CHUNK_SUM]) { /* without the own slice */
        first = slice_of(x, len, me, &end);
        move(cell, x->sbuf + at, first);
        move(cell + end, x->sbuf + at + end, len - end);
    } else {
        len = piece_of_block(x, i, x->blocks ? x->blocks[me].bytes : x->bytes);
        if (len)
            move(cell, (x->kind == RK_COLL_BCAST ? x->rbuf : x->sbuf) + at, len);
    }
}

/* to = all ranks' bytes at offset from in their cells of chunk i, reduced; this rank's are at mine. */
static void reduce_cells(struct slices *x, uint64_t i, char *to, const char *mine, size_t from, size_t bytes)
{
    struct rk_arena *a = x->a;
    size_t count = bytes / x->elem;

    if (!count)
        return;
    for (int r = 0; r < a->n; r++)
        x->operands[r] = r == a->me ? mine : slices_cell(x, r, i) + from;
    rk_reduce_many(&x->sched->reducer, to, x->operands, a->n, count);
    if (x->avg)
        rk_op_divide(x->dtype, to, count, a->n);
}

static void reduce_slice(struct slices *x, uint64_t i)
{
    size_t len = piece_of(x, i), end, first = slice_of(x, len, x->a->me, &end);

    reduce_cells(x, i, slices_cell(x, x->a->me, i) + first, x->sbuf + (size_t)i * x->piece + first, first, end - first);
}

static void copy_slices(const struct slices *x, uint64_t i)
{
    size_t len = piece_of(x, i), at = (size_t)i * x->piece;

    for (int k = 0; k < x->a->n; k++) {
        int r = (x->a->me + k) % x->a->n;
        size_t end, first = slice_of(x, len, r, &end);

        move(x->rbuf + at + first, slices_cell(x, r, i) + first, end - first);
    }
}

/* A block of each rank. */
static void copy_blocks(const struct slices *x, uint64_t i)
{
    size_t at = (size_t)i * x->piece;
    int n = x->a->n, me = x->a->me;

    for (int k = 0; k < n; k++) {
        int r = (me + k) % n;
        struct own_block block = place_of_block(x, r);
        size_t len = piece_of_block(x, i, block.bytes);

        if (len && r == me)
            move(x->rbuf + block.at + at, x->sbuf + (x->stride ? block.at : 0) + at, len);
        else if (len)
            move(x->rbuf + block.at + at, slices_cell(x, r, i) + (size_t)me * x->stride, len);
    }
}

static void copy_out(struct slices *x, uint64_t i)
{
    size_t len = piece_of(x, i), at = (size_t)i * x->piece, mine;
    int me = x->a->me;

    if (x->reduces && x->does[RK_CHUNK_SUM]) {
        if (x->kind == RK_COLL_ALLREDUCE || me == x->root)
            copy_slices(x, i);
    } else if (x->reduces) {
        mine = x->stride ? (size_t)me * x->bytes : 0;
        reduce_cells(x, i, x->rbuf + at, x->sbuf + mine + at, (size_t)me * x->stride, len);
    } else if (x->writer != ALL) {
        move(x->rbuf + at, slices_cell(x, x->writer, i) + (size_t)me * x->stride, len);
    } else {
        copy_blocks(x, i);
    }
}

/* -------------------------------------------------------------------------- waits */

/* Has that rank, or ALL others, raised the counter to want? A pass through the ranks has one want. */
static bool slices_reached(struct slices *x, int r, enum rk_chunk_phase phase, uint64_t want)
{
    struct seen *seen = &x->seen[phase];
    const struct rk_arena *a = x->a;

    if (r != ALL)
        return rk_chunk_counter(a, r, phase) >= want;
    if (seen->least >= want)
        return true;
    for (; seen->next < a->n; seen->next++) {
        uint64_t v;

        if (seen->next == a->me)
            continue;
        v = rk_chunk_counter(a, seen->next, phase);
        if (v < want)
            return false;
        if (v < seen->lowest)
            seen->lowest = v;
    }
    *seen = (struct seen){seen->lowest, UINT64_MAX, 0};
    return true;
}

/* What phase p of chunk i waits for: this rank's or ALL's counter, to be *want. False: nothing. */
static bool awaited(const struct slices *x, enum rk_chunk_phase p, uint64_t i, int *r, enum rk_chunk_phase *counts,
                    uint64_t *want)
{
    const struct rk_arena *a = x->a;
    const struct rk_cell_use *last = &a->cell_use[(x->base + i) % (size_t)a->cell_depth];

    *r = ALL;
    *want = x->base + i + 1;
    switch (p) {
    case RK_CHUNK_IN: /* its cell is to be read to the end first */
        *counts = RK_CHUNK_OUT;
        *r = last->reader;
        *want = last->number;
        return last->number > 0;
    case RK_CHUNK_SUM:
        *counts = RK_CHUNK_IN;
        return true;
    default:
        *counts = x->does[RK_CHUNK_SUM] ? RK_CHUNK_SUM : RK_CHUNK_IN;
        *r = x->writer;
        return !x->does[RK_CHUNK_SUM] || x->kind == RK_COLL_ALLREDUCE || a->me == x->root;
    }
}

static bool may_go_on(struct slices *x, enum rk_chunk_phase p, uint64_t i)
{
    enum rk_chunk_phase counts;
    uint64_t want;
    int r;

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
    int r = p == RK_CHUNK_IN ? x->reader : p == RK_CHUNK_OUT ? x->writer : ALL;

    atomic_store_explicit(&a->chunks[a->me].count[p], x->base + i + 1, memory_order_release);
    if (r == ALL)
        rk_wake_members(a, 0, a->n);
    else
        rk_wake_member(a, r);
}

/* --------------------------------------------------------------------------- step */

static void run_phase(struct slices *x, enum rk_chunk_phase p)
{
    uint64_t i = x->done[p];

    if (p == RK_CHUNK_IN) {
        x->a->cell_use[(x->base + i) % (size_t)x->a->cell_depth] = (struct rk_cell_use){x->base + i + 1, x->reader};
        copy_in(x, i);
    } else if (p == RK_CHUNK_SUM) {
        reduce_slice(x, i);
    } else {
        copy_out(x, i);
    }
    raise_counter(x, p, i);
    x->done[p]++;
}

/* Take the chunks' numbers: when the schedule has its turn, which comes in the order of the calls' starts. */
static void slices_begin(struct slices *x)
{
    x->begun = true;
    x->base = x->a->chunks_begun;
    x->a->chunks_begun += x->chunks;
    for (int p = 0; p < RK_CHUNK_PHASES; p++) {
        x->done[p] = x->does[p] ? 0 : x->chunks;
        x->seen[p] = (struct seen){0, UINT64_MAX, 0};
    }
}

bool rk_slices_advance(void *slices)
{
    struct slices *x = slices;
    bool moved = true, over = true;

    if (x->skip)
        return true;
    if (!rk_sched_has_turn(x->sched))
        return false; /* an earlier call is under way */
    if (!x->begun)
        slices_begin(x);
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
    for (int p = 0; p < RK_CHUNK_PHASES; p++)
        over = over && x->done[p] == x->chunks;
    if (over) {
        x->a->chunks_done += x->chunks;
        x->begun = false; /* a persistent one starts again */
    }
    return over;
}

void rk_slices_describe(const void *slices, struct rk_wait_for *out)
{
    static const enum rk_chunk_phase order[] = {RK_CHUNK_SUM, RK_CHUNK_OUT, RK_CHUNK_IN};
    const struct slices *x = slices;
    const struct rk_arena *a = x->a;

    if (!x->begun)
        return;
    for (int k = 0; k < RK_CHUNK_PHASES && !out->npeers; k++) {
        enum rk_chunk_phase p = order[k], counts;
        uint64_t want;
        int only;

        if (x->done[p] == x->chunks || !awaited(x, p, x->done[p], &only, &counts, &want))
            continue;
        for (int r = 0; r < a->n; r++) {
            if (r != a->me && (only == ALL || r == only) && rk_chunk_counter(a, r, counts) < want)
                rk_describe_peer(out, rk_team_world_rank(a->team, r));
        }
    }
}

/* -------------------------------------------------------------------------- build */

static void set_roles(struct slices *x)
{
    const struct rk_arena *a = x->a;
    bool at_root = a->me == x->root, *does = x->does;

    does[RK_CHUNK_IN] = does[RK_CHUNK_OUT] = true;
    x->reader = x->writer = ALL;
    switch (x->kind) {
    case RK_COLL_BCAST:
    case RK_COLL_SCATTER:
        does[RK_CHUNK_IN] = at_root;
        does[RK_CHUNK_OUT] = !at_root;
        x->writer = x->root;
        break;
    case RK_COLL_ALLREDUCE: /* of two, each reduces all itself */
        does[RK_CHUNK_SUM] = a->n > 2;
        break;
    case RK_COLL_REDUCE:
        does[RK_CHUNK_SUM] = a->n > SHARED_SUM_RANKS && x->bytes > SHARED_SUM_BYTES;
        if (does[RK_CHUNK_SUM])
            break;
        /* fallthrough */
    case RK_COLL_GATHER:
        does[RK_CHUNK_IN] = !at_root;
        does[RK_CHUNK_OUT] = at_root;
        x->reader = x->root;
        break;
    default:
        break;
    }
}

struct slices *rk_slices_add(struct rk_sched *s, const struct rk_coll_call *c, struct rk_step *after)
{
    struct rk_arena *a = c->team->coll->arena;
    struct slices *x = rk_sched_scratch(s, sizeof(*x) + (size_t)a->n * sizeof(x->operands[0]));

    if (s->status)
        return NULL;
    *x = (struct slices){.sched = s, .a = a, .kind = c->kind, .root = c->root, .sbuf = c->sbuf, .rbuf = c->rbuf,
                         .bytes = c->bytes, .elem = c->elem, .dtype = c->dtype, .avg = c->op == RANK_AVG,
                         .reduces = rk_coll_shape[c->kind].reduces};
    if (c->kind == RK_COLL_ALLGATHERV) {
        x->blocks = rk_sched_scratch(s, (size_t)a->n * sizeof(x->blocks[0]));
        if (s->status)
            return NULL;
        for (int r = 0; r < a->n; r++)
            x->blocks[r] = (struct own_block){(size_t)c->rdispls[r] * c->elem, (size_t)c->rcounts[r] * c->elem};
    }
    x->stride = has_share_per_rank(c->kind) ? cell_share(a->cell_bytes, a->n) : 0;
    x->piece = x->stride ? x->stride : a->cell_bytes;
    if (x->reduces)
        x->piece -= x->piece % c->elem;
    x->chunks = (c->bytes + x->piece - 1) / x->piece;
    set_roles(x);
    rk_sched_line_up(s, &s->team->coll->in_cells);
    rk_sched_event(s, after, rk_slices_advance, x);
    return x;
}

void rk_slices_skip(struct slices *x, bool skip)
{
    x->skip = skip;
}

bool rk_slices_is_skipped(const struct slices *x)
{
    return x->skip;
}

void rk_build_slices(struct rk_sched *s, const struct rk_coll_call *c)
{
    rk_slices_add(s, c, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lines.c: exchange short blocks by a line of each rank (lines.h).
 *
 * Source: as the slots of small blocking calls (arena.h). Cost, with p ranks and blocks of n bytes: a line handed over, and
 * p - 1 blocks read.
 */
#include "collectives/shm/lines.h"
#include "collectives/coll_args.h"
#include "collectives/shm/slot.h"
#include "collectives/state.h"

struct lines {
    struct rk_sched *sched;
    struct rk_arena *a;
    enum rk_coll_kind kind;
    const char *sbuf;
    char *rbuf;
    size_t bytes, elem; /* of a block, of an element */
    rank_dtype_t dtype;
    bool avg;
    bool gives, gets; /* what this rank does */
    int reader;       /* the only one of this rank's line; negative: all others */
    int first, end;   /* this rank gets the blocks of these ranks, of itself too */
    bool begun, given;
    int arrived;        /* ranks below it have given */
    uint64_t number;  /* of the chunk, from 1 */
    const void *operands[];
};

static size_t cell_of(const struct rk_arena *a, int r, uint64_t number)
{
    return (size_t)r * (size_t)a->cell_depth + (size_t)((number - 1) & (uint64_t)(a->cell_depth - 1));
}

/* The block of a rank: in its line, or in its cell. */
static char *lines_block(const struct lines *x, int r)
{
    const struct rk_arena *a = x->a;

    return x->bytes <= RK_SLOT_INLINE ? (char *)rk_cell_line(a, r, x->number)->payload : a->cells + cell_of(a, r, x->number) * a->cell_bytes;
}

/* ----------------------------------------------------------------------------- give */

/* Have the readers of the chunk that was last in the cell left it? */
static bool cell_is_left(const struct lines *x, const struct rk_cell_use *last)
{
    struct rk_arena *a = x->a;

    if (last->number <= a->left_by_all)
        return true;
    if (last->reader >= 0)
        return rk_chunk_counter(a, last->reader, RK_CHUNK_OUT) >= last->number;
    for (int r = 0; r < a->n; r++) {
        if (r != a->me && rk_chunk_counter(a, r, RK_CHUNK_OUT) < last->number)
            return false;
    }
    a->left_by_all = last->number;
    return true;
}

static bool give_block(struct lines *x)
{
    struct rk_arena *a = x->a;
    struct rk_cell_use *use = &a->cell_use[(x->number - 1) & (uint64_t)(a->cell_depth - 1)];

    if (!cell_is_left(x, use))
        return false;
    *use = (struct rk_cell_use){x->number, x->reader};
    rk_copy_payload(lines_block(x, a->me), x->sbuf, x->bytes);
    rk_raise_turn(rk_cell_line(a, a->me, x->number), rk_cell_turn(x->sched, x->number));
    if (x->reader >= 0)
        rk_wake_member(a, x->reader);
    else
        rk_wake_members(a, 0, a->n);
    return true;
}

/* ------------------------------------------------------------------------------ get */

static bool has_given(const struct lines *x, int r)
{
    return rk_cell_has_turn(x->a, x->sched, r, x->number);
}

/* rbuf = the blocks of the ranks, reduced. */
static void reduce_blocks(struct lines *x)
{
    size_t count = x->bytes / x->elem;
    int n = x->end - x->first;

    for (int r = x->first; r < x->end; r++)
        x->operands[r] = r == x->a->me ? x->sbuf : lines_block(x, r);
    if (n == 1 && x->rbuf != x->operands[x->first])
        memcpy(x->rbuf, x->operands[x->first], x->bytes);
    else if (n > 1)
        rk_reduce_many(&x->sched->reducer, x->rbuf, x->operands + x->first, n, count);
    if (x->avg)
        rk_op_divide(x->dtype, x->rbuf, count, x->a->n);
}

static void copy_all(const struct lines *x)
{
    for (int r = 0; r < x->a->n; r++) {
        const char *from = r == x->a->me ? x->sbuf : lines_block(x, r);
        char *to = x->rbuf + (size_t)r * x->bytes;

        if (to != from)
            rk_copy_payload(to, from, x->bytes);
    }
}

static void take_blocks(struct lines *x)
{
    struct rk_arena *a = x->a;

    if (rk_coll_shape[x->kind].reduces)
        reduce_blocks(x);
    else if (x->kind == RK_COLL_BCAST)
        rk_copy_payload(x->rbuf, lines_block(x, x->first), x->bytes);
    else if (x->kind != RK_COLL_BARRIER)
        copy_all(x);
    if (x->end - x->first == a->n) /* all have begun this call, so all have left those before */
        a->left_by_all = x->number - 1;
    atomic_store_explicit(&a->chunks[a->me].count[RK_CHUNK_OUT], x->number, memory_order_release);
    rk_wake_members(a, 0, a->n);
}

/* ----------------------------------------------------------------------------- step */

bool rk_lines_advance(void *lines)
{
    struct lines *x = lines;

    if (!x->begun) {
        if (!rk_sched_has_turn(x->sched, x->a->line))
            return false; /* an earlier call is under way */
        x->begun = true;
        x->number = ++x->a->chunks_begun;
        x->given = !x->gives;
        x->arrived = x->first;
    }
    if (!x->given) {
        if (!give_block(x))
            return false;
        x->given = true;
        x->sched->all->moved++;
    }
    if (x->gets) {
        for (; x->arrived < x->end; x->arrived++) {
            if (x->arrived != x->a->me && !has_given(x, x->arrived))
                return false;
        }
        take_blocks(x);
    }
    x->begun = false; /* a persistent one starts again */
    return true;
}

void rk_lines_describe(const void *lines, struct rk_wait_for *out)
{
    const struct lines *x = lines;
    const struct rk_arena *a = x->a;
    uint64_t last = a->cell_use[(x->number - 1) & (uint64_t)(a->cell_depth - 1)].number;

    for (int r = 0; r < a->n && x->begun; r++) {
        bool waits = x->given ? r >= x->arrived && r < x->end && !has_given(x, r)
                              : (x->reader < 0 || r == x->reader) && rk_chunk_counter(a, r, RK_CHUNK_OUT) < last;

        if (r != a->me && waits)
            rk_describe_peer(out, rk_arena_world_rank(a, r));
    }
}

/* ---------------------------------------------------------------------------- build */

void rk_build_lines(struct rk_sched *s, const struct rk_coll_call *c)
{
    struct rk_arena *a = c->team->coll->arena;
    struct lines *x = rk_sched_scratch(s, sizeof(*x) + (size_t)a->n * sizeof(x->operands[0]));
    const struct rk_coll_shape shape = rk_coll_shape[c->kind];
    bool at_root = a->me == c->root;

    if (s->status)
        return;
    *x = (struct lines){.sched = s, .a = a, .kind = c->kind, .sbuf = c->kind == RK_COLL_BCAST ? c->rbuf : c->sbuf,
                        .rbuf = c->rbuf, .bytes = c->bytes, .elem = c->elem, .dtype = c->dtype, .avg = c->op == RANK_AVG,
                        .gives = true, .gets = true, .reader = -1, .end = a->n};
    if (c->kind == RK_COLL_BCAST) {
        x->gives = at_root;
        x->gets = !at_root;
        x->first = c->root;
        x->end = c->root + 1;
    } else if (shape.root == RK_ROOT_RECEIVES) {
        x->gives = !at_root;
        x->gets = at_root;
        x->reader = c->root;
    } else if (c->kind == RK_COLL_SCAN || c->kind == RK_COLL_EXSCAN) {
        x->gives = a->me < a->n - 1;
        x->end = c->kind == RK_COLL_SCAN ? a->me + 1 : a->me;
    }
    rk_sched_line_up(s, 0, &c->team->coll->in_cells[0]);
    rk_sched_in_line(rk_sched_event(s, NULL, rk_lines_advance, x), a->line);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slices_model.c: move chunks in every order of memory accesses.
 *
 * The code itself (collectives/shm/slices.c, lines.c). Ranks run calls one after another: a cell is overwritten only when its
 * readers have read it, a reader reads only what is there, and no rank waits for ever.
 *
 * An element has the size of a cache line; its first word stands for it. So a slice of a chunk is one element.
 */
#include "collectives/coll_args.h"
#include "collectives/state.h"
#include "lib/core/describe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODEL_REDIRECT
#include "tests/model/model.h"

enum { RANKS = 3, DEPTH = 2, CALLS = 2, CHUNKS = 3, ELEM = RK_CACHE_LINE, CELL = RANKS * ELEM, ELEMS = CHUNKS * RANKS * RANKS };

static struct {
    struct rk_chunk_line line[RANKS];
    struct {
        struct rk_slot_line lines[RANKS * DEPTH];
        char cells[RANKS * DEPTH * CELL] RK_ALIGNED_LINE;
    } data;
} memory;

static int ranks, cell_depth, cell_elems;

/* The cells as a rank has written them: parts may still be in its store buffer. And which rank was the last one. */
static char own_cells[RANKS][sizeof(memory.data)];
static int writer[sizeof(memory.data) / sizeof(uint64_t)];

/* Offset in the lines and cells; not less than their size: private memory. */
static uintptr_t cell_at(const void *p)
{
    return (uintptr_t)p - (uintptr_t)&memory.data;
}

static uint64_t word_of(const void *p)
{
    uintptr_t at = cell_at(p);
    uint64_t v;

    if (at < sizeof(memory.data) && writer[at / sizeof(uint64_t)] == model_me() + 1)
        p = own_cells[model_me()] + at;
    memmove(&v, p, sizeof(v));
    return v;
}

static void set_word(void *p, uint64_t v)
{
    uintptr_t at = cell_at(p);

    if (at < sizeof(memory.data)) {
        model_store(p, v, sizeof(v));
        writer[at / sizeof(uint64_t)] = model_me() + 1;
        p = own_cells[model_me()] + at;
    }
    memmove(p, &v, sizeof(v));
}

static void copy_lines(void *to, const void *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += ELEM)
        set_word((char *)to + i, word_of((const char *)from + i));
}

static void reduce_lines(void *to, const void *const *src, int k, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t sum = 0;

        for (int r = 0; r < k; r++)
            sum += word_of((const char *)src[r] + i * ELEM);
        set_word((char *)to + i * ELEM, sum);
    }
}

#define ARENA(room) ((struct rk_arena *)(void *)(room))

static struct process {
    _Alignas(struct rk_arena) char arena[sizeof(struct rk_arena) + RANKS * sizeof(int)]; /* it ends with an array */
    struct rk_scheds all;
    struct rk_sched sched;
    struct rank_team team;
    struct rk_coll_team coll;
    char scratch[2048] RK_ALIGNED_LINE;
    size_t used; /* of it */
    char in[ELEMS][ELEM] RK_ALIGNED_LINE, out[ELEMS][ELEM];
} process[RANKS];

static void *scratch(const struct rk_sched *s, size_t bytes)
{
    struct process *p = &process[s->team->rank];

    p->used += rk_round_up(bytes, RK_CACHE_LINE);
    return p->scratch + p->used - rk_round_up(bytes, RK_CACHE_LINE);
}

static struct rk_step *no_step(const struct rk_sched *s, const struct rk_step *after)
{
    (void)s, (void)after;
    return NULL;
}

#undef memcpy
#define memcpy(to, from, n) copy_lines(to, from, n)
#define rk_reduce_many(reducer, to, src, k, n) reduce_lines(to, src, k, n)
#define rk_reduce(reducer, to, a, b, n) reduce_lines(to, (const void *const[]){a, b}, 2, n)
#define rk_op_divide(dtype, to, n, by) ((void)(n))
#define rk_node_wake(node, r) ((void)(r))
#define rk_arena_cell_min(n) ((size_t)CELL)
#define rk_sched_scratch(s, bytes) scratch(s, bytes)
#define rk_sched_event(s, after, event, arg) no_step(s, after)
#define rk_sched_fail(s, status) ((void)(status))
#define rk_describe_peer(out, rank) ((void)(out), (void)(rank))
#include "collectives/shm/slices.c"
#include "collectives/shm/slices_copy.c"
#include "collectives/shm/lines.c"

static struct call {
    enum rk_coll_kind kind;
    int root, chunks;
    bool sum;          /* a scan as that of many ranks, an allreduce of a long block */
    size_t lines;      /* bytes of a block that goes by lines; 0: by slices */
    int uneven[RANKS]; /* chunks of each rank's block, for blocks of their own lengths */
} calls[CALLS];
static enum { NOTHING, NO_WAIT_FOR_READERS, ONE_READER, NUMBERS_AGAIN, NO_SUM, LOWER_INPUTS, OWN_LENGTH } fault;

/* Element i that rank r gives in a call. */
static uint64_t given(int call, int r, int i)
{
    return (uint64_t)(call + 1) << 40 | (uint64_t)(r + 1) << 32 | (uint64_t)(i + 1) << (8 * r);
}

/* Element i of the result. */
static uint64_t result(int call, int me, int i, int block)
{
    const struct call *c = &calls[call];
    uint64_t sum = 0;

    switch (c->kind) {
    case RK_COLL_BCAST:
        return given(call, c->root, i);
    case RK_COLL_SCATTER:
        return given(call, c->root, me * block + i);
    case RK_COLL_ALLTOALL:
        return given(call, i / block, me * block + i % block);
    case RK_COLL_GATHER:
    case RK_COLL_GATHERV:
    case RK_COLL_ALLGATHER:
        return given(call, i / block, i % block);
    default:
        for (int r = 0; r < (c->kind == RK_COLL_SCAN ? me + 1 : c->kind == RK_COLL_EXSCAN ? me : ranks); r++)
            sum += given(call, r, (c->kind == RK_COLL_REDUCE_SCATTER ? me * block : 0) + i);
        return sum;
    }
}

/* Check all that has been copied out. */
static void check_out(const struct process *p, const struct slices *x, int call, int me)
{
    const struct rk_coll_shape shape = rk_coll_shape[x->kind];
    bool uneven = x->kind == RK_COLL_GATHERV, all = shape.rbuf == RK_ALL_BLOCKS || uneven;
    int block = (int)(x->bytes / ELEM), each = (int)(x->piece / ELEM);
    int ready = x->does[RK_CHUNK_OUT] ? (int)x->done[RK_CHUNK_OUT] * each : 0;

    if (shape.root == RK_ROOT_RECEIVES && me != x->root)
        return;
    for (int b = 0; b < (all ? ranks : 1); b++) {
        for (int i = 0; i < (uneven ? calls[call].uneven[b] * each : block) && i < ready; i++) {
            uint64_t got = *(const uint64_t *)(const void *)p->out[b * block + i];

            model_expect(got == result(call, me, b * block + i, block), "a wrong element");
        }
    }
}

static uint64_t seen_hash(const struct slices *x)
{
    uint64_t h = (uint64_t)x->begun << 16 | (uint64_t)x->agreed << 8 | (uint64_t)x->arrived;

    h = h << 16 | x->chunks;
    for (int k = 0; k < RK_CHUNK_PHASES; k++)
        h = (h * 1000003 ^ x->seen[k].least) * 1000003 ^ x->seen[k].lowest ^ (uint64_t)x->seen[k].next << 20;
    return h;
}

static void run_call(struct process *p, int me, int call)
{
    struct slices *x = (struct slices *)(void *)p->scratch;
    const struct rk_coll_shape shape = rk_coll_shape[calls[call].kind];
    /* Elements that fill the chunks. */
    int block = calls[call].chunks * (shape.sbuf == RK_ALL_BLOCKS ? 1 : cell_elems);
    struct rk_coll_call c = {.kind = calls[call].kind, .team = &p->team, .sbuf = p->in[0], .rbuf = p->out[0],
                             .elem = ELEM, .bytes = (size_t)block * ELEM, .root = calls[call].root};
    int64_t counts[RANKS], displs[RANKS];
    int longest = 0;

    for (int r = 0; r < ranks && c.kind == RK_COLL_GATHERV; r++)
        longest = calls[call].uneven[r] > longest ? calls[call].uneven[r] : longest;
    for (int r = 0; r < ranks; r++) {
        counts[r] = calls[call].uneven[r] * cell_elems;
        displs[r] = r * longest * cell_elems;
    }
    if (c.kind == RK_COLL_GATHERV) {
        c.bytes = (size_t)counts[me] * ELEM;
        c.rcounts = counts;
        c.rdispls = displs;
    }

    if (fault == NUMBERS_AGAIN && call > 0) {
        ARENA(p->arena)->chunks_begun = 0;
        memset(ARENA(p->arena)->cell_use, 0, sizeof(ARENA(p->arena)->cell_use));
    }
    for (int i = 0; i < ELEMS; i++) {
        set_word(p->in[i], given(call, me, i));
        set_word(p->out[i], c.kind == RK_COLL_BCAST && me == c.root ? given(call, me, i) : 0);
    }
    p->used = 0;
    rk_build_slices(&p->sched, &c);
    if (calls[call].sum && (c.kind == RK_COLL_SCAN || c.kind == RK_COLL_EXSCAN || c.kind == RK_COLL_ALLREDUCE)) {
        x->does[RK_CHUNK_SUM] = x->sums_for_all = true;
        x->givers = ranks;
        x->gives = x->bytes;
    }
    if (fault == LOWER_INPUTS)
        x->givers = me;
    if (fault == ONE_READER)
        x->reader = (me + 1) % ranks;
    if (fault == NO_SUM && me == 0)
        x->does[RK_CHUNK_SUM] = false;
    for (bool over = false; !over;) {
        uint64_t moved = p->all.moved;

        model_here((uint64_t)call << 48 | x->begun << 24 | x->done[0] << 16 | x->done[1] << 8 | x->done[2], seen_hash(x), 0);
        model_look();
        if (fault == OWN_LENGTH && x->begun)
            x->arrived = ranks;
        over = rk_slices_advance(x);
        check_out(p, x, call, me);
        model_expect(!x->status, "a wrong length");
        if (fault == NO_WAIT_FOR_READERS)
            memset(ARENA(p->arena)->cell_use, 0, sizeof(ARENA(p->arena)->cell_use));
        if (!over && p->all.moved == moved)
            model_block();
    }
}

/* A call of one element by lines. */
static void run_lines(struct process *p, int me, int call)
{
    struct lines *x = (struct lines *)(void *)p->scratch;
    size_t bytes = calls[call].lines;
    struct rk_coll_call c = {.kind = calls[call].kind, .team = &p->team, .sbuf = p->in[0], .rbuf = p->out[0],
                             .elem = bytes, .bytes = bytes, .root = calls[call].root};
    bool has_result = rk_coll_shape[c.kind].root != RK_ROOT_RECEIVES || me == c.root;

    set_word(p->in[0], given(call, me, 0));
    set_word(p->out[0], c.kind == RK_COLL_BCAST && me == c.root ? given(call, me, 0) : 0);
    p->used = 0;
    rk_build_lines(&p->sched, &c);
    for (bool over = false; !over;) {
        uint64_t moved = p->all.moved;

        model_here((uint64_t)call << 48 | 1 << 25 | x->begun << 24 | x->given << 16 | x->arrived, ARENA(p->arena)->left_by_all, 0);
        model_look();
        if (fault == NO_WAIT_FOR_READERS)
            ARENA(p->arena)->left_by_all = UINT64_MAX;
        over = rk_lines_advance(x);
        if (!over && p->all.moved == moved)
            model_block();
    }
    if (has_result)
        model_expect(word_of(p->out[0]) == result(call, me, 0, 1), "a wrong element");
}

static void one(int which)
{
    for (int call = 0; call < CALLS; call++) {
        if (calls[call].lines)
            run_lines(&process[which], which, call);
        else
            run_call(&process[which], which, call);
    }
}

static void begin(void)
{
    memset(&memory, 0, sizeof(memory));
    memset(process, 0, sizeof(process));
    memset(writer, 0, sizeof(writer));
    for (int i = 0; i < ranks; i++) {
        struct process *p = &process[i];
        struct rk_arena *a = ARENA(p->arena);

        a->n = ranks;
        a->me = i;
        a->chunks = memory.line;
        a->cells = memory.data.cells;
        a->lines = memory.data.lines;
        a->cell_bytes = (size_t)cell_elems * ELEM;
        a->cell_depth = cell_depth;
        p->coll.arena = a;
        p->team.rank = i;
        p->team.size = ranks;
        p->team.coll = &p->coll;
        p->sched.all = &p->all;
        p->sched.team = &p->team;
    }
}

#define CALL(what, at, ...) {.kind = RK_COLL_##what, .root = at, __VA_ARGS__}

int main(void)
{
    static const struct {
        const char *name;
        int ranks, depth, elems, switches;
        struct call calls[CALLS];
    } cases[] = {
        {"slices: two sums of two ranks", 2, 2, 1, 0, {CALL(ALLREDUCE, 0, .chunks = 2), CALL(ALLREDUCE, 0, .chunks = 1)}},
        {"slices: bcast, and from the other", 2, 2, 1, 0, {CALL(BCAST, 0, .chunks = 3), CALL(BCAST, 1, .chunks = 2)}},
        {"slices: gather, then scatter", 2, 2, 2, 0, {CALL(GATHER, 1, .chunks = 3), CALL(SCATTER, 0, .chunks = 1)}},
        {"slices: alltoall, then reduce_scatter", 2, 1, 2, 0, {CALL(ALLTOALL, 0, .chunks = 2), CALL(REDUCE_SCATTER, 0, .chunks = 1)}},
        {"slices: reduce, then allgather", 2, 2, 1, 0, {CALL(REDUCE, 1, .chunks = 3), CALL(ALLGATHER, 0, .chunks = 1)}},
        {"slices: sums of three, each by a slice", 3, 1, 3, 1, {CALL(ALLREDUCE, 0, .chunks = 1, .sum = true), CALL(BCAST, 2, .chunks = 1)}},
        {"slices: gather to one of three, then bcast", 3, 1, 1, 2, {CALL(GATHER, 0, .chunks = 2), CALL(BCAST, 1, .chunks = 1)}},
        {"slices: scan, then exscan", 2, 1, 1, 0, {CALL(SCAN, 0, .chunks = 3), CALL(EXSCAN, 0, .chunks = 2)}},
        {"slices: scan and exscan by slices", 2, 1, 2, 0, {CALL(SCAN, 0, .chunks = 2, .sum = true), CALL(EXSCAN, 0, .chunks = 1, .sum = true)}},
        {"slices: scan of three, each by a slice", 3, 1, 3, 1, {CALL(SCAN, 0, .chunks = 1, .sum = true), CALL(BCAST, 2, .chunks = 1)}},
        {"slices: blocks of unknown lengths", 2, 2, 1, 0,
         {CALL(GATHERV, 0, .uneven = {0, 3}), CALL(GATHERV, 1, .uneven = {2, 1})}},
        {"slices: blocks of unknown lengths, of three", 3, 1, 1, 1,
         {CALL(GATHERV, 0, .uneven = {1, 0, 2}), CALL(BCAST, 2, .chunks = 0)}},
        {"lines: sum, then bcast", 2, 1, 1, 0, {CALL(ALLREDUCE, 0, .lines = 8), CALL(BCAST, 1, .lines = 8)}},
        {"lines: blocks in cells", 2, 2, 1, 0, {CALL(ALLREDUCE, 0, .lines = ELEM), CALL(REDUCE, 1, .lines = ELEM)}},
        {"lines: reduce to one of three, then scan", 3, 1, 1, 2, {CALL(REDUCE, 1, .lines = 8), CALL(SCAN, 0, .lines = 8)}},
        {"lines, then slices", 2, 2, 1, 0, {CALL(BCAST, 0, .lines = 8), CALL(ALLREDUCE, 0, .chunks = 2)}},
        {"slices, then lines", 2, 2, 1, 0, {CALL(BCAST, 1, .chunks = 3), CALL(ALLREDUCE, 0, .lines = ELEM)}},
        {"slices: bcast after unknown lengths", 2, 1, 1, 0, {CALL(GATHERV, 0, .uneven = {1, 2}), CALL(BCAST, 0, .chunks = 2)}},
    };
    static const struct {
        const char *name;
        int fault, ranks;
        enum rk_coll_kind kind;
        size_t lines;
    } broken[] = {
        {"slices: no wait for readers", NO_WAIT_FOR_READERS, 2, RK_COLL_BCAST, 0},
        {"lines: no wait for readers", NO_WAIT_FOR_READERS, 3, RK_COLL_BCAST, 8},
        {"slices: a wait for one of two readers", ONE_READER, 3, RK_COLL_BCAST, 0},
        {"slices: chunks that are numbered anew", NUMBERS_AGAIN, 2, RK_COLL_BCAST, 0},
        {"slices: one rank does not reduce its slice", NO_SUM, 3, RK_COLL_ALLREDUCE, 0},
        {"slices: prefixes without the inputs of higher ranks", LOWER_INPUTS, 3, RK_COLL_SCAN, 0},
        {"slices: chunks by the own length", OWN_LENGTH, 2, RK_COLL_GATHERV, 0},
    };
    struct model m = {.thread = one, .begin = begin, .memory = &memory, .bytes = sizeof(memory)};
    int failed = 0;

    for (size_t i = 0; i < RK_ARRAY_LEN(cases); i++) {
        m.name = cases[i].name;
        m.threads = ranks = cases[i].ranks;
        m.switches = cases[i].switches;
        cell_depth = cases[i].depth;
        cell_elems = cases[i].elems;
        memmove(calls, cases[i].calls, sizeof(calls));
        failed += model_check(&m, false);
    }
    for (size_t i = 0; i < RK_ARRAY_LEN(broken); i++) {
        m.name = broken[i].name;
        m.threads = ranks = broken[i].ranks;
        m.switches = ranks == 3 ? 1 : 0;
        cell_depth = ranks == 3 ? 1 : 2;
        cell_elems = broken[i].kind == RK_COLL_BCAST ? 1 : ranks;
        fault = broken[i].fault;
        calls[0] = calls[1] = (struct call){broken[i].kind, 0, CHUNKS, true, broken[i].lines, {2, 1}};
        failed += model_check(&m, true);
    }
    return failed != 0;
}

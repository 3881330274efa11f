/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * direct.c: move large messages straight from the other ranks' buffers (direct.h).
 *
 * Source: Katevenis et al., xhc, CLUSTER 2022 (single copy, by hierarchy there). Cost, with p ranks and blocks of n bytes: one copy or
 * reduction of what the rank receives. An allreduce reduces a share of each chunk, and copies the others' shares.
 *
 * A reduction whose sum is shared has chunks of a piece a rank. Other calls are one chunk.
 */
#include "collectives/shm/direct.h"
#include "collectives/coll_args.h"
#include "collectives/shm/peer_memory.h"
#include "collectives/shm/slices.h"
#include "collectives/shm/slot.h"
#include "collectives/state.h"
#include "lib/base/conf.h"

enum {
    PIECE = 64 << 10,          /* of a chunk, for a rank that reduces it */
    RESULTS = 4,               /* pieces of a reduce that wait for the root */
    TURN_BYTES = 1 << 20,      /* moved in a turn, so that progress goes on */
    OPERAND_BYTES = 32 << 10,  /* at most, of an operand that is read by the kernel */
    ALL_OPERANDS = 512 << 10,  /* at most, of all of them */
    SHARED_SUM_RANKS = 4,      /* of more ranks, all share the sum of a reduce */
    PRIVATE_FROM = 512 << 10   /* shorter private blocks go faster through cells: a system call costs more than a second copy */
};

enum state { POST, MEET, WORK, LEAVE };

/* Bytes of a buffer. */
struct span {
    size_t at, bytes;
};

/* A rank's cell during the call. */
struct post {
    struct rk_place sbuf, result;
    bool reads_all; /* this rank can read the memory of all members */
    bool overlaps;  /* its result lies where others read its input */
    size_t sent;    /* bytes of sbuf */
    size_t longest; /* bytes of a block */
    struct span block[]; /* in sbuf, for each rank, if others do not know it */
};

struct direct {
    struct rk_sched *sched;
    struct rk_arena *a;
    struct slices *slices;     /* what moves the call otherwise */
    enum rk_coll_kind kind;
    int root;
    bool reduces, avg;
    bool shares;               /* each rank reduces a slice of each chunk for all */
    bool sums, copies;         /* what this rank does */
    bool overlaps;
    const char *sbuf;
    char *rbuf;
    size_t bytes, elem, piece; /* of a block, of an element, of a rank's slice of a chunk */
    size_t sent;               /* bytes of sbuf that others read */
    size_t longest;            /* bytes of a block that this rank has */
    struct span own;           /* in sbuf, what this rank reduces or copies from itself */
    struct span *blocks;       /* of rbuf, if they have lengths of their own; NULL: equal ones */
    struct span *given;        /* of sbuf, to each rank, if others do not know it; else NULL */
    rank_status_t status;      /* of the lengths of blocks that came */
    rank_dtype_t dtype;
    char *results;             /* [RESULTS] pieces: this rank's part of the sum of a reduce */
    char *temp;                /* operands of operand bytes that are read by the kernel */
    size_t operand;
    enum state state;
    bool begun;
    uint64_t base, chunks;     /* numbers of this call: of the first chunk, and how many */
    uint64_t summed, copied;   /* chunks */
    int source;                /* of the present chunk: how many ranks have been copied from */
    size_t moved;              /* bytes of the present copy */
    size_t reduced;            /* and of the present sum */
    const void *operands[];
};

/* --------------------------------------------------------------------------- posts */

static struct post *post_of(const struct direct *x, int r)
{
    const struct rk_arena *a = x->a;
    size_t depth = (size_t)a->cell_depth;

    return (struct post *)(void *)(a->cells + ((size_t)r * depth + (size_t)(x->base % depth)) * a->cell_bytes);
}

static bool all_reached(const struct direct *x, enum rk_chunk_phase phase, uint64_t want)
{
    for (int r = 0; r < x->a->n; r++) {
        if (r != x->a->me && rk_chunk_counter(x->a, r, phase) < want)
            return false;
    }
    return true;
}

static void publish_counter(const struct direct *x, enum rk_chunk_phase phase, uint64_t to)
{
    atomic_store_explicit(&x->a->chunks[x->a->me].count[phase], to, memory_order_release);
    rk_wake_members(x->a, 0, x->a->n);
}

/* Only the root's memory is read. */
static bool has_one_source(const struct direct *x)
{
    return x->kind == RK_COLL_BCAST || x->kind == RK_COLL_SCATTER || x->kind == RK_COLL_SCATTERV;
}

/* Only the root reads. */
static bool has_one_reader(const struct direct *x)
{
    return x->kind == RK_COLL_GATHER || x->kind == RK_COLL_GATHERV || (x->kind == RK_COLL_REDUCE && !x->shares);
}

/*
 * All post in a team's first call, to find out if they can read each other, and where ranks do not know the lengths of
 * all blocks.
 */
static bool all_post(const struct direct *x)
{
    return x->a->reads == RK_READS_UNKNOWN || !has_one_source(x) || x->kind == RK_COLL_SCATTERV;
}

/* Have the readers of the own cell left it? */
static bool cell_is_free(const struct direct *x)
{
    const struct rk_cell_use *last = &x->a->cell_use[x->base % (size_t)x->a->cell_depth];

    if (last->number && last->reader >= 0)
        return rk_chunk_counter(x->a, last->reader, RK_CHUNK_OUT) >= last->number;
    return all_reached(x, RK_CHUNK_OUT, last->number);
}

static void post(const struct direct *x)
{
    struct rk_arena *a = x->a;
    struct post *p = post_of(x, a->me);

    p->sbuf = rk_place_of(a, x->sbuf, x->sent);
    p->result = rk_place_of(a, x->results ? x->results : x->rbuf, x->results ? RESULTS * x->piece : x->shares ? x->bytes : 0);
    p->overlaps = x->overlaps;
    p->sent = x->sent;
    p->longest = x->longest;
    p->reads_all = a->reads == RK_READS_UNKNOWN ? rk_peers_readable(a) : a->reads == RK_READS_ALL;
    if (x->given)
        memcpy(p->block, x->given, (size_t)a->n * sizeof(p->block[0]));
    a->cell_use[x->base % (size_t)a->cell_depth] = (struct rk_cell_use){x->base + x->chunks, -1};
    publish_counter(x, RK_CHUNK_IN, x->base + x->chunks);
}

static bool have_met(const struct direct *x)
{
    uint64_t want = x->base + x->chunks;

    if (all_post(x))
        return all_reached(x, RK_CHUNK_IN, want);
    return x->a->me == x->root || rk_chunk_counter(x->a, x->root, RK_CHUNK_IN) >= want;
}

/* Is the memory that others read mapped? From posts that all ranks have seen. */
static bool is_mapped(const struct direct *x)
{
    for (int r = 0; r < x->a->n; r++) {
        const struct post *p = post_of(x, r);

        if (has_one_source(x) && r != x->root)
            continue;
        if (rk_place_is_private(&p->sbuf) || (x->kind == RK_COLL_ALLREDUCE && rk_place_is_private(&p->result)))
            return false;
    }
    return true;
}

/* Does the call run so? The same on all ranks. */
static bool is_direct(const struct direct *x)
{
    struct rk_arena *a = x->a;
    bool all = all_post(x);
    size_t longest = x->longest;

    if (a->reads == RK_READS_UNKNOWN) {
        a->reads = RK_READS_ALL;
        for (int r = 0; r < a->n; r++) {
            if (!post_of(x, r)->reads_all)
                a->reads = RK_READS_SOME;
        }
    }
    for (int r = 0; r < a->n && all; r++) {
        if (post_of(x, r)->overlaps)
            return false;
        if (post_of(x, r)->longest > longest)
            longest = post_of(x, r)->longest;
    }
    if (a->reads != RK_READS_ALL)
        return false;
    return rk_conf.large == RK_CONF_LARGE_CMA || rk_conf.large == RK_CONF_LARGE_XPMEM ||
           (rk_conf.large == RK_CONF_LARGE_AUTO && longest >= PRIVATE_FROM) || is_mapped(x);
}

/* ------------------------------------------------------------------------ geometry */

/* The slice of chunk i that rank r reduces. */
static struct span shared_part(const struct direct *x, uint64_t i, int r)
{
    size_t n = (size_t)x->a->n, unit = RK_CACHE_LINE % x->elem ? x->elem : RK_CACHE_LINE, at = (size_t)i * x->piece * n;
    size_t len = x->bytes - at < x->piece * n ? x->bytes - at : x->piece * n;
    size_t each = (len + n * unit - 1) / (n * unit) * unit, first = each * (size_t)r;

    first = first < len ? first : len;
    return (struct span){at + first, len - first < each ? len - first : each};
}

/* What this rank reduces of chunk i: in sbuf of all, and its place. */
static struct span input_of(const struct direct *x, uint64_t i, char **to)
{
    struct span s = x->own;

    *to = x->rbuf;
    if (x->shares) {
        s = shared_part(x, i, x->a->me);
        *to = x->results ? x->results + i % RESULTS * x->piece : x->rbuf + s.at;
    }
    return s;
}

/* What this rank copies of chunk i from rank r: of its sbuf, or of its result. */
static struct span copy_of(const struct direct *x, uint64_t i, int r, char **to)
{
    struct span s = {0, x->bytes};
    bool own = r == x->a->me;

    *to = x->rbuf;
    if (x->shares) {
        s = shared_part(x, i, r);
        *to += s.at;
        if (x->kind == RK_COLL_REDUCE)
            s.at = i % RESULTS * x->piece;
        if (own)
            s.bytes = 0; /* it is there */
        return s;
    }
    if (has_one_source(x) && r != x->root)
        return (struct span){0, 0};
    if (!has_one_source(x)) {
        struct span block = x->blocks ? x->blocks[r] : (struct span){(size_t)r * x->bytes, x->bytes};

        *to += block.at;
        s.bytes = block.bytes;
    }
    if (x->kind == RK_COLL_BCAST && own)
        s.bytes = 0;
    else if (own)
        s.at = x->own.at;
    else if (x->kind == RK_COLL_ALLTOALLV || x->kind == RK_COLL_SCATTERV)
        s.at = post_of(x, r)->block[x->a->me].at;
    else if (rk_coll_shape[x->kind].sbuf == RK_ALL_BLOCKS)
        s.at = (size_t)x->a->me * x->bytes;
    return s;
}

/* The sender may have passed another length than this rank expects of it: the call then fails at its end. */
static void check_length(struct direct *x, int r, struct span *s)
{
    const struct post *p = post_of(x, r);
    size_t sent;

    if (!rk_coll_has_own_counts(x->kind) || r == x->a->me || (x->kind == RK_COLL_SCATTERV && r != x->root))
        return;
    sent = x->kind == RK_COLL_GATHERV ? p->sent : p->block[x->a->me].bytes;
    if (sent == s->bytes)
        return;
    x->status = sent > s->bytes ? RANK_ERR_TRUNCATED : RANK_ERR_COLLECTIVE;
    s->bytes = sent < s->bytes ? sent : s->bytes;
}

/* ---------------------------------------------------------------------------- work */

/* May the sum of the next chunk be taken? A part for the root has a place in a ring. */
static bool may_sum(const struct direct *x)
{
    return !x->results || x->summed < RESULTS || rk_chunk_counter(x->a, x->root, RK_CHUNK_OUT) > x->base + x->summed - RESULTS;
}

/* Reduce a piece of the present sum. Adds the bytes to *moved. */
static rank_status_t sum_piece(struct direct *x, size_t *moved)
{
    struct rk_arena *a = x->a;
    char *to;
    struct span s = input_of(x, x->summed, &to);
    size_t len = s.bytes - x->reduced < x->operand ? s.bytes - x->reduced : x->operand, from = s.at + x->reduced;
    rank_status_t st = RANK_OK;

    for (int r = 0; r < a->n && len && !st; r++) {
        const struct rk_place *place = &post_of(x, r)->sbuf;
        char *temp = x->temp + (size_t)r * x->operand;

        x->operands[r] = r == a->me ? x->sbuf + from : rk_peer_mapped(a, place, from, len);
        if (!x->operands[r]) {
            st = rk_peer_read(a, r, place, from, temp, len);
            x->operands[r] = temp;
        }
    }
    if (st)
        return st;
    if (len) {
        to += x->reduced;
        rk_reduce_many(&x->sched->reducer, to, x->operands, a->n, len / x->elem);
        if (x->avg)
            rk_op_divide(x->dtype, to, len / x->elem, a->n);
    }
    *moved += len * (size_t)a->n;
    x->reduced += len;
    if (x->reduced == s.bytes) {
        x->reduced = 0;
        x->summed++;
        if (x->shares)
            publish_counter(x, RK_CHUNK_SUM, x->base + x->summed);
    }
    return RANK_OK;
}

/* The next rank to copy from. */
static int next_source(const struct direct *x)
{
    return (x->a->me + x->source) % x->a->n;
}

static bool may_copy(const struct direct *x)
{
    int r = next_source(x);

    /* The own part must be there, too: after the copy of a chunk the others' inputs of it are not needed. */
    if (x->shares && r == x->a->me)
        return x->summed > x->copied;
    return !x->shares || rk_chunk_counter(x->a, r, RK_CHUNK_SUM) > x->base + x->copied;
}

/* Copy a piece from that rank. Adds the bytes to *moved. */
static rank_status_t copy_piece(struct direct *x, size_t *moved)
{
    int r = next_source(x);
    char *to;
    struct span s = copy_of(x, x->copied, r, &to);
    const struct post *p = post_of(x, r);
    size_t len, from = s.at + x->moved;
    rank_status_t st;

    check_length(x, r, &s);
    len = s.bytes - x->moved < TURN_BYTES ? s.bytes - x->moved : TURN_BYTES;
    to += x->moved;
    if (len && r != x->a->me) {
        st = rk_peer_read(x->a, r, x->shares ? &p->result : &p->sbuf, from, to, len);
        if (st)
            return st;
    } else if (len && to != x->sbuf + from) {
        memcpy(to, x->sbuf + from, len);
    }
    *moved += len;
    x->moved += len;
    if (x->moved < s.bytes)
        return RANK_OK;
    x->moved = 0;
    if (++x->source == x->a->n) {
        x->source = 0;
        x->copied++;
        if (x->kind == RK_COLL_REDUCE) /* its place in the rings is free */
            publish_counter(x, RK_CHUNK_OUT, x->base + x->copied);
    }
    return RANK_OK;
}

/* Move what can be moved, at most TURN_BYTES. Returns false if it is not all. */
static bool work(struct direct *x)
{
    size_t moved = 0;
    rank_status_t st = RANK_OK;

    while (!st && moved < TURN_BYTES && (x->summed < x->chunks || x->copied < x->chunks)) {
        if (x->copied < x->chunks && may_copy(x))
            st = copy_piece(x, &moved);
        else if (x->summed < x->chunks && may_sum(x))
            st = sum_piece(x, &moved);
        else
            break;
        x->sched->all->moved++;
    }
    if (st)
        rk_sched_fail(x->sched, st);
    return !st && x->summed == x->chunks && x->copied == x->chunks;
}

/* ---------------------------------------------------------------------------- step */

static void direct_begin(struct direct *x)
{
    x->begun = true;
    x->state = POST;
    x->base = x->a->chunks_begun;
    x->a->chunks_begun += x->chunks;
    x->summed = x->sums ? 0 : x->chunks;
    x->copied = x->copies ? 0 : x->chunks;
    x->source = 0;
    x->moved = x->reduced = 0;
    x->status = RANK_OK;
}

/* Has this rank's memory been read? */
static bool is_read(const struct direct *x)
{
    if (has_one_reader(x))
        return x->a->me == x->root || rk_chunk_counter(x->a, x->root, RK_CHUNK_OUT) >= x->base + x->chunks;
    return (has_one_source(x) && x->a->me != x->root) || all_reached(x, RK_CHUNK_OUT, x->base + x->chunks);
}

bool rk_direct_advance(void *direct)
{
    struct direct *x = direct;
    bool runs;

    if (!rk_sched_has_turn(x->sched))
        return false; /* an earlier call is under way */
    if (!x->begun)
        direct_begin(x);
    if (x->state == POST) {
        if (all_post(x) || x->a->me == x->root) {
            if (!cell_is_free(x))
                return false;
            post(x);
            x->sched->all->moved++;
        }
        x->state = MEET;
    }
    if (x->state == MEET) {
        if (!have_met(x))
            return false;
        runs = is_direct(x);
        rk_slices_skip(x->slices, runs);
        x->state = runs ? WORK : LEAVE;
        if (!runs)
            publish_counter(x, RK_CHUNK_OUT, x->base + x->chunks);
    }
    if (x->state == WORK) {
        if (!work(x))
            return false;
        publish_counter(x, RK_CHUNK_OUT, x->base + x->chunks);
        x->state = LEAVE;
    }
    if (rk_slices_is_skipped(x->slices) && !is_read(x))
        return false;
    x->begun = false; /* a persistent one starts again */
    if (x->status)
        rk_sched_fail(x->sched, x->status);
    return !x->status;
}

void rk_direct_describe(const void *direct, struct rk_wait_for *out)
{
    static const enum rk_chunk_phase phase[] = {RK_CHUNK_OUT, RK_CHUNK_IN, RK_CHUNK_SUM, RK_CHUNK_OUT};
    const struct direct *x = direct;
    const struct rk_arena *a = x->a;
    uint64_t want = x->base + (x->state == WORK ? x->copied + 1 : x->chunks);
    bool root_only = (x->state == MEET && !all_post(x)) || (x->state == LEAVE && has_one_reader(x));

    if (!x->begun)
        return;
    if (x->state == POST)
        want = a->cell_use[x->base % (size_t)a->cell_depth].number;
    for (int r = 0; r < a->n; r++) {
        if (r != a->me && (!root_only || r == x->root) && rk_chunk_counter(x->a, r, phase[x->state]) < want)
            rk_describe_peer(out, rk_team_world_rank(a->team, r));
    }
}

/* --------------------------------------------------------------------------- build */

/* Lengths and places of a call with blocks of their own. */
static void set_counts(struct direct *x, const struct rk_coll_call *c)
{
    size_t n = (size_t)x->a->n, me = (size_t)x->a->me, end = 0;
    const int64_t *at = c->kind == RK_COLL_ALLTOALLV || (c->kind == RK_COLL_SCATTERV && x->a->me == c->root) ? c->sdispls : NULL;

    if (c->kind == RK_COLL_REDUCE_SCATTERV) {
        for (size_t r = 0; r < n; end += (size_t)c->rcounts[r++] * c->elem) {
            if (r == me)
                x->own = (struct span){end, (size_t)c->rcounts[r] * c->elem};
        }
        x->sent = end;
        return;
    }
    if (at) {
        x->given = rk_sched_scratch(x->sched, n * sizeof(x->given[0]));
        for (size_t r = 0; r < n && !x->sched->status; r++) {
            struct span block = {(size_t)at[r] * c->elem, (size_t)c->scounts[r] * c->elem};

            x->given[r] = block;
            end = block.at + block.bytes > end ? block.at + block.bytes : end;
            x->longest = block.bytes > x->longest ? block.bytes : x->longest;
        }
        x->sent = end;
        x->own.at = (size_t)at[me] * c->elem;
    }
    if (c->rcounts && (c->kind != RK_COLL_GATHERV || x->a->me == c->root)) {
        x->blocks = rk_sched_scratch(x->sched, n * sizeof(x->blocks[0]));
        for (size_t r = 0; r < n && !x->sched->status; r++) {
            x->blocks[r] = (struct span){(size_t)c->rdispls[r] * c->elem, (size_t)c->rcounts[r] * c->elem};
            x->longest = x->blocks[r].bytes > x->longest ? x->blocks[r].bytes : x->longest;
        }
    }
    if (c->kind == RK_COLL_ALLGATHERV)
        x->sent = (size_t)c->rcounts[me] * c->elem;
}

/* What this rank does, and what of it others read. */
static void set_part(struct direct *x)
{
    const struct rk_arena *a = x->a;
    bool at_root = a->me == x->root, all_blocks = rk_coll_shape[x->kind].sbuf == RK_ALL_BLOCKS;

    x->shares = x->kind == RK_COLL_ALLREDUCE || (x->kind == RK_COLL_REDUCE && a->n > SHARED_SUM_RANKS);
    x->sums = x->reduces && (x->shares || x->kind != RK_COLL_REDUCE || at_root);
    x->copies = x->reduces ? x->shares && (x->kind == RK_COLL_ALLREDUCE || at_root) : !has_one_reader(x) || at_root;
    x->sent = has_one_source(x) ? 0 : all_blocks ? (size_t)a->n * x->bytes : x->bytes;
    if (has_one_source(x) && at_root)
        x->sent = x->kind == RK_COLL_BCAST ? x->bytes : (size_t)a->n * x->bytes;
    if (has_one_reader(x) && at_root)
        x->sent = 0;
    x->own = (struct span){all_blocks ? (size_t)a->me * x->bytes : 0, x->bytes};
}

void rk_build_direct(struct rk_sched *s, const struct rk_coll_call *c)
{
    struct rk_arena *a = c->team->coll->arena;
    struct direct *x = rk_sched_scratch(s, sizeof(*x) + (size_t)a->n * sizeof(x->operands[0]));
    size_t unit = RK_CACHE_LINE % c->elem ? c->elem : RK_CACHE_LINE, operand = ALL_OPERANDS / (size_t)a->n;
    struct rk_step *step;

    if (s->status)
        return;
    *x = (struct direct){.sched = s, .a = a, .kind = c->kind, .root = c->root, .rbuf = c->rbuf, .bytes = c->bytes, .elem = c->elem,
                         .sbuf = c->kind == RK_COLL_BCAST ? c->rbuf : c->sbuf, .dtype = c->dtype, .avg = c->op == RANK_AVG,
                         .reduces = rk_coll_shape[c->kind].reduces, .piece = PIECE - PIECE % unit, .longest = c->bytes, .chunks = 1};
    x->overlaps = c->in_place && rk_coll_shape[c->kind].sbuf == RK_ALL_BLOCKS && !rk_coll_shape[c->kind].root;
    set_part(x);
    if (rk_coll_has_counts(c->kind))
        set_counts(x, c);
    if (rk_coll_has_own_counts(c->kind) && sizeof(struct post) + (size_t)a->n * sizeof(struct span) > a->cell_bytes) {
        x->overlaps = true; /* no cell holds a post: not direct */
        x->given = NULL;
    }
    if (x->shares)
        x->chunks = (c->bytes + x->piece * (size_t)a->n - 1) / (x->piece * (size_t)a->n);
    if (x->shares && c->kind == RK_COLL_REDUCE && a->me != c->root)
        x->results = rk_sched_scratch(s, RESULTS * x->piece);
    if (x->reduces) {
        operand = operand < OPERAND_BYTES ? operand : OPERAND_BYTES;
        x->operand = operand < unit ? unit : operand - operand % unit;
        x->temp = rk_sched_scratch(s, (size_t)a->n * x->operand);
    }
    step = rk_sched_event(s, NULL, rk_direct_advance, x);
    x->slices = rk_slices_add(s, c, step);
}

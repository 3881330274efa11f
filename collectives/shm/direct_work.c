/* SPDX-License-Identifier: BSD-3-Clause */
/* direct_work.c: reduce and copy from the other ranks' buffers. */
#include "collectives/coll_args.h"
#include "collectives/shm/direct_call.h"
#include "collectives/state.h"

enum {
    TURN_BYTES = 1 << 20,       /* moved in a turn, so that progress goes on */
    DEVICE_TURN_BYTES = 64 << 20 /* the same by a device */
};

/* ------------------------------------------------------------------------ geometry */

/* The slice of chunk i that rank r reduces. */
static struct rk_span shared_part(const struct rk_direct *x, uint64_t i, int r)
{
    size_t n = (size_t)x->a->n, unit = RK_CACHE_LINE % x->elem ? x->elem : RK_CACHE_LINE, at = (size_t)i * x->piece * n;
    size_t len = x->bytes - at < x->piece * n ? x->bytes - at : x->piece * n;
    size_t each = (len + n * unit - 1) / (n * unit) * unit, first = each * (size_t)r;

    first = first < len ? first : len;
    return (struct rk_span){at + first, len - first < each ? len - first : each};
}

/* An empty block may lie in no buffer. */
static char *place_at(char *buf, size_t at)
{
    return buf ? buf + at : NULL;
}

/* What this rank reduces of chunk i: in sbuf of all, and its place. */
static struct rk_span input_of(const struct rk_direct *x, uint64_t i, char **to)
{
    struct rk_span s = x->own;

    *to = x->rbuf;
    if (x->shares) {
        s = shared_part(x, i, x->a->me);
        *to = x->results ? x->results + i % RK_DIRECT_RESULTS * x->piece : place_at(x->rbuf, s.at);
    }
    return s;
}

/* What this rank copies of chunk i from rank r: of its sbuf, or of its result. */
static struct rk_span copy_of(const struct rk_direct *x, uint64_t i, int r, char **to)
{
    struct rk_span s = {0, x->bytes};
    bool own = r == x->a->me;

    *to = x->rbuf;
    if (x->shares) {
        s = shared_part(x, i, r);
        *to = place_at(x->rbuf, s.at);
        if (x->kind == RK_COLL_REDUCE)
            s.at = i % RK_DIRECT_RESULTS * x->piece;
        if (own)
            s.bytes = 0; /* it is there */
        return s;
    }
    if (rk_direct_one_source(x) && r != x->root)
        return (struct rk_span){0, 0};
    if (!rk_direct_one_source(x)) {
        struct rk_span block = x->blocks ? x->blocks[r] : (struct rk_span){(size_t)r * x->bytes, x->bytes};

        *to = place_at(x->rbuf, block.at);
        s.bytes = block.bytes;
    }
    if (x->kind == RK_COLL_BCAST && own)
        s.bytes = 0;
    else if (own)
        s.at = x->own.at;
    else if (x->kind == RK_COLL_ALLTOALLV || x->kind == RK_COLL_SCATTERV)
        s.at = rk_post_of(x, r)->block[x->a->me].at;
    else if (rk_coll_shape[x->kind].sbuf == RK_ALL_BLOCKS)
        s.at = (size_t)x->a->me * x->bytes;
    return s;
}

/* The sender may have passed another length than this rank expects of it: the call then fails at its end. */
static void compare_length(struct rk_direct *x, int r, struct rk_span *s)
{
    const struct rk_post *p = rk_post_of(x, r);
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
static bool may_sum(const struct rk_direct *x)
{
    return !x->results || x->summed < RK_DIRECT_RESULTS || rk_chunk_counter(x->a, x->root, RK_CHUNK_OUT) > x->base + x->summed - RK_DIRECT_RESULTS;
}

/* Inputs in this rank's sum: those of the lowest ranks. */
static int inputs_of(const struct rk_direct *x)
{
    return x->kind == RK_COLL_SCAN ? x->a->me + 1 : x->kind == RK_COLL_EXSCAN ? x->a->me : x->a->n;
}

/* Reduce a piece of the present sum. Adds the bytes to *moved. */
static rank_status_t sum_piece(struct rk_direct *x, size_t *moved)
{
    struct rk_arena *a = x->a;
    int n = inputs_of(x);
    char *to;
    struct rk_span s = input_of(x, x->summed, &to);
    size_t len = s.bytes - x->reduced < x->operand ? s.bytes - x->reduced : x->operand, from = s.at + x->reduced;
    rank_status_t st = RANK_OK;

    for (int r = 0; r < n && len && !st; r++) {
        const struct rk_place *place = &rk_post_of(x, r)->sbuf;
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
        if (n == 1)
            memcpy(to, x->operands[0], len);
        else
            rk_reduce_many(&x->sched->reducer, to, x->operands, n, len / x->elem);
        if (x->avg)
            rk_op_divide(x->dtype, to, len / x->elem, n);
    }
    *moved += len * (size_t)n;
    x->reduced += len;
    if (x->reduced == s.bytes) {
        x->reduced = 0;
        x->summed++;
        if (x->shares)
            rk_direct_publish(x, RK_CHUNK_SUM, x->base + x->summed);
    }
    return RANK_OK;
}

/* The next rank to copy from. */
static int next_source(const struct rk_direct *x)
{
    return (x->a->me + x->source) % x->a->n;
}

static bool may_copy(const struct rk_direct *x)
{
    int r = next_source(x);

    /* The own part must be there, too: after the copy of a chunk the others' inputs of it are not needed. */
    if (x->shares && r == x->a->me)
        return x->summed > x->copied;
    return !x->shares || rk_chunk_counter(x->a, r, RK_CHUNK_SUM) > x->base + x->copied;
}

/* Copy a piece from that rank. Adds the bytes to *moved. */
static rank_status_t copy_piece(struct rk_direct *x, size_t *moved)
{
    int r = next_source(x);
    char *to;
    struct rk_span s = copy_of(x, x->copied, r, &to);
    const struct rk_post *p = rk_post_of(x, r);
    size_t len, from = s.at + x->moved, turn = x->on_device ? DEVICE_TURN_BYTES : TURN_BYTES;
    rank_status_t st = RANK_OK;

    compare_length(x, r, &s);
    len = s.bytes - x->moved < turn ? s.bytes - x->moved : turn;
    to = place_at(to, x->moved);
    if (len && r != x->a->me && x->on_device)
        st = rk_device_read(x, r, from, to, len);
    else if (len && r != x->a->me)
        st = rk_peer_read(x->a, r, x->shares ? &p->result : &p->sbuf, from, to, len);
    else if (len && to != x->sbuf + from && x->on_device)
        st = rk_kind_copy(to, x->device->kind, x->sbuf + from, x->device->kind, len);
    else if (len && to != x->sbuf + from)
        memcpy(to, x->sbuf + from, len);
    if (st)
        return st;
    *moved += len;
    x->moved += len;
    if (x->moved < s.bytes)
        return RANK_OK;
    x->moved = 0;
    if (++x->source == x->a->n) {
        x->source = 0;
        x->copied++;
        if (x->kind == RK_COLL_REDUCE) /* its place in the rings is free */
            rk_direct_publish(x, RK_CHUNK_OUT, x->base + x->copied);
    }
    return RANK_OK;
}

bool rk_direct_work(struct rk_direct *x)
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
    if (st && st != RK_AGAIN)
        rk_sched_fail(x->sched, st);
    return !st && x->summed == x->chunks && x->copied == x->chunks;
}

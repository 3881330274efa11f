/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alltoall.c: build schedules of alltoall. n: bytes of a block.
 *
 * bruck     Bruck et al. 1997: block i (by distance) travels the bits of i; in
 *           round k all blocks with bit k set move 2^k ranks further.
 *           Cost: ceil(log2 p) (alpha + p/2 n beta), and copies.
 * pairwise  p - 1 exchanges between pairs, a few at a time.
 *           Cost: (p-1)(alpha + n beta).
 */
#include "collectives/algo.h"
#include "collectives/pattern.h"

#include <string.h>

/* ------------------------------------------------------------------------- bruck */

struct bruck {
    struct rk_coll_call call; /* a copy: the caller's does not last */
    int rank, size;
    char *block; /* [size] by distance from this rank */
};

struct bruck_round {
    struct bruck *b;
    int round;
    char *buf; /* sent or received data */
};

static rank_status_t bruck_rotate_in(void *arg)
{
    const struct bruck *b = arg;
    size_t n = b->call.bytes, head = (size_t)(b->size - b->rank) * n;

    memcpy(b->block, b->call.sbuf + (size_t)b->rank * n, head);
    memcpy(b->block + head, b->call.sbuf, (size_t)b->rank * n);
    return RANK_OK;
}

static rank_status_t bruck_pack(void *arg)
{
    const struct bruck_round *r = arg;
    size_t n = r->b->call.bytes;
    char *at = r->buf;

    for (int i = 1; i < r->b->size; i++) {
        if (rk_bruck_moves(i, r->round)) {
            memcpy(at, r->b->block + (size_t)i * n, n);
            at += n;
        }
    }
    return RANK_OK;
}

static rank_status_t bruck_unpack(void *arg)
{
    const struct bruck_round *r = arg;
    size_t n = r->b->call.bytes;
    const char *at = r->buf;

    for (int i = 1; i < r->b->size; i++) {
        if (rk_bruck_moves(i, r->round)) {
            memcpy(r->b->block + (size_t)i * n, at, n);
            at += n;
        }
    }
    return RANK_OK;
}

/* Block i has come from the rank i places before this one. */
static rank_status_t bruck_rotate_out(void *arg)
{
    const struct bruck *b = arg;
    size_t n = b->call.bytes;

    for (int i = 0; i < b->size; i++)
        memcpy(b->call.rbuf + (size_t)rk_ring(b->rank, -i, b->size) * n,
               b->block + (size_t)i * n, n);
    return RANK_OK;
}

static struct bruck_round *bruck_round(struct rk_sched *s, struct bruck *b, int round, size_t bytes)
{
    struct bruck_round *r = rk_sched_scratch(s, sizeof(*r));

    *r = (struct bruck_round){b, round, rk_sched_scratch(s, bytes)};
    return r;
}

void rk_build_alltoall_bruck(struct rk_sched *s, const struct rk_coll_call *c)
{
    int rank = c->team->rank, size = c->team->size;
    struct bruck *b = rk_sched_scratch(s, sizeof(*b));
    struct rk_step *done;

    if (s->status)
        return;
    *b = (struct bruck){*c, rank, size, rk_sched_scratch(s, (size_t)size * c->bytes)};
    done = rk_sched_call(s, NULL, bruck_rotate_in, b);
    for (int k = 0; 1 << k < size; k++) {
        struct bruck_round *out, *in;
        struct rk_step *recv, *pack;
        size_t bytes = 0;

        for (int i = 1; i < size; i++)
            bytes += rk_bruck_moves(i, k) ? c->bytes : 0;
        out = bruck_round(s, b, k, bytes);
        in = bruck_round(s, b, k, bytes);
        recv = rk_sched_recv(s, NULL, rk_ring(rank, -(1 << k), size), (uint32_t)k, in->buf, bytes);
        pack = rk_sched_call(s, done, bruck_pack, out);
        rk_sched_send(s, pack, rk_ring(rank, 1 << k, size), (uint32_t)k, out->buf, bytes);
        done = rk_sched_call(s, pack, bruck_unpack, in);
        rk_sched_order(recv, done);
    }
    rk_sched_call(s, done, bruck_rotate_out, b);
}

/* ---------------------------------------------------------------------- pairwise */

enum { COPIED_BYTES = 1 << 20 }; /* of all blocks in place */

/* Concurrent exchanges: all if small, few if large. */
static int window(const struct rk_coll_call *c)
{
    return c->bytes <= 4096 ? 64 : c->bytes <= 65536 ? 8 : 2;
}

/* Long blocks in place: pairs exchange segments, so that no copy of all blocks is needed. */
static void alltoall_in_place(struct rk_sched *s, const struct rk_coll_call *c)
{
    int size = c->team->size;
    int64_t *counts = rk_sched_scratch(s, 2 * (size_t)size * sizeof(*counts)), *displs = counts + size;
    struct rk_coll_call v = *c;

    if (s->status)
        return;
    for (int r = 0; r < size; r++) {
        counts[r] = c->count;
        displs[r] = c->count * r;
    }
    v.rcounts = v.scounts = counts;
    v.rdispls = v.sdispls = displs;
    rk_build_alltoallv_pairwise(s, &v);
}

void rk_build_alltoall_pairwise(struct rk_sched *s, const struct rk_coll_call *c)
{
    int rank = c->team->rank, size = c->team->size, w = window(c);
    struct rk_step *copied = NULL;
    struct rk_step **recvs = rk_sched_scratch(s, (size_t)size * sizeof(*recvs));
    struct rk_step **sends = rk_sched_scratch(s, (size_t)size * sizeof(*sends));
    const char *from = c->sbuf;

    if (s->status)
        return;
    if (c->in_place && c->bytes > COPIED_BYTES / (size_t)size) {
        alltoall_in_place(s, c);
        return;
    }
    if (c->in_place) {
        char *copy = rk_sched_scratch(s, (size_t)size * c->bytes);
        copied = rk_sched_copy(s, NULL, copy, c->rbuf, (size_t)size * c->bytes);
        from = copy;
    } else {
        rk_sched_copy(s, NULL, c->rbuf + (size_t)rank * c->bytes, from + (size_t)rank * c->bytes,
                      c->bytes);
    }
    for (int k = 1; k < size; k++) {
        int dest, source;

        rk_pairwise(rank, size, k, &dest, &source);
        recvs[k] = rk_sched_recv(s, k > w ? recvs[k - w] : copied, source, 0,
                                 c->rbuf + (size_t)source * c->bytes, c->bytes);
        sends[k] = rk_sched_send(s, k > w ? sends[k - w] : copied, dest, 0,
                                 from + (size_t)dest * c->bytes, c->bytes);
    }
}

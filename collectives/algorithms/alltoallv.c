/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alltoallv.c: build schedules of alltoallv.
 *
 * pairwise  p - 1 exchanges between pairs, a window of them at a time (Thakur,
 *           Rabenseifner, Gropp 2005). Ranks may have windows of different
 *           sizes: each has the exchanges in the same order, so the first one
 *           that is not done can always go on. An empty block is a message
 *           too: its receiver may expect data, and must not wait for ever.
 *           In place, each pair exchanges segments through a few buffers.
 *           Cost: (p-1) alpha + sum of n beta.
 */
#include "collectives/algo.h"
#include "collectives/pattern.h"

enum {
    WINDOW_MAX = 32,
    WINDOW_BYTES = 256 << 10, /* of the mean exchange of a window */
    SEGMENT_BYTES = 256 << 10,
    SLOTS = 8 /* segments under way in place */
};

static size_t sent_bytes(const struct rk_coll_call *c, int r)
{
    return (size_t)c->scounts[r] * c->elem;
}

static size_t received_bytes(const struct rk_coll_call *c, int r)
{
    return (size_t)c->rcounts[r] * c->elem;
}

/* Concurrent exchanges: many if they are short. */
static int window_of(const struct rk_coll_call *c)
{
    int size = c->team->size;
    size_t total = 0, mean;

    for (int r = 0; r < size; r++)
        total += sent_bytes(c, r) / 2 + received_bytes(c, r) / 2;
    mean = total / (size_t)size;
    return mean * WINDOW_MAX <= WINDOW_BYTES ? WINDOW_MAX : mean * 2 >= WINDOW_BYTES ? 2 : (int)(WINDOW_BYTES / mean);
}

/*
 * Exchange with each rank in turn, in place. In round k a rank meets rank k - rank, which meets it in that round, so that both
 * have the same data to exchange, and in the same order.
 */
static void exchange_in_place(struct rk_sched *s, const struct rk_coll_call *c)
{
    int rank = c->team->rank, size = c->team->size, slot = 0;
    size_t segment = SEGMENT_BYTES / c->elem * c->elem, longest = 0;
    struct rk_step *sent[SLOTS] = {NULL};
    char *out[SLOTS];

    segment = segment ? segment : c->elem;
    for (int r = 0; r < size; r++)
        longest = r != rank && received_bytes(c, r) > longest ? received_bytes(c, r) : longest;
    for (int i = 0; i < SLOTS; i++)
        out[i] = rk_sched_scratch(s, longest < segment ? longest : segment);
    for (int k = 0; k < size; k++) {
        int peer = (k - rank + size) % size;
        size_t left = received_bytes(c, peer), at = 0;
        uint32_t tag = 0;
        char *block = rk_block_at(c->rbuf, c->rdispls[peer], c->elem);

        if (peer == rank)
            continue;
        do {
            size_t n = left < segment ? left : segment;
            char *part = at ? block + at : block; /* NULL if it is empty and there is no buffer */
            struct rk_step *copied = rk_sched_copy(s, sent[slot], out[slot], part, n);

            rk_sched_recv(s, copied, peer, tag, part, n);
            sent[slot] = rk_sched_send(s, copied, peer, tag++, out[slot], n);
            slot = (slot + 1) % SLOTS;
            left -= n;
            at += n;
        } while (left);
    }
}

void rk_build_alltoallv_pairwise(struct rk_sched *s, const struct rk_coll_call *c)
{
    int rank = c->team->rank, size = c->team->size, w = window_of(c);
    struct rk_step *recvs[WINDOW_MAX] = {NULL}, *sends[WINDOW_MAX] = {NULL};

    if (c->in_place) {
        exchange_in_place(s, c);
        return;
    }
    for (int k = 1; k < size; k++) {
        int dest, source;

        rk_pairwise(rank, size, k, &dest, &source);
        recvs[k % w] = rk_sched_recv(s, recvs[k % w], source, 0, rk_block_at(c->rbuf, c->rdispls[source], c->elem),
                                     received_bytes(c, source));
        sends[k % w] = rk_sched_send(s, sends[k % w], dest, 0, rk_block_at(c->sbuf, c->sdispls[dest], c->elem),
                                     sent_bytes(c, dest));
    }
    rk_sched_copy(s, NULL, rk_block_at(c->rbuf, c->rdispls[rank], c->elem), rk_block_at(c->sbuf, c->sdispls[rank], c->elem),
                  received_bytes(c, rank));
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scan.c: build schedules of scan and exscan.
 *
 * Operands are combined in the order of ranks, so that the operation need not be
 * commutative. Long messages are cut into segments, so that scratch memory is small.
 *
 * recursive_doubling  Hillis, Steele, "Data parallel algorithms", CACM 29(12), 1986:
 *                     in round k a rank sends what it has to the rank 2^k above.
 *                     Cost: ceil(log2 p) (alpha + n (beta + gamma)).
 * chain               prefixes travel from rank to rank (Sanders, Traeff, "Parallel
 *                     prefix (scan) algorithms for MPI", EuroPVM/MPI 2006): k segments.
 *                     Cost: (p - 2 + k) (alpha + n/k (beta + gamma)).
 */
#include "collectives/algo.h"
#include "collectives/pattern.h"

enum {
    DOUBLING_BYTES = 256 << 10, /* of a segment */
    CHAIN_BYTES = 64 << 10,
    DOUBLING_SETS = 2,          /* segments under way */
    CHAIN_SLOTS = 4,
    CHAIN_SENDS = 8,            /* under way */
    ROUND_TAGS = 32             /* rounds of any int of ranks */
};

/* Elements of a segment. */
static int64_t segment_of(const struct rk_coll_call *c, int64_t bytes)
{
    int64_t n = bytes / (int64_t)c->elem;

    n = n ? n : 1;
    return n < c->count ? n : c->count;
}

/* ---------------------------------------------------------------------- recursive_doubling */

/* Scratch memory of a segment, and its last step. */
struct scan_set {
    char *sum[2], *in[2];
    uint32_t tag; /* of the first round */
    struct rk_step *done;
};

/* n elements at byte `at`. after: the set is free. */
static void double_segment(struct rk_sched *s, const struct rk_coll_call *c, struct scan_set *set, size_t at, int64_t n)
{
    int rank = c->team->rank, size = c->team->size;
    bool exclusive = c->kind == RK_COLL_EXSCAN;
    size_t bytes = (size_t)n * c->elem;
    const char *have = c->sbuf + at; /* the sum of the ranks that this one covers */
    char *result = c->rbuf ? c->rbuf + at : NULL;
    struct rk_step *ready = set->done, *used[2] = {set->done, set->done}, *sent = NULL, *last = NULL, *got = NULL;
    struct rk_step *end = rk_sched_join(s, set->done, NULL);

    for (int k = 0; 1 << k < size; k++) {
        int above = rank + (1 << k), below = rank - (1 << k);
        bool sends_later = rank + (2 << k) < size, receives_later = rank - (2 << k) >= 0;
        char *in = set->in[k % 2], *sum = set->sum[k % 2];
        struct rk_step *recv, *send = NULL, *step;

        if (above < size) {
            send = rk_sched_send(s, ready, above, set->tag + (uint32_t)k, have, bytes);
            rk_sched_order(send, end);
        }
        if (below < 0) {
            sent = send;
            continue;
        }
        recv = rk_sched_recv(s, used[k % 2], below, set->tag + (uint32_t)k, in, bytes);
        used[k % 2] = rk_sched_join(s, recv, NULL);
        if (!exclusive && !receives_later)
            sum = result;
        step = recv;
        if (!exclusive || sends_later) { /* over what was sent in the round before, or in place in this one */
            step = rk_sched_reduce(s, recv, sum, in, have, (size_t)n);
            rk_sched_order(ready, step);
            rk_sched_order(sent, step);
            if (sum == result)
                rk_sched_order(send, step);
            rk_sched_order(step, used[k % 2]);
            ready = step;
            have = sum;
        }
        if (exclusive) {
            if (k == 0) { /* in place it overwrites what is sent and summed */
                got = rk_sched_copy(s, step, result, in, bytes);
                rk_sched_order(send, got);
            } else {
                got = rk_sched_reduce(s, recv, result, in, result, (size_t)n);
                rk_sched_order(last, got);
            }
            rk_sched_order(got, used[k % 2]);
            last = got;
        } else {
            last = step;
        }
        sent = send;
    }
    if (!exclusive && rank == 0)
        last = rk_sched_copy(s, NULL, result, c->sbuf + at, bytes);
    rk_sched_order(last, end);
    rk_sched_order(ready, end);
    set->done = end;
}

void rk_build_scan_doubling(struct rk_sched *s, const struct rk_coll_call *c)
{
    int64_t segment = segment_of(c, DOUBLING_BYTES);
    struct scan_set set[DOUBLING_SETS] = {{.done = NULL}};
    int i = 0;

    for (int k = 0; k < DOUBLING_SETS && k * segment < c->count; k++) {
        set[k].tag = (uint32_t)k * ROUND_TAGS;
        for (int j = 0; j < 2; j++) {
            set[k].sum[j] = rk_sched_scratch(s, (size_t)segment * c->elem);
            set[k].in[j] = rk_sched_scratch(s, (size_t)segment * c->elem);
        }
    }
    for (int64_t at = 0; at < c->count; at += segment, i++)
        double_segment(s, c, &set[i % DOUBLING_SETS], (size_t)at * c->elem, c->count - at < segment ? c->count - at : segment);
}

/* ----------------------------------------------------------------------------------- chain */

void rk_build_scan_chain(struct rk_sched *s, const struct rk_coll_call *c)
{
    int rank = c->team->rank, size = c->team->size, i = 0;
    bool exclusive = c->kind == RK_COLL_EXSCAN, sends = rank < size - 1;
    int64_t segment = segment_of(c, CHAIN_BYTES);
    struct rk_step *freed[CHAIN_SLOTS] = {NULL}, *sent[CHAIN_SENDS] = {NULL};
    char *in[CHAIN_SLOTS], *out[CHAIN_SLOTS];

    for (int k = 0; k < CHAIN_SLOTS; k++) {
        in[k] = rk_sched_scratch(s, (size_t)segment * c->elem);
        out[k] = exclusive ? rk_sched_scratch(s, (size_t)segment * c->elem) : NULL;
    }
    for (int64_t done = 0; done < c->count; done += segment, i++) {
        int64_t n = c->count - done < segment ? c->count - done : segment;
        size_t at = (size_t)done * c->elem, bytes = (size_t)n * c->elem;
        const char *mine = c->sbuf + at, *sum = mine;
        char *result = c->rbuf ? c->rbuf + at : NULL, *buf = in[i % CHAIN_SLOTS];
        struct rk_step **slot = &freed[i % CHAIN_SLOTS], *recv = NULL, *have = NULL, *send;

        if (rank == 0 && !exclusive) {
            rk_sched_copy(s, NULL, result, mine, bytes);
        } else if (rank > 0) {
            recv = rk_sched_recv(s, *slot, rank - 1, (uint32_t)i, buf, bytes);
            sum = exclusive ? out[i % CHAIN_SLOTS] : result;
            if (sends || !exclusive)
                have = rk_sched_reduce(s, recv, (char *)(uintptr_t)sum, buf, mine, (size_t)n);
            *slot = exclusive ? rk_sched_copy(s, have ? have : recv, result, buf, bytes) : have;
        }
        if (!sends)
            continue;
        send = rk_sched_send(s, have, rank + 1, (uint32_t)i, sum, bytes);
        rk_sched_order(sent[i % CHAIN_SENDS], send);
        sent[i % CHAIN_SENDS] = send;
        if (exclusive && rank > 0)
            *slot = rk_sched_join(s, *slot, send);
    }
}

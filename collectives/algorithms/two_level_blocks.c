/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * two_level_blocks.c: build schedules on two levels for a block of each rank.
 *
 * The phases and their source: two_level.c. Blocks travel in the order of hosts, so that those of a host lie together.
 */
#include "collectives/algorithms/two_level.h"
#include "collectives/pattern.h"

#include <string.h>

/* Blocks in the order of hosts, and in that of ranks. */
struct reorder {
    const struct rk_hosts *hosts;
    char *to;
    const char *from;
    size_t bytes; /* of a block */
    int size;
};

static rank_status_t order_by_rank(void *arg)
{
    const struct reorder *o = arg;

    for (int i = 0; i < o->size; i++)
        memcpy(o->to + (size_t)o->hosts->ranks[i] * o->bytes, o->from + (size_t)i * o->bytes, o->bytes);
    return RANK_OK;
}

static rank_status_t order_by_host(void *arg)
{
    const struct reorder *o = arg;

    for (int i = 0; i < o->size; i++)
        memcpy(o->to + (size_t)i * o->bytes, o->from + (size_t)o->hosts->ranks[i] * o->bytes, o->bytes);
    return RANK_OK;
}

static void build_reorder(struct rk_sched *s, const struct rk_coll_call *c, rank_status_t (*fn)(void *), char *to, const char *from)
{
    struct reorder *o = rk_sched_scratch(s, sizeof(*o));

    if (s->status)
        return;
    *o = (struct reorder){s->hosts, to, from, c->bytes, c->team->size};
    rk_build_local(s, fn, o);
}

static bool hosts_are_in_order(const struct rk_hosts *h, int size)
{
    for (int i = 0; i < size; i++) {
        if (h->ranks[i] != i)
            return false;
    }
    return true;
}

void rk_build_allgather_two_level(struct rk_sched *s, const struct rk_coll_call *c)
{
    const struct rk_hosts *h = s->hosts;
    bool in_order = hosts_are_in_order(h, c->team->size);
    char *all = in_order ? c->rbuf : rk_sched_scratch(s, c->bytes * (size_t)c->team->size);
    char *mine = all + (size_t)h->at[h->host] * c->bytes;
    int64_t *counts = rk_sched_scratch(s, 2 * (size_t)h->n * sizeof(*counts)), *displs = counts + h->n;
    struct rk_coll_call sub = rk_group_call(c, RK_COLL_GATHER, 0, c->sbuf, mine);

    rk_build_on_host(s, RK_TO_LEADER, &sub, rk_build_gather_binomial);
    if (h->local == 0 && !s->status) {
        for (int i = 0; i < h->n; i++) {
            counts[i] = c->count * (h->at[i + 1] - h->at[i]);
            displs[i] = c->count * h->at[i];
        }
        sub = rk_group_call(c, RK_COLL_ALLGATHERV, 0, mine, all);
        sub.rcounts = counts;
        sub.rdispls = displs;
        rk_build_phase(s, (struct rk_group){h->leaders, h->n, h->host}, RK_BETWEEN, &sub, rk_build_allgather_ring);
    }
    sub = rk_group_call(c, RK_COLL_BCAST, 0, all, all);
    rk_group_set_count(&sub, c->count * c->team->size);
    rk_build_on_host(s, RK_FROM_LEADER, &sub, rk_build_bcast_binomial);
    if (!in_order)
        build_reorder(s, c, order_by_rank, c->rbuf, all);
}

/* Leaders send each other the sums of the other's ranks, and add up what comes: blocks in the order of hosts. */
static void build_sums_between(struct rk_sched *s, const struct rk_coll_call *c, char *sums)
{
    const struct rk_hosts *h = s->hosts;
    struct rk_phase phase = {.ranks = h->leaders, .n = h->n, .me = h->host, .tag = RK_BETWEEN};
    size_t count = (size_t)c->count * (size_t)(h->at[h->host + 1] - h->at[h->host]);
    char *mine = sums + (size_t)h->at[h->host] * c->bytes, *in[2];
    struct rk_step *sum1 = NULL, *sum2 = NULL;

    for (int i = 0; i < 2; i++)
        in[i] = rk_sched_scratch(s, count * c->elem);
    if (s->status)
        return;
    rk_sched_enter(s, &phase);
    for (int d = 1; d < h->n; d++) {
        int to = rk_ring(h->host, d, h->n), from = rk_ring(h->host, -d, h->n);
        struct rk_step *recv;

        rk_sched_send(s, NULL, to, 0, sums + (size_t)h->at[to] * c->bytes, (size_t)(h->at[to + 1] - h->at[to]) * c->bytes);
        recv = rk_sched_recv(s, sum2, from, 0, in[d % 2], count * c->elem);
        sum2 = sum1;
        sum1 = rk_sched_reduce(s, recv, mine, mine, in[d % 2], count);
        rk_sched_order(sum2, sum1);
    }
    rk_sched_leave(s);
}

void rk_build_reduce_scatter_two_level(struct rk_sched *s, const struct rk_coll_call *c)
{
    const struct rk_hosts *h = s->hosts;
    size_t all = c->bytes * (size_t)c->team->size;
    bool leads = h->local == 0;
    struct rk_coll_call sub;
    char *sums = leads ? rk_sched_scratch(s, all) : NULL, *by_host = sums;

    sub = rk_group_call(c, RK_COLL_REDUCE, 0, c->sbuf, sums);
    rk_group_set_count(&sub, c->count * c->team->size);
    rk_build_on_host(s, RK_TO_LEADER, &sub, rk_build_reduce_binomial);
    if (leads) {
        if (!hosts_are_in_order(h, c->team->size)) {
            by_host = rk_sched_scratch(s, all);
            build_reorder(s, c, order_by_host, by_host, sums);
        }
        build_sums_between(s, c, by_host);
    }
    sub = rk_group_call(c, RK_COLL_SCATTER, 0, leads ? by_host + (size_t)h->at[h->host] * c->bytes : NULL, c->rbuf);
    rk_build_on_host(s, RK_FROM_LEADER, &sub, rk_build_scatter_linear);
    rk_build_finish(s, NULL, c, c->rbuf, c->count);
}

/* An alltoall at a leader: what its ranks give, what goes to each host, what comes from each, what its ranks get. */
struct exchange {
    const struct rk_hosts *hosts;
    char *given, *out, *in, *got;
    size_t bytes;
    int size, k; /* ranks of the team, and of this host */
};

/* given: by own rank, then by rank of the team. out: by host, own rank, rank there. */
static rank_status_t pack_by_host(void *arg)
{
    const struct exchange *x = arg;
    const struct rk_hosts *h = x->hosts;
    char *to = x->out;

    for (int host = 0; host < h->n; host++) {
        for (int i = 0; i < x->k; i++) {
            for (int j = h->at[host]; j < h->at[host + 1]; j++, to += x->bytes)
                memcpy(to, x->given + ((size_t)i * (size_t)x->size + (size_t)h->ranks[j]) * x->bytes, x->bytes);
        }
    }
    return RANK_OK;
}

/* in: by host, rank there, own rank. got: by own rank, then by rank of the team. */
static rank_status_t unpack_by_rank(void *arg)
{
    const struct exchange *x = arg;
    const struct rk_hosts *h = x->hosts;
    const char *from = x->in;

    for (int j = 0; j < x->size; j++) {
        for (int i = 0; i < x->k; i++, from += x->bytes)
            memcpy(x->got + ((size_t)i * (size_t)x->size + (size_t)h->ranks[j]) * x->bytes, from, x->bytes);
    }
    return RANK_OK;
}

static void build_blocks_between(struct rk_sched *s, const struct exchange *x)
{
    const struct rk_hosts *h = x->hosts;
    struct rk_phase phase = {.ranks = h->leaders, .n = h->n, .me = h->host, .tag = RK_BETWEEN};
    size_t each = (size_t)x->k * x->bytes; /* blocks of all own ranks, for one rank elsewhere */

    rk_sched_enter(s, &phase);
    for (int d = 1; d < h->n; d++) {
        int to = rk_ring(h->host, d, h->n), from = rk_ring(h->host, -d, h->n);

        rk_sched_recv(s, NULL, from, 0, x->in + (size_t)h->at[from] * each, (size_t)(h->at[from + 1] - h->at[from]) * each);
        rk_sched_send(s, NULL, to, 0, x->out + (size_t)h->at[to] * each, (size_t)(h->at[to + 1] - h->at[to]) * each);
    }
    rk_sched_copy(s, NULL, x->in + (size_t)h->at[h->host] * each, x->out + (size_t)h->at[h->host] * each, (size_t)x->k * each);
    rk_sched_leave(s);
}

void rk_build_alltoall_two_level(struct rk_sched *s, const struct rk_coll_call *c)
{
    const struct rk_hosts *h = s->hosts;
    struct rk_group host = rk_group_of_host(h);
    size_t all = c->bytes * (size_t)c->team->size * (size_t)host.n;
    struct exchange *x = rk_sched_scratch(s, sizeof(*x));
    struct rk_coll_call sub;
    bool leads = h->local == 0;
    char *given = leads ? rk_sched_scratch(s, all) : NULL, *got = leads ? rk_sched_scratch(s, all) : NULL;

    sub = rk_group_call(c, RK_COLL_GATHER, 0, c->sbuf, given);
    rk_group_set_count(&sub, c->count * c->team->size);
    rk_build_on_host(s, RK_TO_LEADER, &sub, rk_build_gather_linear);
    if (leads) {
        char *out = rk_sched_scratch(s, all), *in = rk_sched_scratch(s, all);

        if (s->status)
            return;
        *x = (struct exchange){h, given, out, in, got, c->bytes, c->team->size, host.n};
        rk_build_local(s, pack_by_host, x);
        build_blocks_between(s, x);
        rk_build_local(s, unpack_by_rank, x);
    }
    sub = rk_group_call(c, RK_COLL_SCATTER, 0, got, c->rbuf);
    rk_group_set_count(&sub, c->count * c->team->size);
    rk_build_on_host(s, RK_FROM_LEADER, &sub, rk_build_scatter_linear);
}

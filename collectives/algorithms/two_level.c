/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * two_level.c: build schedules of phases on each host and between hosts.
 *
 * Luo et al., "HAN: a hierarchical autotuned collective communication framework", CLUSTER 2020: the ranks of a host,
 * one leader a host, the ranks of a host again. A long allreduce uses as many lanes between the hosts as the host with
 * the fewest ranks has: Träff, Hunold, "Decomposing MPI collectives for exploiting multi-lane communication", CLUSTER
 * 2020. The phases are the algorithms of other files.
 *
 * Sums are taken by host, so that operations must be commutative. k ranks a host, H hosts; the network carries
 * barrier, bcast, reduce: what H ranks need; allreduce: one exchange among H of n bytes (n / k by each of k lanes);
 * allgather, reduce_scatter, alltoall: each byte once.
 */
#include "collectives/algorithms/two_level.h"
#include "collectives/pattern.h"
#include "collectives/shm/slices.h"

#include <string.h>

enum {
    LANES_FROM = 8 << 10,     /* bytes of an allreduce that takes all lanes */
    SHORT_EXCHANGE = 64 << 10 /* between hosts: least rounds up to here, then least bytes */
};

struct rk_group rk_group_of_host(const struct rk_hosts *h)
{
    return (struct rk_group){h->ranks + h->at[h->host], h->at[h->host + 1] - h->at[h->host], h->local};
}

/*
 * The leaders: first ranks, but the root on its own host. *local: place of the own host's leader. The group has me -1
 * on other ranks.
 */
static struct rk_group group_of_leaders(struct rk_sched *s, const struct rk_hosts *h, int root, int *local)
{
    int at_root = h->host_of[root];
    const int *mine = h->ranks + h->at[h->host];
    int *ranks = rk_sched_scratch(s, (size_t)h->n * sizeof(int));

    if (!s->status) {
        memcpy(ranks, h->leaders, (size_t)h->n * sizeof(int));
        ranks[at_root] = root;
    }
    *local = 0;
    while (h->host == at_root && mine[*local] != root)
        ++*local;
    return (struct rk_group){ranks, h->n, h->local == *local ? h->host : -1};
}

struct rk_coll_call rk_group_call(const struct rk_coll_call *c, enum rk_coll_kind kind, int root, const void *sbuf, void *rbuf)
{
    struct rk_coll_call sub = *c;

    sub.kind = kind;
    sub.op = c->op == RANK_AVG ? RANK_SUM : c->op;
    sub.root = root;
    sub.sbuf = sbuf;
    sub.rbuf = rbuf;
    sub.in_place = sbuf == rbuf;
    return sub;
}

void rk_group_set_count(struct rk_coll_call *c, int64_t count)
{
    c->count = count;
    c->bytes = (size_t)count * c->elem;
}

void rk_build_phase(struct rk_sched *s, struct rk_group g, enum rk_phase_tag tag, const struct rk_coll_call *c,
                    void (*build)(struct rk_sched *, const struct rk_coll_call *))
{
    struct rk_phase phase = {.ranks = g.ranks, .n = g.n, .me = g.me, .tag = tag};
    struct rank_team seen = {.rank = g.me, .size = g.n};
    struct rk_coll_call sub = *c;

    if (s->status)
        return;
    sub.team = &seen;
    rk_sched_enter(s, &phase);
    if (g.n > 1)
        build(s, &sub);
    else if (sub.rbuf != sub.sbuf && c->kind != RK_COLL_BCAST && c->bytes)
        rk_sched_copy(s, NULL, sub.rbuf, sub.sbuf, c->bytes);
    rk_sched_leave(s);
}

/* Do the calls of this host use its arena for this phase? Equal on all its ranks. */
static bool phase_fits_cells(const struct rk_hosts *h, const struct rk_coll_call *c)
{
    return h->arena && rk_slices_fit(c->kind, h->arena[0]->n, c->elem);
}

/* A phase among the ranks of this host, in the cells of an arena. A call in segments has more of them. */
static void build_in_cells(struct rk_sched *s, enum rk_phase_tag tag, const struct rk_coll_call *c)
{
    int which = tag == RK_FROM_LEADER;
    struct slices *x;

    if (s->status)
        return;
    rk_sched_line_up(s, which, &s->hosts->in_cells[which]);
    x = rk_slices_add(s, s->hosts->arena[which], c, NULL);
    if (x && !s->more)
        rk_slices_set_last(x);
    rk_sched_leave(s);
}

void rk_build_on_host(struct rk_sched *s, enum rk_phase_tag tag, const struct rk_coll_call *c,
                      void (*build)(struct rk_sched *, const struct rk_coll_call *))
{
    if (phase_fits_cells(s->hosts, c))
        build_in_cells(s, tag, c);
    else
        rk_build_phase(s, rk_group_of_host(s->hosts), tag, c, build);
}

void rk_build_local(struct rk_sched *s, rank_status_t (*fn)(void *), void *arg)
{
    rk_sched_call(s, NULL, fn, arg);
    rk_sched_leave(s);
}

/* ------------------------------------------------------------------- barrier and bcast */

void rk_build_barrier_two_level(struct rk_sched *s, const struct rk_coll_call *c)
{
    const struct rk_hosts *h = s->hosts;
    struct rk_group leaders = {h->leaders, h->n, h->host};
    static char nothing;
    struct rk_coll_call sub = rk_group_call(c, RK_COLL_GATHER, 0, &nothing, &nothing);

    sub.elem = 1;
    rk_group_set_count(&sub, 0);
    if (phase_fits_cells(h, &sub)) { /* a chunk in cells is never empty */
        sub.rbuf = rk_sched_scratch(s, (size_t)h->arena[0]->n);
        rk_group_set_count(&sub, 1);
    }
    rk_build_on_host(s, RK_TO_LEADER, &sub, rk_build_gather_binomial);
    if (h->local == 0)
        rk_build_phase(s, leaders, RK_BETWEEN, c, rk_build_barrier_dissemination);
    sub.kind = RK_COLL_BCAST;
    rk_build_on_host(s, RK_FROM_LEADER, &sub, rk_build_bcast_binomial);
}

void rk_build_bcast_two_level(struct rk_sched *s, const struct rk_coll_call *c)
{
    const struct rk_hosts *h = s->hosts;
    struct rk_coll_call sub;
    struct rk_group leaders;
    int local;

    leaders = group_of_leaders(s, h, c->root, &local);
    sub = rk_group_call(c, RK_COLL_BCAST, h->host_of[c->root], c->rbuf, c->rbuf);
    if (leaders.me >= 0)
        rk_build_phase(s, leaders, RK_BETWEEN, &sub, c->bytes <= SHORT_EXCHANGE || h->n == 2 ? rk_build_bcast_binomial : rk_build_bcast_chain);
    sub.root = local;
    rk_build_on_host(s, RK_FROM_LEADER, &sub, rk_build_bcast_binomial);
}

/* ------------------------------------------------------------------- reduce and allreduce */

void rk_build_reduce_two_level(struct rk_sched *s, const struct rk_coll_call *c)
{
    const struct rk_hosts *h = s->hosts;
    bool long_enough = c->bytes > SHORT_EXCHANGE && c->count >= h->n;
    struct rk_group leaders;
    struct rk_coll_call sub;
    char *sum = NULL;
    int local;

    leaders = group_of_leaders(s, h, c->root, &local);
    if (leaders.me >= 0)
        sum = c->team->rank == c->root ? c->rbuf : rk_sched_scratch(s, c->bytes);
    sub = rk_group_call(c, RK_COLL_REDUCE, local, c->sbuf, sum);
    rk_build_on_host(s, RK_TO_LEADER, &sub, rk_build_reduce_binomial);
    if (leaders.me < 0)
        return;
    sub = rk_group_call(c, RK_COLL_REDUCE, h->host_of[c->root], sum, c->team->rank == c->root ? sum : NULL);
    rk_build_phase(s, leaders, RK_BETWEEN, &sub, long_enough && h->n > 2 ? rk_build_reduce_rabenseifner : rk_build_reduce_binomial);
    if (c->team->rank == c->root)
        rk_build_finish(s, NULL, c, c->rbuf, c->count);
}

static void build_between(struct rk_sched *s, struct rk_group g, const struct rk_coll_call *sub)
{
    bool long_enough = sub->bytes > SHORT_EXCHANGE && sub->count >= g.n;

    rk_build_phase(s, g, RK_BETWEEN, sub, long_enough ? rk_build_allreduce_rabenseifner : rk_build_allreduce_doubling);
}

/* The slices of all ranks of the host, for cells; ranks without a lane have an empty one. */
static struct rk_coll_call call_of_slices(struct rk_sched *s, const struct rk_coll_call *c, enum rk_coll_kind kind, struct rk_group g,
                                          int lanes)
{
    int64_t *counts = rk_sched_scratch(s, 2 * (size_t)g.n * sizeof(*counts)), *displs = counts + g.n;
    struct rk_coll_call sub = rk_group_call(c, kind, 0, c->sbuf, c->rbuf);

    rk_group_set_count(&sub, rk_part_len(c->count, lanes, 0)); /* of the longest slice */
    sub.rcounts = counts;
    sub.rdispls = displs;
    for (int i = 0; i < g.n && !s->status; i++) {
        counts[i] = i < lanes ? rk_part_len(c->count, lanes, i) : 0;
        displs[i] = i < lanes ? rk_part_at(c->count, lanes, i) : 0;
    }
    return sub;
}

/* Each of the first ranks of a host sums a slice of the inputs there: in cells, or pairwise with two receives at a time. */
static void build_slices_to_lanes(struct rk_sched *s, const struct rk_coll_call *c, struct rk_group g, int lanes)
{
    struct rk_phase phase = {.ranks = g.ranks, .n = g.n, .me = g.me, .tag = RK_TO_LEADER};
    size_t at = g.me < lanes ? (size_t)rk_part_at(c->count, lanes, g.me) * c->elem : 0;
    int64_t len = g.me < lanes ? rk_part_len(c->count, lanes, g.me) : 0;
    struct rk_step *sum1 = NULL, *sum2 = NULL;
    struct rk_coll_call sub;
    char *in[2];

    sub = call_of_slices(s, c, RK_COLL_REDUCE_SCATTERV, g, lanes);
    sub.rbuf += at;
    if (phase_fits_cells(s->hosts, &sub)) {
        build_in_cells(s, RK_TO_LEADER, &sub);
        return;
    }
    if (s->status)
        return;
    rk_sched_enter(s, &phase);
    for (int i = 0; i < 2; i++)
        in[i] = g.me < lanes ? rk_sched_scratch(s, (size_t)len * c->elem) : NULL;
    if (g.me < lanes && g.n == 1 && c->rbuf != c->sbuf)
        rk_sched_copy(s, NULL, c->rbuf, c->sbuf, c->bytes);
    for (int d = 1; d < g.n; d++) {
        int to = rk_ring(g.me, d, g.n), from = rk_ring(g.me, -d, g.n);
        struct rk_step *recv;

        if (to < lanes)
            rk_sched_send(s, NULL, to, 0, c->sbuf + (size_t)rk_part_at(c->count, lanes, to) * c->elem,
                          (size_t)rk_part_len(c->count, lanes, to) * c->elem);
        if (g.me >= lanes)
            continue;
        recv = rk_sched_recv(s, sum2, from, 0, in[d % 2], (size_t)len * c->elem);
        sum2 = sum1;
        sum1 = rk_sched_reduce(s, recv, c->rbuf + at, (d == 1 ? c->sbuf : c->rbuf) + at, in[d % 2], (size_t)len);
        rk_sched_order(sum2, sum1);
    }
    rk_sched_leave(s);
}

static void build_slices_to_all(struct rk_sched *s, const struct rk_coll_call *c, struct rk_group g, int lanes)
{
    struct rk_phase phase = {.ranks = g.ranks, .n = g.n, .me = g.me, .tag = RK_FROM_LEADER};
    struct rk_coll_call sub = call_of_slices(s, c, RK_COLL_ALLGATHERV, g, lanes);

    if (s->status)
        return;
    sub.sbuf = c->rbuf + (size_t)sub.rdispls[g.me] * c->elem;
    if (phase_fits_cells(s->hosts, &sub)) {
        build_in_cells(s, RK_FROM_LEADER, &sub);
        return;
    }
    rk_sched_enter(s, &phase);
    for (int d = 1; d < g.n; d++) {
        int to = rk_ring(g.me, d, g.n), from = rk_ring(g.me, -d, g.n);

        if (from < lanes)
            rk_sched_recv(s, NULL, from, 0, c->rbuf + (size_t)rk_part_at(c->count, lanes, from) * c->elem,
                          (size_t)rk_part_len(c->count, lanes, from) * c->elem);
        if (g.me < lanes)
            rk_sched_send(s, NULL, to, 0, c->rbuf + (size_t)rk_part_at(c->count, lanes, g.me) * c->elem,
                          (size_t)rk_part_len(c->count, lanes, g.me) * c->elem);
    }
    rk_sched_leave(s);
}

static void build_allreduce_lanes(struct rk_sched *s, const struct rk_coll_call *c)
{
    const struct rk_hosts *h = s->hosts;
    int lanes = h->per_host;
    struct rk_group host = rk_group_of_host(h);

    build_slices_to_lanes(s, c, host, lanes);
    if (h->local < lanes) {
        int64_t at = rk_part_at(c->count, lanes, h->local);
        char *slice = c->rbuf + (size_t)at * c->elem;
        struct rk_coll_call sub = rk_group_call(c, RK_COLL_ALLREDUCE, 0, slice, slice);

        rk_group_set_count(&sub, rk_part_len(c->count, lanes, h->local));
        build_between(s, (struct rk_group){h->lane, h->n, h->host}, &sub);
        rk_build_finish(s, NULL, c, slice, sub.count);
        rk_sched_leave(s);
    }
    build_slices_to_all(s, c, host, lanes);
}

void rk_build_allreduce_two_level(struct rk_sched *s, const struct rk_coll_call *c)
{
    const struct rk_hosts *h = s->hosts;
    struct rk_coll_call sub;

    if (c->bytes > LANES_FROM && h->per_host > 1 && c->count >= h->per_host) {
        build_allreduce_lanes(s, c);
        return;
    }
    sub = rk_group_call(c, RK_COLL_REDUCE, 0, c->sbuf, c->rbuf);
    rk_build_on_host(s, RK_TO_LEADER, &sub, rk_build_reduce_binomial);
    sub = rk_group_call(c, RK_COLL_ALLREDUCE, 0, c->rbuf, c->rbuf);
    if (h->local == 0) {
        build_between(s, (struct rk_group){h->leaders, h->n, h->host}, &sub);
        rk_build_finish(s, NULL, c, c->rbuf, c->count);
        rk_sched_leave(s);
    }
    sub.kind = RK_COLL_BCAST;
    rk_build_on_host(s, RK_FROM_LEADER, &sub, rk_build_bcast_binomial);
}

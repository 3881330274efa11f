/* SPDX-License-Identifier: BSD-3-Clause */
/* group_op.c: complete fence, connect and disconnect across jobs. See group_op.h. */
#include "launcher/dpm/group_op.h"
#include "launcher/overlay/protocol.h"
#include "lib/base/clock.h"
#include "lib/base/list.h"

#include <stdlib.h>
#include <string.h>

struct process {
    uint32_t job, rank;
};

struct group_op {
    struct rk_link link;
    struct xr_group_ops *all_of;
    enum xr_rpc what;
    struct process *all; /* sorted */
    uint32_t n;
    uint64_t want, joined; /* processes */
    struct xr_rpc_origin *from; /* agents that have joined */
    uint32_t nfrom;
    struct xr_packer data;
    uint32_t *jobs, njobs; /* sorted */
    struct event *late;    /* or NULL */
    uint64_t late_ns;
    bool failed; /* answered after a lost client; kept for the agents that join later */
};

struct xr_group_ops {
    struct event_base *base;
    const struct xr_group_ops_upcalls *ops;
    void *arg;
    struct rk_link active;
};

static void group_op_destroy(struct group_op *x)
{
    rk_list_remove(&x->link);
    xr_packer_free(&x->data);
    if (x->late)
        event_free(x->late);
    free(x->all);
    free(x->from);
    free(x->jobs);
    free(x);
}

/* ---------------------------------------------------------------------- participants */

static int group_op_by_number(const void *a, const void *b)
{
    const struct process *x = a, *y = b;

    if (x->job != y->job)
        return x->job < y->job ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Unpack the participants, sorted. NULL: *status gives the reason. */
static struct process *group_op_list(struct xr_group_ops *g, struct xr_unpacker *u, uint32_t n,
                            enum xr_rpc_status *status)
{
    struct process *all;
    const char *id, *last = NULL;

    *status = XR_REFUSED;
    if (u->failed || n == 0 || n > u->left / 8)
        return NULL;
    all = calloc(n, sizeof(*all));
    for (uint32_t i = 0; all && i < n; i++, last = id) {
        id = xr_unpack_string(u);
        all[i].rank = xr_unpack_u32(u);
        if (id && last && strcmp(id, last) == 0)
            all[i].job = all[i - 1].job;
        else
            all[i].job = id ? g->ops->job(g->arg, id) : XR_NO_JOB;
        if (all[i].job != XR_NO_JOB && (all[i].rank == XR_ALL_RANKS || all[i].rank < g->ops->size(g->arg, all[i].job)))
            continue;
        if (!u->failed)
            *status = id && g->ops->past(g->arg, id) ? XR_PARTICIPANT_LOST : XR_NOT_FOUND;
        free(all);
        return NULL;
    }
    if (all)
        qsort(all, n, sizeof(*all), group_op_by_number);
    return all;
}

static bool has_process(const struct group_op *x, uint32_t job, uint32_t rank)
{
    const struct process p = {job, rank};

    return bsearch(&p, x->all, x->n, sizeof(p), group_op_by_number) != NULL;
}

static bool has_job(const struct group_op *x, uint32_t job)
{
    for (uint32_t i = 0; i < x->njobs; i++) {
        if (x->jobs[i] == job)
            return true;
    }
    return false;
}

static bool has_part(const struct group_op *x, uint32_t job, uint32_t rank)
{
    return has_job(x, job) && (rank == XR_ALL_RANKS || has_process(x, job, XR_ALL_RANKS) || has_process(x, job, rank));
}

/* The worst state of all participants. */
static enum xr_presence worst_presence(struct xr_group_ops *g, const struct group_op *x)
{
    enum xr_presence worst = XR_PRESENT;

    for (uint32_t i = 0; i < x->n && worst != XR_ENDED; i++) {
        enum xr_presence p = g->ops->presence(g->arg, x->all[i].job, x->all[i].rank);
        if (p > worst)
            worst = p;
    }
    return worst;
}

static bool has_joined(const struct group_op *x, const struct xr_rpc_origin *from)
{
    for (uint32_t i = 0; i < x->nfrom; i++) {
        if (x->from[i].job == from->job && x->from[i].node == from->node)
            return true;
    }
    return false;
}

static bool group_op_same(const struct group_op *x, enum xr_rpc what, const struct process *all, uint32_t n)
{
    return x->what == what && x->n == n && memcmp(x->all, all, n * sizeof(*all)) == 0;
}

static struct group_op *group_op_find(struct xr_group_ops *g, enum xr_rpc what, const struct process *all,
                           uint32_t n, const struct xr_rpc_origin *from)
{
    for (struct rk_link *l = g->active.next; l != &g->active; l = l->next) {
        struct group_op *x = rk_list_entry(l, struct group_op, link);
        if (group_op_same(x, what, all, n) && !has_joined(x, from))
            return x;
    }
    return NULL;
}

/* Takes ownership of all. */
static struct group_op *group_op_make(struct xr_group_ops *g, enum xr_rpc what, struct process *all, uint32_t n)
{
    struct group_op *x = calloc(1, sizeof(*x));

    if (!x) {
        free(all);
        return NULL;
    }
    *x = (struct group_op){.all_of = g, .what = what, .all = all, .n = n, .jobs = calloc(n, sizeof(*x->jobs))};
    rk_list_append(&g->active, &x->link);
    if (!x->jobs) {
        group_op_destroy(x);
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++) {
        x->want += all[i].rank == XR_ALL_RANKS ? g->ops->size(g->arg, all[i].job) : 1;
        if (i == 0 || all[i].job != all[i - 1].job)
            x->jobs[x->njobs++] = all[i].job;
    }
    return x;
}

/* ----------------------------------------------------------------------------- answers */

static void answer_all(struct xr_group_ops *g, struct group_op *x, enum xr_rpc_status status)
{
    rk_list_remove(&x->link); /* an agent that joins again begins a new one */
    if (status == XR_DONE)
        g->ops->completed(g->arg, x->what, x->jobs, x->njobs);
    for (uint32_t i = 0; i < x->nfrom; i++)
        g->ops->answer(g->arg, &x->from[i], status, x->data.data, status == XR_DONE ? x->data.len : 0,
                       x->jobs, x->njobs);
}

static void group_op_finish(struct xr_group_ops *g, struct group_op *x, enum xr_rpc_status status)
{
    answer_all(g, x, status);
    group_op_destroy(x);
}

/* A participant is lost. If it has not ended, keep one failed record for the agents that have not joined yet. */
static void group_op_fail(struct xr_group_ops *g, struct group_op *x)
{
    answer_all(g, x, XR_PARTICIPANT_LOST);
    if (x->joined >= x->want || worst_presence(g, x) == XR_ENDED) {
        group_op_destroy(x);
        return;
    }
    for (struct rk_link *l = g->active.next; l != &g->active; l = l->next) {
        struct group_op *other = rk_list_entry(l, struct group_op, link);
        if (other->failed && group_op_same(other, x->what, x->all, x->n)) {
            group_op_destroy(x);
            return;
        }
    }
    x->failed = true;
    xr_packer_free(&x->data);
    if (x->late)
        event_del(x->late);
    rk_list_append(&g->active, &x->link);
}

static void group_op_on_late(evutil_socket_t fd, short what, void *arg)
{
    struct group_op *x = arg;

    (void)fd;
    (void)what;
    group_op_finish(x->all_of, x, XR_TOO_LATE);
}

/* The shortest time-out of the agents that have joined applies to all. Returns false without memory. */
static bool set_timer(struct group_op *x, uint32_t ms)
{
    const struct timeval late = {(time_t)(ms / 1000), (suseconds_t)(ms % 1000) * 1000};
    uint64_t end = rk_clock_ns() + ms * 1000000ull;

    if (!ms || x->failed || (x->late && x->late_ns <= end))
        return true;
    if (!x->late)
        x->late = evtimer_new(x->all_of->base, group_op_on_late, x);
    x->late_ns = end;
    return x->late && event_add(x->late, &late) == 0;
}

/* ---------------------------------------------------------------------------- joining */

static void group_op_refuse(struct xr_group_ops *g, const struct xr_rpc_origin *from, enum xr_rpc_status status)
{
    g->ops->answer(g->arg, from, status, NULL, 0, NULL, 0);
}

static void group_op_advance(struct xr_group_ops *g, struct group_op *x, bool lost, const void *data, size_t len)
{
    if (x->failed) {
        group_op_refuse(g, &x->from[x->nfrom - 1], XR_PARTICIPANT_LOST);
        if (x->joined >= x->want)
            group_op_destroy(x);
        return;
    }
    xr_pack_raw(&x->data, data, len);
    if (lost || worst_presence(g, x) != XR_PRESENT)
        group_op_fail(g, x);
    else if (x->data.failed || x->data.len > XR_MESSAGE_MAX / 2)
        group_op_finish(g, x, XR_NO_ROOM);
    else if (x->joined >= x->want)
        group_op_finish(g, x, XR_DONE);
}

void xr_group_ops_join(struct xr_group_ops *g, enum xr_rpc what, const struct xr_rpc_origin *from,
                     struct xr_unpacker *u)
{
    uint32_t lost = xr_unpack_u32(u), here = xr_unpack_u32(u), ms = xr_unpack_u32(u), n = xr_unpack_u32(u);
    enum xr_rpc_status status;
    struct process *all = group_op_list(g, u, n, &status);
    struct xr_rpc_origin *longer;
    struct group_op *x;
    const void *data;
    size_t len;

    data = xr_unpack_bytes(u, &len);
    if (!all || !xr_unpack_done(u)) {
        group_op_refuse(g, from, all ? XR_REFUSED : status);
        free(all);
        return;
    }
    x = group_op_find(g, what, all, n, from);
    if (x)
        free(all);
    else
        x = group_op_make(g, what, all, n);
    longer = x ? realloc(x->from, (x->nfrom + 1) * sizeof(*longer)) : NULL;
    if (longer)
        x->from = longer;
    if (!longer || !set_timer(x, ms)) {
        group_op_refuse(g, from, XR_NO_ROOM);
        if (x && !x->failed)
            group_op_finish(g, x, XR_NO_ROOM);
        return;
    }
    x->from[x->nfrom++] = *from;
    x->joined += here;
    group_op_advance(g, x, lost != 0, data, len);
}

/* ------------------------------------------------------------------------------- ends */

void xr_group_ops_client_lost(struct xr_group_ops *g, uint32_t job, uint32_t rank)
{
    struct rk_link *l, *next, *last = g->active.prev; /* records behind it have failed already */
    bool more = last != &g->active;

    for (l = g->active.next; more; l = next) {
        struct group_op *x = rk_list_entry(l, struct group_op, link);
        next = l->next;
        more = l != last;
        if (!x->failed && has_part(x, job, rank))
            group_op_fail(g, x);
    }
}

void xr_group_ops_rank_ended(struct xr_group_ops *g, uint32_t job, uint32_t rank)
{
    struct rk_link *l, *next;

    rk_list_for_each_safe(l, next, &g->active) {
        struct group_op *x = rk_list_entry(l, struct group_op, link);
        if (!has_part(x, job, rank))
            continue;
        if (x->failed)
            group_op_destroy(x);
        else
            group_op_finish(g, x, XR_PARTICIPANT_LOST);
    }
}

/* ---------------------------------------------------------------------- open and close */

rank_status_t xr_group_ops_open(struct event_base *base, const struct xr_group_ops_upcalls *ops, void *arg,
                              struct xr_group_ops **out)
{
    struct xr_group_ops *g = calloc(1, sizeof(*g));

    if (!g)
        return RANK_ERR_NO_MEMORY;
    g->base = base;
    g->ops = ops;
    g->arg = arg;
    rk_list_init(&g->active);
    *out = g;
    return RANK_OK;
}

void xr_group_ops_close(struct xr_group_ops *g)
{
    if (!g)
        return;
    while (!rk_list_empty(&g->active))
        group_op_destroy(rk_list_entry(g->active.next, struct group_op, link));
    free(g);
}

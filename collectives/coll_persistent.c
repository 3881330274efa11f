/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_persistent.c: create persistent requests of collectives and start them.
 *
 * The schedule is built once and kept, so that a start allocates nothing. Each start takes the next number of the
 * team's collectives, which tags its messages. Without data to move between ranks there is no schedule.
 */
#include "collectives/coll_args.h"
#include "collectives/coll_mismatch.h"
#include "collectives/state.h"
#include "lib/base/arg_error.h"

#include <stdlib.h>
#include <string.h>

static struct rk_coll_persistent *persistent_of(const struct rank_request *req)
{
    return (struct rk_coll_persistent *)(uintptr_t)req->priv[0];
}

static bool coll_has_schedule(const struct rk_coll_call *c)
{
    return c->team->size > 1 && !rk_coll_is_empty(c);
}

static rank_status_t coll_persistent_build(struct rk_coll_persistent *p)
{
    rank_status_t st = rk_coll_build(&p->call, &p->algo, &p->sched);

    if (st) {
        rk_sched_free(p->sched);
        p->sched = NULL;
        return rk_coll_failed_alone(&p->call, st);
    }
    p->sched->owner = &p->sched;
    return RANK_OK;
}

/* ------------------------------------------------------------------------------ requests */

static rank_status_t coll_persistent_start(struct rank_request *req)
{
    struct rk_coll_persistent *p = persistent_of(req);
    struct rank_team *team = p->call.team;
    rank_status_t st = team->size == 1 ? RANK_OK : rk_coll_may_begin(team);

    if (!st && team->size > 1)
        rk_call_begin(&p->call, RK_FORM_PERSISTENT, rk_coll_number(team) + 1);
    if (!st && !p->sched && coll_has_schedule(&p->call))
        st = coll_persistent_build(p);
    if (st)
        return rk_coll_explain(team->ctx, team->id, st);
    rk_sched_request(req, team->ctx);
    if (rk_unlikely(team->ctx->coll->trace))
        rk_trace_begin(&p->trace, &p->call, p->algo);
    if (!p->sched) {
        team->coll_seq += team->size > 1;
        st = rk_coll_copy_alone(&p->call);
        if (team->ctx->coll->trace)
            rk_trace_end(&p->trace, st);
        rk_req_complete(req, st);
        return RANK_OK;
    }
    rk_sched_rearm(p->sched, team->coll_seq++);
    p->sched->team = team;
    p->sched->number = rk_coll_number(team);
    rk_call_mark(p->sched);
    p->sched->trace = team->ctx->coll->trace ? &p->trace : NULL;
    rk_sched_start(p->sched, req);
    if (rk_unlikely(team->ctx->coll->failures.nreports))
        rk_failures_send(team->ctx);
    return RANK_OK;
}

static void coll_persistent_release(struct rank_request *req)
{
    rk_coll_persistent_free(persistent_of(req));
}

static void coll_persistent_fail(struct rank_request *req, rank_status_t status)
{
    const struct rk_coll_call *c = &persistent_of(req)->call;

    if (c->team->coll_over == 0)
        rk_coll_failed_alone(c, status);
}

static const struct rk_persistent_ops coll_persistent_ops = {
    .start = coll_persistent_start, .fail = coll_persistent_fail, .release = coll_persistent_release};

rank_status_t rk_coll_persist(const struct rk_coll_call *c, rank_request_t *out)
{
    struct rk_ctx *ctx = c->team->ctx;
    struct rank_request *req = rk_req_alloc(ctx);
    struct rk_coll_persistent *p = malloc(sizeof(*p) + rk_coll_counts(c) * sizeof(p->counts[0]));
    rank_status_t st = RANK_OK;

    if (!p || !req) {
        rk_fail(RANK_ERR_NO_MEMORY, "%s: out of memory", c->name);
        free(p);
        if (req)
            rk_req_free(req);
        return rk_coll_failed_alone(c, RANK_ERR_NO_MEMORY);
    }
    p->call = *c;
    p->call.ordered = c->ordered || ctx->coll->reproducible;
    p->algo = NULL;
    p->sched = NULL;
    rk_coll_copy_counts(&p->call, p->counts);
    rk_list_append(&ctx->coll->persistent, &p->link);
    if (coll_has_schedule(c))
        st = coll_persistent_build(p);
    if (st) {
        rk_coll_persistent_free(p);
        rk_req_free(req);
        return st;
    }
    rk_sched_request(req, ctx);
    req->done = true;
    req->hold |= RK_HOLD_PERSISTENT;
    req->persistent = &coll_persistent_ops;
    req->priv[0] = (uintptr_t)p;
    req->on = c->team;
    req->team = c->team->id;
    *out = req;
    return RANK_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* connected.c: keep track of jobs connected by rank_spawn, and disconnect them. */
#include "lib/dpm/connected.h"
#include "collectives/coll.h"
#include "lib/base/status_page.h"
#include "lib/base/clock.h"
#include "lib/base/arg_error.h"
#include "lib/base/log.h"
#include "lib/boot/boot.h"
#include "lib/core/procs.h"
#include "lib/p2p/p2p_internal.h"

#include <stdlib.h>
#include <string.h>

/* Time limit for the launcher's answer. */
enum { ANSWER_NS = 1000 * 1000 * 1000 };

struct rk_connected {
    struct rk_connected *next; /* the one added before */
    const struct rank_team *both; /* valid as long as it has that team */
    int n;
    int numbers[]; /* of the members */
};

rank_status_t rk_connected_add(const struct rank_team *both)
{
    struct rk_connected *f = calloc(1, sizeof(*f) + (size_t)both->size * sizeof(int));

    if (!f) {
        return rk_fail(RANK_ERR_NO_MEMORY, "out of memory for a team of %d ranks", both->size);
    }
    f->both = both;
    f->n = both->size;
    memcpy(f->numbers, both->world_ranks, (size_t)f->n * sizeof(int));
    f->next = both->ctx->families;
    both->ctx->families = f;
    rk_procs_hold(both->ctx, f->numbers, f->n, 1);
    return RANK_OK;
}

static void connected_remove(struct rk_ctx *ctx, struct rk_connected **at)
{
    struct rk_connected *f = *at;

    *at = f->next;
    rk_procs_hold(ctx, f->numbers, f->n, -1);
    free(f);
}

/* Drop the newest entry of this team: memory of teams is reused. */
void rk_connected_drop(const struct rank_team *both)
{
    struct rk_ctx *ctx = both->ctx;
    struct rk_connected **at = &ctx->families;

    while (*at && (*at)->both != both)
        at = &(*at)->next;
    if (*at)
        connected_remove(ctx, at);
}

void rk_connected_close(struct rk_ctx *ctx)
{
    while (ctx->families)
        connected_remove(ctx, &ctx->families);
}

/* ----------------------------------------------------------- disconnect or not */

/* The members of a team and their jobs. */
struct team_jobs {
    struct rk_ctx *ctx;
    bool *member;   /* [npeers], by number */
    uint64_t *jobs; /* [njobs] */
    int njobs;
};

static int job_index(const struct team_jobs *g, uint64_t job)
{
    for (int i = 0; i < g->njobs; i++) {
        if (g->jobs[i] == job)
            return i;
    }
    return -1;
}

static void team_jobs_clear(struct team_jobs *g)
{
    free(g->member);
    free(g->jobs);
}

static bool team_jobs_of(const struct rank_team *team, struct team_jobs *g)
{
    *g = (struct team_jobs){.ctx = team->ctx};
    g->member = calloc((size_t)team->ctx->engine->npeers, sizeof(*g->member));
    g->jobs = calloc((size_t)team->size, sizeof(*g->jobs));
    for (int r = 0; r < team->size && g->member && g->jobs; r++) {
        int n = rk_team_world_rank(team, r);
        uint64_t job = rk_procs_id(team->ctx, n).job;
        g->member[n] = true;
        if (job_index(g, job) < 0)
            g->jobs[g->njobs++] = job;
    }
    return g->njobs > 0;
}

/* Do these numbers cover two or more of the jobs? */
static bool spans(const struct team_jobs *g, const int *numbers, int n)
{
    int first = -1;

    for (int i = 0; i < n; i++) {
        int job = job_index(g, rk_procs_id(g->ctx, numbers[i]).job);
        if (job >= 0 && first >= 0 && job != first)
            return true;
        if (job >= 0)
            first = job;
    }
    return false;
}

static bool all_here(const struct team_jobs *g, const struct rk_connected *f)
{
    for (int i = 0; i < f->n; i++) {
        if (!g->member[f->numbers[i]])
            return false;
    }
    return true;
}

/*
 * Does another team of these jobs exist? This rank has only its own teams. Other ranks may have one from the same
 * rank_spawn, unless all that it brought together take part here.
 */
static bool still_connected(const struct rank_team *team)
{
    struct team_jobs g;
    struct rk_link *l;
    bool still = !team_jobs_of(team, &g);

    rk_list_for_each(l, &team->ctx->p2p->teams)
    {
        const struct rank_team *t = rk_list_entry(l, struct rank_team, link);
        still = still || (t != team && t->mixed && t->coll && spans(&g, t->world_ranks, t->size));
    }
    for (const struct rk_connected *f = team->ctx->families; f && !still; f = f->next)
        still = spans(&g, f->numbers, f->n) && !all_here(&g, f);
    team_jobs_clear(&g);
    return still;
}

/* ------------------------------------------------------------------ disconnect */

/* They are disconnected: drop the entries of their rank_spawn. */
static void connected_forget(const struct rank_team *team)
{
    struct rk_ctx *ctx = team->ctx;
    struct rk_connected **at = &ctx->families;
    struct team_jobs g;

    if (team_jobs_of(team, &g)) {
        while (*at) {
            if (all_here(&g, *at))
                connected_remove(ctx, at);
            else
                at = &(*at)->next;
        }
        for (int i = 0; i < g.njobs; i++)
            rk_procs_disconnect(ctx, g.jobs[i]);
    }
    team_jobs_clear(&g);
}

struct answer_wait {
    struct rk_wait wait;
    struct rk_pending *answer;
    uint64_t until; /* 0: for ever */
};

static bool has_answer(struct rk_wait *w)
{
    const struct answer_wait *a = (const struct answer_wait *)w;

    return rk_boot_over(a->answer) || (a->until && rk_clock_ns() >= a->until);
}

void rk_connected_await(struct rk_ctx *ctx, struct rk_pending *answer, int64_t limit_ns)
{
    struct answer_wait a = {.answer = answer, .until = limit_ns ? rk_clock_ns() + (uint64_t)limit_ns : 0};

    rk_wait(ctx, &a.wait, has_answer);
}

/* Returns false if the launcher did not disconnect them. */
static bool disconnect_jobs(struct rank_team *team)
{
    struct rk_ctx *ctx = team->ctx;
    struct rk_pending *answer;
    rank_status_t st = ctx->boot->ops->disconnect_begin(ctx->boot, team->world_ranks, team->size, rk_wait_wake, ctx, &answer);

    if (!st) {
        if (ctx->board)
            ctx->board->inside = "rank_team_free";
        rk_connected_await(ctx, answer, ANSWER_NS);
        if (ctx->board)
            ctx->board->inside = NULL; /* not the earlier value: another thread may be in here, too */
        st = ctx->boot->ops->disconnect_end(ctx->boot, answer);
    }
    if (st)
        rk_info("rank_team_free: the launcher did not disconnect the jobs: a failure of one may still end the other");
    return !st;
}

void rk_connected_disconnect(struct rank_team *team)
{
    int32_t mine = still_connected(team), any = 1;
    rank_request_t req;

    /* Answer from ranks that are in rank_finalize. */
    if (rank_iallreduce(&mine, &any, 1, RANK_INT32, RANK_MAX, team, &req) ||
        rank_wait(&req, NULL) || any)
        return;
    if (disconnect_jobs(team))
        connected_forget(team);
}

/* ----------------------------------------------------------------------- sweep */

/* Are the members of other jobs dead? */
static bool others_dead(const struct rk_ctx *ctx, const struct rk_connected *f)
{
    for (int i = 0; i < f->n; i++) {
        if (f->numbers[i] >= ctx->boot->size && !rk_procs_is_dead(ctx, f->numbers[i]))
            return false;
    }
    return true;
}

void rk_connected_sweep(struct rk_ctx *ctx)
{
    struct rk_connected **at = &ctx->families;

    while (*at) {
        if (others_dead(ctx, *at))
            connected_remove(ctx, at);
        else
            at = &(*at)->next;
    }
    rk_procs_sweep(ctx);
}

/* ---------------------------------------------------------------------- finalize */

static bool is_common(const struct rank_team *t)
{
    return t->mixed && t->coll;
}

void rk_connected_leave(struct rk_ctx *ctx)
{
    const int32_t yes = 1;
    rank_request_t *req;
    int32_t *any;
    struct rk_link *l;
    int n = 0;

    rk_list_for_each(l, &ctx->p2p->teams)
        n += is_common(rk_list_entry(l, struct rank_team, link));
    if (n == 0)
        return;
    req = calloc((size_t)n, sizeof(*req));
    any = calloc((size_t)n, sizeof(*any));
    n = 0;
    rk_list_for_each(l, &ctx->p2p->teams)
    {
        struct rank_team *t = rk_list_entry(l, struct rank_team, link);
        if (req && any && is_common(t) &&
            rank_iallreduce(&yes, &any[n], 1, RANK_INT32, RANK_MAX, t, &req[n]) == RANK_OK)
            n++;
    }
    if (n)
        rank_waitall(n, req, NULL);
    free(req);
    free(any);
}

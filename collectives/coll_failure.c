/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_failure.c: report failed collectives to the team, and end those of a team. */
#include "collectives/coll_failure.h"
#include "collectives/coll_mismatch.h"
#include "collectives/state.h"
#include "lib/base/arg_error.h"
#include "lib/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------- why it failed */

static struct rk_failure_cause *find_cause(const struct rk_ctx *ctx, uint64_t team)
{
    struct rk_failures *f = &ctx->coll->failures;

    for (int i = 0; i < RK_FAILURE_CAUSES && i < f->ncauses; i++) {
        if (f->cause[i].team == team)
            return &f->cause[i];
    }
    return NULL;
}

rank_status_t rk_coll_cause(const struct rank_team *team, bool prints, rank_status_t st, const char *fmt, ...)
{
    struct rk_failures *f = &team->ctx->coll->failures;
    struct rk_failure_cause *c;
    char text[sizeof(c->text)];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    c = find_cause(team->ctx, team->id);
    if (!c || (prints && !c->own)) {
        c = c ? c : &f->cause[f->ncauses++ % RK_FAILURE_CAUSES];
        c->team = team->id;
        c->own = prints;
        memcpy(c->text, text, sizeof(text));
    }
    return prints ? rk_fail(st, "%s", text) : rk_fail_silent(st, "%s", text);
}

rank_status_t rk_coll_explain(const struct rk_ctx *ctx, uint64_t team, rank_status_t st)
{
    const struct rk_failure_cause *c = find_cause(ctx, team);

    return c && !rk_is_lost(st) ? rk_fail_silent(st, "%s", c->text) : st;
}

void rk_coll_explain_request(const struct rank_request *req)
{
    rk_coll_explain(req->ctx, req->team, req->status);
}

rank_status_t rk_coll_returns(const struct rk_coll_call *c, rank_status_t st)
{
    struct rk_failure_cause *cause = find_cause(c->team->ctx, c->team->id);

    if (c->team->coll->arena && cause && !cause->own && st == RANK_ERR_COLLECTIVE) {
        rk_call_report_past(c->team->coll->arena); /* this rank had left the call that differs */
        cause->own = true; /* once */
    }
    return rk_call_returns(c->name, rk_coll_explain(c->team->ctx, c->team->id, st));
}

RK_COLD rank_status_t rk_coll_why_over(const struct rank_team *team)
{
    if (team->coll_failed == RK_COLL_FAILED && team->coll_failed_at <= rk_coll_number(team) + 1)
        return RANK_ERR_COLLECTIVE;
    return team->ndead > 0 || team->coll_failed == RK_COLL_LOST ? rk_team_lost(team) : RANK_OK;
}

_Static_assert(sizeof(struct rk_failure_frame) <= RK_CONTROL_MAX, "the frame may be queued");

bool rk_failure_decode(const void *payload, uint32_t len, struct rk_failure_frame *out)
{
    if (len != sizeof(*out))
        return false;
    memcpy(out, payload, sizeof(*out));
    return !(out->team & RK_TEAM_COLL) && out->src <= INT32_MAX && out->status < 0 && out->diff.arg < RK_CALL_ARGS;
}

/* ------------------------------------------------------------------ on this rank */

void rk_coll_end_team(struct rank_team *team, uint64_t number)
{
    if (team->ndead > 0 || (team->coll_failed && number >= team->coll_failed_at)) /* the first cause stays */
        return;
    team->coll_failed = RK_COLL_FAILED;
    team->coll_failed_at = number;
    rk_scheds_team_failed(&team->ctx->coll->scheds, team, number);
}

RK_COLD bool rk_coll_is_over(const struct rank_team *team)
{
    return team->ndead > 0 || team->coll_failed_at <= rk_coll_number(team);
}

static void send_failure(struct rk_ctx *ctx, int number, const struct rk_failure_frame *frame)
{
    struct rk_peer *peer = rk_engine_peer(ctx, number);

    if (!peer)
        rk_error("out of memory for a report of a failed collective to rank %d", number);
    else if (peer->state != RK_PEER_DEAD)
        rk_send_control(peer, RK_KIND_COLL_FAILED, 0, frame, sizeof(*frame));
}

static void send_to_team(const struct rk_failure_report *report)
{
    const struct rank_team *team = report->team;
    struct rk_failure_frame frame = {team->id, report->number, (uint32_t)team->rank, (int32_t)report->status, report->diff};

    for (int i = 1; i < team->size; i++) /* each rank begins with the next one */
        send_failure(team->ctx, rk_team_world_rank(team, (team->rank + i) % team->size), &frame);
}

int rk_failures_send(struct rk_ctx *ctx)
{
    struct rk_failures *f = &ctx->coll->failures;
    int n = 0;

    while (f->nreports > 0) {
        struct rk_failure_report report = f->report[--f->nreports];
        send_to_team(&report);
        n++;
    }
    return n;
}

void rk_coll_fail_team(struct rank_team *team, uint64_t number, rank_status_t status, const struct rk_call_diff *diff)
{
    struct rk_failures *f = &team->ctx->coll->failures;
    struct rk_failure_report report = {team, number, status, diff ? *diff : (struct rk_call_diff){.arg = RK_ARG_NONE}};

    if (team->coll_failed && number >= team->coll_failed_at)
        return;
    if (f->nreports < RK_FAILURE_REPORTS)
        f->report[f->nreports++] = report;
    else
        send_to_team(&report);
    rk_coll_end_team(team, number);
}

static RK_COLD void log_failure(const struct rank_team *team, unsigned kind, uint64_t number, rank_status_t status)
{
    char call[RK_CALL_TEXT];

    rk_call_text(team, kind, number, call, sizeof(call));
    rk_coll_cause(team, true, status, "%s failed: %s; so do all later collectives of the team", call, rank_status_string(status));
}

static void log_difference(const struct rank_team *team, uint64_t number, const struct rk_call_diff *diff)
{
    char a[16], b[16], text[RK_CALL_TEXT];

    snprintf(a, sizeof(a), "%d", diff->rank[0]);
    snprintf(b, sizeof(b), "%d", diff->rank[1]);
    rk_call_diff_text(team, number, diff, a, b, text, sizeof(text));
    rk_coll_cause(team, true, RANK_ERR_COLLECTIVE, "%s", text);
}

void rk_coll_differs(struct rank_team *team, uint64_t number, const struct rk_call_diff *diff)
{
    if (team->coll_over && (team->ndead > 0 || number >= team->coll_failed_at))
        return;
    log_difference(team, number, diff);
    rk_coll_fail_team(team, number, RANK_ERR_COLLECTIVE, diff);
}

RK_COLD rank_status_t rk_coll_failed_alone(const struct rk_coll_call *c, rank_status_t status)
{
    struct rank_team *team = c->team;

    if (team->size == 1)
        return status;
    log_failure(team, c->kind, rk_coll_number(team) + 1, status);
    rk_coll_fail_team(team, rk_coll_number(team) + 1, status, NULL);
    rk_failures_send(team->ctx);
    return status;
}

void rk_coll_sched_failed(struct rank_team *team, const struct rk_sched *s, rank_status_t status)
{
    if (team->coll && team->coll->arena)
        rk_arena_abandon(team->coll->arena, s->number);
    if (team->coll_failed && s->number >= team->coll_failed_at)
        return;
    if (rk_is_lost(status)) { /* each rank detects a death; a copy by the kernel may find it first */
        if (team->ndead == 0) {
            team->coll_failed = RK_COLL_LOST;
            team->coll_failed_at = 0;
        }
        return;
    }
    log_failure(team, s->kind, s->number, status);
    rk_coll_fail_team(team, s->number, status, NULL);
}

void rk_coll_open_failed(struct rk_ctx *ctx, uint64_t id, const int *world_ranks, int n, int me,
                         rank_status_t status)
{
    struct rk_failure_frame frame = {.team = id, .number = 0, .src = (uint32_t)me, .status = (int32_t)status};

    for (int i = 1; i < n; i++)
        send_failure(ctx, world_ranks[(me + i) % n], &frame);
}

/* --------------------------------------------------------------- on the other ranks */

static bool is_from_member(const struct rank_team *team, const struct rk_failure_frame *frame, int peer)
{
    return frame->src < (uint32_t)team->size && rk_team_world_rank(team, (int)frame->src) == peer;
}

static void apply_report(struct rank_team *team, const struct rk_failure_frame *frame, int peer)
{
    char text[RK_CALL_TEXT];

    if (!is_from_member(team, frame, peer)) {
        rk_engine_refused(team->ctx, &team->ctx->coll->failures.bad_frames);
        return;
    }
    if (frame->diff.arg == RK_ARG_NONE) {
        rk_info("rank %u of a team of %d ranks reports: collective %llu failed: %s", frame->src, team->size,
                (unsigned long long)frame->number, rank_status_string((rank_status_t)frame->status));
        rk_call_text(team, RK_COLL_COUNT, frame->number, text, sizeof(text));
        rk_coll_cause(team, false, RANK_ERR_COLLECTIVE, "%s failed on rank %u: %s", text, frame->src,
                      rank_status_string((rank_status_t)frame->status));
    } else if (!team->coll_over || (team->ndead == 0 && frame->number < team->coll_failed_at)) {
        log_difference(team, frame->number, &frame->diff);
    }
    rk_coll_end_team(team, frame->number);
}

void rk_failure_arrived(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr, const void *payload,
                        const struct rk_rndv *rndv)
{
    struct rk_failures *f = &ctx->coll->failures;
    struct rk_failure_frame frame;
    struct rank_team *team;

    (void)rndv;
    if (!rk_failure_decode(payload, hdr->len, &frame)) {
        rk_engine_refused(ctx, &f->bad_frames);
        return;
    }
    team = rk_team_find(ctx, frame.team);
    if (team) {
        apply_report(team, &frame, peer->number);
        return;
    }
    f->early[f->nearly] = (struct rk_failure_early){frame, peer->number + 1};
    f->nearly = (f->nearly + 1) % RK_FAILURE_EARLY;
}

void rk_failure_recall(struct rank_team *team)
{
    struct rk_failure_early *early = team->ctx->coll->failures.early;
    struct rk_failure_cause *old = find_cause(team->ctx, team->id);

    if (old) /* of a freed team with the same id */
        old->team = UINT64_MAX;
    for (int i = 0; i < RK_FAILURE_EARLY; i++) {
        if (!early[i].peer || early[i].frame.team != team->id)
            continue;
        apply_report(team, &early[i].frame, early[i].peer - 1);
        early[i].peer = 0;
    }
}

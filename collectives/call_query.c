/* SPDX-License-Identifier: BSD-3-Clause */
/* call_query.c: compare the calls of late schedules with those of other ranks. */
#include "collectives/call_query.h"
#include "collectives/call_text.h"
#include "collectives/coll_mismatch.h"
#include "lib/core/describe.h"

#include <string.h>

_Static_assert(sizeof(struct rk_call_frame) <= RK_CONTROL_MAX, "the frame may be queued");

enum { FIRST_TICKS = 2, END_TICKS = 8, TICKS_MAX = 64 };

bool rk_call_decode(const void *payload, uint32_t len, struct rk_call_frame *out)
{
    if (len != sizeof(*out))
        return false;
    memcpy(out, payload, sizeof(*out));
    return !(out->team & RK_TEAM_COLL) && out->number > 0 && out->src <= INT32_MAX && out->answer <= 1;
}

/* This rank's call with that number; false if it is not known, or has not begun. */
static bool find_call(const struct rank_team *team, uint64_t number, struct rk_call_note *out)
{
    const struct rk_coll_team *t = team->coll; /* NULL: freed, with calls under way */
    const struct rk_call_note *note = t ? &t->notes[number % RK_CALL_NOTES] : NULL;
    const struct rk_arena *a = t ? t->arena : NULL;
    const struct rk_link *active = &team->ctx->coll->scheds.active;
    struct rk_link *l;

    rk_list_for_each(l, active)
    {
        const struct rk_sched *s = rk_list_entry(l, struct rk_sched, link);

        if (s->team == team && s->number == number && s->call.form != RK_FORM_NONE) {
            *out = (struct rk_call_note){number, s->print, s->call};
            return true;
        }
    }
    if (note && note->number == number && number) {
        *out = *note;
        return true;
    }
    out->print = a ? atomic_load_explicit(&rk_call_line(a, number, a->me)->call, memory_order_relaxed) & 0xffff : 0;
    return a && number && rk_call_read(a, number, a->me, &out->desc);
}

/* All calls below are complete. The latest one may be under way without a schedule. */
static uint64_t first_open(const struct rank_team *team)
{
    const struct rk_link *active = &team->ctx->coll->scheds.active;
    uint64_t first = rk_coll_number(team);
    struct rk_link *l;

    rk_list_for_each(l, active)
    {
        const struct rk_sched *s = rk_list_entry(l, struct rk_sched, link);

        if (s->team == team && s->number < first)
            first = s->number;
    }
    return first;
}

static void send_call(const struct rank_team *team, int peer, uint64_t number, bool answer)
{
    /* A failed call is not complete, though its schedule has ended. */
    struct rk_call_frame frame = {.team = team->id, .number = number, .done = team->coll_over ? 0 : first_open(team),
                                  .src = (uint32_t)team->rank, .answer = answer};
    struct rk_peer *to = rk_engine_peer(team->ctx, peer);
    struct rk_call_note mine;

    if (find_call(team, number, &mine)) {
        frame.call = mine.desc;
        frame.print = mine.print;
    }
    if (to && to->state != RK_PEER_DEAD)
        rk_send_control(to, RK_KIND_COLL_CALL, 0, &frame, sizeof(frame));
}

/* ------------------------------------------------------------------------- late schedules */

/* Does a receive of the schedule that no message has matched, or a part in shared memory, wait for the peer? */
static bool awaits_gone_peer(const struct rk_sched *s, int peer)
{
    struct rk_wait_for w = {.npeers = 0};

    for (const struct rk_step *step = s->steps; step; step = step->next) {
        if (step->active && step->kind == RK_STEP_RECV && (step->req->flags & RK_REQ_POSTED) &&
            rk_team_world_rank(s->team, step->peer) == peer)
            return true;
    }
    rk_sched_describe_events(s, &w);
    for (uint32_t i = 0; i < w.npeers && i < RK_BOARD_PEERS; i++) {
        if (w.peers[i] == peer)
            return true;
    }
    return false;
}

static int member_of(const struct rank_team *team, int peer)
{
    int r = 0;

    while (r < team->size && rk_team_world_rank(team, r) != peer)
        r++;
    return r;
}

void rk_calls_check(struct rk_ctx *ctx)
{
    struct rk_link *l, *next;

    ctx->coll->tick = false;
    rk_list_for_each_safe(l, next, &ctx->coll->scheds.active)
    {
        struct rk_sched *s = rk_list_entry(l, struct rk_sched, link);
        struct rk_wait_for w = {.npeers = 0};

        if (s->gone && s->ticks > FIRST_TICKS && awaits_gone_peer(s, s->gone - 1)) {
            struct rk_call_diff diff = {RK_ARG_GONE, s->kind, {s->team->rank, member_of(s->team, s->gone - 1)}, {0, 0}};

            rk_coll_differs(s->team, s->number, &diff); /* ends others, too */
            ctx->coll->tick = true;
            return;
        }
        if (s->ticks > FIRST_TICKS) /* the query may name the difference */
            s->gone = 0;
        if (s->ticks < TICKS_MAX)
            s->ticks++;
        else
            s->ticks = TICKS_MAX / 2 + 1;
        if (s->team->coll_failed && s->ticks >= END_TICKS) { /* from a later call on */
            rk_sched_fail(s, RANK_ERR_COLLECTIVE); /* and with it others of the team */
            ctx->coll->tick = true;
            return;
        }
        if (s->ticks < FIRST_TICKS || (s->ticks & (s->ticks - 1)))
            continue;
        rk_sched_describe(s, &w);
        for (uint32_t i = 0; i < w.npeers && i < RK_BOARD_PEERS; i++)
            send_call(s->team, w.peers[i], s->number, false);
    }
}

/* -------------------------------------------------------------------- on the other ranks */

/* The sender has completed these calls. */
static void note_gone(const struct rank_team *team, uint64_t done, int peer)
{
    struct rk_link *l;

    rk_list_for_each(l, &team->ctx->coll->scheds.active)
    {
        struct rk_sched *s = rk_list_entry(l, struct rk_sched, link);

        if (s->team == team && s->number < done)
            s->gone = peer + 1;
    }
}

/* Returns true if the calls of the two ranks have differed so far. */
static bool compare_call(struct rank_team *team, const struct rk_call_frame *f, int peer)
{
    struct rk_call_note mine;
    struct rk_call_diff diff = {RK_ARG_EARLIER, f->call.kind, {team->rank, (int)f->src}, {0, 0}};

    if (f->call.form == RK_FORM_NONE || !find_call(team, f->number, &mine))
        return false;
    if (!rk_call_compare(&mine.desc, team->rank, &f->call, (int)f->src, &diff)) {
        if (mine.print == f->print)
            return false;
        if (find_call(team, f->number - 1, &mine)) {
            send_call(team, peer, f->number - 1, false);
            return true;
        }
    }
    rk_coll_differs(team, f->number, &diff);
    return true;
}

void rk_call_arrived(struct rk_ctx *ctx, struct rk_peer *peer, const struct rk_hdr *hdr, const void *payload,
                     const struct rk_rndv *rndv)
{
    struct rk_call_frame f;
    struct rank_team *team;

    (void)rndv;
    if (!rk_call_decode(payload, hdr->len, &f)) {
        rk_engine_refused(ctx, &ctx->coll->failures.bad_frames);
        return;
    }
    team = rk_team_find(ctx, f.team);
    if (!team) /* not created yet: the sender repeats it */
        return;
    if (f.src >= (uint32_t)team->size || rk_team_world_rank(team, (int)f.src) != peer->number) {
        rk_engine_refused(ctx, &ctx->coll->failures.bad_frames);
        return;
    }
    note_gone(team, f.done, peer->number);
    if (!compare_call(team, &f, peer->number) && !f.answer && f.number < first_open(team))
        send_call(team, peer->number, f.number, true);
}

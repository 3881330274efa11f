/* SPDX-License-Identifier: BSD-3-Clause */
/* describe_coll.c: describe the waits of collectives for the status board. */
#include "collectives/call_text.h"
#include "collectives/state.h"
#include "collectives/shm/slot.h"
#include "collectives/shm/direct.h"
#include "collectives/shm/lines.h"
#include "collectives/shm/slices.h"
#include "lib/core/describe.h"

static void describe_schedules(const struct rank_team *team, uint8_t kind, uint64_t number,
                               struct rk_wait_for *out)
{
    rk_describe_call(out, "%s", rk_coll_kind_name(kind));
    out->flags |= RK_WAIT_TEAM;
    out->team = team->id;
    out->team_size = (uint32_t)team->size;
    out->number = number;
}

static void describe_member(const struct rank_team *team, int r, struct rk_wait_for *out)
{
    rk_describe_peer(out, rk_team_world_rank(team, r));
}

uint64_t rk_coll_number(const struct rank_team *team)
{
    const struct rk_arena *a = team->coll ? team->coll->arena : NULL;

    return a ? rk_arena_call_number(team, a) : team->coll_seq;
}

/* ------------------------------------------------------------ through shared memory */

/* Index of the line that holds turn among n lines, or -1. */
static ptrdiff_t line_of(const struct rk_slot_line *lines, size_t n, const _Atomic uint64_t *turn)
{
    uintptr_t first = (uintptr_t)lines, at = (uintptr_t)turn;

    return at >= first && at < first + n * sizeof(*lines)
               ? (ptrdiff_t)((at - first) / sizeof(*lines))
               : -1;
}

/* List all ranks that have not begun the turn, not only the one awaited now. */
static void describe_missing(const struct rk_arena *a, uint64_t turn, struct rk_wait_for *out)
{
    const struct rk_slot_line *line = &a->all[(turn % RK_ALL_SLOTS) * (size_t)a->n];

    for (int r = 0; r < a->n; r++) {
        if ((int64_t)((atomic_load_explicit(&line[r].turn, memory_order_relaxed) - turn) << RK_CALL_BITS) < 0)
            describe_member(a->team, r, out);
    }
}

int rk_turn_owner(const struct rk_arena *a, const _Atomic uint64_t *turn)
{
    size_t n = (size_t)a->n, groups = (size_t)a->groups;
    ptrdiff_t i;

    if ((i = line_of(a->left, n, turn)) >= 0)
        return (int)i;
    if ((i = line_of(a->all, RK_ALL_SLOTS * n, turn)) >= 0 || (i = line_of(a->rooted, RK_ROOTED_SLOTS * n, turn)) >= 0)
        return (int)((size_t)i % n);
    if ((i = line_of(a->up, RK_ALL_SLOTS * groups, turn)) >= 0 || (i = line_of(a->down, RK_ALL_SLOTS * groups, turn)) >= 0)
        return (int)((size_t)i % groups) * RK_FLAT_MAX;
    return -1;
}

void rk_turn_describe(const struct rk_wait *wait, struct rk_wait_for *out)
{
    const struct rk_turn_wait *w = (const struct rk_turn_wait *)wait;
    const struct rk_arena *a = w->arena;
    const struct rank_team *team = a->team;
    size_t n = (size_t)a->n, groups = (size_t)a->groups;
    ptrdiff_t i;

    describe_schedules(team, a->kind, rk_coll_number(team), out);
    if ((i = line_of(a->rooted, RK_ROOTED_SLOTS * n, w->turn)) >= 0) {
        describe_member(team, (int)((size_t)i % n), out);
    } else if ((i = line_of(a->left, n, w->turn)) >= 0) {
        describe_member(team, (int)i, out);
    } else {
        describe_missing(a, a->all_turn, out);
        if (out->npeers)
            return;
        /* All have begun: a rank that forwards results is late. */
        if ((i = line_of(a->all, RK_ALL_SLOTS * n, w->turn)) >= 0)
            describe_member(team, (int)((size_t)i % n), out);
        else if ((i = line_of(a->up, RK_ALL_SLOTS * groups, w->turn)) >= 0 ||
                 (i = line_of(a->down, RK_ALL_SLOTS * groups, w->turn)) >= 0)
            describe_member(team, (int)((size_t)i % groups) * RK_FLAT_MAX, out);
    }
}

/* ------------------------------------------------------------------------ schedules */

static void describe_steps(const struct rk_sched *s, uint8_t kind, struct rk_wait_for *out)
{
    for (const struct rk_step *step = s->steps; step; step = step->next) {
        bool seen = false;

        if (!step->active || step->kind != kind)
            continue;
        for (uint32_t i = 0; i < out->npeers && i < RK_BOARD_PEERS; i++)
            seen = seen || out->peers[i] == rk_team_world_rank(s->team, step->peer);
        if (!seen)
            describe_member(s->team, step->peer, out);
    }
}

void rk_sched_describe_events(const struct rk_sched *s, struct rk_wait_for *out)
{
    for (const struct rk_step *step = s->steps; step; step = step->next) {
        if (step->kind == RK_STEP_EVENT && step->fn.event == rk_slices_advance)
            rk_slices_describe(step->to, out);
        else if (step->kind == RK_STEP_EVENT && step->fn.event == rk_direct_advance)
            rk_direct_describe(step->to, out);
        else if (step->kind == RK_STEP_EVENT && step->fn.event == rk_lines_advance)
            rk_lines_describe(step->to, out);
    }
}

void rk_sched_describe(const struct rk_sched *s, struct rk_wait_for *out)
{
    describe_schedules(s->team, s->kind, s->number, out);
    describe_steps(s, RK_STEP_RECV, out);
    if (out->npeers == 0)
        describe_steps(s, RK_STEP_SEND, out);
    if (out->npeers == 0)
        rk_sched_describe_events(s, out);
}

void rk_coll_describe(const struct rank_request *req, struct rk_wait_for *out)
{
    struct rk_link *l;

    rk_list_for_each(l, &req->ctx->coll->scheds.active)
    {
        const struct rk_sched *s = rk_list_entry(l, struct rk_sched, link);
        if (s->req != req)
            continue;
        rk_sched_describe(s, out);
        return;
    }
    rk_describe_call(out, "end of a collective"); /* a failed one */
}

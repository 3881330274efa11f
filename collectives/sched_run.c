/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sched_run.c: run schedules, and end them when a peer dies.
 *
 * A failed schedule cancels unmatched receives and queued sends, and waits for the rest: a peer may be copying
 * from or into the caller's memory. An announced send may never be matched, so the wait is limited. A schedule
 * with such sends becomes an orphan, which keeps its memory until the channel releases it.
 */
#include "collectives/coll_trace.h"
#include "lib/base/clock.h"
#include "lib/base/timing.h"

#include <string.h>

static void sched_run_run(struct rk_sched *s);

static void push_ready(struct rk_sched *s, struct rk_step *step)
{
    step->ready = NULL;
    *s->ready_last = step;
    s->ready_last = &step->ready;
}

static struct rk_step *pop_ready(struct rk_sched *s)
{
    struct rk_step *step = s->ready;

    if (step) {
        s->ready = step->ready;
        if (!s->ready)
            s->ready_last = &s->ready;
    }
    return step;
}

static void step_done(struct rk_sched *s, struct rk_step *step)
{
    s->left--;
    for (struct rk_edge *e = step->out; e; e = e->next) {
        if (--e->to->pending == 0)
            push_ready(s, e->to);
    }
}

/* Marks it only: this may run inside a channel or within p2p's tables. */
void rk_sched_fail(struct rk_sched *s, rank_status_t status)
{
    struct rank_team *team = s->team;

    if (s->status)
        return;
    s->status = status;
    s->team = NULL;
    rk_list_remove(&s->link);
    rk_list_append(&s->all->failing, &s->link);
    if (s->all->failed)
        s->all->failed(team, s, status);
}

/* Print the line of a call that has ended. */
static RK_COLD void sched_run_trace(struct rk_sched *s)
{
    rk_trace_end(s->trace, s->status);
    s->trace = NULL;
}

void rk_sched_line_init(struct rk_sched_line *line)
{
    line->started = line->done = 0;
    rk_list_init(&line->waiting);
}

/* The event of the schedule that has its turn now is checked from now on. Many may wait: they are not checked. */
void rk_sched_leave_line(struct rk_sched *s, int i)
{
    struct rk_sched_line *line = s->place[i].line;
    struct rk_link *l, *next;

    if (!s->place[i].held)
        return;
    s->place[i].held = false;
    line->done++;
    rk_list_for_each_safe(l, next, &line->waiting)
    {
        struct rk_step *step = rk_list_entry(l, struct rk_step, link);

        if (rk_sched_has_turn(step->sched, step->line)) {
            rk_list_remove(l);
            rk_list_append(&s->all->events, l);
            return;
        }
    }
}

/* Complete the request and release the schedule. */
static void sched_run_complete(struct rk_sched *s)
{
    struct rank_request *req = s->req;
    rank_status_t status = s->status;

    s->req = NULL;
    if (rk_unlikely(s->trace != NULL))
        sched_run_trace(s);
    for (int i = 0; i < RK_SCHED_LINES && !status; i++)
        rk_sched_leave_line(s, i);
    rk_list_remove(&s->link);
    if (!s->kept)
        rk_sched_free(s);
    if (req)
        rk_req_complete(req, status);
}

static void request_done(struct rank_request *req, void *arg)
{
    struct rk_step *step = arg;
    struct rk_sched *s = step->sched;

    step->active = false;
    s->inflight--;
    if (rk_unlikely(s->status)) {
        if (!s->req && s->torn && s->inflight == 0)
            sched_run_complete(s); /* an orphan ends */
        return;
    }
    if (rk_unlikely(req->status)) {
        rk_sched_fail(s, req->status);
        return;
    }
    if (rk_unlikely(step->kind == RK_STEP_RECV && req->got != step->n)) { /* the sender has passed another count */
        rk_sched_fail(s, RANK_ERR_COLLECTIVE);
        return;
    }
    step_done(s, step);
    if (!s->running)
        sched_run_run(s);
}

static void sched_run_start(struct rk_sched *s, struct rk_step *step)
{
    uint64_t seq = s->seq & ((1u << RK_SCHED_SEQ_BITS) - 1);
    uint64_t tag = (seq << RK_CALL_BITS | s->print) << RK_SCHED_TAG_BITS | step->tag;
    rank_status_t st;

    switch ((enum rk_step_kind)step->kind) {
    case RK_STEP_SEND:
    case RK_STEP_RECV:
        rk_req_init(step->req, request_done, step);
        step->active = true;
        s->inflight++;
        if (step->kind == RK_STEP_SEND)
            rk_p2p_isend(s->team, step->a, step->n, step->peer, tag, RK_TEAM_COLL, step->req);
        else
            rk_p2p_irecv(s->team, step->to, step->n, step->peer, tag, RK_TEAM_COLL, step->req);
        return;
    case RK_STEP_REDUCE:
        rk_reduce(&s->reducer, step->to, step->a, step->b, step->n);
        break;
    case RK_STEP_COPY:
        if (step->n && step->to != step->a)
            memcpy(step->to, step->a, step->n);
        break;
    case RK_STEP_EVENT:
        if (step->line >= 0 && !rk_sched_has_turn(s, step->line)) {
            rk_list_append(&s->place[step->line].line->waiting, &step->link);
            return;
        }
        if (!step->fn.event(step->to)) {
            rk_list_append(&s->all->events, &step->link);
            return;
        }
        break;
    case RK_STEP_CALL:
        st = step->fn.call(step->to);
        if (st) {
            rk_sched_fail(s, st);
            return;
        }
        break;
    case RK_STEP_JOIN:
        break;
    }
    step_done(s, step);
}

/* Begin with the steps that have no predecessor. */
static void push_first(struct rk_sched *s)
{
    s->left = s->nsteps;
    s->ready = NULL;
    s->ready_last = &s->ready;
    for (struct rk_step *step = s->steps; step; step = step->next) {
        if (step->pending == 0)
            push_ready(s, step);
    }
}

/* All steps are done: are there more? */
static bool sched_run_more(struct rk_sched *s)
{
    rank_status_t st;

    if (rk_likely(!s->more) || !s->more(s, false))
        return false;
    st = s->status;
    s->status = RANK_OK;
    if (st)
        rk_sched_fail(s, st);
    else
        push_first(s);
    return true;
}

static void sched_run_run(struct rk_sched *s)
{
    struct rk_step *step;

    s->running = true;
    do {
        while (!s->status && (step = pop_ready(s)) != NULL)
            sched_run_start(s, step);
    } while (s->left == 0 && !s->status && sched_run_more(s));
    s->running = false;
    if (s->left == 0 && !s->status)
        sched_run_complete(s);
}

void rk_sched_start(struct rk_sched *s, struct rank_request *req)
{
    s->req = req;
    s->ticks = 0;
    s->gone = 0;
    if (rk_unlikely(s->status)) { /* out of memory while it was built */
        if (s->all->failed)
            s->all->failed(s->team, s, s->status);
        sched_run_complete(s);
        return;
    }
    rk_list_append(&s->all->active, &s->link);
    for (int i = 0; i < RK_SCHED_LINES; i++) {
        if (s->place[i].line) {
            s->place[i].number = s->place[i].line->started++;
            s->place[i].held = true;
        }
    }
    push_first(s);
    sched_run_run(s);
}

/* ------------------------------------------------------------------------- failure */

static void take_back(struct rk_step *step)
{
    struct rank_request *req = step->req;

    if (step->kind == RK_STEP_RECV) {
        rk_p2p_cancel_recv(req, RANK_ERR_PEER_DEAD);
    } else if (req->flags & RK_REQ_QUEUED) {
        rk_list_remove(&req->link);
        req->flags &= (uint8_t)~RK_REQ_QUEUED;
        rk_req_complete(req, RANK_ERR_PEER_DEAD);
    }
}

static void tear_down(struct rk_sched *s)
{
    s->torn = true;
    s->deadline = rk_clock_ns() + RK_COLL_GRACE_NS;
    for (struct rk_step *step = s->steps; step; step = step->next) {
        if (step->active)
            take_back(step);
        else if (step->kind == RK_STEP_EVENT)
            rk_list_remove(&step->link);
    }
}

static bool receives_under_way(const struct rk_sched *s)
{
    for (const struct rk_step *step = s->steps; step; step = step->next) {
        if (step->active && step->kind == RK_STEP_RECV)
            return true;
    }
    return false;
}

static int push_failing(struct rk_sched *s)
{
    if (!s->torn)
        tear_down(s);
    if (s->inflight == 0) {
        sched_run_complete(s);
        return 1;
    }
    /*
     * Its memory must not be freed while a peer writes to it: a live peer finishes soon, and a dead peer's
     * receives end.
     */
    if (rk_clock_ns() > s->deadline && !receives_under_way(s)) {
        struct rank_request *req = s->req;
        if (s->trace)
            sched_run_trace(s);
        s->req = NULL;
        s->kept = false;
        if (s->owner)
            *s->owner = NULL;
        rk_list_remove(&s->link);
        rk_list_append(&s->all->orphans, &s->link);
        if (req)
            rk_req_complete(req, s->status);
        return 1;
    }
    return 0;
}

void rk_scheds_peer_died(struct rk_scheds *all)
{
    struct rk_link *l, *next;

    rk_list_for_each_safe(l, next, &all->active)
    {
        struct rk_sched *s = rk_list_entry(l, struct rk_sched, link);
        if (s->team->ndead > 0)
            rk_sched_fail(s, rk_team_lost(s->team));
    }
    rk_scheds_progress(all);
}

void rk_scheds_team_failed(struct rk_scheds *all, const struct rank_team *team, uint64_t number)
{
    struct rk_link *l, *next;

    rk_list_for_each_safe(l, next, &all->active)
    {
        struct rk_sched *s = rk_list_entry(l, struct rk_sched, link);
        if (s->team != team)
            continue;
        if (s->number >= number)
            rk_sched_fail(s, RANK_ERR_COLLECTIVE);
        else
            s->ticks = 0; /* from now on it has END_TICKS (call_query.c) */
    }
}

static int poll_events(struct rk_scheds *all)
{
    struct rk_link *l, *next, ready;
    uint64_t moved = all->moved;
    int n;

    rk_list_init(&ready);
    rk_list_for_each_safe(l, next, &all->events)
    {
        struct rk_step *step = rk_list_entry(l, struct rk_step, link);
        if (!step->sched->status && step->fn.event(step->to)) {
            rk_list_remove(l);
            rk_list_append(&ready, l);
        }
    }
    n = all->moved != moved;
    while (!rk_list_empty(&ready)) { /* a step may add events, or fail other schedules */
        struct rk_step *step = rk_list_entry(ready.next, struct rk_step, link);
        rk_list_remove(&step->link);
        n++;
        if (step->sched->status)
            continue;
        step_done(step->sched, step);
        if (!step->sched->running)
            sched_run_run(step->sched);
    }
    return n;
}

int rk_scheds_progress(struct rk_scheds *all)
{
    struct rk_link *l, *next;
    int n = 0;

    rk_list_for_each_safe(l, next, &all->failing)
        n += push_failing(rk_list_entry(l, struct rk_sched, link));
    if (!rk_list_empty(&all->events))
        n += poll_events(all);
    return n;
}

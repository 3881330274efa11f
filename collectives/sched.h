/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sched.h: run a collective as a schedule: steps with dependencies.
 *
 * A step starts when all steps before it are done. Sends and receives complete through their requests, inside
 * progress; other kinds run where they become ready. Steps and scratch memory come from the schedule's arena.
 * Schedules and arenas are recycled, so a collective allocates nothing in the steady state. A completed schedule
 * can be rearmed.
 *
 * Frames of collectives have the team's id with RK_TEAM_COLL, and a tag of the collective's number in the team, its
 * print and the builder's message number. The print is a hash of the team's calls so far, so messages of ranks that make
 * different calls do not match (coll_mismatch.h).
 *
 * Builders need not check for lack of memory: the functions below then return NULL, which they also accept, and
 * starting the schedule reports it.
 */
#ifndef RK_COLL_SCHED_H
#define RK_COLL_SCHED_H

#include "collectives/op/op.h"
#include "lib/base/list.h"
#include "lib/p2p/p2p.h"

enum {
    RK_SCHED_TAG_BITS = 24,
    RK_CALL_BITS = 16, /* of a print; in a turn word of an arena, too */
    RK_SCHED_SEQ_BITS = 63 - RK_CALL_BITS - RK_SCHED_TAG_BITS /* of the number: fewer calls are under way */
};
#define RK_CALL_MASK (~(UINT64_MAX >> RK_CALL_BITS))

enum rk_step_kind {
    RK_STEP_JOIN, /* nothing: joins its predecessors */
    RK_STEP_SEND,
    RK_STEP_RECV,
    RK_STEP_REDUCE,
    RK_STEP_COPY,
    RK_STEP_EVENT, /* waits for an external event, checked in every progress call */
    RK_STEP_CALL   /* calls a function */
};

struct rk_edge {
    struct rk_edge *next;
    struct rk_step *to;
};

struct rk_step {
    struct rk_sched *sched;
    struct rk_step *next;  /* all steps, in order of creation */
    struct rk_step *ready;
    struct rk_edge *out;
    uint32_t waits_for, pending; /* predecessors: all, and those not done */
    uint8_t kind;
    bool active;
    int8_t line;      /* EVENT: checked only while its schedule has its turn at this place; negative: always */
    int peer;
    uint32_t tag;
    void *to;         /* buffer of a receive; destination */
    const void *a, *b; /* buffer of a send; sources */
    size_t n;         /* bytes; elements of a reduction */
    union {
        bool (*event)(void *arg);
        rank_status_t (*call)(void *arg);
    } fn;
    struct rk_link link; /* EVENT, while pending */
    struct rank_request req[]; /* of SEND and RECV */
};

struct rk_sched_block;
struct rk_trace;
struct rk_segments;
struct rk_deferred;

/* A place in a schedule's memory. */
struct rk_sched_mark {
    struct rk_sched_block *block;
    size_t used;
};

/*
 * Schedules that use something one after another. They line up at their start, which comes in the same order on all
 * members of a team.
 */
struct rk_sched_line {
    uint64_t started, done; /* schedules */
    struct rk_link waiting; /* EVENT steps of schedules that have no turn */
};

enum { RK_SCHED_LINES = 2 }; /* of a schedule, at most */

struct rk_sched_place {
    struct rk_sched_line *line; /* NULL: none */
    uint64_t number;
    bool held; /* from the start on, until it has left */
};

/* Forms of a call: ranks call the same one. */
enum rk_call_form { RK_FORM_NONE, RK_FORM_BLOCKING, RK_FORM_NONBLOCKING, RK_FORM_PERSISTENT };

/* Arguments of a call that are equal on all ranks. */
struct rk_call_desc {
    int64_t count; /* -1: differs between ranks */
    uint64_t dtype, op;
    uint64_t counts; /* hash of the list of counts that is equal on all ranks; 0: none */
    int32_t root;    /* -1: none */
    uint16_t kind, form; /* RK_FORM_NONE: not known */
};

struct rk_sched {
    struct rk_scheds *all;
    struct rank_team *team; /* unused once the schedule has failed */
    uint64_t seq;
    struct rk_sched_block *blocks, *block; /* all, and the current one */
    size_t held;           /* bytes in blocks, while in the pool */
    struct rk_step *steps, **last;
    struct rk_step *ready, **ready_last;
    const struct rk_phase *phase; /* while it is built; NULL: the ranks are the team's */
    struct rk_step *entry; /* what precedes steps without a predecessor */
    uint32_t nsteps, left; /* steps: all, and those not done */
    uint32_t inflight;     /* requests in progress */
    bool running;          /* in the loop that starts steps */
    bool torn;             /* failed, with everything possible cancelled */
    bool kept;             /* does not return to the pool when done */
    /* All steps are done: replace them by further ones, or return false at the end. again: by the first. NULL: no more. */
    bool (*more)(struct rk_sched *s, bool again);
    struct rk_sched_mark mark; /* end of the memory that lasts while steps are replaced */
    struct rk_deferred *deferred; /* host_arena.h */
    struct rk_segments *segments; /* what it builds */
    const struct rk_hosts *hosts; /* for builders that need it; set before them */
    struct rk_sched_place place[RK_SCHED_LINES];
    struct rk_sched **owner; /* of a kept one: becomes NULL if it turns into an orphan; or NULL */
    struct rk_reducer reducer; /* of REDUCE steps; set it before they run */
    uint8_t kind;          /* enum rk_coll_kind, for describe_coll.c */
    uint8_t ticks;         /* since its start, of the rare check (call_query.c) */
    int gone;              /* number of a peer that has completed the call, plus one; 0: none is known */
    uint64_t print;        /* RK_CALL_BITS of the hash of the team's calls, with this one; 0: it is no call */
    struct rk_call_desc call;
    struct rk_trace *trace; /* coll_trace.h, in scratch memory; NULL: off */
    uint64_t number;       /* of all collectives of the team, from 1: for describe_coll.c */
    rank_status_t status;
    uint64_t deadline;     /* failed: end of waiting for its peers */
    struct rank_request *req; /* completed at the end */
    struct rk_link link;   /* in a list below, or in the pool */
};

/* All schedules of a context. */
struct rk_scheds {
    struct rk_ctx *ctx;
    struct rk_link active;
    struct rk_link failing; /* cancelled what is posted; waiting for the rest */
    struct rk_link orphans; /* failed and reported, with sends that were never matched */
    struct rk_link events;  /* steps that wait for an external event */
    struct rk_link pool;
    int npool;
    size_t held;            /* memory of the pool's schedules */
    /* A schedule fails on this rank; runs within progress, sends nothing. NULL: none. */
    void (*failed)(struct rank_team *team, const struct rk_sched *s, rank_status_t status);
    uint64_t moved;         /* parts of events that are done: progress, too */
};

void rk_scheds_init(struct rk_scheds *all, struct rk_ctx *ctx);
/* Frees everything. Requests of running schedules must have ended (channels closed). */
void rk_scheds_destroy(struct rk_scheds *all);
/* Call in every progress call while rk_scheds_busy; returns what was moved. */
int rk_scheds_progress(struct rk_scheds *all);
RK_INLINE bool rk_scheds_busy(const struct rk_scheds *all)
{
    return !rk_list_empty(&all->failing) || !rk_list_empty(&all->events);
}
/* Fail each active schedule of a team that has lost a member. */
void rk_scheds_peer_died(struct rk_scheds *all);

/* Fail each active schedule of a team from this number on. Runs within progress. */
void rk_scheds_team_failed(struct rk_scheds *all, const struct rank_team *team, uint64_t number);

/* Empty schedule for collective number seq of the team; NULL if out of memory. */
struct rk_sched *rk_sched_new(struct rk_scheds *all, struct rank_team *team, uint64_t seq);
/* Free one that was not started, or is kept and done. No-op if NULL. */
void rk_sched_free(struct rk_sched *s);

/*
 * Memory with the schedule's lifetime, aligned to a cache line. Never NULL: without memory the schedule will not
 * start.
 */
void *rk_sched_scratch(struct rk_sched *s, size_t bytes);

/* Keep all memory so far while steps are replaced; drop all steps, and the memory since then. */
void rk_sched_keep(struct rk_sched *s);
void rk_sched_reset(struct rk_sched *s);

/* Add a step. after: predecessor, or NULL; add more by rk_sched_order. */
struct rk_step *rk_sched_send(struct rk_sched *s, struct rk_step *after, int peer, uint32_t tag,
                              const void *buf, size_t bytes);
struct rk_step *rk_sched_recv(struct rk_sched *s, struct rk_step *after, int peer, uint32_t tag,
                              void *buf, size_t bytes);
/* dst[i] = a[i] op b[i] for n elements, by the schedule's reducer; dst may be a or b. */
struct rk_step *rk_sched_reduce(struct rk_sched *s, struct rk_step *after, void *dst, const void *a, const void *b,
                                size_t n);
struct rk_step *rk_sched_copy(struct rk_sched *s, struct rk_step *after, void *dst,
                              const void *src, size_t bytes);
struct rk_step *rk_sched_event(struct rk_sched *s, struct rk_step *after, bool (*event)(void *),
                               void *arg);
struct rk_step *rk_sched_call(struct rk_sched *s, struct rk_step *after,
                              rank_status_t (*call)(void *), void *arg);
struct rk_step *rk_sched_join(struct rk_sched *s, struct rk_step *after, struct rk_step *after_too);
void rk_sched_order(struct rk_step *first, struct rk_step *then);

/*
 * Part of a schedule among some ranks of the team, made by the builders of whole collectives. They see a team of n
 * ranks; their peers and tags are translated.
 */
struct rk_phase {
    const int *ranks; /* of the team, n of them */
    int n, me;        /* own place among them */
    uint32_t tag;     /* below RK_PHASES; equal on all of ranks, and used for one phase between any two of them */
};
enum { RK_PHASE_TAG_BITS = 21, RK_PHASES = 1 << (RK_SCHED_TAG_BITS - RK_PHASE_TAG_BITS) };

/* Steps up to rk_sched_leave are the phase's; they begin after all steps of earlier phases. */
void rk_sched_enter(struct rk_sched *s, const struct rk_phase *phase);
void rk_sched_leave(struct rk_sched *s);

/*
 * Start; req, prepared by rk_sched_request, completes when all steps are done. Unless kept, the schedule then
 * returns to the pool.
 */
void rk_sched_start(struct rk_sched *s, struct rank_request *req);
/* Fail a running schedule. An event that does returns false. */
void rk_sched_fail(struct rk_sched *s, rank_status_t status);
/*
 * Line up at each start, at place i. The schedule has its turn when those before it have left, and leaves when it is
 * complete, or earlier. It must not leave or complete without its turn. A failed one never leaves the line.
 */
RK_INLINE void rk_sched_line_up(struct rk_sched *s, int i, struct rk_sched_line *line)
{
    s->place[i].line = line;
}
RK_INLINE bool rk_sched_has_turn(const struct rk_sched *s, int i)
{
    return !s->place[i].line || !s->place[i].held || s->place[i].line->done == s->place[i].number;
}
void rk_sched_line_init(struct rk_sched_line *line);
/* Check an event only while the schedule has its turn. No-op if NULL. */
RK_INLINE void rk_sched_in_line(struct rk_step *event, int i)
{
    if (event)
        event->line = (int8_t)i;
}
/* No-op if the schedule is not in the line, or has left it. */
void rk_sched_leave_line(struct rk_sched *s, int i);
/* Prepare a kept, completed schedule to start again, as collective number seq. */
void rk_sched_rearm(struct rk_sched *s, uint64_t seq);

RK_INLINE void rk_sched_request(struct rank_request *req, struct rk_ctx *ctx)
{
    req->magic = RK_REQ_MAGIC;
    req->type = RK_REQ_COLL;
    req->done = false;
    req->status = RANK_OK;
    req->ctx = ctx;
    req->peer = NULL;
    req->elem = 1;
    req->got = req->sent = 0;
}

#endif

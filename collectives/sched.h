/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sched.h: a collective is a schedule: a few steps with dependencies, run by
 * the progress engine.
 *
 * A step starts as soon as all steps before it are done. Sends and receives
 * complete through their requests, inside progress; the other kinds run where
 * they become ready. Steps and scratch memory come from the schedule's own
 * arena; schedules and their arenas are recycled, so that a collective in the
 * steady state allocates nothing. A schedule that is done can be armed again.
 *
 * Frames of collectives bear the team's id with RK_TEAM_COLL and a tag made
 * of the collective's number in the team and the number that a builder gives
 * to the message.
 *
 * Builders need not check for lack of memory: the functions below then return
 * NULL, which they also take, and the schedule's start reports it.
 */
#ifndef RK_COLL_SCHED_H
#define RK_COLL_SCHED_H

#include "collectives/op.h"
#include "lib/base/list.h"
#include "lib/p2p/p2p.h"

enum { RK_SCHED_TAG_BITS = 24 };

enum rk_step_kind {
    RK_STEP_JOIN, /* nothing: waits for all that come before */
    RK_STEP_SEND,
    RK_STEP_RECV,
    RK_STEP_REDUCE,
    RK_STEP_COPY,
    RK_STEP_EVENT, /* waits for something outside, asked for in every progress */
    RK_STEP_CALL   /* calls back */
};

struct rk_edge {
    struct rk_edge *next;
    struct rk_step *to;
};

struct rk_step {
    struct rk_sched *sched;
    struct rk_step *next;  /* of all, in order of making */
    struct rk_step *ready; /* of those that are ready */
    struct rk_edge *out;
    uint32_t waits_for, pending; /* steps before this one: all, and not yet done */
    uint8_t kind;
    bool active;
    int peer;
    uint32_t tag;
    void *to;         /* buffer of a receive; destination */
    const void *a, *b; /* buffer of a send; sources */
    size_t n;         /* bytes; elements of a reduction */
    union {
        rk_op_fn reduce;
        bool (*event)(void *arg);
        rank_status_t (*call)(void *arg);
    } fn;
    struct rk_link link; /* EVENT, while waited for */
    struct rank_request req[]; /* SEND and RECV have one */
};

struct rk_sched_block;

struct rk_sched {
    struct rk_scheds *all;
    struct rank_team *team; /* not looked at any more once the schedule has failed */
    uint64_t seq;
    struct rk_sched_block *blocks, *block; /* all, the one in use */
    size_t held;           /* bytes in blocks, while in the pool */
    struct rk_step *steps, **last;
    struct rk_step *ready, **ready_last;
    uint32_t nsteps, left; /* steps: all, and not yet done */
    uint32_t inflight;     /* requests under way */
    bool running;          /* in the loop that starts steps */
    bool torn;             /* failed, and has taken back what can be */
    bool kept;             /* does not go back to the pool when done */
    uint8_t kind;          /* enum rk_coll_kind, for tell.c */
    uint64_t number;       /* of all collectives of the team, from 1 on: for tell.c */
    rank_status_t status;
    uint64_t deadline;     /* of a failed one: when it stops waiting for its peers */
    struct rank_request *req; /* who is to be told */
    struct rk_link link;   /* in one of the lists below, or the pool's chain */
};

/* All schedules of a context. */
struct rk_scheds {
    struct rk_ctx *ctx;
    struct rk_link active;
    struct rk_link failing; /* take back what is posted, wait for the rest */
    struct rk_link orphans; /* failed, reported, and some of their sends were never matched */
    struct rk_link events;  /* steps that wait for something outside */
    struct rk_link pool;
    int npool;
    size_t held;            /* memory of the pool's schedules */
};

void rk_scheds_init(struct rk_scheds *all, struct rk_ctx *ctx);
/* Frees everything. Requests of schedules that still run must be gone (channels closed). */
void rk_scheds_destroy(struct rk_scheds *all);
/* To be called in every progress while rk_scheds_busy; returns what was moved. */
int rk_scheds_progress(struct rk_scheds *all);
RK_INLINE bool rk_scheds_busy(const struct rk_scheds *all)
{
    return !rk_list_empty(&all->failing) || !rk_list_empty(&all->events);
}
/* Fail each active schedule whose team has lost a member. */
void rk_scheds_peer_died(struct rk_scheds *all);

/* An empty schedule for collective number seq of the team; NULL without memory. */
struct rk_sched *rk_sched_new(struct rk_scheds *all, struct rank_team *team, uint64_t seq);
/* Give back one that was not started, or is kept and done. NULL is fine. */
void rk_sched_free(struct rk_sched *s);

/* Memory that lives as long as the schedule, aligned to a cache line. Never NULL: without memory
 * the schedule will not start. */
void *rk_sched_scratch(struct rk_sched *s, size_t bytes);

/* Steps. after: the step before, or NULL; more of them by rk_sched_order. */
struct rk_step *rk_sched_send(struct rk_sched *s, struct rk_step *after, int peer, uint32_t tag,
                              const void *buf, size_t bytes);
struct rk_step *rk_sched_recv(struct rk_sched *s, struct rk_step *after, int peer, uint32_t tag,
                              void *buf, size_t bytes);
/* dst[i] = a[i] op b[i] for n elements; dst may be a or b. */
struct rk_step *rk_sched_reduce(struct rk_sched *s, struct rk_step *after, rk_op_fn op, void *dst,
                                const void *a, const void *b, size_t n);
struct rk_step *rk_sched_copy(struct rk_sched *s, struct rk_step *after, void *dst,
                              const void *src, size_t bytes);
struct rk_step *rk_sched_event(struct rk_sched *s, struct rk_step *after, bool (*event)(void *),
                               void *arg);
struct rk_step *rk_sched_call(struct rk_sched *s, struct rk_step *after,
                              rank_status_t (*call)(void *), void *arg);
struct rk_step *rk_sched_join(struct rk_sched *s, struct rk_step *after);
void rk_sched_order(struct rk_step *first, struct rk_step *then);

/* Start; req, prepared by rk_sched_request, completes when all steps are done. Unless kept, the
 * schedule then belongs to the pool again. */
void rk_sched_start(struct rk_sched *s, struct rank_request *req);
/* Make a kept schedule that is done ready to start again, as collective number seq. */
void rk_sched_rearm(struct rk_sched *s, uint64_t seq);

/* Prepare a request for rk_sched_start. */
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

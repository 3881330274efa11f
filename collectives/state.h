/* SPDX-License-Identifier: BSD-3-Clause */
/* state.h: define the state of collectives for a context and a team. */
#ifndef RK_COLL_STATE_H
#define RK_COLL_STATE_H

#include "collectives/coll.h"
#include "collectives/select.h"
#include "collectives/coll_failure.h"
#include "collectives/shm/arena.h"
#include "collectives/coll_trace.h"
#include "collectives/hosts.h"

enum { RK_CALL_NOTES = 8 };
#define RK_CALL_FACTOR 0x9e3779b97f4a7c15ull /* of the hash of calls */

/* A schedule's call that has begun. */
struct rk_call_note {
    uint64_t number, print; /* of its team; of struct rk_sched */
    struct rk_call_desc desc;
};

struct rk_coll {
    struct rk_scheds scheds;
    bool tick; /* schedules are to be checked for late ones (call_query.h); read by each progress */
    struct rk_failures failures;
    struct rk_forced forced;
    bool reproducible, trace; /* RANK_COLL_REPRODUCIBLE, RANK_COLL_TRACE */
    struct rk_link teams; /* struct rk_coll_team */
    struct rk_link persistent; /* struct rk_coll_persistent, of requests that the user has not freed */
};

/* How a call runs, as far as the selection is concerned. A call of the first form may run straight code. */
enum rk_coll_form { RK_COLL_STRAIGHT, RK_COLL_SCHEDULED, RK_COLL_PERSISTENT, RK_COLL_FORMS };

/* The algorithm that was selected last for a collective, and for which block. */
struct rk_coll_choice {
    int64_t count;
    size_t bytes;
    bool ordered;
    const struct rk_algo *algo; /* NULL: none yet */
};

struct rk_device_scratch; /* shm/device_reduce.c */

struct rk_coll_team {
    struct rk_link link;
    struct rk_arena *arena; /* NULL: none */
    struct rk_arena *direct; /* the same; NULL if buffers may be of other kinds than host memory */
    struct rk_device_scratch *device; /* NULL: none yet */
    struct rk_sched_line in_cells[RK_SCHED_LINES]; /* schedules that use the cells of the arena, or of each host arena */
    struct rk_hosts *hosts; /* NULL: not known so far, or all its ranks share memory */
    const struct rk_sched *exchange; /* of the hosts, while it runs */
    struct rk_arena *host_arena[RK_SCHED_LINES]; /* of the ranks on the own host of several; opened in the agreement */
    uint64_t agreement_for; /* number of the call that has begun it, or the exchange of hosts */
    uint64_t history;       /* hash of all calls; with an arena, that of the arena */
    struct rk_call_note notes[RK_CALL_NOTES]; /* of the latest schedules without an arena, by number */
    bool hosts_begun, hosts_no_memory, agreeing;
    bool closing;           /* its team is freed, and calls in the arena's cells are under way */
    bool one_node;          /* all its ranks share memory; equal on all ranks */
    int64_t shm_max[RK_COLL_COUNT]; /* up to this block all blocking calls run straight code; -1: none does */
    struct rk_coll_choice last[RK_COLL_COUNT][RK_COLL_FORMS];
};

/*
 * Handle detected deaths before a collective begins, so that none begins with a member that is known to be dead.
 */
RK_INLINE bool rk_deaths_wait(const struct rk_ctx *ctx)
{
    const struct rk_engine *e = ctx->engine;

    return atomic_load_explicit(&ctx->node->head->deaths, memory_order_relaxed) !=
               e->deaths_seen ||
           atomic_load_explicit(&e->boot_deaths, memory_order_relaxed) != e->boot_deaths_seen;
}

/* RANK_ERR_PEER_DEAD if the team has lost a member, RANK_ERR_COLLECTIVE if its collectives have failed. */
RK_INLINE rank_status_t rk_coll_may_begin(struct rank_team *team)
{
    if (rk_unlikely(rk_deaths_wait(team->ctx)))
        rk_progress(team->ctx);
    return rk_likely(team->coll_over == 0) ? RANK_OK : rk_coll_why_over(team);
}

/* Arena for this call, if its buffers are host memory; or NULL. */
RK_INLINE struct rk_arena *rk_coll_arena(const struct rank_team *team, enum rk_coll_kind kind,
                                         size_t bytes)
{
    const struct rk_coll_team *t = team->coll;

    return rk_likely((int64_t)bytes <= t->shm_max[kind]) ? t->direct : NULL;
}

/* Number of collectives of the team, which has that arena, with the present one; equal on all ranks. */
RK_INLINE uint64_t rk_arena_call_number(const struct rank_team *team, const struct rk_arena *a)
{
    return team->coll_seq + a->all_turn + a->rooted_turn;
}
/* describe_coll.c: the same of any team. */
uint64_t rk_coll_number(const struct rank_team *team);
void rk_coll_describe(const struct rank_request *req, struct rk_wait_for *out);
/* What a running schedule waits for; only in shared memory. */
void rk_sched_describe(const struct rk_sched *s, struct rk_wait_for *out);
void rk_sched_describe_events(const struct rk_sched *s, struct rk_wait_for *out);

/*
 * Kept schedule for a checked call that moves data between ranks, and its algorithm. rk_sched_rearm numbers it. May wait
 * for the other ranks in the first call of a team. *out may be set on failure, too.
 */
rank_status_t rk_coll_build(const struct rk_coll_call *c, const struct rk_algo **algo, struct rk_sched **out);
/* Of a team of one rank: copy its input to the result. */
rank_status_t rk_coll_copy_alone(const struct rk_coll_call *c);

/* What a persistent request keeps. */
struct rk_coll_persistent {
    struct rk_link link; /* rk_coll.persistent */
    struct rk_coll_call call;
    const struct rk_algo *algo; /* NULL: no schedule is needed */
    struct rk_trace trace;
    struct rk_sched *sched; /* NULL: none is needed, or the last one has failed and waits for a peer */
    int64_t counts[];       /* copies of the call's arrays */
};

/* coll_persistent.c: create a persistent request for a checked call. */
rank_status_t rk_coll_persist(const struct rk_coll_call *c, rank_request_t *out);
/* The schedule must not run. */
void rk_coll_persistent_free(struct rk_coll_persistent *p);

/* Run a checked call as a schedule, or at once if no data is to be moved between ranks. req NULL: block. */
rank_status_t rk_coll_schedule(const struct rk_coll_call *c, rank_request_t *req);

#endif

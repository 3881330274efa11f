/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads.h: let several threads use the library (RANK_THREAD_MULTIPLE).
 *
 * The progress thread counts as one of them. Every public call that touches shared state begins with an RK_ENTER
 * macro, which takes the context's lock (ctx_lock.h) and releases it on return. Below MULTIPLE engine->threads is
 * NULL and the macros do nothing; the shortest paths skip even that check (rk_team_is_shared, RK_HOLD_SHARED).
 *
 * One waiting thread, the poller, makes progress; the others stand by. A waiting thread releases the lock between
 * two checks of its condition. Before a thread releases the lock it checks the other waiters' conditions and wakes
 * those that are satisfied. A thread that stands by never checks by itself. Conditions are evaluated under the
 * lock only and stay true once true.
 *
 * Where more threads wait than there are cores, a poller that yields leaves its place to the next running thread.
 * It yields late: while its own messages come at once it keeps the core, so two ranks that exchange messages run
 * at the same time and switch rarely.
 *
 * The poller also runs the stall handler (rk_engine.stuck) for all waits, and the sleeps of wait.c. While it
 * sleeps the next thread that begins to wait takes its place.
 *
 * A thread that stands by spins, with yields in a crowded process, then sleeps on a word of its own: RK_SLEEP_SHORT_NS at a
 * time, later RK_SLEEP_NS. A short sleeper finds by itself that the poller has left, so leaving is free for threads
 * that exchange messages; the leaving poller wakes a long sleeper.
 */
#ifndef RK_CORE_THREADS_H
#define RK_CORE_THREADS_H

#include "lib/core/ctx_lock.h"
#include "lib/core/event_fd.h"

struct rk_threads {
    struct rk_lock lock;
    struct rk_ctx *ctx;
    struct rk_link waiting;    /* struct rk_wait, in order of arrival */
    uint32_t nwaiting;
    uint32_t nbusy;    /* of them run a user callback: 0 or 1 */
    uint32_t nwoken;   /* of them were woken and may need this core */
    uint64_t woken_ns; /* time of the first */
    uint32_t cores;    /* that this process may use */
    _Atomic(struct rk_wait *) owner;
    struct rk_wait *sleeper; /* the thread that sleeps on the doorbell */
    bool in_sleep;              /* a thread is in that sleep, the present napper or an earlier one */
    bool sleep_is_long;         /* it sleeps long, as nothing waits for room */
    _Atomic uintptr_t caller;   /* the thread in a user callback; 0: none */
    uint32_t nyielding;         /* threads in rk_threads_make_way */
    bool watched;               /* the user waits on the descriptor (event_fd.h) */
    uint64_t quiet_since;       /* idle since, when the clock was last read; 0: something has just come */
    uint32_t bouts;             /* rounds of pollers */
    void *progress;            /* the progress thread (progress_thread.c), which begins with its wait; NULL: none */
};

/* From now on calls lock. */
rank_status_t rk_threads_open(struct rk_ctx *ctx);
/* Call once all ranks of the node have joined. */
void rk_threads_settle(struct rk_ctx *ctx);
void rk_threads_close(struct rk_ctx *ctx);

/* NULL: this thread has entered already; the outer call leaves. */
struct rk_threads *rk_threads_enter(struct rk_threads *t);
void rk_threads_leave(struct rk_threads *t);

/* rk_wait_step with threads: returns when the condition is true. */
void rk_threads_wait(struct rk_ctx *ctx, struct rk_wait *w);
/* wait.c: one round of the poller, with the lock held. */
void rk_wait_bout(struct rk_ctx *ctx, struct rk_wait *w);
/* The parts of a round without the lock: a yield (false: another thread polls now), and a sleep. */
bool rk_threads_yield(struct rk_threads *t);
/* Yield in a call that does not wait. */
void rk_threads_make_way(struct rk_threads *t);
/*
 * Release the lock until every thread has left its wait and its call of which the condition is true now. No-op if NULL.
 * Returns false at the deadline; 0: there is none.
 */
bool rk_threads_dismiss(struct rk_threads *t, uint64_t deadline);
/*
 * Release the lock until no other thread of the program is in a call of the context. unlocked: calls without the lock.
 * Returns false at the deadline.
 */
bool rk_threads_await_calls(struct rk_threads *t, const _Atomic int *unlocked, uint64_t deadline);
struct rk_sleeper {
    struct rk_wait *waiting;
    uint32_t depth;
};
struct rk_sleeper rk_threads_sleep_begin(struct rk_threads *t, bool deep);
/* False: another thread has taken the place meanwhile and has marked this process awake. */
bool rk_threads_sleep_end(struct rk_threads *t, struct rk_sleeper sleep);
/* May this thread start a sleep? Not while one that has lost its place is still asleep. */
bool rk_threads_may_sleep(struct rk_threads *t);
/*
 * Does a thread sleep on the doorbell? Code that drains the doorbell or clears the asleep mark must wake it. NULL:
 * no.
 */
bool rk_threads_sleeps(const struct rk_threads *t);
void rk_threads_kick(struct rk_threads *t);
/* If no thread polls, wake the progress thread, which would take the place only within 1 ms. No-op if there is none. */
void rk_threads_rouse(struct rk_threads *t);
/* Is this thread still the poller? A callback ends that. */
bool rk_threads_still_polls(struct rk_threads *t);

/* Called with the lock for each wait of the program; begun is set. */
typedef void (*rk_threads_wait_fn)(struct rk_ctx *ctx, const struct rk_wait *w, uint64_t now);
void rk_threads_each_wait(struct rk_threads *t, rk_threads_wait_fn fn, uint64_t now);

/* With the lock: run rk_engine.stuck for each wait of the program, with its own times. */
bool rk_threads_check_stalls(struct rk_threads *t, uint64_t now);
/* With the lock: progress has handled something, or a thread has sent to itself; the user may wait for it. */
RK_INLINE void rk_threads_notify_user(struct rk_ctx *ctx)
{
    struct rk_threads *t = ctx->engine->threads;

    if (rk_likely(!t))
        return;
    t->quiet_since = 0;
    if (rk_unlikely(t->watched))
        rk_event_fd_signal(ctx);
}

/* Bracket a user callback. */
uint32_t rk_threads_call_begin(struct rk_threads *t);
void rk_threads_call_end(struct rk_threads *t, uint32_t depth);
RK_INLINE bool rk_threads_in_call(const struct rk_threads *t)
{
    return atomic_load_explicit(&t->caller, memory_order_relaxed) == rk_lock_me();
}

/* Does this thread run a user callback? */
RK_INLINE bool rk_in_callback(const struct rk_ctx *ctx)
{
    const struct rk_engine *e = ctx->engine;

    return rk_unlikely(e->threads != NULL) ? rk_threads_in_call(e->threads) : rk_unlikely(e->calling);
}

/* ------------------------------------------------------------- entering a call */

RK_INLINE struct rk_threads *rk_enter(struct rk_ctx *ctx)
{
    struct rk_threads *t = ctx->engine->threads;

    return rk_unlikely(t != NULL) ? rk_threads_enter(t) : NULL;
}

RK_INLINE void rk_leave_entered(struct rk_threads **t)
{
    if (rk_unlikely(*t != NULL))
        rk_threads_leave(*t);
}

/* Until the end of the block. */
#define RK_ENTERED __attribute__((cleanup(rk_leave_entered), unused)) struct rk_threads *RK_ENTERED_NAME(__LINE__)
#define RK_ENTERED_NAME(line) RK_ENTERED_AT(line)
#define RK_ENTERED_AT(line) rk_entered_at_##line
#define RK_ENTER(ctx) RK_ENTERED = rk_enter(ctx)

/* An invalid handle is rejected later, without the lock. */
RK_INLINE struct rk_threads *rk_enter_request(const struct rank_request *req)
{
    return rk_unlikely(req && req->magic == RK_REQ_MAGIC && (req->hold & RK_HOLD_SHARED)) ? rk_enter(req->ctx)
                                                                                         : NULL;
}
#define RK_ENTER_REQUEST(req) RK_ENTERED = rk_enter_request(req)

/* progress_thread.c: start the thread, unless it runs. engine->threads is set. */
rank_status_t rk_progress_thread_start(struct rk_ctx *ctx);
/* Ends the thread and joins it. The lock must not be held. */
void rk_progress_thread_stop(struct rk_ctx *ctx);

#endif

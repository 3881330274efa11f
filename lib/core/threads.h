/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads.h: several threads in the library at once (RANK_THREAD_MULTIPLE, or a progress thread).
 *
 * Every public call that touches what is shared begins with one of the RK_ENTER macros, which take the context's lock
 * (ctx_lock.h) and give it back when the function returns, on whatever way. Below MULTIPLE engine->threads is NULL and they
 * do nothing; the shortest ways of the library do not even ask, see rk_team_is_shared and RK_HOLD_SHARED.
 *
 * A call that waits gives the lock up between any two looks. Of the threads that wait one at a time polls, the
 * poller; the others stand by. Whoever gives the lock up looks first whether what another thread waits for has come,
 * and tells that thread: so a thread never looks for itself while it stands by, and conditions are looked at under the
 * lock only. A condition once true must stay so.
 * Where more threads wait than there are cores, a poller who yields gives his place to whoever gets the core; and he
 * yields late: as long as what he waits for comes at once he keeps the core, and so the pairs of threads of two ranks
 * that answer each other run at the same time, and switch twenty times less often than they exchange something.
 * The poller looks for all, too, whether the wait of anybody stands still (rk_engine.stuck): his own may be short, one after
 * the other, where another's is long.
 * The poller takes the naps of wait.c, too. While it naps the next thread that begins to wait takes its place, so that
 * who has just come is not as slow as who has waited long.
 * A thread that stands by first spins, with yields where cores are few, then sleeps on a word of its own: a millisecond at a time, after
 * some of these for long. In the first case it finds out by itself that the poller has left, so leaving costs that
 * one nothing, which is what matters while two threads exchange messages all the time; in the second the leaving
 * poller wakes it.
 */
#ifndef RK_CORE_THREADS_H
#define RK_CORE_THREADS_H

#include "lib/core/engine.h"
#include "lib/core/ctx_lock.h"

struct rk_waiting;

struct rk_threads {
    struct rk_lock lock;
    struct rk_ctx *ctx;
    struct rk_ctx *main;       /* a lane's: the context that it belongs to; else NULL */
    struct rk_link waiting;    /* struct rk_waiting, by when they came */
    uint32_t nwaiting;
    uint32_t nbusy;            /* of them run a user's callback: 0 or 1 */
    uint32_t ntold;            /* of them have been told that their wait is over, and may need our core */
    uint64_t told_ns;          /* when the first was */
    uint32_t cores;            /* that this process may run on */
    _Atomic(struct rk_waiting *) poller;
    struct rk_waiting *napper; /* the one that sleeps on the doorbell */
    bool napping;              /* somebody is in there, the present napper or one who was */
    bool nap_armed;            /* he sleeps for long, as nothing waits for room */
    _Atomic uintptr_t caller;  /* the thread that runs a user's callback; 0: none */
    _Atomic uint32_t parked;   /* a lane's: threads that wait for something of it in the context's list */
    _Atomic bool calls;        /* a lane's: it has callbacks that wait to be called */
    _Atomic bool watched;      /* the user sleeps on his descriptor (event_fd.h) */
    _Atomic bool news;         /* a lane's: something for him */
    uint64_t quiet_since;      /* nothing has come to any thread, as far as the clock was looked at; 0: it has just now */
    uint32_t bouts;            /* of pollers' */
    struct rk_link lanes;      /* a context's: those in use, by rk_threads.lane of their own */
    struct rk_link lane;
    struct rk_link free_lanes;
    void *progress;            /* the progress thread (progress_thread.c); NULL: none */
};

/* From now on calls are locked. main: NULL, or the context whose lane this one is. */
rank_status_t rk_threads_open(struct rk_ctx *ctx, struct rk_ctx *main);
/* Once all ranks of the node have joined. */
void rk_threads_settle(struct rk_ctx *ctx);
void rk_threads_close(struct rk_ctx *ctx);

/* NULL: this thread is in already, and an outer call leaves. */
struct rk_threads *rk_threads_enter(struct rk_threads *t);
void rk_threads_leave(struct rk_threads *t);

/* rk_wait_step among threads: returns when the condition is true. */
void rk_threads_wait(struct rk_ctx *ctx, struct rk_waiter *w, bool (*cond)(void *), void *arg);
/* wait.c: one bout of the poller's, with the lock held. */
void rk_wait_bout(struct rk_ctx *ctx, struct rk_waiter *w, bool (*cond)(void *), void *arg);
/* What a bout does without the lock: a yield (false: another thread polls now), and the sleep of a nap. */
bool rk_threads_yield(struct rk_threads *t);
/* A yield of a call that does not wait. */
void rk_threads_make_way(struct rk_threads *t);
struct rk_nap {
    struct rk_waiting *who;
    uint32_t depth;
};
struct rk_nap rk_threads_nap_begin(struct rk_threads *t, bool deep);
/* False: another thread has taken the place meanwhile, and has ended the nap towards those who ring. */
bool rk_threads_nap_end(struct rk_threads *t, struct rk_nap nap);
/* May this thread begin a nap? Not while another that has lost its place is still in there. */
bool rk_threads_may_nap(struct rk_threads *t);
/* Does one sleep on the doorbell? Who takes its ring, or the word that says asleep, has to stir it. NULL: none does. */
bool rk_threads_naps(const struct rk_threads *t);
void rk_threads_stir(struct rk_threads *t);
/* Has this thread still the poller's place? A callback takes it away. */
bool rk_threads_still_polls(struct rk_threads *t);

/* With the lock: for each wait of the program, with the time at which it began, or was first looked at. */
typedef void (*rk_threads_wait_fn)(struct rk_ctx *ctx, uint64_t begun, bool (*cond)(void *), void *arg, uint64_t now);
void rk_threads_each_wait(struct rk_threads *t, rk_threads_wait_fn fn, uint64_t now);

/* With the lock: asks rk_engine.stuck for each wait of the program, each with the times of its own. */
bool rk_threads_look(struct rk_threads *t, uint64_t now);
/* Of a lane's own messages, with the context's lock or the lane's: by who waits for something of it in the context. */
void rk_threads_look_in_lane(struct rk_threads *lane, bool (*cond)(void *), void *arg);

/* event_fd.c: the user sleeps from now on, or does no more. */
void rk_threads_watched(struct rk_threads *t, bool on);
void rk_threads_news_slow(struct rk_threads *t);
/* With the lock: progress has brought something, or a thread has sent to itself: others may have waited for it. */
RK_INLINE void rk_threads_news(struct rk_ctx *ctx)
{
    struct rk_threads *t = ctx->engine->threads;

    if (rk_likely(!t))
        return;
    t->quiet_since = 0;
    if (rk_unlikely(atomic_load_explicit(&t->watched, memory_order_relaxed)))
        rk_threads_news_slow(t);
}

/* Around a user's callback. */
uint32_t rk_threads_call_begin(struct rk_threads *t);
void rk_threads_call_end(struct rk_threads *t, uint32_t depth);
/* Is this thread in a callback? */
RK_INLINE bool rk_threads_in_call(const struct rk_threads *t)
{
    const struct rk_threads *of = t->main ? t->main->engine->threads : t;

    return atomic_load_explicit(&of->caller, memory_order_relaxed) == rk_lock_me();
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

/* To the end of the block. */
#define RK_ENTERED __attribute__((cleanup(rk_leave_entered), unused)) struct rk_threads *RK_ENTERED_NAME(__LINE__)
#define RK_ENTERED_NAME(line) RK_ENTERED_AT(line)
#define RK_ENTERED_AT(line) rk_entered_at_##line
#define RK_ENTER(ctx) RK_ENTERED = rk_enter(ctx)

/* A handle that is none is refused by what follows, without the lock. */
RK_INLINE struct rk_threads *rk_enter_request(const struct rank_request *req)
{
    return rk_unlikely(req && req->magic == RK_REQ_MAGIC && (req->hold & RK_HOLD_SHARED)) ? rk_enter(req->ctx)
                                                                                         : NULL;
}
#define RK_ENTER_REQUEST(req) RK_ENTERED = rk_enter_request(req)

/* progress_thread.c */
rank_status_t rk_progress_thread_start(struct rk_ctx *ctx);
/* Ends it, and waits for that. The lock must not be held. */
void rk_progress_thread_stop(struct rk_ctx *ctx);

#endif

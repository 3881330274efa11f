/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads.c: let several threads enter the library and wait in it.
 */
#include "lib/core/threads.h"
#include "lib/base/clock.h"
#include "lib/base/arg_error.h"
#include "lib/base/timing.h"
#include "lib/core/event_fd.h"
#include "lib/node/node.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * A waiter sleeps SHORT_SLEEPS times RK_SLEEP_SHORT_NS, then RK_SLEEP_NS. The poller of a crowded process yields after
 * OWN_PASSES fruitless rounds, or after WOKEN_NS, if another thread's wait is over; else after PASSES_PER_YIELD.
 */
enum {
    SHORT_SLEEPS = 10,
    STAND_SPINS = 64,
    PASSES_PER_YIELD = 256,
    OWN_PASSES = 16,
    WOKEN_NS = 50 * 1000,
    ROUNDS_PER_CHECK = 256,
    GIVE_WAY = 200,
    AWAIT_NS = 50 * 1000
};

enum { SPINS, SLEEPS, TURN, OVER }; /* TURN: the poller has left, wake up; OVER: the condition is true */

static void futex_wait(_Atomic uint32_t *word, uint32_t value, long ns, uint64_t deadline)
{
    uint64_t now = deadline ? rk_clock_ns() : 0;
    struct timespec t = {0, deadline && deadline < now + (uint64_t)ns ? (long)(deadline > now ? deadline - now : 0) : ns};

    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &t, NULL, 0);
}

/* ------------------------------------------------------------------ waking others */

static void set_over(struct rk_threads *t, struct rk_wait *w)
{
    if (atomic_exchange(&w->state, OVER) == SLEEPS)
        syscall(SYS_futex, &w->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    if (w->thread != atomic_load_explicit(&t->caller, memory_order_relaxed)) { /* has a core already */
        w->woken = true;
        if (t->nwoken++ == 0)
            t->woken_ns = rk_clock_ns();
    }
    if (t->sleeper == w)
        rk_node_wake(t->ctx->node, t->ctx->node->index);
}

static void threads_uncount_woken(struct rk_threads *t, struct rk_wait *w)
{
    t->nwoken -= w->woken;
    w->woken = false;
}

/* Wake waiters with true conditions. Call with the lock held, before it is released. */
static void wake_satisfied(struct rk_threads *t, const struct rk_wait *me)
{
    struct rk_engine *e = t->ctx->engine;
    struct rk_link *l;

    rk_list_for_each(l, &t->waiting)
    {
        struct rk_wait *w = rk_list_entry(l, struct rk_wait, link);
        if (w != me && atomic_load_explicit(&w->state, memory_order_relaxed) != OVER && w->over(w))
            set_over(t, w);
    }
    /* No doorbell rings for deferred frames and announced messages; the progress thread fetches none of these. */
    if (t->sleeper && t->sleeper != me && t->sleep_is_long &&
        (!rk_sendq_is_idle(e) || !rk_list_empty(&e->calls) || (e->stuck && !t->sleeper->background)))
        rk_node_wake(t->ctx->node, t->ctx->node->index);
}

struct rk_threads *rk_threads_enter(struct rk_threads *t)
{
    if (rk_lock_is_mine(&t->lock))
        return NULL;
    rk_lock_take(&t->lock);
    return t;
}

void rk_threads_leave(struct rk_threads *t)
{
    if (t->nwaiting)
        wake_satisfied(t, NULL);
    rk_lock_give(&t->lock);
}

/* ------------------------------------------------------------------------- waiting */

/* More threads wait than cores are available. */
static bool has_too_few_cores(const struct rk_threads *t)
{
    return t->ctx->node->oversubscribed || t->nwaiting > t->cores;
}

/* Give way to threads that want the lock, briefly. Call without the lock. */
static void give_way(struct rk_threads *t)
{
    for (int i = 0; i < GIVE_WAY && atomic_load_explicit(&t->lock.wanted, memory_order_relaxed); i++) {
        if (i % 16 == 15)
            sched_yield();
        else
            rk_cpu_relax();
    }
}

/*
 * Yield the core. In a crowded process the next running thread may become the poller, instead of waiting for one
 * that does not run. False: another thread polls now.
 */
static bool yield_place(struct rk_threads *t)
{
    struct rk_wait *me = atomic_load_explicit(&t->owner, memory_order_relaxed), *p;
    uint32_t depth;

    if (!me || me->thread != rk_lock_me()) /* a callback has given the place to another thread */
        return false;
    if (has_too_few_cores(t))
        atomic_store(&t->owner, NULL);
    depth = rk_lock_give_all(&t->lock);
    sched_yield();
    rk_lock_take_again(&t->lock, depth);
    p = atomic_load_explicit(&t->owner, memory_order_relaxed);
    if (!p)
        atomic_store(&t->owner, me);
    return !p || p == me;
}

bool rk_threads_yield(struct rk_threads *t)
{
    if (t->nwaiting)
        wake_satisfied(t, NULL);
    return yield_place(t);
}

void rk_threads_make_way(struct rk_threads *t)
{
    uint32_t depth;

    if (t->nwaiting)
        wake_satisfied(t, NULL);
    t->nyielding++;
    depth = rk_lock_give_all(&t->lock);
    sched_yield();
    rk_lock_take_again(&t->lock, depth);
    t->nyielding--;
}

static bool waits_are_over(const struct rk_threads *t)
{
    struct rk_link *l;

    rk_list_for_each(l, &t->waiting)
    {
        const struct rk_wait *w = rk_list_entry(l, struct rk_wait, link);

        /* A thread in a callback leaves its own wait later. */
        if (w->thread != rk_lock_me() && atomic_load_explicit(&w->state, memory_order_relaxed) == OVER)
            return true;
    }
    return false;
}

/* A thread that takes the lock after its wait keeps it until its call returns or waits again. */
bool rk_threads_dismiss(struct rk_threads *t, uint64_t deadline)
{
    if (!t)
        return true;
    wake_satisfied(t, NULL);
    while (waits_are_over(t)) {
        if (deadline && rk_clock_ns() >= deadline)
            return false;
        rk_threads_make_way(t);
    }
    return true;
}

/* Is another thread of the program in a call? This one is in no wait. */
static bool others_call(const struct rk_threads *t)
{
    struct rk_link *l;

    rk_list_for_each(l, &t->waiting)
    {
        if (!rk_list_entry(l, struct rk_wait, link)->background)
            return true;
    }
    return t->nyielding || atomic_load(&t->lock.wanted) || atomic_load(&t->caller);
}

bool rk_threads_await_calls(struct rk_threads *t, const _Atomic int *unlocked, uint64_t deadline)
{
    const struct timespec pause = {0, AWAIT_NS};

    while (atomic_load(unlocked) || others_call(t)) {
        uint32_t depth;

        if (rk_clock_ns() >= deadline)
            return false;
        wake_satisfied(t, NULL);
        depth = rk_lock_give_all(&t->lock);
        nanosleep(&pause, NULL);
        rk_lock_take_again(&t->lock, depth);
    }
    return true;
}

bool rk_threads_may_sleep(struct rk_threads *t)
{
    return !t->in_sleep;
}

bool rk_threads_sleeps(const struct rk_threads *t)
{
    return t && t->in_sleep; /* true also for a sleeper that has lost its place */
}

void rk_threads_kick(struct rk_threads *t)
{
    const struct rk_node *node = t->ctx->node;
    char byte = 1;

    rk_node_wake(t->ctx->node, node->index);
    if (node->bell_wr >= 0 && write(node->bell_wr, &byte, 1) < 0)
        return; /* the pipe is full, hence readable */
}

void rk_threads_rouse(struct rk_threads *t)
{
    struct rk_wait *w = t ? t->progress : NULL;
    uint32_t spins = SPINS, sleeps = SLEEPS;

    if (!w || atomic_load_explicit(&t->owner, memory_order_relaxed))
        return;
    if (!atomic_compare_exchange_strong(&w->state, &spins, TURN) && /* in this order, as in leave_place */
        atomic_compare_exchange_strong(&w->state, &sleeps, TURN))
        syscall(SYS_futex, &w->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

bool rk_threads_still_polls(struct rk_threads *t)
{
    const struct rk_wait *p = atomic_load_explicit(&t->owner, memory_order_relaxed);

    return p && p->thread == rk_lock_me();
}

struct rk_sleeper rk_threads_sleep_begin(struct rk_threads *t, bool deep)
{
    struct rk_wait *me = t->owner;

    t->sleeper = me;
    t->in_sleep = true;
    t->sleep_is_long = deep;
    wake_satisfied(t, me);
    return (struct rk_sleeper){me, rk_lock_give_all(&t->lock)};
}

bool rk_threads_sleep_end(struct rk_threads *t, struct rk_sleeper sleep)
{
    rk_lock_take_again(&t->lock, sleep.depth);
    t->in_sleep = false;
    if (t->sleeper == sleep.waiting) {
        t->sleeper = NULL;
        return true;
    }
    sleep.waiting->sleeps = 1; /* it has waited long: do not spin beside the poller */
    return false;
}

/* Wait while another thread polls. */
static void stand_by(struct rk_threads *t, struct rk_wait *s)
{
    bool sleeps = s->background || s->sleeps > 0, oversubscribed = has_too_few_cores(t);
    uint32_t state = SPINS, depth;
    uint64_t until = 0;

    s->deep = s->sleeps >= SHORT_SLEEPS && !s->no_doorbell;
    wake_satisfied(t, s);
    depth = rk_lock_give_all(&t->lock);
    for (uint32_t i = 1; !sleeps; i++) {
        if (atomic_load_explicit(&s->state, memory_order_acquire) != SPINS ||
            !atomic_load_explicit(&t->owner, memory_order_relaxed))
            goto out;
        if (oversubscribed)
            sched_yield();
        else
            rk_cpu_relax();
        if (i % STAND_SPINS == 0) {
            uint64_t now = rk_clock_ns();
            sched_yield();
            until = until ? until : now + t->ctx->engine->spin_ns;
            sleeps = now >= until;
        }
    }
    if (atomic_compare_exchange_strong(&s->state, &state, SLEEPS)) {
        futex_wait(&s->state, SLEEPS, s->deep ? RK_SLEEP_NS : RK_SLEEP_SHORT_NS, s->deadline);
        state = SLEEPS;
        if (atomic_compare_exchange_strong(&s->state, &state, SPINS))
            s->sleeps++;
    }
out:
    rk_lock_take_again(&t->lock, depth);
    s->deep = false;
    state = TURN;
    if (atomic_compare_exchange_strong(&s->state, &state, SPINS))
        s->sleeps = 0;
}

/*
 * Has the poller to yield to a woken thread? A switch costs as much as twenty messages, so the poller
 * stays for a while as long as its own messages come.
 */
static bool has_to_yield(const struct rk_threads *t, const struct rk_wait *s)
{
    if (t->nwoken == 0)
        return s->passes % PASSES_PER_YIELD == 0;
    return s->passes % OWN_PASSES == 0 || rk_clock_ns() - t->woken_ns > WOKEN_NS;
}

/* One round of the poller, then a chance for others to take the lock. */
static void poll_once(struct rk_threads *t, struct rk_wait *w)
{
    uint32_t depth;

    rk_wait_bout(t->ctx, w);
    if (rk_unlikely(t->ctx->engine->stuck != NULL) && ++t->bouts % ROUNDS_PER_CHECK == 0)
        rk_threads_check_stalls(t, rk_clock_ns());
    wake_satisfied(t, w);
    if (w->over(w))
        return;
    w->passes++;
    if (has_too_few_cores(t) && has_to_yield(t, w)) {
        yield_place(t);
        return;
    }
    depth = rk_lock_give_all(&t->lock);
    give_way(t);
    rk_lock_take_again(&t->lock, depth);
}

/* Threads of the program other than this one that do not run a callback. */
static bool others_can_poll(const struct rk_threads *t)
{
    return t->nwaiting - t->nbusy > 1;
}

/*
 * May this thread become the poller? Yes if there is none, or if it sleeps and this thread is new. The progress
 * thread leaves polling to others.
 */
static bool is_mine_to_take(const struct rk_threads *t, const struct rk_wait *s)
{
    const struct rk_wait *p = atomic_load_explicit(&t->owner, memory_order_relaxed);

    if (s->background && others_can_poll(t))
        return false;
    return !p || p->background || (p == t->sleeper && s->sleeps == 0);
}

static void take_place(struct rk_threads *t, struct rk_wait *s)
{
    if (t->sleeper) { /* its sleep ends here; it finds that it has lost its place */
        t->sleeper = NULL;
        rk_node_wake(t->ctx->node, t->ctx->node->index);
    }
    atomic_store(&t->owner, s);
}

static void leave_place(struct rk_threads *t)
{
    struct rk_link *l;

    atomic_store(&t->owner, NULL);
    t->sleeper = NULL;
    rk_list_for_each(l, &t->waiting)
    {
        struct rk_wait *w = rk_list_entry(l, struct rk_wait, link);
        uint32_t spins = SPINS, sleeps = SLEEPS;
        /* Skip threads that would decline: the progress thread while others wait, and a thread that leaves. */
        if (!w->deep || (w->background && others_can_poll(t)) ||
            atomic_load_explicit(&w->state, memory_order_relaxed) == OVER)
            continue;
        /*
         * In this order: a thread that falls asleep between the two is woken; one that wakes up checks by itself.
         */
        if (!atomic_compare_exchange_strong(&w->state, &spins, TURN) &&
            atomic_compare_exchange_strong(&w->state, &sleeps, TURN))
            syscall(SYS_futex, &w->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        return;
    }
}

RK_COLD void rk_threads_wait(struct rk_ctx *ctx, struct rk_wait *w)
{
    struct rk_threads *t = ctx->engine->threads;
    const struct rk_wait *p;

    w->thread = rk_lock_me();
    atomic_store_explicit(&w->state, SPINS, memory_order_relaxed);
    w->sleeps = w->passes = 0;
    w->deep = w->woken = false;
    rk_list_append(&t->waiting, &w->link);
    t->nwaiting++;
    if (w->no_doorbell && t->sleeper)
        rk_node_wake(t->ctx->node, t->ctx->node->index);
    while (atomic_load_explicit(&w->state, memory_order_relaxed) != OVER && !w->over(w)) {
        if (rk_unlikely(w->deadline != 0) && rk_wait_is_late(w, rk_clock_ns()))
            break;
        if (atomic_load_explicit(&t->owner, memory_order_relaxed) == w) {
            if (w->background && others_can_poll(t))
                leave_place(t);
            else
                poll_once(t, w);
        } else if (is_mine_to_take(t, w)) {
            take_place(t, w);
        } else {
            stand_by(t, w);
        }
    }
    rk_list_remove(&w->link);
    t->nwaiting--;
    threads_uncount_woken(t, w);
    p = atomic_load_explicit(&t->owner, memory_order_relaxed);
    /*
     * No poller: the last one left before this thread was counted, or passed the place to this thread after the end
     * of its wait.
     */
    if (p == w || !p)
        leave_place(t);
}

void rk_threads_each_wait(struct rk_threads *t, rk_threads_wait_fn fn, uint64_t now)
{
    struct rk_link *l;

    rk_list_for_each(l, &t->waiting)
    {
        struct rk_wait *w = rk_list_entry(l, struct rk_wait, link);
        if (w->background)
            continue;
        if (w->begun == 0)
            w->begun = now;
        fn(t->ctx, w, now);
    }
}

bool rk_threads_check_stalls(struct rk_threads *t, uint64_t now)
{
    struct rk_engine *e = t->ctx->engine;
    bool shortly = false;
    struct rk_link *l;

    if (t->quiet_since == 0)
        t->quiet_since = now;
    rk_list_for_each(l, &t->waiting)
    {
        struct rk_wait *w = rk_list_entry(l, struct rk_wait, link);
        uint64_t waited, quiet = now - t->quiet_since;

        if (w->background || !e->stuck)
            continue;
        if (w->begun == 0)
            w->begun = now;
        waited = now - w->begun;
        shortly |= e->stuck(t->ctx, w, now, quiet < waited ? quiet : waited, waited);
    }
    return shortly;
}

/* ------------------------------------------------------------------------ callbacks */

/* Take this thread out of the poller's place and of the waiters, if it is in a wait. */
static void step_out(struct rk_threads *t)
{
    struct rk_link *l;

    t->nbusy = 0;
    rk_list_for_each(l, &t->waiting)
    {
        struct rk_wait *w = rk_list_entry(l, struct rk_wait, link);
        if (w->thread == rk_lock_me()) {
            t->nbusy = 1;
            threads_uncount_woken(t, w);
        }
    }
}

uint32_t rk_threads_call_begin(struct rk_threads *t)
{
    const struct rk_wait *p = atomic_load_explicit(&t->owner, memory_order_relaxed);

    step_out(t);
    atomic_store_explicit(&t->caller, rk_lock_me(), memory_order_relaxed);
    if (!p || p->thread == rk_lock_me()) { /* user code may run long: another thread must poll */
        if (p && !rk_event_fd_is_armed(t->ctx->engine))
            rk_node_sleep_end(t->ctx->node);
        leave_place(t);
    }
    if (t->nwaiting)
        wake_satisfied(t, NULL);
    return rk_lock_give_all(&t->lock);
}

void rk_threads_call_end(struct rk_threads *t, uint32_t depth)
{
    rk_lock_take_again(&t->lock, depth);
    atomic_store_explicit(&t->caller, 0, memory_order_relaxed);
    t->nbusy = 0;
}

/* --------------------------------------------------------------------- open and close */

rank_status_t rk_threads_open(struct rk_ctx *ctx)
{
    struct rk_threads *t = aligned_alloc(RK_CACHE_LINE, rk_round_up(sizeof(*t), RK_CACHE_LINE));
    cpu_set_t set;

    if (!t) {
        return rk_fail(RANK_ERR_NO_MEMORY, "out of memory for the locks that threads need");
    }
    *t = (struct rk_threads){.ctx = ctx};
    rk_list_init(&t->waiting);
    t->cores = sched_getaffinity(0, sizeof(set), &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
    ctx->engine->threads = t;
    rk_requests_share(ctx);
    return RANK_OK;
}

/* The ranks of this host share its usable cores. */
void rk_threads_settle(struct rk_ctx *ctx)
{
    struct rk_threads *t = ctx->engine->threads;
    uint32_t share = (uint32_t)ctx->node->core_share;

    if (share < t->cores)
        t->cores = share > 0 ? share : 1;
}

void rk_threads_close(struct rk_ctx *ctx)
{
    free(ctx->engine->threads);
    ctx->engine->threads = NULL;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads_model.c: let threads of one process wait, in every order of their steps.
 *
 * The code itself (lib/core/threads.c and the sleep of wait.c): which thread polls, which waits, and how the ownership goes from one
 * to the other and to the progress thread. A
 * sleep for long has no limit here: so a wake-up that is lost, or a place that no thread has taken, is a wait for ever.
 *
 * What comes is bits of a word that a peer sets; it rings, and where the scene demands it sends on only after the wait for it is over,
 * so that a forgotten thread cannot be saved by what comes later. The lock is one step (ctx_lock.c is not modelled), the doorbell
 * what sleep_model.c has shown it to be, and ten short sleeps are two. A bout of the poller's sleeps or does not, as the
 * search likes. After each time the lock is held the list of waiters, the poller and the sleeper have to fit.
 */
#define MODEL_REDIRECT
#include "lib/base/compiler.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/model/model.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/core/engine.h"
#include "lib/core/describe.h"
#include "lib/core/threads.h"
#include "lib/core/event_fd.h"
#include "lib/node/node.h"

enum { THREADS = 3 };

/* Bits of came, done and over: a wait's is that of its thread; what the progress thread is for, and its end; a callback is due. */
enum { SERVED = 1 << 4, STOP = 1 << 5, CALL = 1 << 6 };

static struct {
    struct rk_threads threads;
    _Atomic uint32_t lock;
    _Atomic uint32_t sleeping;
    uint32_t bell; /* counts rings, up to what none can miss: else there were ever new states */
    _Atomic uint32_t came; /* set by the peer */
    _Atomic uint32_t over; /* waits that have ended */
    uint32_t done;         /* under the lock: what progress has brought */
    uint32_t depth;
} RK_ALIGNED_LINE memory;

/* Of each thread: it polls on without a pause, which is one poll at the last moment of it; it is within a bout. */
static bool looks_on[THREADS + 1], in_bout[THREADS + 1], has_lock[THREADS + 1];

/* Only the holder of the lock changes these, so that its reads are no step. */
static uint64_t look(const volatile void *p, size_t bytes)
{
    uint64_t v = 0;
    int me = model_me();

    if (!looks_on[me] && !(has_lock[me] && p == (const volatile void *)&memory.threads.owner))
        return model_load(p, bytes);
    memmove(&v, (const void *)(uintptr_t)p, bytes);
    model_note(v);
    return v;
}
#undef atomic_load
#undef atomic_load_explicit
#define atomic_load_explicit(p, order) ((__typeof__((void)0, *(p)))look(p, sizeof(*(p))))
#define atomic_load(p) atomic_load_explicit(p, memory_order_seq_cst)

static void model_relax(void)
{
    looks_on[model_me()] = !has_lock[model_me()];
}

static uint64_t model_clock(void)
{
    looks_on[model_me()] = false;
    return 0;
}

/* ------------------------------------------------------------------------ the lock, and what it guards */

static uint64_t hash_waiting(void);
static void expect_fit(void);

static void take(uint32_t depth)
{
    int me = model_me();

    looks_on[me] = false;
    model_take(&memory.lock);
    has_lock[me] = true;
    memory.depth = depth;
    model_note(hash_waiting()); /* it may read of all this as long as it has the lock */
}

static uint32_t give(void)
{
    uint32_t depth = memory.depth;

    expect_fit();
    memory.depth = 0;
    has_lock[model_me()] = false;
    model_give(&memory.lock);
    return depth;
}

static void give_one(void)
{
    if (memory.depth > 1)
        memory.depth--;
    else
        give();
}

/* ------------------------------------------------------------------------------------ sleep and doorbell */

static void ring(void)
{
    if (!atomic_load(&memory.sleeping) || !atomic_exchange(&memory.sleeping, RK_AWAKE))
        return;
    memory.bell = ((uint32_t)model_load(&memory.bell, sizeof(memory.bell)) + 1) % 8;
    model_futex_wake(&memory.bell);
}

static uint32_t sleep_begin(void)
{
    uint32_t bell = (uint32_t)model_load(&memory.bell, sizeof(memory.bell));

    atomic_store(&memory.sleeping, RK_ASLEEP_FUTEX);
    return bell;
}

static void sleep_rung(uint32_t bell, uint64_t ns)
{
    if (ns > 1000 * 1000)
        model_futex_wait(&memory.bell, bell);
}

static long model_syscall(long number, ...);
static int progress(struct rk_ctx *c);

#define syscall(...) model_syscall(__VA_ARGS__)
#define sched_yield() model_relax()
#define rk_cpu_relax() model_relax()
#define rk_clock_ns() model_clock()
#define rk_progress(c) progress(c)
#define rk_lock_me() ((uintptr_t)model_me() + 1)
#define rk_lock_is_mine(l) ((void)(l), has_lock[model_me()])
#define rk_lock_take(l) ((void)(l), rk_lock_is_mine(l) ? (void)memory.depth++ : take(1))
#define rk_lock_give(l) ((void)(l), give_one())
#define rk_lock_give_all(l) ((void)(l), give())
#define rk_lock_take_again(l, depth) ((void)(l), take(depth))
#define rk_node_wake(n, index) ((void)(n), (void)(index), ring())
#define rk_node_sleep_begin(n, how) ((void)(n), (void)(how), sleep_begin())
#define rk_node_sleep(n, bell, ns) ((void)(n), sleep_rung(bell, ns))
#define rk_node_sleep_end(n) ((void)(n), atomic_store(&memory.sleeping, RK_AWAKE))
#include "lib/core/threads.c"

#define rk_wait_bout wait_bout
void wait_bout(struct rk_ctx *ctx, struct rk_wait *w);
#include "lib/core/wait.c"
#undef rk_wait_bout

static struct rk_engine engine;
static struct rk_node node;
static struct rk_ctx ctx;

static long model_syscall(long number, ...)
{
    volatile void *word;
    va_list ap;
    int op;

    va_start(ap, number);
    model_expect(number == SYS_futex, "another system call");
    word = va_arg(ap, volatile void *);
    op = va_arg(ap, int);
    if (op == FUTEX_WAKE_PRIVATE) {
        model_futex_wake(word);
    } else {
        uint32_t value = va_arg(ap, uint32_t);
        struct rk_wait *w = rk_container_of((_Atomic uint32_t *)(uintptr_t)word, struct rk_wait, state);
        if (va_arg(ap, struct timespec *)->tv_nsec == RK_SLEEP_NS)
            model_futex_wait(word, value);
        else if (w->sleeps > 0)
            w->sleeps = SHORT_SLEEPS - 1;
    }
    va_end(ap);
    return 0;
}

static uint64_t fold(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15ull;
    return h ^ h >> 29;
}

static uint64_t hash_waiting(void)
{
    const struct rk_threads *t = &memory.threads;
    uint64_t h = fold(t->nwaiting, t->nbusy << 16 | t->nwoken << 8 | (uint32_t)(t->in_sleep << 1) | t->sleep_is_long);
    struct rk_link *l;

    h = fold(fold(h, memory.done), (uint64_t)(uintptr_t)t->sleeper);
    rk_list_for_each(l, &t->waiting)
    {
        const struct rk_wait *w = rk_list_entry(l, struct rk_wait, link);
        uint32_t state;

        memmove(&state, (const void *)&w->state, sizeof(state));
        h = fold(fold(h, w->thread << 8 | state), (uint64_t)(uintptr_t)w);
        h = fold(h, (w->sleeps < SHORT_SLEEPS ? w->sleeps : SHORT_SLEEPS) << 8 | (uint32_t)(w->deep << 1) | w->woken);
    }
    return h;
}

static void expect_fit(void)
{
    struct rk_threads *t = &memory.threads;
    uint32_t n = 0, notified = 0;
    const struct rk_wait *owner = t->owner;
    bool owner_waits = !owner, sleeper_waits = !t->sleeper;
    struct rk_link *l;

    rk_list_for_each(l, &t->waiting)
    {
        const struct rk_wait *w = rk_list_entry(l, struct rk_wait, link);
        n++;
        notified += w->woken;
        owner_waits |= w == owner;
        sleeper_waits |= w == t->sleeper;
    }
    model_expect(n == t->nwaiting && notified == t->nwoken, "counts of waiters, or of notified ones, that do not fit");
    model_expect(owner_waits, "the poller is a thread that does not wait any more");
    model_expect(sleeper_waits, "the sleeper is a thread that does not wait any more");
}

/* -------------------------------------------------------------------------------------------- the scenes */

struct scene {
    const char *name;
    int waiters;      /* threads of the program, each with one wait or more */
    int times;
    int switches;     /* 0: in every order (model.h) */
    bool background;  /* and the progress thread */
    bool oversubscribed;     /* fewer cores than threads */
    uint32_t dead;    /* what these wait for comes by no channel: a poller finds by the clock that their peers are dead */
    bool gives;       /* thread 1 does itself what thread 0 waits for, as it begins to wait */
    bool no_doorbell; /* the first waits for what has no doorbell */
    struct {
        uint32_t send, after; /* once these waits are over */
    } peer[4];        /* to the first that sends nothing */
};

static const struct scene *scene;
struct bits_wait {
    struct rk_wait wait;
    uint32_t bits;
};
static const struct rk_wait *wait_of[THREADS + 1];

static uint32_t bits_of(const struct rk_wait *w)
{
    return ((const struct bits_wait *)w)->bits;
}

static bool is_done(const struct rk_wait *w)
{
    return (memory.done & bits_of(w)) != 0;
}

/* At the top of rk_threads_wait's loop: the state of a thread there is in its struct rk_wait. */
static bool waits_over(struct rk_wait *w)
{
    int me = model_me();

    if (w == wait_of[me] && !in_bout[me])
        model_here(bits_of(w), 0, hash_waiting());
    return is_done(w);
}

static uint32_t bit(int which, int time)
{
    return 1u << (which + 2 * time);
}

/* The user's, and it goes on only when all waits but that of its own thread are over. */
static void callback(struct rk_threads *t)
{
    uint32_t others = ((1u << scene->waiters) - 1) & ~(1u << model_me()), depth = rk_threads_call_begin(t);

    model_await(&memory.over, others, others);
    rk_threads_call_end(t, depth);
}

static int progress(struct rk_ctx *c)
{
    uint32_t news = (uint32_t)atomic_load(&memory.came) & ~memory.done;

    memory.done |= news;
    if (news & CALL)
        callback(c->engine->threads);
    return news != 0;
}

/* As in wait.c, with time-outs that the search decides on. */
void rk_wait_bout(struct rk_ctx *c, struct rk_wait *w)
{
    int me = model_me();
    struct rk_wait *p;

    in_bout[me] = true;
    if (progress(c) == 0 && (!scene->oversubscribed || rk_threads_yield(c->engine->threads)) && model_choose(2)) {
        memory.done |= scene->dead;
        if (rk_threads_may_sleep(c->engine->threads))
            wait_sleep(c, w, false);
    }
    p = memory.threads.owner;
    if (p && p->thread == rk_lock_me())
        p->passes = scene->oversubscribed ? PASSES_PER_YIELD - 1 : 0; /* with few cores always the pass that yields */
    in_bout[me] = false;
}

static void wait_for(uint32_t bits, bool no_doorbell, bool background)
{
    struct bits_wait w = {{.over = waits_over, .no_doorbell = no_doorbell, .background = background}, bits};
    int me = model_me();
    RK_ENTER(&ctx);

    if (scene->gives && me == 1)
        memory.done |= bit(0, 0);
    wait_of[me] = &w.wait;
    if (!waits_over(&w.wait))
        rk_threads_wait(&ctx, &w.wait);
    model_expect(is_done(&w.wait), "a wait ends too soon");
}

static void stop(void)
{
    RK_ENTER(&ctx);

    memory.done |= STOP;
}

static void program(int which)
{
    for (int i = 0; i < scene->times; i++) {
        wait_for(bit(which, i), which == 0 && scene->no_doorbell, false);
        atomic_fetch_or(&memory.over, bit(which, i));
    }
    if (scene->background && which == 0) {
        model_await(&memory.done, SERVED, SERVED); /* it computes, and a thread makes progress */
        model_await(&memory.over, (1u << scene->waiters) - 1, (1u << scene->waiters) - 1);
        stop();
    }
}

static void peer(void)
{
    for (int i = 0; scene->peer[i].send; i++) {
        model_await(&memory.over, scene->peer[i].after, scene->peer[i].after);
        atomic_fetch_or(&memory.came, scene->peer[i].send);
        ring();
    }
}

static void one(int which)
{
    if (which < scene->waiters)
        program(which);
    else if (which == scene->waiters)
        peer();
    else
        wait_for(STOP, false, true);
}

static void begin(void)
{
    struct rk_threads *t = &memory.threads;

    memset(&memory, 0, sizeof(memory));
    memset(&engine, 0, sizeof(engine));
    memset(looks_on, 0, sizeof(looks_on));
    memset(in_bout, 0, sizeof(in_bout));
    memset(has_lock, 0, sizeof(has_lock));
    memset(wait_of, 0, sizeof(wait_of));
    *t = (struct rk_threads){.ctx = &ctx, .cores = scene->oversubscribed ? 1 : 8};
    rk_list_init(&t->waiting);
    rk_list_init(&engine.calls);
    engine.threads = t;
    engine.sleep_epoll = engine.watch.epoll = (struct rk_epoll){-1, 0};
    engine.watch.timer = -1;
    ctx = (struct rk_ctx){.node = &node, .engine = &engine};
}

static const struct scene scenes[] = {
    {.name = "two threads wait, each for its own", .waiters = 2, .times = 1, .peer = {{1, 0}, {2, 0}}},
    {.name = "one waits for what comes when the other has got its own", .waiters = 2, .times = 1, .peer = {{2, 0}, {1, 2}}},
    {.name = "both waits end together", .waiters = 2, .times = 1, .peer = {{3, 0}}},
    {.name = "two threads and one core", .waiters = 2, .times = 1, .oversubscribed = true, .peer = {{2, 0}, {1, 2}}},
    {.name = "one sleeps for a moment only", .waiters = 2, .times = 1, .no_doorbell = true, .peer = {{2, 0}, {1, 2}}},
    {.name = "one thread and the progress thread", .waiters = 1, .times = 1, .background = true, .peer = {{1, 0}, {SERVED, 1}}},
    {.name = "two threads and the progress thread", .waiters = 2, .times = 1, .background = true, .switches = 2,
     .peer = {{3, 0}, {SERVED, 3}}},
    {.name = "their waits end in turn, and the progress thread", .waiters = 2, .times = 1, .background = true, .switches = 2,
     .peer = {{1, 0}, {2, 1}, {SERVED, 3}}},
    {.name = "one gives the other what it waits for", .waiters = 2, .times = 1, .gives = true, .peer = {{2, 1}}},
    {.name = "a death ends a wait, without a doorbell", .waiters = 2, .times = 1, .dead = 1, .peer = {{2, 1}}},
    {.name = "a callback that waits for the other thread", .waiters = 2, .times = 1, .peer = {{CALL, 0}, {3, 0}}},
    {.name = "a callback and the progress thread", .waiters = 1, .times = 1, .background = true, .switches = 3,
     .peer = {{CALL, 0}, {1, 0}, {SERVED, 1}}},
};

int main(void)
{
    int failed = 0;

    for (size_t i = 0; i < RK_ARRAY_LEN(scenes); i++) {
        struct model m = {.name = scenes[i].name, .thread = one, .begin = begin, .memory = &memory, .bytes = sizeof(memory),
                          .more = hash_waiting};

        scene = &scenes[i];
        m.switches = scene->switches;
        m.threads = scene->waiters + 1 + scene->background;
        failed += model_check(&m, false);
    }
    return failed != 0;
}

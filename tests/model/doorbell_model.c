/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doorbell_model.c: sleep on a descriptor, in every order of memory accesses.
 *
 * The code itself: a rank that waits for two others
 * is woken by a byte in its pipe (lib/node/node.c), in a sleep of its own (lib/core/wait.c) or of its user's, which has armed and
 * polls the descriptor of rank_progress_fd (lib/core/event_fd.c). No rank may sleep on when all has come. Time limits of sleeps
 * and of the user's timer, which would hide a lost wake, are not there.
 *
 * As in sleep_model.c, the search has to find what happens with neither membarrier nor fence; and when bytes are taken out
 * of the pipe without a poll afterwards.
 */
#define MODEL_REDIRECT
#include "lib/base/compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
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
#include "lib/node/node_life.h"

enum { SENDERS = 2, RANKS = 1 + SENDERS, BELL_RD = 1000, BELL_WR, BELL_TO, TIMER, EPOLL };

static struct {
    struct rk_node_head head;
    struct rk_node_slot slot[RANKS];
    _Atomic uint32_t came[SENDERS];
    _Atomic uint32_t readable; /* bytes in the sleeper's pipe, and whether its timer has run out */
} RK_ALIGNED_LINE memory;
enum { RUN_OUT = 1 << 16 };

static bool no_membarrier, fence_on_send, watching;
static uint32_t taken; /* of came, by the sleeper's progress */

static long model_syscall(long number, ...)
{
    if (number == SYS_membarrier && !no_membarrier)
        model_membarrier();
    model_expect(number == SYS_membarrier, "another system call");
    return 0;
}

/* The kernel's locks and wake-ups are barriers, as those of a futex. */
static ssize_t model_write(int fd, const void *bytes, size_t n)
{
    (void)bytes;
    model_expect(fd == BELL_TO && n == 1, "another descriptor");
    atomic_fetch_add(&memory.readable, 1);
    model_futex_wake(&memory.readable);
    return 1;
}

static ssize_t model_read(int fd, void *bytes, size_t n)
{
    uint32_t was;

    (void)bytes;
    (void)n;
    model_expect(fd == BELL_RD, "another descriptor");
    was = (uint32_t)model_and(&memory.readable, RUN_OUT, sizeof(memory.readable));
    return was & ~RUN_OUT ? (ssize_t)(was & ~RUN_OUT) : -1;
}

static int model_timer(int fd, int flags, const struct itimerspec *t, struct itimerspec *before)
{
    (void)flags;
    (void)before;
    model_expect(fd == TIMER, "another descriptor");
    /* RK_CHECK_NS never passes. */
    if (t->it_value.tv_nsec == 1)
        atomic_fetch_or(&memory.readable, RUN_OUT);
    else
        model_and(&memory.readable, RUN_OUT - 1, sizeof(memory.readable));
    return 0;
}

static int model_poll(int fd, struct epoll_event *ev, int n, int ms)
{
    (void)ev;
    (void)n;
    (void)ms;
    model_expect(fd == EPOLL, "another descriptor");
    model_futex_wait(&memory.readable, 0);
    return 1;
}

static int progress(struct rk_ctx *ctx)
{
    int n = 0;

    (void)ctx;
    for (int i = 0; i < SENDERS; i++) {
        if (!(taken >> i & 1) && atomic_load_explicit(&memory.came[i], memory_order_acquire)) {
            taken |= 1u << i;
            n++;
        }
    }
    return n;
}

#define syscall(...) model_syscall(__VA_ARGS__)
#define write model_write
#define read model_read
#define timerfd_settime model_timer
#define epoll_wait model_poll
#define rk_progress progress
#include "lib/node/node.c"

#include "lib/core/wait.c"
#include "lib/core/event_fd.c"

static struct rk_node node[RANKS];
static struct rk_engine engine;
static struct rk_ctx ctx;
static int bell_to[RANKS];

static bool all_came(struct rk_wait *w)
{
    (void)w;
    return taken == (1u << SENDERS) - 1;
}

/* As rk_wait_bout, without its time-out. */
static void sleep_until_all_came(void)
{
    struct rk_wait w = {.over = all_came};

    while (!all_came(NULL)) {
        model_here(taken, 0, 0);
        wait_sleep(&ctx, &w, false);
    }
}

/* As a program with an event loop; rank_progress is the first two calls. */
static void watches(void)
{
    for (;;) {
        struct epoll_event ev;

        rk_event_fd_end(&ctx);
        progress(&ctx);
        model_here(taken, 1, 0);
        if (all_came(NULL))
            return;
        if (rk_event_fd_arm(&ctx) == RANK_OK)
            model_poll(EPOLL, &ev, 1, -1);
    }
}

/* A channel that empties the doorbell when it is armed: after the poll. */
static rank_status_t empties(void *state)
{
    (void)state;
    event_fd_drain(&node[0]);
    return RANK_OK;
}
static const struct rk_channel emptying = {.name = "emptying", .arm = empties};

static void one(int which)
{
    if (which > 0) {
        atomic_store_explicit(&memory.came[which - 1], 1, memory_order_release);
        rk_node_wake(&node[which], 0);
    } else if (watching) {
        watches();
    } else {
        sleep_until_all_came();
    }
}

static bool emptied;

static void begin(void)
{
    memset(&memory, 0, sizeof(memory));
    memset(&engine, 0, sizeof(engine));
    for (int i = 0; i < RANKS; i++) {
        node[i] = (struct rk_node){.head = &memory.head, .slots = memory.slot, .mine = &memory.slot[i], .nlocal = RANKS,
                                   .index = i, .bell_rd = BELL_RD, .bell_wr = BELL_WR, .bell_to = bell_to,
                                   .fence_on_send = fence_on_send};
        bell_to[i] = BELL_TO;
    }
    rk_list_init(&engine.calls);
    if (emptied) {
        engine.open[0].ops = &emptying;
        engine.nopen = 1;
    }
    engine.sleep_epoll = engine.watch.epoll = (struct rk_epoll){EPOLL, engine.nopen};
    engine.watch.timer = TIMER;
    engine.next_check_ns = UINT64_MAX;
    ctx = (struct rk_ctx){.node = &node[0], .engine = &engine};
    taken = 0;
}

/* Of its own, or by the user. */
static int both(const char *name, const char *user, bool broken)
{
    struct model m = {.name = name, .threads = RANKS, .thread = one, .begin = begin, .memory = &memory,
                      .bytes = sizeof(memory)};
    int failed = 0;

    watching = false;
    failed += model_check(&m, broken);
    watching = true;
    m.name = user;
    return failed + model_check(&m, broken);
}

int main(void)
{
    int failed = both("a sleep on a descriptor with a membarrier", "a user's poll with a membarrier", false);

    no_membarrier = fence_on_send = true;
    failed += both("a sleep without, and senders that fence", "a user's poll without, and senders that fence", false);
    fence_on_send = false;
    failed += both("a sleep with neither", "a user's poll with neither", true);
    no_membarrier = false;
    emptied = true;
    failed += both("a sleep when the doorbell is emptied after the poll", "a user's poll of such a doorbell", true);
    return failed != 0;
}

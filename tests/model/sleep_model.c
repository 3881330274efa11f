/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sleep_model.c: sleep and wake, in every order of memory accesses.
 *
 * The code of lib/node/node.c itself: a rank that
 * waits for two others sleeps on its doorbell's futex, they wake it. No rank may sleep on when all has come. The sleeps'
 * time limit, which would hide a lost wake, is not there.
 *
 * The sender's store and its read of "sleeping" may change places on the way to memory. What stands against that is the
 * sleeper's membarrier, or a fence of the sender's where there is none; without either the search has to find the loss.
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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/model/model.h"

static bool no_membarrier;

/* The two system calls of node.c. */
static long model_syscall(long number, ...)
{
    va_list ap;
    long rc = 0;

    va_start(ap, number);
    if (number == SYS_membarrier) {
        if (!no_membarrier)
            model_membarrier();
    } else if (number == SYS_futex) {
        volatile void *word = va_arg(ap, volatile void *);
        int op = va_arg(ap, int);
        uint32_t value = va_arg(ap, uint32_t);
        if (op == FUTEX_WAIT)
            model_futex_wait(word, value);
        else
            model_futex_wake(word);
    } else {
        rc = -1;
    }
    va_end(ap);
    return rc;
}
#define syscall(...) model_syscall(__VA_ARGS__)

#include "lib/node/node.c"

enum { SENDERS = 2 };

static struct {
    struct rk_node_head head;
    struct rk_node_slot slot[1 + SENDERS];
    _Atomic uint32_t came[SENDERS];
} RK_ALIGNED_LINE memory;

static bool fence_on_send;

static bool all_came(void)
{
    for (int i = 0; i < SENDERS; i++) {
        if (!atomic_load_explicit(&memory.came[i], memory_order_acquire))
            return false;
    }
    return true;
}

static struct rk_node node_of(int which)
{
    return (struct rk_node){.head = &memory.head,
                            .slots = memory.slot,
                            .mine = &memory.slot[which],
                            .nlocal = 1 + SENDERS,
                            .index = which,
                            .fence_on_send = fence_on_send};
}

/* As a sleep in lib/core/wait.c. */
static void sleeper(struct rk_node *node)
{
    while (!all_came()) {
        uint32_t bell = rk_node_sleep_begin(node, RK_ASLEEP_FUTEX);

        if (!all_came())
            rk_node_sleep(node, bell, 1);
        rk_node_sleep_end(node);
    }
}

static void one(int which)
{
    struct rk_node node = node_of(which);

    if (which == 0) {
        sleeper(&node);
    } else {
        atomic_store_explicit(&memory.came[which - 1], 1, memory_order_release);
        rk_node_wake(&node, 0);
    }
}

static void begin(void)
{
    memset(&memory, 0, sizeof(memory));
}

int main(void)
{
    struct model m = {.threads = 1 + SENDERS, .thread = one, .begin = begin, .memory = &memory, .bytes = sizeof(memory)};
    int failed = 0;

    m.name = "sleeping with a membarrier";
    failed += model_check(&m, false);
    m.name = "sleeping without, and senders that fence";
    no_membarrier = fence_on_send = true;
    failed += model_check(&m, false);
    m.name = "sleeping with neither";
    fence_on_send = false;
    failed += model_check(&m, true);
    return failed != 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node_life.c: detect dead ranks of the node.
 *
 * A rank holds the robust mutex of its slot from join to leave. When its owner dies the kernel marks the mutex,
 * which a trylock detects. A mutex belongs to a thread: if the thread that called rank_init ends and the process
 * lives on, the mark means nothing, and the process is checked from then on.
 */
#include "lib/node/node_life.h"
#include "lib/base/arg_error.h"
#include "lib/base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A private word that peers read to test CMA: the same in all contexts. */
static _Atomic uint32_t probe_word;

/*
 * Field 22 of /proc/PID/stat, or 0 if there is no such process or it is a zombie. A process that has lost its main
 * thread only is no zombie: it has other threads (field 20).
 */
static uint64_t start_time_of(int pid)
{
    char path[64], text[1024], *p, state;
    unsigned long long start = 0;
    int threads = 0;
    size_t n;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    f = fopen(path, "re");
    if (!f)
        return 0;
    n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[n] = '\0';
    p = strrchr(text, ')'); /* the name may contain anything */
    if (!p || sscanf(p + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                            "%d %*d %llu",
                     &state, &threads, &start) != 3)
        return 0;
    return (state == 'Z' || state == 'X') && threads <= 1 ? 0 : start;
}

int rk_node_process_alive(const struct rk_node_slot *slot)
{
    return start_time_of(slot->pid) == slot->start_time;
}

rank_status_t rk_node_take_life(struct rk_node_slot *slot, int world_rank)
{
    pthread_mutexattr_t attr;
    int rc;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    rc = pthread_mutex_init(&slot->life, &attr);
    pthread_mutexattr_destroy(&attr);
    if (!rc)
        rc = pthread_mutex_lock(&slot->life);
    if (rc) {
        return rk_fail(RANK_ERR_SYSTEM, "cannot make a robust mutex: %s", strerror(rc));
    }
    rk_node_fill_slot(slot, world_rank);
    return RANK_OK;
}

void rk_node_fill_slot(struct rk_node_slot *slot, int world_rank)
{
    slot->world_rank = world_rank;
    slot->pid = getpid();
    slot->start_time = start_time_of(slot->pid);
    slot->probe_word = (uint32_t)slot->pid * 2654435761u;
    atomic_store_explicit(&probe_word, slot->probe_word, memory_order_relaxed);
    slot->probe_addr = (uint64_t)(uintptr_t)&probe_word;
    atomic_store(&slot->state, RK_SLOT_UP);
}

bool rk_node_leave_life(struct rk_node_slot *slot)
{
    uint32_t up = RK_SLOT_UP;

    atomic_compare_exchange_strong(&slot->state, &up, RK_SLOT_DONE);
    return pthread_mutex_unlock(&slot->life) == 0;
}

void rk_node_notify_all(struct rk_node *node)
{
    atomic_fetch_add(&node->head->deaths, 1);
    for (int i = 0; i < node->nlocal; i++) {
        if (atomic_load(&node->slots[i].state) == RK_SLOT_UP)
            rk_node_wake(node, i);
    }
}

void rk_node_mark_dead(struct rk_node *node, int index)
{
    uint32_t up = RK_SLOT_UP;

    if (!atomic_compare_exchange_strong(&node->slots[index].state, &up, RK_SLOT_DEAD))
        return;
    rk_debug("rank %d (pid %d) died", node->slots[index].world_rank, node->slots[index].pid);
    rk_node_notify_all(node);
}

static bool lock_owner_died(struct rk_node_slot *slot)
{
    if (atomic_load(&slot->lock_lost))
        return true;
    switch (pthread_mutex_trylock(&slot->life)) {
    case 0:
        pthread_mutex_unlock(&slot->life); /* an orderly exit between the two checks */
        return false;
    case EOWNERDEAD:
        /*
         * From now on all check the process, which may live on or end slowly. The lock must not be tried again:
         * glibc's trylock of an unrecoverable mutex can leave it locked by the caller, and then it reports "busy"
         * forever.
         */
        atomic_store(&slot->lock_lost, 1);
        pthread_mutex_unlock(&slot->life);
        return true;
    case ENOTRECOVERABLE:
        return true;
    default:
        return false;
    }
}

bool rk_node_is_going(struct rk_node *node, int index)
{
    return atomic_load(&node->slots[index].state) != RK_SLOT_UP || lock_owner_died(&node->slots[index]);
}

int rk_node_check_deaths(struct rk_node *node)
{
    int found = 0;

    for (int i = 0; i < node->nlocal; i++) {
        struct rk_node_slot *slot = &node->slots[i];
        if (i == node->index || atomic_load(&slot->state) != RK_SLOT_UP)
            continue;
        if (lock_owner_died(slot) && !rk_node_process_alive(slot)) {
            rk_node_mark_dead(node, i);
            found++;
        }
    }
    return found;
}

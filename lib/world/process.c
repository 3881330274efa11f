/* SPDX-License-Identifier: BSD-3-Clause */
/* process.c: see process.h. */
#include "lib/world/process.h"
#include "lib/base/conf.h"
#include "lib/base/arg_error.h"
#include "lib/base/kept_fds.h"
#include "lib/conn/conns.h"
#include "lib/core/room.h"
#include "lib/mem/kind.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t process_lock = PTHREAD_MUTEX_INITIALIZER;
static int process_users;
static struct rk_ctx *process_first; /* chained through next_in_process */

/* No thread holds these locks at a fork: a child may open contexts of its own. */
static void process_before_fork(void)
{
    pthread_mutex_lock(&process_lock);
    rk_kept_fds_lock();
}

static void process_after_fork(void)
{
    rk_kept_fds_unlock();
    pthread_mutex_unlock(&process_lock);
}

/* In a forked child, without PMIx, progress and a slot, every call on the parent's objects is rejected. */
static void process_forked(void)
{
    if (atomic_load(&rk_life) != RK_LIFE_OUT)
        atomic_store(&rk_life, RK_LIFE_FORKED);
    if (atomic_exchange(&rk_contexts, 0)) /* handles of the parent: RANK_ERR_STATE */
        atomic_store(&rk_forked, true);
    for (struct rk_ctx *ctx = process_first; ctx; ctx = ctx->next_in_process) {
        ctx->forked = true;
        rk_rooms_spoil(ctx);
        rk_conns_forked(ctx);
    }
    process_after_fork();
}

rank_status_t rk_process_enter(void)
{
    static bool watches_forks;
    rank_status_t st = RANK_OK;

    rk_errors_apply();
    pthread_mutex_lock(&process_lock);
    if (!watches_forks)
        watches_forks = pthread_atfork(process_before_fork, process_after_fork, process_forked) == 0;
    if (process_users++ == 0)
        st = rk_conf_load();
    pthread_mutex_unlock(&process_lock);
    return st;
}

void rk_process_leave(void)
{
    pthread_mutex_lock(&process_lock);
    if (--process_users == 0) {
        rk_kind_close();
        rk_conf_unload();
    }
    pthread_mutex_unlock(&process_lock);
}

void rk_process_add(struct rk_ctx *ctx)
{
    pthread_mutex_lock(&process_lock);
    ctx->next_in_process = process_first;
    process_first = ctx;
    pthread_mutex_unlock(&process_lock);
}

void rk_process_remove(struct rk_ctx *ctx)
{
    struct rk_ctx **at = &process_first;

    pthread_mutex_lock(&process_lock);
    while (*at && *at != ctx)
        at = &(*at)->next_in_process;
    if (*at)
        *at = ctx->next_in_process;
    pthread_mutex_unlock(&process_lock);
}

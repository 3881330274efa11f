/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * progress_thread.c: run a thread that makes progress.
 *
 * It is made for RANK_PROGRESS_THREAD, or for the first queue of a stream.
 *
 * The thread waits for the end of the library in rk_wait. It sleeps on the doorbell while nothing comes. As soon
 * as a thread of the program waits, it leaves polling to that one, which reacts faster. It checks a millisecond
 * later whether it is needed again.
 */
#include "lib/base/arg_error.h"
#include "lib/core/threads.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct progress_thread {
    struct rk_wait wait;
    pthread_t id;
    struct rk_ctx *ctx;
    bool stop; /* guarded by the lock */
};

static bool is_stopped(struct rk_wait *w)
{
    return ((struct progress_thread *)w)->stop;
}

static void *progress_thread_run(void *arg)
{
    struct progress_thread *p = arg;

    rk_errors_background();
    RK_ENTER(p->ctx);
    p->wait.background = true;
    rk_wait(p->ctx, &p->wait, is_stopped);
    return NULL;
}

rank_status_t rk_progress_thread_start(struct rk_ctx *ctx)
{
    struct progress_thread *p = ctx->engine->threads->progress ? NULL : calloc(1, sizeof(*p));
    sigset_t all, before;
    int rc;

    if (ctx->engine->threads->progress)
        return RANK_OK;
    if (!p)
        return RANK_ERR_NO_MEMORY;
    p->ctx = ctx;
    sigfillset(&all); /* signals belong to the program's threads */
    pthread_sigmask(SIG_BLOCK, &all, &before);
    rc = pthread_create(&p->id, NULL, progress_thread_run, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc) {
        rk_fail(RANK_ERR_SYSTEM, "the progress thread could not be made (%s); look at ulimit -u", strerror(rc));
        free(p);
        return RANK_ERR_SYSTEM;
    }
    ctx->engine->threads->progress = p;
    return RANK_OK;
}

static void stop(struct progress_thread *p)
{
    RK_ENTER(p->ctx);

    p->stop = true; /* the condition is found when the lock is released */
}

void rk_progress_thread_stop(struct rk_ctx *ctx)
{
    struct rk_threads *t = ctx->engine ? ctx->engine->threads : NULL;
    struct progress_thread *p = t ? t->progress : NULL;

    if (!p)
        return;
    stop(p);
    pthread_join(p->id, NULL);
    free(p);
    t->progress = NULL;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_call.c: run calls that wait in the library on threads of their own.
 *
 * The caller waits in slices, so that a timeout, ^C or a close ends its wait. The call goes on then. The last of caller and
 * thread frees it.
 */
#include "py_rank.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STACK_BYTES = 1 << 20 };

/* Make a call with zeroed memory of bytes. Returns NULL with an exception set. */
void *py_call_new(size_t bytes, py_context *owner, rank_status_t (*run)(struct py_call *), void (*undo)(struct py_call *))
{
    struct py_call *call = calloc(1, bytes);
    pthread_condattr_t clock;
    if (!call) {
        PyErr_NoMemory();
        return NULL;
    }
    call->run = run;
    call->undo = undo;
    call->running = &owner->calls;
    pthread_mutex_init(&call->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&call->end, &clock);
    pthread_condattr_destroy(&clock);
    return call;
}

/* No-op if NULL. */
void py_call_free(void *memory)
{
    struct py_call *call = memory;
    if (!call)
        return;
    pthread_cond_destroy(&call->end);
    pthread_mutex_destroy(&call->lock);
    free(call->extra);
    free(call);
}

static void *call_main(void *memory)
{
    struct py_call *call = memory;
    _Atomic int *running = call->running;
    rank_status_t status = call->run(call);
    const char *reason = status == RANK_OK ? "" : rank_status_reason(status); /* of this thread */
    strncat(call->reason, reason, sizeof(call->reason) - 1);
    pthread_mutex_lock(&call->lock);
    call->status = status;
    call->done = true;
    bool abandoned = call->abandoned;
    pthread_cond_signal(&call->end);
    pthread_mutex_unlock(&call->lock);
    if (abandoned) {
        if (status == RANK_OK && call->undo)
            call->undo(call);
        py_call_free(call);
    }
    atomic_fetch_sub(running, 1); /* the context may be closed from here on */
    return NULL;
}

/* Returns false if there is no thread. */
static bool call_begin(struct py_call *call)
{
    pthread_attr_t attr;
    static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL}; /* the library handles SIGBUS of mapped memory, for one */
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        sigdelset(&all, faults[i]);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for threads of the program */
    atomic_fetch_add(call->running, 1);
    bool begun = pthread_create(&thread, &attr, call_main, call) == 0;
    if (!begun)
        atomic_fetch_sub(call->running, 1);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return begun;
}

/* Wait until it has ended, for a limited time. */
static rank_status_t call_step(void *memory, int64_t timeout_ns)
{
    struct py_call *call = memory;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)((until.tv_nsec + timeout_ns) / NS_PER_S);
    until.tv_nsec = (long)((until.tv_nsec + timeout_ns) % NS_PER_S);
    pthread_mutex_lock(&call->lock);
    while (!call->done && timeout_ns && pthread_cond_timedwait(&call->end, &call->lock, &until) == 0)
        ;
    rank_status_t status = call->done ? RANK_OK : RANK_ERR_TIMED_OUT;
    pthread_mutex_unlock(&call->lock);
    return status;
}

/* Has the caller left the call? Runs on its thread. */
bool py_call_left(struct py_call *call)
{
    pthread_mutex_lock(&call->lock);
    bool left = call->abandoned;
    pthread_mutex_unlock(&call->lock);
    return left;
}

/* Run it on this thread: it does not wait. Returns false with an exception set, and frees it then. */
bool py_call_here(const char *name, struct py_gate *gate, void *memory)
{
    struct py_call *call = memory;
    rank_status_t status;
    py_enter(gate);
    Py_BEGIN_ALLOW_THREADS
    status = call->run(call);
    Py_END_ALLOW_THREADS
    py_leave(gate);
    if (status == RANK_OK)
        return true;
    py_call_free(call);
    py_raise(name, status);
    return false;
}

/*
 * Run the call. Returns false, with an exception set, if it failed or has not ended, and the call is not the caller's any
 * more then. *left: it has not ended, and goes on; left may be NULL.
 */
bool py_call_wait(const char *name, struct py_gate *gate, void *memory, int64_t timeout_ns, bool *left)
{
    struct py_call *call = memory;
    rank_status_t status;
    if (left)
        *left = false;
    if (!call_begin(call)) {
        py_call_free(call);
        py_raise_text(RANK_ERR_NO_MEMORY, "%s: no thread can be started", name);
        return false;
    }
    bool waited = py_wait(gate, timeout_ns, call_step, call, &status);
    pthread_mutex_lock(&call->lock);
    bool done = call->done;
    call->abandoned = !done;
    pthread_mutex_unlock(&call->lock);
    if (left)
        *left = !done;
    if (!done) { /* the thread frees it */
        if (waited)
            py_raise(name, status);
        return false;
    }
    status = call->status;
    if (waited && status == RANK_OK)
        return true;
    if (status == RANK_OK && call->undo)
        call->undo(call);
    if (waited)
        py_raise_reason(name, status, call->reason);
    py_call_free(call);
    return false;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* py_wait.c: wait without the GIL, so that other threads run and ^C works. */
#include "py_rank.h"

#include <time.h>

/* A signal is handled after one slice at most. */
enum { SLICE_NS = 50 * 1000000, DRAIN_PAUSE_NS = 1000000 };

/* Returns false with an exception set if the context is closed. */
bool py_usable(const char *call, py_context *owner)
{
    if (!owner->gate.shut)
        return true;
    py_raise_text(RANK_ERR_CLOSED, "%s: the context is closed", call);
    return false;
}

/*
 * Run step once with the GIL, then without it in slices, until it returns another status than RANK_ERR_TIMED_OUT.
 * gate is of the object that step uses, or NULL. RANK_ERR_CLOSED: this process closes the object or its context.
 * Returns false with an exception set if a signal handler raised one.
 */
bool py_wait(py_context *owner, struct py_gate *gate, int64_t timeout_ns, py_step *step, void *arg, rank_status_t *status)
{
    *status = step(arg, 0);
    if (*status != RANK_ERR_TIMED_OUT || timeout_ns == 0)
        return true;
    int64_t end = timeout_ns < 0 ? INT64_MAX : py_clock_ns() + timeout_ns;
    if (!gate)
        gate = &owner->gate;
    do {
        if (PyErr_CheckSignals() < 0)
            return false;
        if (owner->gate.shut || gate->shut) {
            *status = RANK_ERR_CLOSED;
            return true;
        }
        int64_t left = end - py_clock_ns();
        if (left <= 0)
            return true;
        owner->gate.users++;
        gate->users++;
        Py_BEGIN_ALLOW_THREADS
        *status = step(arg, left < SLICE_NS ? left : SLICE_NS);
        Py_END_ALLOW_THREADS
        gate->users--;
        owner->gate.users--;
    } while (*status == RANK_ERR_TIMED_OUT);
    return true;
}

/* Shut the gate, and wait until no call is left behind it: one slice at most. */
void py_drain(struct py_gate *gate)
{
    const struct timespec pause = {0, DRAIN_PAUSE_NS};
    gate->shut = true;
    while (gate->users > 0) {
        Py_BEGIN_ALLOW_THREADS
        nanosleep(&pause, NULL);
        Py_END_ALLOW_THREADS
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* py_wait.c: wait without the GIL, and keep objects open meanwhile. */
#include "py_rank.h"

#include <time.h>

/* A signal is handled after one slice at most. */
enum { SLICE_NS = 50 * 1000000, DRAIN_PAUSE_NS = 1000000 };

/* Find the gate that is shut, of the object or of one that it belongs to. Returns NULL if all are open. */
static const struct py_gate *gate_shut(const struct py_gate *gate)
{
    while (gate && !gate->shut)
        gate = gate->outer;
    return gate;
}

/* Returns false with an exception set if the object is closed. */
bool py_usable(const char *call, const struct py_gate *gate)
{
    const struct py_gate *shut = gate_shut(gate);
    if (shut)
        py_raise_text(shut->status, "%s: %s", call, shut->reason);
    return !shut;
}

/* Begin a call without the GIL. Until py_leave, the object and those that it belongs to are not closed. */
void py_enter(struct py_gate *gate)
{
    for (; gate; gate = gate->outer)
        gate->users++;
}

void py_leave(struct py_gate *gate)
{
    for (; gate; gate = gate->outer)
        gate->users--;
}

/* As py_wait, after the first test. */
static bool wait_in_slices(struct py_gate *gate, int64_t timeout_ns, py_step *step, void *arg, rank_status_t *status)
{
    int64_t end = timeout_ns < 0 ? INT64_MAX : py_clock_ns() + timeout_ns;
    do {
        if (PyErr_CheckSignals() < 0)
            return false;
        if (gate_shut(gate)) {
            if (py_end_here())
                return false;
            *status = RANK_ERR_CLOSED;
            return true;
        }
        int64_t left = end - py_clock_ns();
        if (left <= 0)
            return true;
        py_enter(gate);
        Py_BEGIN_ALLOW_THREADS
        *status = step(arg, left < SLICE_NS ? left : SLICE_NS);
        Py_END_ALLOW_THREADS
        py_leave(gate);
    } while (*status == RANK_ERR_TIMED_OUT);
    return true;
}

/*
 * Run step once with the GIL, then without it in slices, until it returns another status than RANK_ERR_TIMED_OUT.
 * gate is of the object that step uses. RANK_ERR_CLOSED: this process closes the object or its context.
 * Returns false with an exception set if a signal handler raised one.
 */
bool py_wait(struct py_gate *gate, int64_t timeout_ns, py_step *step, void *arg, rank_status_t *status)
{
    *status = step(arg, 0);
    if (*status != RANK_ERR_TIMED_OUT || timeout_ns == 0)
        return true;
    rank_wait_slices(1);
    bool waited = wait_in_slices(gate, timeout_ns, step, arg, status);
    rank_wait_slices(0);
    return waited;
}

/* Shut the gate, and wait until no call is left behind it, and no thread of calls (or NULL). Returns false if time is up. */
bool py_drain_for(struct py_gate *gate, const _Atomic int *calls, int64_t timeout_ns)
{
    const struct timespec pause = {0, DRAIN_PAUSE_NS};
    int64_t end = timeout_ns < 0 ? INT64_MAX : py_clock_ns() + timeout_ns;
    gate->shut = true;
    while (gate->users > 0 || (calls && atomic_load(calls) > 0)) {
        if (py_clock_ns() >= end)
            return false;
        Py_BEGIN_ALLOW_THREADS
        nanosleep(&pause, NULL);
        Py_END_ALLOW_THREADS
    }
    return true;
}

void py_drain(struct py_gate *gate)
{
    py_drain_for(gate, NULL, -1);
}

/* Make an object of a context, with its gate. Returns NULL with an exception set. */
void *py_part_new(PyTypeObject *type, py_context *owner, struct py_gate gate)
{
    py_part *self = PyObject_New(py_part, type);
    if (!self)
        return NULL;
    self->owner = (py_context *)Py_NewRef((PyObject *)owner);
    self->gate = gate;
    return self;
}

void py_part_free(void *object)
{
    py_part *self = object;
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    Py_DECREF((PyObject *)self->owner);
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

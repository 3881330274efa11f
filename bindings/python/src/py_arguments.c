/* SPDX-License-Identifier: BSD-3-Clause */
/* py_arguments.c: parse arguments of methods without a tuple. */
#include "py_rank.h"

#include <string.h>
#include <time.h>

static const double TIMEOUT_MAX_S = 9e9; /* INT64_MAX in ns is 9.2e9 s */

/* names ends with NULL. out has a place for each name; a missing argument is NULL. */
bool py_arguments(const char *call, const char *const *names, int required, PY_ARGS, PyObject **out)
{
    int known = 0;
    for (; names[known]; known++)
        out[known] = known < nargs ? args[known] : NULL;
    if (nargs > known) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %d arguments, not %zd", call, known, nargs);
        return false;
    }
    Py_ssize_t keywords = kwnames ? PyTuple_Size(kwnames) : 0;
    for (Py_ssize_t i = 0; i < keywords; i++) {
        PyObject *name = PyTuple_GetItem(kwnames, i);
        const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
        int at = 0;
        if (!text)
            return false;
        while (names[at] && (*text != *names[at] || strcmp(text, names[at]) != 0))
            at++;
        if (!names[at] || out[at]) {
            PyErr_Format(PyExc_TypeError, "%s() %s argument '%U'", call, names[at] ? "has two values for" : "has no", name);
            return false;
        }
        out[at] = args[nargs + i];
    }
    for (int i = 0; i < required; i++) {
        if (!out[i]) {
            PyErr_Format(PyExc_TypeError, "%s() needs argument '%s'", call, names[i]);
            return false;
        }
    }
    return true;
}

bool py_integer(PyObject *object, int64_t *value)
{
    if (!object || object == Py_None)
        return true;
    long long number = PyLong_AsLongLong(object);
    if (number == -1 && PyErr_Occurred())
        return false;
    *value = number;
    return true;
}

bool py_unsigned(const char *call, PyObject *object, uint64_t *value)
{
    PyObject *number = PyNumber_Index(object);
    *value = number ? PyLong_AsUnsignedLongLong(number) : 0;
    Py_XDECREF(number);
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_OverflowError))
        PyErr_Format(PyExc_OverflowError, "%s: value must be from 0 to 2**64 - 1, not %.80R", call, object);
    return !PyErr_Occurred();
}

/* Seconds. None waits for ever. The default is what *timeout_ns is before. */
bool py_timeout(PyObject *object, int64_t *timeout_ns)
{
    if (!object)
        return true;
    if (object == Py_None) {
        *timeout_ns = -1;
        return true;
    }
    double seconds = PyFloat_AsDouble(object);
    if (seconds == -1.0 && PyErr_Occurred())
        return false;
    if (!(seconds >= 0)) {
        PyErr_SetString(PyExc_ValueError, "timeout must be seconds >= 0, or None to wait for ever");
        return false;
    }
    *timeout_ns = seconds > TIMEOUT_MAX_S ? -1 : (int64_t)(seconds * NS_PER_S);
    return true;
}

bool py_only_timeout(const char *call, PY_ARGS, int64_t *timeout_ns)
{
    static const char *const names[] = {"timeout", NULL};
    PyObject *in[1];
    return py_arguments(call, names, 0, args, nargs, kwnames, in) && py_timeout(in[0], timeout_ns);
}

int64_t py_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

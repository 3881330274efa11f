/* SPDX-License-Identifier: BSD-3-Clause */
/* py_collective.c: start collectives on buffers. */
#include "py_rank.h"

static bool barrier_start(py_team *self, const char *call, PyObject **in, struct py_op *op)
{
    (void)in;
    if (!py_op_begin(op, call, self->owner, (PyObject *)self))
        return false;
    op->status = rank_ibarrier(self->team, &op->req);
    return true;
}

static bool bcast_start(py_team *self, const char *call, PyObject **in, struct py_op *op)
{
    int64_t root = 0;
    if (!py_integer(in[1], &root) || !py_op_begin(op, call, self->owner, (PyObject *)self))
        return false;
    Py_buffer *view = py_hold_add(op->hold, call, in[0], root != self->rank);
    if (!view)
        return py_op_drop(op) != NULL;
    if (root != (int)root)
        root = RANK_UNDEFINED; /* the library refuses that */
    op->status = rank_ibcast(view->buf, view->len, RANK_BYTE, (int)root, self->team, &op->req);
    return true;
}

static bool allreduce_start(py_team *self, const char *call, PyObject **in, struct py_op *op)
{
    int64_t code = RANK_SUM, count, count_out;
    rank_dtype_t dtype, dtype_out;
    bool in_place = !in[1] || in[1] == Py_None;
    if (!py_integer(in[2], &code) || !py_op_begin(op, call, self->owner, (PyObject *)self))
        return false;
    Py_buffer *from = py_hold_add(op->hold, call, in[0], in_place), *to = from;
    if (!from || !py_buffer_dtype(call, from, &dtype, &count))
        return py_op_drop(op) != NULL;
    if (!in_place) {
        to = py_hold_add(op->hold, call, in[1], true);
        if (!to || !py_buffer_dtype(call, to, &dtype_out, &count_out))
            return py_op_drop(op) != NULL;
        if (dtype != dtype_out || count != count_out) {
            PyErr_Format(PyExc_TypeError, "%s: sendbuf has %lld items of '%s', recvbuf %lld of '%s'; they must be equal", call,
                         (long long)count, from->format, (long long)count_out, to->format);
            return py_op_drop(op) != NULL;
        }
    }
    op->status = rank_iallreduce(in_place ? RANK_IN_PLACE : from->buf, to->buf, count, dtype, (rank_op_t)code, self->team,
                                 &op->req);
    return true;
}

static bool allgather_start(py_team *self, const char *call, PyObject **in, struct py_op *op)
{
    if (!py_op_begin(op, call, self->owner, (PyObject *)self))
        return false;
    Py_buffer *from = py_hold_add(op->hold, call, in[0], false);
    Py_buffer *to = from ? py_hold_add(op->hold, call, in[1], true) : NULL;
    if (!to)
        return py_op_drop(op) != NULL;
    if (to->len / self->size != from->len || to->len % self->size != 0) {
        PyErr_Format(PyExc_ValueError, "%s: recvbuf has %zd bytes; it needs %d times the %zd of sendbuf", call, to->len,
                     self->size, from->len);
        return py_op_drop(op) != NULL;
    }
    op->status = rank_iallgather(from->buf, to->buf, from->len, RANK_BYTE, self->team, &op->req);
    return true;
}

enum { NAMES_MAX = 5 };

/* A collective: how it starts, and its arguments. The last one is that of the blocking call only. */
struct collective {
    const char *call, *icall;
    bool (*start)(py_team *self, const char *call, PyObject **in, struct py_op *op);
    int required, inputs;
    const char *names[NAMES_MAX], *inames[NAMES_MAX];
};

static const struct collective barrier = {"barrier", "ibarrier", barrier_start, 0, 0, {"timeout"}, {NULL}};
static const struct collective bcast = {"bcast", "ibcast", bcast_start, 1, 2, {"buffer", "root", "timeout"}, {"buffer", "root"}};
static const struct collective allreduce = {
    "allreduce", "iallreduce", allreduce_start, 1, 3, {"sendbuf", "recvbuf", "op", "timeout"}, {"sendbuf", "recvbuf", "op"}};
static const struct collective allgather = {
    "allgather", "iallgather", allgather_start, 2, 2, {"sendbuf", "recvbuf", "timeout"}, {"sendbuf", "recvbuf"}};

static PyObject *collective_wait(const struct collective *op, PyObject *object, PY_ARGS)
{
    py_team *self = (py_team *)object;
    PyObject *in[NAMES_MAX] = {NULL};
    struct py_op start;
    int64_t timeout_ns = -1;
    if (!py_arguments(op->call, op->names, op->required, args, nargs, kwnames, in) || !py_timeout(in[op->inputs], &timeout_ns) ||
        !py_team_usable(op->call, self) || !op->start(self, op->call, in, &start))
        return NULL;
    return py_op_wait(&start, timeout_ns);
}

static PyObject *collective_request(const struct collective *op, PyObject *object, PY_ARGS)
{
    py_team *self = (py_team *)object;
    PyObject *in[NAMES_MAX] = {NULL};
    struct py_op start;
    if (!py_arguments(op->icall, op->inames, op->required, args, nargs, kwnames, in) || !py_team_usable(op->icall, self) ||
        !op->start(self, op->icall, in, &start))
        return NULL;
    return py_op_request(&start);
}

#define COLLECTIVE(name)                                                                                               \
    PyObject *py_##name(PyObject *self, PY_ARGS) { return collective_wait(&name, self, args, nargs, kwnames); }        \
    PyObject *py_i##name(PyObject *self, PY_ARGS) { return collective_request(&name, self, args, nargs, kwnames); }

COLLECTIVE(barrier)
COLLECTIVE(bcast)
COLLECTIVE(allreduce)
COLLECTIVE(allgather)

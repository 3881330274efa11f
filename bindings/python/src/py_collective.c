/* SPDX-License-Identifier: BSD-3-Clause */
/* py_collective.c: start collectives on buffers. */
#include "py_rank.h"

static bool barrier_start(struct py_op *op, PyObject **in)
{
    (void)in;
    op->status = rank_ibarrier(((py_team *)op->base)->team, &op->req);
    return true;
}

static bool bcast_start(struct py_op *op, PyObject **in)
{
    py_team *self = (py_team *)op->base;
    int64_t root = 0;
    if (!py_integer(in[1], &root))
        return false;
    Py_buffer *view = py_op_add(op, in[0], root != self->rank);
    if (!view)
        return false;
    if (root != (int)root)
        root = RANK_UNDEFINED; /* the library refuses that */
    op->status = rank_ibcast(view->buf, view->len, RANK_BYTE, (int)root, self->team, &op->req);
    return true;
}

static bool allreduce_start(struct py_op *op, PyObject **in)
{
    int64_t code = RANK_SUM, count, count_out;
    rank_dtype_t dtype, dtype_out;
    bool in_place = !in[1] || in[1] == Py_None;
    if (!py_integer(in[2], &code))
        return false;
    Py_buffer *from = py_op_add(op, in[0], in_place), *to = from;
    if (!from || !py_buffer_dtype(op->call, from, &dtype, &count))
        return false;
    if (!in_place) {
        to = py_op_add(op, in[1], true);
        if (!to || !py_buffer_dtype(op->call, to, &dtype_out, &count_out))
            return false;
        if (dtype != dtype_out || count != count_out) {
            PyErr_Format(PyExc_TypeError, "%s: sendbuf has %lld items of '%s', recvbuf %lld of '%s'; they must be equal", op->call,
                         (long long)count, py_buffer_format(from), (long long)count_out, py_buffer_format(to));
            return false;
        }
    }
    op->status = rank_iallreduce(in_place ? RANK_IN_PLACE : from->buf, to->buf, count, dtype, (rank_op_t)code,
                                 ((py_team *)op->base)->team, &op->req);
    return true;
}

static bool allgather_start(struct py_op *op, PyObject **in)
{
    py_team *self = (py_team *)op->base;
    Py_buffer *from = py_op_add(op, in[0], false);
    Py_buffer *to = from ? py_op_add(op, in[1], true) : NULL;
    if (!to)
        return false;
    if (to->len / self->size != from->len || to->len % self->size != 0) {
        PyErr_Format(PyExc_ValueError, "%s: recvbuf has %zd bytes; it needs %d times the %zd of sendbuf", op->call, to->len,
                     self->size, from->len);
        return false;
    }
    op->status = rank_iallgather(from->buf, to->buf, from->len, RANK_BYTE, self->team, &op->req);
    return true;
}

const struct py_op_kind py_barrier = {"barrier", "ibarrier", barrier_start, {NULL}, 0, false, false};
const struct py_op_kind py_bcast = {"bcast", "ibcast", bcast_start, {"buffer", "root"}, 1, false, false};
const struct py_op_kind py_allreduce = {"allreduce", "iallreduce", allreduce_start, {"sendbuf", "recvbuf", "op"}, 1, false, false};
const struct py_op_kind py_allgather = {"allgather", "iallgather", allgather_start, {"sendbuf", "recvbuf"}, 2, false, false};

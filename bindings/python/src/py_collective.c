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

/* Items of a reduction. Without a second buffer, to is from. */
struct items {
    Py_buffer *from, *to;
    rank_dtype_t dtype;
    int64_t count;
};

/* Take sendbuf, writable or not, and recvbuf or NULL. Returns false with an exception set. */
static bool collective_items(struct py_op *op, PyObject *sendbuf, PyObject *recvbuf, bool writable, struct items *items)
{
    rank_dtype_t dtype;
    int64_t count;
    items->from = items->to = py_op_add(op, sendbuf, writable);
    if (!items->from || !py_buffer_dtype(op->call, items->from, &items->dtype, &items->count))
        return false;
    if (!recvbuf)
        return true;
    items->to = py_op_add(op, recvbuf, true);
    if (!items->to || !py_buffer_dtype(op->call, items->to, &dtype, &count))
        return false;
    if (dtype != items->dtype || count != items->count)
        PyErr_Format(PyExc_TypeError, "%s: sendbuf has %lld items of '%s', recvbuf %lld of '%s'; they must be equal", op->call,
                     (long long)items->count, py_buffer_format(items->from), (long long)count, py_buffer_format(items->to));
    return dtype == items->dtype && count == items->count;
}

/* Get the buffer that an argument gives; NULL: there is none. */
static PyObject *collective_given(PyObject *object)
{
    return object == Py_None ? NULL : object;
}

static bool allreduce_start(struct py_op *op, PyObject **in)
{
    PyObject *recvbuf = collective_given(in[1]);
    int64_t code = RANK_SUM;
    struct items items;
    if (!py_integer(in[2], &code) || !collective_items(op, in[0], recvbuf, !recvbuf, &items))
        return false;
    op->status = rank_iallreduce(recvbuf ? items.from->buf : RANK_IN_PLACE, items.to->buf, items.count, items.dtype, (rank_op_t)code,
                                 ((py_team *)op->base)->team, &op->req);
    return true;
}

/* Parse the root. The library refuses one that is no rank. Returns false with an exception set. */
static bool collective_root(PyObject *object, int *root)
{
    int64_t number = 0;
    if (!py_integer(object, &number))
        return false;
    *root = number != (int)number ? RANK_UNDEFINED : (int)number;
    return true;
}

/* At the root the result is in recvbuf, or without one in sendbuf. */
static bool reduce_start(struct py_op *op, PyObject **in)
{
    py_team *self = (py_team *)op->base;
    int64_t code = RANK_SUM;
    struct items items;
    int root;
    if (!py_integer(in[2], &code) || !collective_root(in[3], &root))
        return false;
    PyObject *recvbuf = root == self->rank ? collective_given(in[1]) : NULL;
    bool in_place = root == self->rank && !recvbuf;
    if (!collective_items(op, in[0], recvbuf, in_place, &items))
        return false;
    op->status = rank_ireduce(in_place ? RANK_IN_PLACE : items.from->buf, root == self->rank ? items.to->buf : NULL, items.count,
                              items.dtype, (rank_op_t)code, root, self->team, &op->req);
    return true;
}

/* Returns false with an exception set if the long buffer is not that of a block for each rank. */
static bool collective_fits(const struct py_op *op, const char *name, const Py_buffer *all, const char *of, const Py_buffer *block)
{
    int size = ((py_team *)op->base)->size;
    if (all->len / size == block->len && all->len % size == 0)
        return true;
    PyErr_Format(PyExc_ValueError, "%s: %s has %zd bytes; it needs %d times the %zd of %s", op->call, name, all->len, size, block->len, of);
    return false;
}

static bool gather_start(struct py_op *op, PyObject **in)
{
    py_team *self = (py_team *)op->base;
    int root;
    Py_buffer *from, *to = NULL;
    if (!collective_root(in[2], &root) || !(from = py_op_add(op, in[0], false)))
        return false;
    if (root == self->rank) {
        PyObject *recvbuf = collective_given(in[1]);
        if (!recvbuf) {
            PyErr_Format(PyExc_TypeError, "%s() needs argument 'recvbuf' at the root", op->call);
            return false;
        }
        to = py_op_add(op, recvbuf, true);
        if (!to || !collective_fits(op, "recvbuf", to, "sendbuf", from))
            return false;
    }
    op->status = rank_igather(from->buf, to ? to->buf : NULL, from->len, RANK_BYTE, root, self->team, &op->req);
    return true;
}

static bool scatter_start(struct py_op *op, PyObject **in)
{
    py_team *self = (py_team *)op->base;
    int root;
    Py_buffer *from = NULL, *to;
    if (!collective_root(in[2], &root) || !(to = py_op_add(op, in[1], true)))
        return false;
    if (root == self->rank) {
        from = py_op_add(op, in[0], false);
        if (!from || !collective_fits(op, "sendbuf", from, "recvbuf", to))
            return false;
    }
    op->status = rank_iscatter(from ? from->buf : NULL, to->buf, to->len, RANK_BYTE, root, self->team, &op->req);
    return true;
}

static bool alltoall_start(struct py_op *op, PyObject **in)
{
    py_team *self = (py_team *)op->base;
    Py_buffer *from = py_op_add(op, in[0], false);
    Py_buffer *to = from ? py_op_add(op, in[1], true) : NULL;
    if (!to)
        return false;
    if (to->len != from->len || from->len % self->size != 0) {
        PyErr_Format(PyExc_ValueError, "%s: sendbuf has %zd bytes and recvbuf %zd; both need the same multiple of %d", op->call, from->len,
                     to->len, self->size);
        return false;
    }
    op->status = rank_ialltoall(from->buf, to->buf, from->len / self->size, RANK_BYTE, self->team, &op->req);
    return true;
}

static bool allgather_start(struct py_op *op, PyObject **in)
{
    py_team *self = (py_team *)op->base;
    Py_buffer *from = py_op_add(op, in[0], false);
    Py_buffer *to = from ? py_op_add(op, in[1], true) : NULL;
    if (!to)
        return false;
    if (!collective_fits(op, "recvbuf", to, "sendbuf", from))
        return false;
    op->status = rank_iallgather(from->buf, to->buf, from->len, RANK_BYTE, self->team, &op->req);
    return true;
}

const struct py_op_kind py_barrier = {"barrier", "ibarrier", barrier_start, {NULL}, 0, false, false};
const struct py_op_kind py_bcast = {"bcast", "ibcast", bcast_start, {"buffer", "root"}, 1, false, false};
const struct py_op_kind py_allreduce = {"allreduce", "iallreduce", allreduce_start, {"sendbuf", "recvbuf", "op"}, 1, false, false};
const struct py_op_kind py_allgather = {"allgather", "iallgather", allgather_start, {"sendbuf", "recvbuf"}, 2, false, false};
const struct py_op_kind py_reduce = {"reduce", "ireduce", reduce_start, {"sendbuf", "recvbuf", "op", "root"}, 1, false, false};
const struct py_op_kind py_gather = {"gather", "igather", gather_start, {"sendbuf", "recvbuf", "root"}, 1, false, false};
const struct py_op_kind py_scatter = {"scatter", "iscatter", scatter_start, {"sendbuf", "recvbuf", "root"}, 2, false, false};
const struct py_op_kind py_alltoall = {"alltoall", "ialltoall", alltoall_start, {"sendbuf", "recvbuf"}, 2, false, false};

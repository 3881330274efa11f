/* SPDX-License-Identifier: BSD-3-Clause */
/* py_collective.c: start collectives on buffers. */
#include "py_rank.h"

#include <stdlib.h>

static rank_team_t op_team(const struct py_op *op)
{
    return ((py_team *)op->base)->team;
}

/* Get the buffer that an argument gives; NULL: there is none. */
static PyObject *collective_given(PyObject *object)
{
    return object == Py_None ? NULL : object;
}

/* Parse a root. The library refuses one that is no rank. Returns false with an exception set. */
static bool collective_root(PyObject *object, int *root)
{
    int64_t number = 0;
    if (!py_integer(object, &number))
        return false;
    *root = number != (int)number ? RANK_UNDEFINED : (int)number;
    return true;
}

/* Take sendbuf, writable or not, and recvbuf; either may be NULL. Returns false with an exception set. */
static bool collective_pair(struct py_op *op, PyObject *sendbuf, bool writable, PyObject *recvbuf, Py_buffer **from, Py_buffer **to)
{
    *from = *to = NULL;
    if (sendbuf && !(*from = py_op_add(op, sendbuf, writable)))
        return false;
    if (recvbuf && !(*to = py_op_add(op, recvbuf, true)))
        return false;
    return !*from || !*to || py_buffer_order(op->call, "sendbuf", *from, "recvbuf", *to);
}

static bool barrier_start(struct py_op *op, PyObject **in)
{
    (void)in;
    op->status = rank_ibarrier(op_team(op), &op->req);
    return true;
}

static bool bcast_start(struct py_op *op, PyObject **in)
{
    int root;
    if (!collective_root(in[1], &root))
        return false;
    Py_buffer *view = py_op_add(op, in[0], root != ((py_team *)op->base)->rank);
    if (!view)
        return false;
    op->status = rank_ibcast(view->buf, view->len, RANK_BYTE, root, op_team(op), &op->req);
    return true;
}

/* ------------------------------------------------------------------------------------------------ reductions */

struct reduction {
    Py_buffer *from, *to; /* to is from: in place */
    rank_dtype_t dtype;   /* without a function */
    int64_t count;        /* items of the result */
    rank_op_t code;
    PyObject *function; /* of the program, or NULL */
};

/* Parse an operation: one of the library, or a callable. Returns false with an exception set. */
static bool reduction_operation(PyObject *object, struct reduction *r)
{
    int64_t code = RANK_SUM;
    r->function = object && !PyLong_Check(object) && PyCallable_Check(object) ? object : NULL;
    if (!r->function && !py_integer(object, &code))
        return false;
    r->code = (rank_op_t)code;
    return true;
}

/* Take the buffers. sendbuf has blocks times the items of recvbuf; without recvbuf it is written, if writable. */
static bool reduction_items(struct py_op *op, PyObject *sendbuf, PyObject *recvbuf, bool writable, int blocks, struct reduction *r)
{
    if (!collective_pair(op, sendbuf, writable, recvbuf, &r->from, &r->to))
        return false;
    if (!r->to)
        r->to = r->from;
    if (!r->function && !py_buffer_dtype(op->call, r->from, &r->dtype, &r->count))
        return false;
    r->count = r->to->itemsize ? r->to->len / r->to->itemsize : 0;
    if (r->to == r->from)
        return true;
    if (py_buffer_same_items(r->from, r->to) && r->from->len / blocks == r->to->len && r->from->len % blocks == 0)
        return true;
    PyErr_Format(PyExc_TypeError, "%s: sendbuf has %zd bytes of items '%s', recvbuf %zd of '%s'; %s", op->call, r->from->len,
                 py_buffer_format(r->from), r->to->len, py_buffer_format(r->to),
                 blocks == 1 ? "they must be equal" : "sendbuf must have a block of recvbuf's length for each rank");
    return false;
}

typedef rank_status_t reduction_fn(const void *, void *, int64_t, rank_dtype_t, rank_op_t, rank_team_t, rank_request_t *);

/*
 * Start a reduction whose result each rank gets. blocks: of sendbuf. last: the rank whose block is the last that a function
 * of the program combines here.
 */
static bool reduction_start(struct py_op *op, PyObject **in, reduction_fn *start, int blocks, int last)
{
    PyObject *recvbuf = blocks == 1 ? collective_given(in[1]) : in[1]; /* one block of several is not in place */
    struct reduction r;
    if (!reduction_operation(in[2], &r) || !reduction_items(op, in[0], recvbuf, !recvbuf, blocks, &r))
        return false;
    if (!r.function) {
        op->status = start(recvbuf ? r.from->buf : RANK_IN_PLACE, r.to->buf, r.count, r.dtype, r.code, op_team(op), &op->req);
        return true;
    }
    int size = ((py_team *)op->base)->size;
    char *gathered = py_fold_new(op, r.function, r.to, size, last + 1);
    if (!gathered)
        return false;
    if (blocks == 1)
        op->status = rank_iallgather(r.from->buf, gathered, r.from->len, RANK_BYTE, op_team(op), &op->req);
    else
        op->status = rank_ialltoall(r.from->buf, gathered, r.to->len, RANK_BYTE, op_team(op), &op->req);
    return true;
}

#define REDUCTION_START(name, blocks, last)                                                                            \
    static bool name##_start(struct py_op *op, PyObject **in)                                                          \
    {                                                                                                                  \
        const py_team *team = (py_team *)op->base;                                                                     \
        (void)team;                                                                                                    \
        return reduction_start(op, in, rank_i##name, blocks, last);                                                    \
    }
REDUCTION_START(allreduce, 1, team->size - 1)
REDUCTION_START(reduce_scatter, team->size, team->size - 1)
REDUCTION_START(scan, 1, team->rank)
REDUCTION_START(exscan, 1, team->rank - 1)

/* At the root the result is in recvbuf, or without one in sendbuf. */
static bool reduce_start(struct py_op *op, PyObject **in)
{
    py_team *self = (py_team *)op->base;
    struct reduction r;
    int root;
    if (!reduction_operation(in[2], &r) || !collective_root(in[3], &root))
        return false;
    bool here = root == self->rank;
    PyObject *recvbuf = here ? collective_given(in[1]) : NULL;
    bool in_place = here && !recvbuf;
    if (!reduction_items(op, in[0], recvbuf, in_place, 1, &r))
        return false;
    if (r.function) {
        char *gathered = here ? py_fold_new(op, r.function, r.to, self->size, self->size) : NULL;
        if (here && !gathered)
            return false;
        op->status = rank_igather(r.from->buf, gathered, r.from->len, RANK_BYTE, root, self->team, &op->req);
    } else {
        op->status = rank_ireduce(in_place ? RANK_IN_PLACE : r.from->buf, here ? r.to->buf : NULL, r.count, r.dtype, r.code, root,
                                  self->team, &op->req);
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------ equal blocks */

/* Returns false with an exception set if the long buffer is not that of a block for each rank. */
static bool collective_fits(const struct py_op *op, const char *name, const Py_buffer *all, const char *of, const Py_buffer *block)
{
    int size = ((py_team *)op->base)->size;
    if (all->len / size == block->len && all->len % size == 0)
        return true;
    PyErr_Format(PyExc_ValueError, "%s: %s has %zd bytes; it needs %d times the %zd of %s", op->call, name, all->len, size, block->len, of);
    return false;
}

/* Get an argument that the root needs. Returns NULL with an exception set. */
static PyObject *root_needs(const struct py_op *op, const char *name, PyObject *object)
{
    PyObject *given = collective_given(object);
    if (!given)
        PyErr_Format(PyExc_TypeError, "%s() needs argument '%s' at the root", op->call, name);
    return given;
}

static bool gather_start(struct py_op *op, PyObject **in)
{
    py_team *self = (py_team *)op->base;
    Py_buffer *from, *to;
    int root;
    if (!collective_root(in[2], &root))
        return false;
    PyObject *recvbuf = root == self->rank ? root_needs(op, "recvbuf", in[1]) : NULL;
    if ((root == self->rank && !recvbuf) || !collective_pair(op, in[0], false, recvbuf, &from, &to) ||
        (to && !collective_fits(op, "recvbuf", to, "sendbuf", from)))
        return false;
    op->status = rank_igather(from->buf, to ? to->buf : NULL, from->len, RANK_BYTE, root, self->team, &op->req);
    return true;
}

static bool scatter_start(struct py_op *op, PyObject **in)
{
    py_team *self = (py_team *)op->base;
    Py_buffer *from, *to;
    int root;
    if (!collective_root(in[2], &root))
        return false;
    PyObject *sendbuf = root == self->rank ? root_needs(op, "sendbuf", in[0]) : NULL;
    if ((root == self->rank && !sendbuf) || !collective_pair(op, sendbuf, false, in[1], &from, &to) ||
        (from && !collective_fits(op, "sendbuf", from, "recvbuf", to)))
        return false;
    op->status = rank_iscatter(from ? from->buf : NULL, to->buf, to->len, RANK_BYTE, root, self->team, &op->req);
    return true;
}

static bool alltoall_start(struct py_op *op, PyObject **in)
{
    py_team *self = (py_team *)op->base;
    Py_buffer *from, *to;
    if (!collective_pair(op, in[0], false, in[1], &from, &to))
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
    Py_buffer *from, *to;
    if (!collective_pair(op, in[0], false, in[1], &from, &to) || !collective_fits(op, "recvbuf", to, "sendbuf", from))
        return false;
    op->status = rank_iallgather(from->buf, to->buf, from->len, RANK_BYTE, op_team(op), &op->req);
    return true;
}

/* -------------------------------------------------------------------------------------------- different blocks */

/* Blocks of a buffer, one a rank: in items as the arguments give them, in bytes after blocks_close. */
struct blocks {
    const char *counts_name, *displs_name;
    int64_t *counts, *displs; /* displs NULL: no gaps */
};

static void blocks_free(struct blocks *b)
{
    free(b->counts);
    free(b->displs);
}

/* Read a number for each rank. Returns NULL with an exception set. */
static int64_t *blocks_numbers(const struct py_op *op, const char *name, PyObject *object)
{
    int size = ((py_team *)op->base)->size;
    PyObject *numbers = PySequence_Tuple(object);
    int64_t *out = numbers ? calloc((size_t)size, sizeof(out[0])) : NULL;
    bool good = out != NULL;
    if (numbers && !out)
        PyErr_NoMemory();
    if (good && PyTuple_Size(numbers) != size) {
        PyErr_Format(PyExc_ValueError, "%s: %s has %zd numbers; it needs one for each of %d ranks", op->call, name,
                     PyTuple_Size(numbers), size);
        good = false;
    }
    for (int i = 0; good && i < size; i++)
        good = py_integer(PyTuple_GetItem(numbers, i), &out[i]);
    Py_XDECREF(numbers);
    if (good)
        return out;
    free(out);
    return NULL;
}

/* Read counts, and displacements or None. It runs code of Python. Returns false with an exception set. */
static bool blocks_read(const struct py_op *op, PyObject *counts, PyObject *displs, struct blocks *b)
{
    if (!collective_given(counts)) {
        PyErr_Format(PyExc_TypeError, "%s() needs argument '%s'", op->call, b->counts_name);
        return false;
    }
    b->counts = blocks_numbers(op, b->counts_name, counts);
    if (b->counts && collective_given(displs))
        b->displs = blocks_numbers(op, b->displs_name, displs);
    return b->counts && (b->displs || !collective_given(displs));
}

/* Check the blocks against the buffer that they divide. Returns false with an exception set. */
static bool blocks_close(const struct py_op *op, struct blocks *b, const Py_buffer *view)
{
    int size = ((py_team *)op->base)->size;
    int64_t items = view->itemsize ? view->len / view->itemsize : 0, next = 0;
    bool gaps = b->displs != NULL;
    if (!gaps && !(b->displs = calloc((size_t)size, sizeof(b->displs[0])))) {
        PyErr_NoMemory();
        return false;
    }
    for (int i = 0; i < size; i++) {
        int64_t count = b->counts[i], at = gaps ? b->displs[i] : next;
        if (count < 0 || at < 0 || count > items || at > items - count) {
            PyErr_Format(PyExc_ValueError, "%s: block %d of %s, %lld items at %lld, exceeds the %lld items of the buffer", op->call, i,
                         b->counts_name, (long long)count, (long long)at, (long long)items);
            return false;
        }
        next = at + count;
        b->counts[i] = count * view->itemsize;
        b->displs[i] = at * view->itemsize;
    }
    return true;
}

/* Returns false with an exception set if the buffer is not that of this rank's block. */
static bool blocks_fit(const struct py_op *op, const struct blocks *b, const char *name, const Py_buffer *view)
{
    int rank = ((py_team *)op->base)->rank;
    if (b->counts[rank] == view->len)
        return true;
    PyErr_Format(PyExc_ValueError, "%s: %s has %zd bytes, %s of rank %d is %lld bytes", op->call, name, view->len, b->counts_name, rank,
                 (long long)b->counts[rank]);
    return false;
}

static bool allgatherv_start(struct py_op *op, PyObject **in)
{
    struct blocks b = {"counts", "displs", NULL, NULL};
    Py_buffer *from, *to;
    bool good = blocks_read(op, in[2], in[3], &b) && collective_pair(op, in[0], false, in[1], &from, &to) &&
                blocks_close(op, &b, to) && blocks_fit(op, &b, "sendbuf", from);
    if (good)
        op->status = rank_iallgatherv(from->buf, from->len, to->buf, b.counts, b.displs, RANK_BYTE, op_team(op), &op->req);
    blocks_free(&b);
    return good;
}

/* The root divides its buffer into blocks: sendbuf of a scatterv, recvbuf of a gatherv. */
static bool rooted_blocks(struct py_op *op, PyObject **in, bool scatters)
{
    struct blocks b = {"counts", "displs", NULL, NULL};
    Py_buffer *from, *to;
    int root;
    if (!collective_root(in[4], &root))
        return false;
    bool here = root == ((py_team *)op->base)->rank;
    PyObject *whole = here ? root_needs(op, scatters ? "sendbuf" : "recvbuf", in[!scatters]) : NULL;
    bool good = (!here || (whole && blocks_read(op, in[2], in[3], &b))) &&
                collective_pair(op, scatters ? whole : in[0], false, scatters ? in[1] : whole, &from, &to) &&
                (!here || (blocks_close(op, &b, scatters ? from : to) &&
                           blocks_fit(op, &b, scatters ? "recvbuf" : "sendbuf", scatters ? to : from)));
    if (good && scatters)
        op->status = rank_iscatterv(from ? from->buf : NULL, b.counts, b.displs, to->buf, to->len, RANK_BYTE, root, op_team(op), &op->req);
    else if (good)
        op->status = rank_igatherv(from->buf, from->len, to ? to->buf : NULL, b.counts, b.displs, RANK_BYTE, root, op_team(op), &op->req);
    blocks_free(&b);
    return good;
}

static bool gatherv_start(struct py_op *op, PyObject **in)
{
    return rooted_blocks(op, in, false);
}

static bool scatterv_start(struct py_op *op, PyObject **in)
{
    return rooted_blocks(op, in, true);
}

static bool alltoallv_start(struct py_op *op, PyObject **in)
{
    struct blocks send = {"sendcounts", "senddispls", NULL, NULL}, recv = {"recvcounts", "recvdispls", NULL, NULL};
    Py_buffer *from, *to;
    bool good = blocks_read(op, in[2], in[4], &send) && blocks_read(op, in[3], in[5], &recv) &&
                collective_pair(op, in[0], false, in[1], &from, &to) && blocks_close(op, &send, from) && blocks_close(op, &recv, to);
    if (good)
        op->status = rank_ialltoallv(from->buf, send.counts, send.displs, to->buf, recv.counts, recv.displs, RANK_BYTE, op_team(op),
                                     &op->req);
    blocks_free(&send);
    blocks_free(&recv);
    return good;
}

/* The names of arguments, and how many of them the call needs. */
#define KIND(name, required, ...)                                                                                      \
    const struct py_op_kind py_##name = {#name, "i" #name, name##_start, {__VA_ARGS__}, required, false, false};
KIND(barrier, 0, NULL)
KIND(bcast, 1, "buffer", "root")
KIND(allreduce, 1, "sendbuf", "recvbuf", "op")
KIND(reduce, 1, "sendbuf", "recvbuf", "op", "root")
KIND(reduce_scatter, 2, "sendbuf", "recvbuf", "op")
KIND(scan, 1, "sendbuf", "recvbuf", "op")
KIND(exscan, 1, "sendbuf", "recvbuf", "op")
KIND(allgather, 2, "sendbuf", "recvbuf")
KIND(gather, 1, "sendbuf", "recvbuf", "root")
KIND(scatter, 2, "sendbuf", "recvbuf", "root")
KIND(alltoall, 2, "sendbuf", "recvbuf")
KIND(allgatherv, 3, "sendbuf", "recvbuf", "counts", "displs")
KIND(gatherv, 1, "sendbuf", "recvbuf", "counts", "displs", "root")
KIND(scatterv, 2, "sendbuf", "recvbuf", "counts", "displs", "root")
KIND(alltoallv, 4, "sendbuf", "recvbuf", "sendcounts", "recvcounts", "senddispls", "recvdispls")

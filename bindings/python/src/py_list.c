/* SPDX-License-Identifier: BSD-3-Clause */
/* py_list.c: move lists of blocks; write, read and prepare of the class Team. */
#include "py_rank.h"

#include <stdlib.h>
#include <string.h>

enum { IN_BLOCKS, IN_NOTICE, IN_LOCAL, IN_REMOTE, IN_PEER };

/* Columns of an array of blocks. */
enum { COLUMN_LOCAL, COLUMN_BYTES, COLUMN_REMOTE, COLUMN_INDEX, COLUMNS };

enum { FEW = 4 }; /* blocks and memories that need no allocation */

/* A list that is built. Code of Python runs until list_close_in: until then an object may close another one. */
struct list {
    struct py_op *op;
    bool writable; /* the buffers here, which a read fills */
    rank_block_t *blocks, few[FEW];
    Py_ssize_t n;
};

static bool list_allocate(struct list *list, Py_ssize_t n)
{
    list->n = n;
    list->blocks = n > FEW ? malloc((size_t)n * sizeof(list->blocks[0])) : list->few;
    if (!list->blocks)
        PyErr_NoMemory();
    return list->blocks != NULL;
}

static bool local_refuse(const struct list *list, Py_ssize_t i, const Py_buffer *view, int64_t at, int64_t bytes)
{
    py_raise_text(RANK_ERR_BOUNDS, "%s: block %zd: %lld bytes at %lld exceed the %zd bytes of the buffer", list->op->call, i,
                  (long long)bytes, (long long)at, view->len);
    return false;
}

/* Set a block. Returns false with an exception set if it exceeds the buffer. */
static inline bool list_set(struct list *list, Py_ssize_t i, const Py_buffer *view, int64_t at, int64_t bytes, rank_mem_t mem,
                            int64_t offset)
{
    rank_block_t *block = &list->blocks[i];
    if ((uint64_t)at > (uint64_t)view->len || (uint64_t)bytes > (uint64_t)(view->len - at)) /* a negative one is large then */
        return local_refuse(list, i, view, at, bytes);
    block->local = (char *)view->buf + at;
    block->bytes = bytes;
    block->mem = mem;
    block->offset = offset;
    return true;
}

/* ---------------------------------------------------------------------------------------------- lists of tuples */

/* Add the number of the block to the exception, if that is of a kind that holds a text. Returns NULL. */
static Py_buffer *block_blame(const char *call, Py_ssize_t i)
{
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    if (value && (kind == PyExc_TypeError || kind == PyExc_BufferError)) {
        PyErr_Format(kind, "%s: block %zd: %S", call, i, value);
        Py_DECREF(kind);
        Py_DECREF(value);
        Py_XDECREF(trace);
    } else {
        PyErr_Restore(kind, value, trace);
    }
    return NULL;
}

static bool block_integer(const char *call, Py_ssize_t i, const char *name, PyObject *object, int64_t *value)
{
    if (!PyIndex_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s: block %zd: %s must be an integer, not %.80R", call, i, name, object);
        return false;
    }
    if (py_integer(object, value))
        return true;
    if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Clear();
        py_raise_text(RANK_ERR_BOUNDS, "%s: block %zd: %s %.80R has more than 64 bits", call, i, name, object);
    }
    return false;
}

/* Parse (buffer, remote, offset) or (buffer, remote, offset, bytes). view is of the block before, if it has the same buffer. */
static Py_buffer *list_add_tuple(struct list *list, Py_ssize_t i, PyObject *block, Py_buffer *view)
{
    const char *call = list->op->call;
    Py_ssize_t items = PyTuple_Check(block) ? PyTuple_Size(block) : 0;
    int64_t offset, bytes;
    if (items < 3 || items > 4 || !py_remote_check(PyTuple_GetItem(block, 1))) {
        PyErr_Format(PyExc_TypeError, "%s: block %zd must be a tuple (buffer, Remote, offset) or (buffer, Remote, offset, bytes), not %.80R",
                     call, i, block);
        return NULL;
    }
    if (!view)
        view = py_op_add(list->op, PyTuple_GetItem(block, 0), list->writable);
    if (!view)
        return block_blame(call, i);
    bytes = view->len;
    if (!block_integer(call, i, "offset", PyTuple_GetItem(block, 2), &offset) ||
        (items == 4 && !block_integer(call, i, "bytes", PyTuple_GetItem(block, 3), &bytes)) ||
        !list_set(list, i, view, 0, bytes, RANK_MEM_NULL, offset))
        return NULL;
    return view;
}

/* Set the memories of the peer. No code of Python runs from here to the start. */
static bool list_close_in_tuples(struct list *list)
{
    PyObject *last = NULL;
    for (Py_ssize_t i = 0; i < list->n; i++) {
        PyObject *remote = PyTuple_GetItem(PyTuple_GetItem(list->op->hold->kept, i), 1);
        if (remote == last)
            list->blocks[i].mem = list->blocks[i - 1].mem;
        else if (!py_remote_mem(list->op->call, remote, &list->blocks[i].mem))
            return false;
        last = remote;
    }
    return true;
}

/* The tuples stay until the end, and so do their buffers and remotes. */
static bool list_from_tuples(struct list *list, PyObject *blocks)
{
    PyObject *tuples = PySequence_Tuple(blocks), *last = NULL;
    Py_buffer *view = NULL;
    if (!tuples && (PyIter_Check(blocks) || !PyErr_ExceptionMatches(PyExc_TypeError)))
        return false; /* the exception of a generator */
    if (!tuples) {
        PyErr_Format(PyExc_TypeError, "%s: blocks must be a sequence of tuples, or an array (n, 3) or (n, 4) of int64, not %.80R",
                     list->op->call, blocks);
        return false;
    }
    Py_ssize_t n = PyTuple_Size(tuples);
    if (!py_op_room(list->op, n) || !list_allocate(list, n)) {
        Py_DECREF(tuples);
        return false;
    }
    list->op->hold->kept = tuples;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *block = PyTuple_GetItem(tuples, i);
        PyObject *buffer = PyTuple_Check(block) && PyTuple_Size(block) > 0 ? PyTuple_GetItem(block, 0) : NULL;
        view = list_add_tuple(list, i, block, view && buffer == last ? view : NULL);
        if (!view)
            return false;
        last = buffer;
    }
    return list_close_in_tuples(list);
}

/* ----------------------------------------------------------------------------------------------------- arrays */

/* One object, or a tuple of them, into which the last column is an index. */
struct table_part {
    const char *name;
    PyObject *object;
    bool tuple;
    Py_ssize_t n;
};

struct table {
    const int64_t *items; /* rows of columns */
    Py_ssize_t rows, columns;
    struct table_part local, remote;
    rank_mem_t *mems, few[FEW];
};

static PyObject *part_item(const struct table_part *part, Py_ssize_t i)
{
    return part->tuple ? PyTuple_GetItem(part->object, i) : part->object;
}

static bool table_items_are_int64(const char *call, const Py_buffer *view)
{
    rank_dtype_t dtype;
    int64_t items;
    if (view->itemsize == sizeof(long) && sizeof(long) == sizeof(int64_t) && view->format && strcmp(view->format, "l") == 0)
        return true;
    if (!py_buffer_dtype(call, view, &dtype, &items))
        return false;
    if (dtype != RANK_INT64)
        PyErr_Format(PyExc_TypeError, "%s: an array of blocks must have items of int64, not of format '%s'", call,
                     py_buffer_format(view));
    return dtype == RANK_INT64;
}

/* Check the array. Its view must have a shape. */
static bool table_shape(const char *call, const Py_buffer *view, struct table *table)
{
    bool shaped = view->ndim == 2 && view->shape && (view->shape[1] == COLUMNS || view->shape[1] == COLUMNS - 1);
    if (!shaped || !PyBuffer_IsContiguous(view, 'C')) {
        PyErr_Format(PyExc_ValueError, "%s: an array of blocks must have 3 or 4 columns in C order; it has %d dimensions%s", call,
                     view->ndim, shaped ? " in another order" : "");
        return false;
    }
    if (!table_items_are_int64(call, view))
        return false;
    table->items = view->buf;
    table->rows = view->shape[0];
    table->columns = view->shape[1];
    return true;
}

/* Set a part of the table, with a reference. Returns false with an exception set. */
static bool part_set(const char *call, struct table_part *part, const char *name, PyObject *object)
{
    if (!object || object == Py_None) {
        PyErr_Format(PyExc_TypeError, "%s() needs argument '%s' with an array of blocks", call, name);
        return false;
    }
    part->name = name;
    part->tuple = PyList_Check(object) || PyTuple_Check(object);
    part->object = part->tuple ? PySequence_Tuple(object) : Py_NewRef(object);
    part->n = part->tuple && part->object ? PyTuple_Size(part->object) : 1;
    return part->object != NULL;
}

/* Keep both parts as long as hold. The view of one buffer keeps that. Returns false with an exception set. */
static bool table_keep(struct table *table, struct py_hold *hold)
{
    bool one = !table->local.tuple && !table->remote.tuple;
    hold->kept = one ? Py_NewRef(table->remote.object) : PyTuple_Pack(2, table->local.object, table->remote.object);
    return hold->kept != NULL;
}

/* Take the buffers here, in order. */
static bool table_add_locals(struct list *list, const struct table *table)
{
    for (Py_ssize_t i = 0; i < table->local.n; i++) {
        if (!py_op_add(list->op, part_item(&table->local, i), list->writable))
            return false;
    }
    return true;
}

/* Get the memories of the peer. No code of Python runs from here to the start. */
static bool table_close_in(struct list *list, struct table *table)
{
    Py_ssize_t n = table->remote.n;
    table->mems = n > FEW ? malloc((size_t)n * sizeof(table->mems[0])) : table->few;
    if (!table->mems) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        if (!py_remote_mem(list->op->call, part_item(&table->remote, i), &table->mems[i]))
            return false;
    }
    return true;
}

static bool part_lacks(const struct list *list, Py_ssize_t i, const struct table_part *part, int64_t index)
{
    if (index >= 0 && index < part->n)
        return false;
    py_raise_text(RANK_ERR_ARG, "%s: block %zd: index %lld, but %s has %zd items", list->op->call, i, (long long)index, part->name,
                  part->n);
    return true;
}

static bool table_rows(struct list *list, const struct table *table)
{
    const Py_buffer *views = list->op->hold->views;
    const int64_t *row = table->items;
    for (Py_ssize_t i = 0; i < table->rows; i++, row += table->columns) {
        int64_t local = table->local.tuple ? row[COLUMN_INDEX] : 0, remote = table->remote.tuple ? row[COLUMN_INDEX] : 0;
        if ((table->local.tuple && part_lacks(list, i, &table->local, local)) ||
            (table->remote.tuple && part_lacks(list, i, &table->remote, remote)) ||
            !list_set(list, i, &views[local], row[COLUMN_LOCAL], row[COLUMN_BYTES], table->mems[remote], row[COLUMN_REMOTE]))
            return false;
    }
    return true;
}

static bool table_move(struct list *list, struct table *table)
{
    const char *call = list->op->call;
    if (!py_op_room(list->op, table->local.n) || !table_keep(table, list->op->hold))
        return false;
    if (table->columns < COLUMNS && (table->local.tuple || table->remote.tuple)) {
        PyErr_Format(PyExc_ValueError, "%s: a list of local or remote needs a fourth column, the index into it", call);
        return false;
    }
    return list_allocate(list, table->rows) && table_add_locals(list, table) && table_close_in(list, table) &&
           table_rows(list, table);
}

/* Read the array, which hold keeps until the start. op keeps the buffers and remotes. */
static bool list_from_array(struct list *list, struct py_hold *hold, PyObject *array, PyObject *local, PyObject *remote)
{
    const char *call = list->op->call;
    struct table table;
    table.mems = NULL;
    table.local.object = table.remote.object = NULL;
    const Py_buffer *view = py_hold_add(hold, call, array, false);
    bool done = view && table_shape(call, view, &table) && part_set(call, &table.local, "local", local) &&
                part_set(call, &table.remote, "remote", remote) && table_move(list, &table);
    Py_XDECREF(table.local.object);
    Py_XDECREF(table.remote.object);
    if (table.mems != table.few)
        free(table.mems);
    return done;
}

/* ------------------------------------------------------------------------------------------------------ start */

/* Parse a tag, or (tag, data), which hold keeps. Returns false with an exception set. */
static bool notice_parse(const char *call, PyObject *object, struct py_hold *hold, rank_notice_t *notice)
{
    bool pair = PyTuple_Check(object) && PyTuple_Size(object) == 2;
    PyObject *tag = pair ? PyTuple_GetItem(object, 0) : object;
    *notice = (rank_notice_t){.tag = 0};
    if (!PyIndex_Check(tag)) {
        PyErr_Format(PyExc_TypeError, "%s: notice must be a tag, or a tuple (tag, data), not %.80R", call, object);
        return false;
    }
    if (!py_integer(tag, &notice->tag))
        return false;
    if (!pair)
        return true;
    Py_buffer *view = py_hold_add(hold, call, PyTuple_GetItem(object, 1), false);
    if (!view)
        return false;
    if (view->len > RANK_NOTICE_MAX) {
        py_raise_text(RANK_ERR_ARG, "%s: the notice has %zd bytes; it can have %d", call, view->len, (int)RANK_NOTICE_MAX);
        return false;
    }
    notice->data = view->buf;
    notice->bytes = view->len;
    return true;
}

static bool list_is_array(PyObject *object)
{
    if (PyList_Check(object) || PyTuple_Check(object)) /* it is slow to find that they lack an attribute */
        return false;
    return PyObject_CheckBuffer(object) || PyObject_HasAttrString(object, "__dlpack__");
}

static void list_call(struct list *list, int peer, const rank_notice_t *notice)
{
    struct py_op *op = list->op;
    rank_xfer_op_t direction = op->kind->into ? RANK_XFER_READ : RANK_XFER_WRITE;
    rank_team_t team = ((py_team *)op->base)->team;
    if (op->persistent)
        op->status = rank_xfer_init(direction, list->blocks, list->n, peer, team, notice, &op->req);
    else
        op->status = rank_xfer(direction, list->blocks, list->n, peer, team, notice, &op->req);
}

/* Start a list. The library copies blocks and notice. */
static bool list_start(struct py_op *op, PyObject **in)
{
    struct list list;
    bool array = list_is_array(in[IN_BLOCKS]), noticed = in[IN_NOTICE] && in[IN_NOTICE] != Py_None;
    rank_notice_t notice;
    int peer;
    int64_t tag;
    list.op = op;
    list.writable = op->kind->into;
    list.blocks = NULL;
    if (!array && ((in[IN_LOCAL] && in[IN_LOCAL] != Py_None) || (in[IN_REMOTE] && in[IN_REMOTE] != Py_None))) {
        PyErr_Format(PyExc_TypeError, "%s: local and remote belong to an array of blocks; a tuple has them", op->call);
        return false;
    }
    struct py_hold *hold = py_hold_new(2); /* the notice and the array, until the library has copied them */
    bool built = hold && (!noticed || notice_parse(op->call, in[IN_NOTICE], hold, &notice)) &&
                 py_team_address(op->call, (py_team *)op->base, in[IN_PEER], NULL, false, &peer, &tag) &&
                 (array ? list_from_array(&list, hold, in[IN_BLOCKS], in[IN_LOCAL], in[IN_REMOTE])
                        : list_from_tuples(&list, in[IN_BLOCKS])) &&
                 py_usable(op->call, &op->base->gate);
    if (built)
        list_call(&list, peer, noticed ? &notice : NULL);
    if (list.blocks != list.few)
        free(list.blocks);
    py_hold_free(hold);
    op->unsent = noticed;
    return built;
}

#define LIST_NAMES {"blocks", "notice", "local", "remote", "peer"}
const struct py_op_kind py_list_write = {"write", "iwrite", list_start, LIST_NAMES, 1, false, false};
const struct py_op_kind py_list_read = {"read", "iread", list_start, LIST_NAMES, 1, true, false};
const struct py_op_kind py_list_prepare_write = {NULL, "prepare_write", list_start, LIST_NAMES, 1, false, true};
const struct py_op_kind py_list_prepare_read = {NULL, "prepare_read", list_start, LIST_NAMES, 1, true, true};

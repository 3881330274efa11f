/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_fold.c: combine the blocks of ranks by a function of the program.
 *
 * An operation of rank_op_create runs on any thread that makes progress, with the lock of the library. A function that takes
 * the GIL there would stop threads that call the library with the GIL. So the collective gathers the blocks, and the call
 * that completes it combines them, in the order of ranks. An exception of the function ends that call.
 */
#include "py_rank.h"

#include <stdlib.h>
#include <string.h>

enum { DIMENSIONS_MAX = 64 }; /* PyBUF_MAX_NDIM */

/* Exports one block. Its views may outlive the call. */
typedef struct py_block {
    PyObject_HEAD
    PyObject *blocks; /* the bytearray that it is of */
    char *start;
    char *format;
    Py_ssize_t len, itemsize, shape[DIMENSIONS_MAX], strides[DIMENSIONS_MAX];
    int ndim;
} py_block;

static PyTypeObject *block_type;

static void block_dealloc(py_block *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    Py_DECREF(self->blocks);
    free(self->format);
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

static int block_getbuffer(py_block *self, Py_buffer *view, int flags)
{
    if (PyBuffer_FillInfo(view, (PyObject *)self, self->start, self->len, 0, flags) < 0)
        return -1;
    view->itemsize = self->itemsize;
    view->format = self->format;
    view->ndim = self->ndim;
    view->shape = self->shape;
    view->strides = self->strides;
    return 0;
}

/* Set shape and strides of a block as those of a buffer, which is contiguous. */
static void block_shape(py_block *self, const Py_buffer *as)
{
    bool last_first = PyBuffer_IsContiguous(as, 'C');
    Py_ssize_t stride = as->itemsize;
    self->ndim = as->shape ? as->ndim : 1;
    for (int i = 0; i < self->ndim; i++)
        self->shape[i] = as->shape ? as->shape[i] : as->len / as->itemsize;
    for (int i = 0; i < self->ndim; i++) {
        int at = last_first ? self->ndim - 1 - i : i;
        self->strides[at] = stride;
        stride *= self->shape[at];
    }
}

/* Make a view of block i, with the items of the result: a NumPy array if that is one. Returns NULL with an exception set. */
static PyObject *fold_block(PyObject *blocks, Py_ssize_t i, const Py_buffer *as)
{
    py_block *self = PyObject_New(py_block, block_type);
    if (!self)
        return NULL;
    self->blocks = Py_NewRef(blocks);
    self->start = PyByteArray_AsString(blocks) + i * as->len;
    self->format = strdup(py_buffer_format(as));
    self->len = as->len;
    self->itemsize = as->itemsize;
    block_shape(self, as);
    PyObject *view = self->format ? PyMemoryView_FromObject((PyObject *)self) : PyErr_NoMemory();
    Py_DECREF((PyObject *)self);
    if (!view || !PyObject_HasAttrString(as->obj, "__array_interface__"))
        return view;
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *array = numpy ? PyObject_CallMethod(numpy, "asarray", "O", view) : NULL;
    Py_XDECREF(numpy);
    Py_DECREF(view);
    return array;
}

/*
 * Combine the blocks when the collective is complete: the first n of them, of which there are size, into the items of result,
 * a buffer of op. Returns the memory of the blocks, which hold keeps, or NULL with an exception set.
 */
char *py_fold_new(struct py_op *op, PyObject *function, const Py_buffer *result, int size, int n)
{
    if (result->ndim > DIMENSIONS_MAX || result->len > PY_SSIZE_T_MAX / size) {
        PyErr_Format(PyExc_ValueError, "%s: a function cannot combine so large arrays", op->call);
        return NULL;
    }
    PyObject *blocks = PyByteArray_FromStringAndSize(NULL, result->len * size);
    if (blocks)
        op->hold->kept = Py_BuildValue("(ON)", function, blocks);
    op->hold->fold_from = n;
    op->hold->fold_to = result;
    return op->hold->kept ? PyByteArray_AsString(blocks) : NULL;
}

/* Copy what the function returned to the first block. Returns false with an exception set. */
static bool fold_store(const char *call, PyObject *items, const Py_buffer *to, char *first)
{
    struct py_hold *hold = py_hold_new(1);
    const Py_buffer *view = hold ? py_hold_add(hold, call, items, false) : NULL;
    bool same = view && view->len == to->len && py_buffer_same_items(view, to);
    if (view && !same)
        PyErr_Format(PyExc_TypeError, "%s: the function returned %zd bytes of items '%s'; it must return %zd of '%s'", call, view->len,
                     py_buffer_format(view), to->len, py_buffer_format(to));
    bool good = same && py_buffer_order(call, "the result of the function", view, "the buffer", to);
    if (good)
        memmove(first, view->buf, (size_t)to->len);
    py_hold_free(hold);
    return good;
}

/* Combine the blocks of a collective that is complete. No-op without a function. Returns false with an exception set. */
bool py_fold_run(const char *call, struct py_hold *hold)
{
    const Py_buffer *to = hold ? hold->fold_to : NULL;
    if (!to || hold->fold_from == 0 || to->itemsize == 0)
        return true;
    PyObject *function = PyTuple_GetItem(hold->kept, 0), *blocks = PyTuple_GetItem(hold->kept, 1);
    char *start = PyByteArray_AsString(blocks);
    PyObject *first = fold_block(blocks, 0, to);
    bool good = first != NULL;
    for (Py_ssize_t i = 1; good && i < hold->fold_from; i++) {
        PyObject *block = fold_block(blocks, i, to);
        PyObject *items = block ? PyObject_CallFunctionObjArgs(function, first, block, NULL) : NULL;
        good = items && fold_store(call, items, to, start);
        Py_XDECREF(items);
        Py_XDECREF(block);
    }
    if (good)
        memcpy(to->buf, start, (size_t)to->len);
    Py_XDECREF(first);
    return good;
}

static PyType_Slot block_slots[] = {
    {Py_tp_dealloc, (void *)block_dealloc},
    {Py_bf_getbuffer, (void *)block_getbuffer},
    {0, NULL},
};

static PyType_Spec block_spec = {"rank._Block", sizeof(py_block), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                 block_slots};

bool py_fold_init(void)
{
    block_type = (PyTypeObject *)PyType_FromSpec(&block_spec);
    return block_type != NULL;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* py_buffer.c: take buffers of Python objects without a copy. */
#include "py_rank.h"

#include <stdlib.h>
#include <string.h>

/* Free holds of the usual room, for the next operations. The GIL protects them. */
enum { USUAL_ROOM = 2, SPARES_MAX = 16 };
static struct py_hold *spares;
static int nspares;

static struct py_hold *hold_take_spare(void)
{
    struct py_hold *hold = spares;
    if (hold) {
        spares = hold->next;
        nspares--;
    }
    return hold;
}

/* room is the number of buffers that can be added. */
struct py_hold *py_hold_new(Py_ssize_t room)
{
    struct py_hold *hold = room <= USUAL_ROOM ? hold_take_spare() : NULL;
    if (room < USUAL_ROOM)
        room = USUAL_ROOM;
    if (!hold)
        hold = malloc(sizeof(*hold) + (size_t)room * sizeof(hold->views[0]));
    if (!hold) {
        PyErr_NoMemory();
        return NULL;
    }
    *hold = (struct py_hold){.req = RANK_REQUEST_NULL, .room = room};
    return hold;
}

/* Release the buffers. No-op if NULL. */
void py_hold_free(struct py_hold *hold)
{
    if (!hold)
        return;
    for (Py_ssize_t i = 0; i < hold->n; i++)
        PyBuffer_Release(&hold->views[i]);
    Py_XDECREF(hold->kept);
    if (hold->room > USUAL_ROOM || nspares >= SPARES_MAX) {
        free(hold);
        return;
    }
    hold->next = spares;
    spares = hold;
    nspares++;
}

/* Replace the exception of an exporter by one BufferError: packages raise different kinds. */
static void buffer_refuse(const char *call, bool writable)
{
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    PyErr_Format(PyExc_BufferError, "%s: the buffer must be contiguous%s: %S", call, writable ? " and writable" : "",
                 value ? value : kind);
    Py_XDECREF(kind);
    Py_XDECREF(value);
    Py_XDECREF(trace);
}

/* Find 'O' in the format, but not in names of fields, as in "T{d:Offset:O:x:}". */
static bool buffer_has_objects(const Py_buffer *view)
{
    bool name = false;
    for (const char *c = view->format; c && *c; c++) {
        name ^= *c == ':';
        if (*c == 'O' && !name)
            return true;
    }
    return false;
}

Py_buffer *py_hold_add(struct py_hold *hold, const char *call, PyObject *object, bool writable)
{
    if (hold->n >= hold->room) {
        PyErr_Format(PyExc_SystemError, "%s: more than %zd buffers", call, hold->room);
        return NULL;
    }
    Py_buffer *view = &hold->views[hold->n];
    if (!PyObject_CheckBuffer(object)) {
        int found = py_dlpack_view(call, object, view);
        if (found > 0)
            hold->n++;
        if (found)
            return found > 0 ? view : NULL;
        if (PyObject_HasAttrString(object, "__cuda_array_interface__")) {
            PyErr_Format(PyExc_BufferError, "%s: the array is in memory of a GPU; copy it to memory of the CPU first", call);
            return NULL;
        }
        PyObject *name = PyType_GetName(Py_TYPE(object));
        PyErr_Format(PyExc_TypeError, "%s: needs an object with the buffer protocol (bytearray, memoryview, numpy.ndarray) or DLPack, not %S",
                     call, name ? name : Py_None);
        Py_XDECREF(name);
        return NULL;
    }
    if (PyObject_GetBuffer(object, view, PyBUF_FORMAT | PyBUF_ANY_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0)) < 0) {
        buffer_refuse(call, writable);
        return NULL;
    }
    if (buffer_has_objects(view)) {
        PyErr_Format(PyExc_TypeError, "%s: the buffer holds Python objects, which have no meaning in another process", call);
        PyBuffer_Release(view);
        return NULL;
    }
    hold->n++;
    return view;
}

/* Datatypes by the class of a format's letter and by the bytes of an item. */
static const struct {
    const char *letters;
    Py_ssize_t bytes;
    rank_dtype_t dtype;
} formats[] = {
    {"bhilqn", 1, RANK_INT8},   {"bhilqn", 2, RANK_INT16},   {"bhilqn", 4, RANK_INT32},   {"bhilqn", 8, RANK_INT64},
    {"BHILQN?c", 1, RANK_UINT8}, {"BHILQN", 2, RANK_UINT16}, {"BHILQN", 4, RANK_UINT32}, {"BHILQN", 8, RANK_UINT64},
    {"e", 2, RANK_F16},         {"f", 4, RANK_F32},          {"d", 8, RANK_F64},
};

/* A buffer without a format has unsigned bytes. */
const char *py_buffer_format(const Py_buffer *view)
{
    return view->format ? view->format : "B";
}

/* The format without the mark of this host's byte order. */
static const char *format_here(const Py_buffer *view, bool *foreign)
{
    const char *format = py_buffer_format(view);
    const uint16_t one = 1;
    char first;
    memcpy(&first, &one, 1);
    *foreign = view->itemsize > 1 && (*format == (first ? '>' : '<') || (first && *format == '!'));
    return format + (*format && strchr("@=<>!", *format) ? 1 : 0);
}

/* Find the datatype of the items. Returns 0 if there is none. */
static rank_dtype_t py_buffer_dtype_of(const Py_buffer *view)
{
    bool foreign;
    const char *letter = format_here(view, &foreign);
    if (foreign)
        return 0;
    if (strcmp(letter, "Zf") == 0 && view->itemsize == 8)
        return RANK_F32_COMPLEX;
    if (strcmp(letter, "Zd") == 0 && view->itemsize == 16)
        return RANK_F64_COMPLEX;
    if (strcmp(letter, "bf16") == 0)
        return RANK_BF16;
    for (size_t i = 0; *letter && !letter[1] && i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (formats[i].bytes == view->itemsize && strchr(formats[i].letters, *letter))
            return formats[i].dtype;
    }
    return 0;
}

/* Get the datatype and the number of items. Returns false with an exception set if there is no datatype. */
bool py_buffer_dtype(const char *call, const Py_buffer *view, rank_dtype_t *dtype, int64_t *count)
{
    bool foreign;
    *dtype = py_buffer_dtype_of(view);
    if (!*dtype) {
        format_here(view, &foreign);
        PyErr_Format(PyExc_TypeError, "%s: no datatype for items of format '%s'%s; use integers, floats or complex numbers of this host",
                     call, py_buffer_format(view), foreign ? ", which are in the byte order of another host" : "");
        return false;
    }
    *count = view->len / view->itemsize;
    return true;
}

/* Are the items of both of one type? */
bool py_buffer_same_items(const Py_buffer *a, const Py_buffer *b)
{
    rank_dtype_t dtype = py_buffer_dtype_of(a);
    bool foreign_a, foreign_b;
    if (dtype || py_buffer_dtype_of(b))
        return dtype == py_buffer_dtype_of(b);
    return strcmp(format_here(a, &foreign_a), format_here(b, &foreign_b)) == 0 && foreign_a == foreign_b && a->itemsize == b->itemsize;
}

/* Refuse buffers of which one is in C order and the other in Fortran order. Returns false with an exception set. */
bool py_buffer_order(const char *call, const char *a_name, const Py_buffer *a, const char *b_name, const Py_buffer *b)
{
    bool a_rows = PyBuffer_IsContiguous(a, 'C'), b_rows = PyBuffer_IsContiguous(b, 'C');
    if (a_rows == b_rows)
        return true;
    PyErr_Format(PyExc_BufferError, "%s: %s is in %s order and %s in %s order; copy one, as by numpy.ascontiguousarray()", call, a_name,
                 a_rows ? "C" : "Fortran", b_name, b_rows ? "C" : "Fortran");
    return false;
}

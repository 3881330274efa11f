/* SPDX-License-Identifier: BSD-3-Clause */
/* py_remote.c: access the memory of a peer; class Remote. */
#include "py_rank.h"

#include <stdlib.h>

typedef struct py_remote {
    PY_PART
    py_team *team;
    rank_mem_t mem;
    int peer;
} py_remote;

enum { RKEY_USUAL = 64 }; /* bytes of a key in a list */

static PyTypeObject *remote_type;

/* Take an opened key. Returns NULL with an exception set. */
static PyObject *remote_new(py_team *team, int peer, rank_mem_t mem)
{
    struct py_gate gate = {.outer = &team->gate, .status = RANK_ERR_HANDLE, .reason = "the key is closed"};
    py_remote *self = py_part_new(remote_type, team->owner, gate);
    if (!self) {
        rank_rkey_close(&mem);
        return NULL;
    }
    self->team = (py_team *)Py_NewRef((PyObject *)team);
    self->mem = mem;
    self->peer = peer;
    return (PyObject *)self;
}

bool py_remote_check(PyObject *object)
{
    return Py_IS_TYPE(object, remote_type);
}

/* Get the memory. Returns false with an exception set if the key is closed. */
bool py_remote_mem(const char *call, PyObject *object, rank_mem_t *mem)
{
    py_remote *self = (py_remote *)object;
    if (!py_remote_check(object)) {
        PyErr_Format(PyExc_TypeError, "%s: needs a Remote, not %.80R", call, object);
        return false;
    }
    *mem = self->mem;
    return py_usable(call, &self->gate);
}

PyObject *py_remote_open(py_team *team, int peer, PyObject *key)
{
    rank_mem_t mem = RANK_MEM_NULL;
    rank_status_t status;
    struct py_hold *hold = py_hold_new(1);
    Py_buffer *view = hold ? py_hold_add(hold, "open", key, false) : NULL;
    if (!view || !py_usable("open", &team->gate)) {
        py_hold_free(hold);
        return NULL;
    }
    py_enter(&team->gate);
    Py_BEGIN_ALLOW_THREADS
    status = rank_rkey_open(team->team, peer, view->buf, (size_t)view->len, &mem);
    Py_END_ALLOW_THREADS
    py_leave(&team->gate);
    py_hold_free(hold);
    if (status != RANK_OK)
        return py_raise("open", status);
    return remote_new(team, peer, mem);
}

/* Make a list of opened keys, and take them. Returns NULL with an exception set. */
static PyObject *remote_list(py_team *team, int peer, rank_mem_t *mems, int64_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; i < n; i++) {
        PyObject *remote = list ? remote_new(team, peer, mems[i]) : NULL;
        if (!list)
            rank_rkey_close(&mems[i]);
        else if (remote)
            PyList_SetItem(list, (Py_ssize_t)i, remote);
        else
            Py_CLEAR(list);
    }
    return list;
}

/* Open keys into memory that the caller frees. RANK_ERR_TRUNCATED: there were more than expected. */
static rank_status_t remote_open_keys(py_team *team, int peer, const Py_buffer *keys, rank_mem_t **mems, int64_t *n)
{
    rank_status_t status = RANK_ERR_TRUNCATED;
    *n = keys->len / RKEY_USUAL;
    while (status == RANK_ERR_TRUNCATED) {
        rank_mem_t *more = realloc(*mems, (size_t)(*n + 1) * sizeof(more[0]));
        if (!more)
            return RANK_ERR_NO_MEMORY;
        *mems = more;
        status = rank_rkeys_open(team->team, peer, keys->buf, (size_t)keys->len, n, *mems);
    }
    return status;
}

/* Open the keys of Context.keys(). */
PyObject *py_remote_open_all(py_team *team, int peer, PyObject *keys)
{
    rank_status_t status;
    rank_mem_t *mems = NULL;
    int64_t n = 0;
    struct py_hold *hold = py_hold_new(1);
    Py_buffer *view = hold ? py_hold_add(hold, "open_keys", keys, false) : NULL;
    if (!view || !py_usable("open_keys", &team->gate)) {
        py_hold_free(hold);
        return NULL;
    }
    py_enter(&team->gate);
    Py_BEGIN_ALLOW_THREADS
    status = remote_open_keys(team, peer, view, &mems, &n);
    Py_END_ALLOW_THREADS
    py_leave(&team->gate);
    py_hold_free(hold);
    PyObject *list = status == RANK_OK ? remote_list(team, peer, mems, n) : py_raise("open_keys", status);
    free(mems);
    return list;
}

/* Flush, or close the key. The call waits for the peer without the GIL. Signals are handled after it. */
static rank_status_t remote_call(py_remote *self, bool close)
{
    struct py_gate *gate = close ? self->gate.outer : &self->gate;
    rank_status_t status;
    py_enter(gate);
    Py_BEGIN_ALLOW_THREADS
    status = close ? rank_rkey_close(&self->mem) : rank_flush(self->mem, self->peer);
    Py_END_ALLOW_THREADS
    py_leave(gate);
    py_touch(self->owner);
    return status;
}

static rank_status_t remote_shut(py_remote *self)
{
    if (self->gate.shut)
        return RANK_OK;
    py_drain(&self->gate);
    if (self->team->gate.shut || self->owner->gate.shut) /* the disconnect closes it */
        return RANK_OK;
    return remote_call(self, true);
}

static void remote_dealloc(py_remote *self)
{
    remote_shut(self);
    Py_DECREF((PyObject *)self->team);
    py_part_free(self);
}

static bool remote_start(struct py_op *op, PyObject **in)
{
    py_remote *self = (py_remote *)op->base;
    int64_t offset = 0;
    if (!py_integer(in[1], &offset))
        return false;
    Py_buffer *view = py_op_add(op, in[0], op->kind->into);
    if (!view)
        return false;
    if (op->kind->into)
        op->status = rank_iget(view->buf, view->len, self->peer, self->mem, offset, &op->req);
    else
        op->status = rank_iput(view->buf, view->len, self->peer, self->mem, offset, &op->req);
    return true;
}

static const struct py_op_kind remote_put = {"put", "iput", remote_start, {"buffer", "offset"}, 1, false, false};
static const struct py_op_kind remote_get = {"get", "iget", remote_start, {"buffer", "offset"}, 1, true, false};
PY_OP_METHODS(remote_put)
PY_OP_METHODS(remote_get)

/* ----------------------------------------------------------------------------------------- atomics, on int64 */

static bool remote_number(const char *call, PyObject *object, int64_t *value)
{
    if (PyIndex_Check(object))
        return py_integer(object, value);
    PyErr_Format(PyExc_TypeError, "%s: value must be an integer, not %.80R", call, object);
    return false;
}

/* Run an atomic operation, which waits for the peer as flush does. Returns the value before. */
static PyObject *remote_atomic(py_remote *self, const char *call, rank_amo_t amo, bool result, PY_ARGS)
{
    static const char *const names[] = {"value", "offset", NULL};
    PyObject *in[2];
    int64_t value, offset = 0, before = 0;
    rank_status_t status;
    if (!py_arguments(call, names, 1, args, nargs, kwnames, in) || !remote_number(call, in[0], &value) ||
        !py_integer(in[1], &offset) || !py_usable(call, &self->gate))
        return NULL;
    py_enter(&self->gate);
    Py_BEGIN_ALLOW_THREADS
    status = rank_atomic(amo, RANK_INT64, &value, self->peer, self->mem, offset, result ? &before : NULL);
    Py_END_ALLOW_THREADS
    py_leave(&self->gate);
    py_touch(self->owner);
    if (status != RANK_OK || !result)
        return py_none_or_raise(call, status);
    return PyLong_FromLongLong(before);
}

static PyObject *remote_add(py_remote *self, PY_ARGS)
{
    return remote_atomic(self, "add", RANK_AMO_ADD, false, args, nargs, kwnames);
}

static PyObject *remote_fetch_add(py_remote *self, PY_ARGS)
{
    return remote_atomic(self, "fetch_add", RANK_AMO_FETCH_ADD, true, args, nargs, kwnames);
}

static PyObject *remote_swap(py_remote *self, PY_ARGS)
{
    return remote_atomic(self, "swap", RANK_AMO_SWAP, true, args, nargs, kwnames);
}

static PyObject *remote_compare_swap(py_remote *self, PY_ARGS)
{
    static const char *const names[] = {"expected", "desired", "offset", NULL};
    PyObject *in[3];
    int64_t expected, desired, offset = 0, before = 0;
    rank_status_t status;
    if (!py_arguments("compare_swap", names, 2, args, nargs, kwnames, in) || !remote_number("compare_swap", in[0], &expected) ||
        !remote_number("compare_swap", in[1], &desired) || !py_integer(in[2], &offset) || !py_usable("compare_swap", &self->gate))
        return NULL;
    py_enter(&self->gate);
    Py_BEGIN_ALLOW_THREADS
    status = rank_atomic_cas(RANK_INT64, &expected, &desired, self->peer, self->mem, offset, &before);
    Py_END_ALLOW_THREADS
    py_leave(&self->gate);
    py_touch(self->owner);
    return status == RANK_OK ? PyLong_FromLongLong(before) : py_raise("compare_swap", status);
}

/* ------------------------------------------------------------------------------------------------------------ */

static PyObject *remote_flush(py_remote *self, PyObject *unused)
{
    (void)unused;
    return py_usable("flush", &self->gate) ? py_none_or_raise("flush", remote_call(self, false)) : NULL;
}

static PyObject *remote_close(py_remote *self, PyObject *unused)
{
    (void)unused;
    return py_none_or_raise("close", remote_shut(self));
}

static PyObject *remote_exit(py_remote *self, PY_ARGS)
{
    (void)kwnames;
    return py_exit(remote_close(self, NULL), args, nargs);
}

static PyMethodDef remote_methods[] = {
    PY_METHOD("put", remote_put_wait, "put(buffer, offset=0, timeout=None): write; the data is visible at the peer after flush()"),
    PY_METHOD("get", remote_get_wait, "get(buffer, offset=0, timeout=None): read"),
    PY_METHOD("iput", remote_put_start, "iput(buffer, offset=0): start a put; returns a Request"),
    PY_METHOD("iget", remote_get_start, "iget(buffer, offset=0): start a get; returns a Request"),
    PY_METHOD("add", remote_add, "add(value, offset=0): add to an int64 at the peer; done after flush()"),
    PY_METHOD("fetch_add", remote_fetch_add, "fetch_add(value, offset=0): add to an int64; returns the value before"),
    PY_METHOD("swap", remote_swap, "swap(value, offset=0): store an int64; returns the value before"),
    PY_METHOD("compare_swap", remote_compare_swap, "compare_swap(expected, desired, offset=0): store desired if expected is there; returns the value before"),
    PY_PLAIN("flush", remote_flush, "flush(): make all puts visible at the peer"),
    PY_PLAIN("close", remote_close, "close(): flush and close the key"),
    PY_PLAIN("__enter__", py_self, NULL),
    PY_METHOD("__exit__", remote_exit, NULL),
    {NULL, NULL, 0, NULL},
};

static PyType_Slot remote_slots[] = {
    {Py_tp_dealloc, (void *)remote_dealloc},
    {Py_tp_methods, remote_methods},
    {Py_tp_doc, "Memory of a peer, by its key."},
    {0, NULL},
};

static PyType_Spec remote_spec = {"rank.Remote", sizeof(py_remote), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, remote_slots};

bool py_remote_init(PyObject *module)
{
    remote_type = py_type(module, &remote_spec, NULL, "Remote");
    return remote_type != NULL;
}

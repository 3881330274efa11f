/* SPDX-License-Identifier: BSD-3-Clause */
/* py_memory.c: registered and remote memory; classes Memory and Remote. */
#include "py_rank.h"

typedef struct py_memory {
    PyObject_HEAD
    py_context *owner;
    rank_mem_t mem; /* RANK_MEM_NULL: deregistered */
    struct py_hold *hold; /* the buffer, until dereg */
} py_memory;

typedef struct py_remote {
    PyObject_HEAD
    py_team *team;
    rank_mem_t mem; /* RANK_MEM_NULL: closed */
    struct py_gate gate;
    int peer;
} py_remote;

static PyTypeObject *memory_type, *remote_type;

/* -------------------------------------------------------------------------------------------- class Memory */

/* Deregister it once. Its buffer is released when the library no longer uses it. */
static rank_status_t memory_dereg(py_memory *self)
{
    rank_status_t status = RANK_OK;
    if (self->mem && !self->owner->gate.shut) {
        self->owner->gate.users++;
        Py_BEGIN_ALLOW_THREADS
        status = rank_dereg(&self->mem);
        Py_END_ALLOW_THREADS
        self->owner->gate.users--;
        if (status != RANK_OK)
            return status;
    }
    self->mem = RANK_MEM_NULL;
    py_hold_free(self->hold);
    self->hold = NULL;
    return RANK_OK;
}

static void memory_dealloc(py_memory *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    memory_dereg(self);
    Py_DECREF((PyObject *)self->owner);
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

/* A buffer that is read-only here is not registered: its owner relies on that, and peers could write it. */
PyObject *py_memory_reg(py_context *owner, PyObject *object)
{
    struct py_hold *hold = py_hold_new();
    Py_buffer *view = hold ? py_hold_add(hold, "reg", object, true) : NULL;
    py_memory *self = view ? PyObject_New(py_memory, memory_type) : NULL;
    if (!self) {
        py_hold_free(hold);
        return NULL;
    }
    self->owner = (py_context *)Py_NewRef((PyObject *)owner);
    self->mem = RANK_MEM_NULL;
    self->hold = hold;
    rank_status_t status = owner->world ? rank_reg(view->buf, view->len, &self->mem)
                                        : rank_ctx_reg(owner->ctx, view->buf, view->len, &self->mem);
    if (status == RANK_OK)
        return (PyObject *)self;
    Py_DECREF((PyObject *)self);
    return py_raise("reg", status);
}

static bool memory_usable(const char *call, py_memory *self)
{
    if (!py_usable(call, self->owner))
        return false;
    if (self->mem)
        return true;
    py_raise_text(RANK_ERR_HANDLE, "%s: the memory is no longer registered", call);
    return false;
}

static PyObject *memory_pack(py_memory *self, PyObject *unused)
{
    char key[RANK_RKEY_MAX];
    size_t len = sizeof(key);
    (void)unused;
    if (!memory_usable("pack", self))
        return NULL;
    rank_status_t status = rank_rkey_pack(self->mem, key, &len);
    return status == RANK_OK ? PyBytes_FromStringAndSize(key, (Py_ssize_t)len) : py_raise("pack", status);
}

static PyObject *memory_close(py_memory *self, PyObject *unused)
{
    (void)unused;
    return py_none_or_raise("dereg", memory_dereg(self));
}

static int memory_getbuffer(py_memory *self, Py_buffer *view, int flags)
{
    view->obj = NULL;
    if (!self->hold) {
        PyErr_SetString(PyExc_BufferError, "the memory is no longer registered");
        return -1;
    }
    if (!PyObject_CheckBuffer(self->hold->views[0].obj)) {
        PyErr_SetString(PyExc_BufferError, "the memory is of a DLPack tensor: access it there");
        return -1;
    }
    return PyObject_GetBuffer(self->hold->views[0].obj, view, flags);
}

static Py_ssize_t memory_length(py_memory *self)
{
    return self->hold ? self->hold->views[0].len : 0;
}

static PyObject *memory_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

static PyObject *memory_exit(py_memory *self, PY_ARGS)
{
    (void)args, (void)nargs, (void)kwnames;
    return memory_close(self, NULL);
}

static PyMethodDef memory_methods[] = {
    PY_PLAIN("pack", memory_pack, "pack(): returns the key as bytes, for Connection.open() of a peer"),
    PY_PLAIN("dereg", memory_close, "dereg(): end the access of peers"),
    PY_PLAIN("__enter__", memory_enter, NULL),
    PY_METHOD("__exit__", memory_exit, NULL),
    {NULL, NULL, 0, NULL},
};

static PyType_Slot memory_slots[] = {
    {Py_tp_dealloc, (void *)memory_dealloc},
    {Py_tp_methods, memory_methods},
    {Py_bf_getbuffer, (void *)memory_getbuffer},
    {Py_sq_length, (void *)memory_length},
    {Py_tp_doc, "A registered buffer, which peers can access. It has the buffer protocol."},
    {0, NULL},
};

static PyType_Spec memory_spec = {"rank.Memory", sizeof(py_memory), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, memory_slots};

/* -------------------------------------------------------------------------------------------- class Remote */

PyObject *py_remote_open(py_team *team, int peer, PyObject *key)
{
    rank_mem_t mem = RANK_MEM_NULL;
    rank_status_t status;
    struct py_hold *hold = py_hold_new();
    Py_buffer *view = hold ? py_hold_add(hold, "open", key, false) : NULL;
    if (!view) {
        py_hold_free(hold);
        return NULL;
    }
    team->gate.users++;
    team->owner->gate.users++;
    Py_BEGIN_ALLOW_THREADS
    status = rank_rkey_open(team->team, peer, view->buf, (size_t)view->len, &mem);
    Py_END_ALLOW_THREADS
    team->owner->gate.users--;
    team->gate.users--;
    py_hold_free(hold);
    if (status != RANK_OK)
        return py_raise("open", status);
    py_remote *self = PyObject_New(py_remote, remote_type);
    if (!self) {
        rank_rkey_close(&mem);
        return NULL;
    }
    self->team = (py_team *)Py_NewRef((PyObject *)team);
    self->mem = mem;
    self->gate = (struct py_gate){0, false};
    self->peer = peer;
    return (PyObject *)self;
}

static bool remote_usable(const char *call, py_remote *self)
{
    if (!py_team_usable(call, self->team))
        return false;
    if (!self->gate.shut)
        return true;
    py_raise_text(RANK_ERR_HANDLE, "%s: the key is closed", call);
    return false;
}

/* Flush, or close the key. The call waits for the peer without the GIL. Signals are handled after it. */
static rank_status_t remote_call(py_remote *self, bool close)
{
    py_team *team = self->team;
    rank_status_t status;
    if (team->gate.shut || team->owner->gate.shut)
        return RANK_OK;
    if (!close)
        self->gate.users++;
    team->gate.users++;
    team->owner->gate.users++;
    Py_BEGIN_ALLOW_THREADS
    status = close ? rank_rkey_close(&self->mem) : rank_flush(self->mem, self->peer);
    Py_END_ALLOW_THREADS
    team->owner->gate.users--;
    team->gate.users--;
    if (!close)
        self->gate.users--;
    py_touch(team->owner);
    return status;
}

static rank_status_t remote_shut(py_remote *self)
{
    if (self->gate.shut)
        return RANK_OK;
    py_drain(&self->gate);
    return remote_call(self, true);
}

static void remote_dealloc(py_remote *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    remote_shut(self);
    Py_DECREF((PyObject *)self->team);
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

static bool remote_start(py_remote *self, const char *call, bool get, PyObject **in, struct py_op *op)
{
    int64_t offset = 0;
    if (!py_integer(in[1], &offset) || !remote_usable(call, self) ||
        !py_op_begin(op, call, self->team->owner, (PyObject *)self))
        return false;
    Py_buffer *view = py_hold_add(op->hold, call, in[0], get);
    if (!view)
        return py_op_drop(op) != NULL;
    if (get)
        op->status = rank_iget(view->buf, view->len, self->peer, self->mem, offset, &op->req);
    else
        op->status = rank_iput(view->buf, view->len, self->peer, self->mem, offset, &op->req);
    return true;
}

static PyObject *remote_wait(py_remote *self, const char *call, bool get, PY_ARGS)
{
    static const char *const names[] = {"buffer", "offset", "timeout", NULL};
    PyObject *in[3];
    struct py_op op;
    int64_t timeout_ns = -1;
    if (!py_arguments(call, names, 1, args, nargs, kwnames, in) || !py_timeout(in[2], &timeout_ns) ||
        !remote_start(self, call, get, in, &op))
        return NULL;
    return py_op_wait(&op, timeout_ns);
}

static PyObject *remote_request(py_remote *self, const char *call, bool get, PY_ARGS)
{
    static const char *const names[] = {"buffer", "offset", NULL};
    PyObject *in[2];
    struct py_op op;
    if (!py_arguments(call, names, 1, args, nargs, kwnames, in) || !remote_start(self, call, get, in, &op))
        return NULL;
    return py_op_request(&op);
}

static PyObject *remote_put(py_remote *self, PY_ARGS)
{
    return remote_wait(self, "put", false, args, nargs, kwnames);
}

static PyObject *remote_get(py_remote *self, PY_ARGS)
{
    return remote_wait(self, "get", true, args, nargs, kwnames);
}

static PyObject *remote_iput(py_remote *self, PY_ARGS)
{
    return remote_request(self, "iput", false, args, nargs, kwnames);
}

static PyObject *remote_iget(py_remote *self, PY_ARGS)
{
    return remote_request(self, "iget", true, args, nargs, kwnames);
}

static PyObject *remote_flush(py_remote *self, PyObject *unused)
{
    (void)unused;
    return remote_usable("flush", self) ? py_none_or_raise("flush", remote_call(self, false)) : NULL;
}

static PyObject *remote_close(py_remote *self, PyObject *unused)
{
    (void)unused;
    return py_none_or_raise("close", remote_shut(self));
}

static PyObject *remote_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

static PyObject *remote_exit(py_remote *self, PY_ARGS)
{
    (void)args, (void)nargs, (void)kwnames;
    return remote_close(self, NULL);
}

static PyMethodDef remote_methods[] = {
    PY_METHOD("put", remote_put, "put(buffer, offset=0, timeout=None): write; the data is visible at the peer after flush()"),
    PY_METHOD("get", remote_get, "get(buffer, offset=0, timeout=None): read"),
    PY_METHOD("iput", remote_iput, "iput(buffer, offset=0): start a put; returns a Request"),
    PY_METHOD("iget", remote_iget, "iget(buffer, offset=0): start a get; returns a Request"),
    PY_PLAIN("flush", remote_flush, "flush(): make all puts visible at the peer"),
    PY_PLAIN("close", remote_close, "close(): flush and close the key"),
    PY_PLAIN("__enter__", remote_enter, NULL),
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

bool py_memory_init(PyObject *module)
{
    memory_type = py_type(module, &memory_spec, NULL, "Memory");
    remote_type = memory_type ? py_type(module, &remote_spec, NULL, "Remote") : NULL;
    return remote_type != NULL;
}

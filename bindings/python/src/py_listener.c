/* SPDX-License-Identifier: BSD-3-Clause */
/* py_listener.c: accept connections; class Listener. */
#include "py_rank.h"

typedef struct py_listener {
    PyObject_HEAD
    py_context *owner;
    rank_listener_t listener;
    struct py_gate gate;
} py_listener;

enum { ADDRESS_MAX = 256 };

static PyTypeObject *listener_type;

/* Takes the listener. */
PyObject *py_listener_new(py_context *owner, rank_listener_t listener)
{
    py_listener *self = PyObject_New(py_listener, listener_type);
    if (!self) {
        rank_listener_close(&listener);
        return NULL;
    }
    self->owner = (py_context *)Py_NewRef((PyObject *)owner);
    self->listener = listener;
    self->gate = (struct py_gate){0, false};
    return (PyObject *)self;
}

static bool listener_usable(const char *call, py_listener *self)
{
    if (!py_usable(call, self->owner))
        return false;
    if (!self->gate.shut)
        return true;
    py_raise_text(RANK_ERR_CLOSED, "%s: the listener is closed", call);
    return false;
}

static rank_status_t listener_shut(py_listener *self)
{
    rank_status_t status = RANK_OK;
    if (self->gate.shut)
        return status;
    py_drain(&self->gate);
    if (self->owner->gate.shut) /* the context closes it */
        return status;
    self->owner->gate.users++;
    Py_BEGIN_ALLOW_THREADS
    status = rank_listener_close(&self->listener);
    Py_END_ALLOW_THREADS
    self->owner->gate.users--;
    return status;
}

static void listener_dealloc(py_listener *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    listener_shut(self);
    Py_DECREF((PyObject *)self->owner);
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

static PyObject *listener_close(py_listener *self, PyObject *unused)
{
    (void)unused;
    return py_none_or_raise("close", listener_shut(self));
}

struct accept_wait {
    rank_listener_t listener;
    rank_team_t conn;
};

static rank_status_t accept_step(void *arg, int64_t timeout_ns)
{
    struct accept_wait *wait = arg;
    return rank_accept(wait->listener, timeout_ns, &wait->conn);
}

static PyObject *listener_accept(py_listener *self, PY_ARGS)
{
    static const char *const names[] = {"timeout", NULL};
    PyObject *in[1];
    int64_t timeout_ns = -1;
    rank_status_t status;
    struct accept_wait wait = {self->listener, RANK_TEAM_NULL};
    if (!py_arguments("accept", names, 0, args, nargs, kwnames, in) || !py_timeout(in[0], &timeout_ns) ||
        !listener_usable("accept", self))
        return NULL;
    if (!py_wait(self->owner, &self->gate, timeout_ns, accept_step, &wait, &status))
        return NULL;
    if (status != RANK_OK) {
        py_touch(self->owner);
        return py_raise("accept", status);
    }
    return py_team_new(self->owner, wait.conn, true);
}

static PyObject *listener_address(py_listener *self, void *unused)
{
    (void)unused;
    char text[ADDRESS_MAX];
    size_t len = sizeof(text);
    if (!listener_usable("address", self))
        return NULL;
    rank_status_t status = rank_listener_address(self->listener, text, &len);
    return status == RANK_OK ? PyUnicode_FromString(text) : py_raise("address", status);
}

static PyObject *listener_context(py_listener *self, void *unused)
{
    (void)unused;
    return Py_NewRef((PyObject *)self->owner);
}

static PyObject *listener_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

static PyObject *listener_exit(py_listener *self, PY_ARGS)
{
    (void)args, (void)nargs, (void)kwnames;
    return listener_close(self, NULL);
}

static PyMethodDef listener_methods[] = {
    PY_METHOD("accept", listener_accept, "accept(timeout=None): wait for a client; returns a Connection, of which this side is rank 1"),
    PY_PLAIN("close", listener_close, "close(): close it, and the connections that are not accepted yet"),
    PY_PLAIN("__enter__", listener_enter, NULL),
    PY_METHOD("__exit__", listener_exit, NULL),
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef listener_fields[] = {
    {"address", (getter)listener_address, NULL, "host:port", NULL},
    {"context", (getter)listener_context, NULL, "its Context", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot listener_slots[] = {
    {Py_tp_dealloc, (void *)listener_dealloc},
    {Py_tp_methods, listener_methods},
    {Py_tp_getset, listener_fields},
    {Py_tp_doc, "A socket that accepts connections."},
    {0, NULL},
};

static PyType_Spec listener_spec = {"rank.Listener", sizeof(py_listener), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, listener_slots};

bool py_listener_init(PyObject *module)
{
    listener_type = py_type(module, &listener_spec, NULL, "Listener");
    return listener_type != NULL;
}

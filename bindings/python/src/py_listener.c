/* SPDX-License-Identifier: BSD-3-Clause */
/* py_listener.c: accept connections; class Listener. */
#include "py_rank.h"

typedef struct py_listener {
    PY_PART
    rank_listener_t listener;
} py_listener;

enum { ADDRESS_MAX = 256 };

static PyTypeObject *listener_type;

/* Takes the listener. */
PyObject *py_listener_new(py_context *owner, rank_listener_t listener)
{
    struct py_gate gate = {.outer = &owner->gate, .status = RANK_ERR_CLOSED, .reason = "the listener is closed"};
    py_listener *self = py_part_new(listener_type, owner, gate);
    if (self)
        self->listener = listener;
    else
        rank_listener_close(&listener);
    return (PyObject *)self;
}

static rank_status_t listener_shut(py_listener *self)
{
    rank_status_t status = RANK_OK;
    if (self->gate.shut)
        return status;
    py_drain(&self->gate);
    if (self->owner->gate.shut) /* the context closes it */
        return status;
    py_enter(&self->owner->gate);
    Py_BEGIN_ALLOW_THREADS
    status = rank_listener_close(&self->listener);
    Py_END_ALLOW_THREADS
    py_leave(&self->owner->gate);
    return status;
}

static void listener_dealloc(py_listener *self)
{
    listener_shut(self);
    py_part_free(self);
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
    int64_t timeout_ns = -1;
    rank_status_t status;
    struct accept_wait wait = {self->listener, RANK_TEAM_NULL};
    if (!py_only_timeout("accept", args, nargs, kwnames, &timeout_ns) ||
        !py_usable("accept", &self->gate))
        return NULL;
    if (!py_wait(&self->gate, timeout_ns, accept_step, &wait, &status))
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
    if (!py_usable("address", &self->gate))
        return NULL;
    rank_status_t status = rank_listener_address(self->listener, text, &len);
    return status == RANK_OK ? PyUnicode_FromString(text) : py_raise("address", status);
}

static PyObject *listener_exit(py_listener *self, PY_ARGS)
{
    (void)kwnames;
    return py_exit(listener_close(self, NULL), args, nargs);
}

static PyMethodDef listener_methods[] = {
    PY_METHOD("accept", listener_accept, "accept(timeout=None): wait for a client; returns a Connection, of which this side is rank 1"),
    PY_PLAIN("close", listener_close, "close(): close it, and the connections that are not accepted yet"),
    PY_PLAIN("__enter__", py_self, NULL),
    PY_METHOD("__exit__", listener_exit, NULL),
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef listener_fields[] = {
    {"address", (getter)listener_address, NULL, "host:port", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef listener_members[] = {
    {"context", T_OBJECT_EX, offsetof(py_part, owner), READONLY, "its Context"},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot listener_slots[] = {
    {Py_tp_dealloc, (void *)listener_dealloc},
    {Py_tp_methods, listener_methods},
    {Py_tp_getset, listener_fields},
    {Py_tp_members, listener_members},
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

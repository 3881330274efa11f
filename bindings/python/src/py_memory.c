/* SPDX-License-Identifier: BSD-3-Clause */
/* py_memory.c: register memory for peers; class Memory. */
#include "py_rank.h"

typedef struct py_memory {
    PY_PART
    rank_mem_t mem;       /* RANK_MEM_NULL: not registered */
    struct py_hold *hold; /* the buffer, until dereg */
} py_memory;

static PyTypeObject *memory_type;

/* Deregister it once. Its buffer is released when the library no longer uses it. */
static rank_status_t memory_shut(py_memory *self)
{
    py_context *owner = self->owner;
    struct py_hold *hold = self->hold;
    rank_status_t status = RANK_OK;
    if (self->gate.shut)
        return status;
    py_drain(&self->gate);
    self->hold = NULL;
    if (self->mem && owner->gate.shut && !owner->closed) { /* the context deregisters it, and peers write until then */
        py_orphan(owner, hold);
        return status;
    }
    if (self->mem && !owner->closed) {
        py_enter(&owner->gate);
        Py_BEGIN_ALLOW_THREADS
        status = rank_dereg(&self->mem);
        Py_END_ALLOW_THREADS
        py_leave(&owner->gate);
    }
    py_hold_free(hold);
    return status;
}

static void memory_dealloc(py_memory *self)
{
    memory_shut(self);
    py_part_free(self);
}

/* A buffer that is read-only here is not registered: its owner relies on that, and peers could write it. */
PyObject *py_memory_reg(py_context *owner, PyObject *object)
{
    struct py_hold *hold = py_hold_new();
    Py_buffer *view = hold ? py_hold_add(hold, "reg", object, true) : NULL;
    struct py_gate gate = {.outer = &owner->gate, .status = RANK_ERR_HANDLE, .reason = "the memory is no longer registered"};
    py_memory *self = view && py_usable("reg", &owner->gate) ? py_part_new(memory_type, owner, gate) : NULL;
    if (!self) {
        py_hold_free(hold);
        return NULL;
    }
    self->mem = RANK_MEM_NULL;
    self->hold = hold;
    rank_status_t status = owner->world ? rank_reg(view->buf, view->len, &self->mem)
                                        : rank_ctx_reg(owner->ctx, RANK_MEM_HOST, view->buf, view->len,
                                                       RANK_ACCESS_READ | RANK_ACCESS_WRITE, &self->mem);
    if (status == RANK_OK)
        return (PyObject *)self;
    Py_DECREF((PyObject *)self);
    return py_raise("reg", status);
}

static PyObject *memory_pack(py_memory *self, PyObject *unused)
{
    char key[RANK_RKEY_MAX];
    size_t len = sizeof(key);
    (void)unused;
    if (!py_usable("pack", &self->gate))
        return NULL;
    rank_status_t status = rank_rkey_pack(self->mem, key, &len);
    return status == RANK_OK ? PyBytes_FromStringAndSize(key, (Py_ssize_t)len) : py_raise("pack", status);
}

static PyObject *memory_dereg(py_memory *self, PyObject *unused)
{
    (void)unused;
    return py_none_or_raise("dereg", memory_shut(self));
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

static PyObject *memory_exit(py_memory *self, PY_ARGS)
{
    (void)kwnames;
    return py_exit(memory_dereg(self, NULL), args, nargs);
}

static PyMethodDef memory_methods[] = {
    PY_PLAIN("pack", memory_pack, "pack(): returns the key as bytes, for Connection.open() of a peer"),
    PY_PLAIN("dereg", memory_dereg, "dereg(): end the access of peers"),
    PY_PLAIN("__enter__", py_self, NULL),
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

bool py_memory_init(PyObject *module)
{
    memory_type = py_type(module, &memory_spec, NULL, "Memory");
    return memory_type != NULL;
}

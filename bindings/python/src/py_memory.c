/* SPDX-License-Identifier: BSD-3-Clause */
/* py_memory.c: register memory for peers; class Memory. */
#include "py_rank.h"

#include <stdlib.h>
#include <unistd.h>

typedef struct py_memory {
    PY_PART
    rank_mem_t mem;       /* RANK_MEM_NULL: not registered */
    struct py_hold *hold; /* the buffer, until close */
} py_memory;

enum { DROP_NS = 100 * 1000000 }; /* wait for peers when a Memory is dropped */

static PyTypeObject *memory_type;

/* Keep a buffer that peers may still use until the context is closed. */
static void memory_keep(py_context *owner, struct py_hold *hold)
{
    hold->until_close = true;
    py_orphan(owner, hold);
}

/* Deregister it once. Its buffer is released when peers no longer use it. */
static rank_status_t memory_shut(py_memory *self, int64_t timeout_ns)
{
    py_context *owner = self->owner;
    struct py_hold *hold = self->hold;
    rank_status_t status = RANK_OK;
    if (self->gate.shut)
        return status;
    py_drain(&self->gate);
    self->hold = NULL;
    if (self->mem && owner->gate.shut && !owner->closed) { /* the context deregisters it, and peers write until then */
        memory_keep(owner, hold);
        return status;
    }
    if (self->mem && !owner->closed) {
        py_enter(&owner->gate);
        Py_BEGIN_ALLOW_THREADS
        status = rank_dereg_timed(&self->mem, timeout_ns);
        Py_END_ALLOW_THREADS
        py_leave(&owner->gate);
    }
    if (status != RANK_OK) {
        memory_keep(owner, hold);
        return status;
    }
    py_hold_free(hold);
    return status;
}

static void memory_dealloc(py_memory *self)
{
    memory_shut(self, DROP_NS);
    py_part_free(self);
}

/* A buffer that is read-only here can be registered for reads only: its owner relies on that. */
PyObject *py_memory_register(py_context *owner, PyObject *object, unsigned access)
{
    struct py_hold *hold = py_hold_new(1);
    Py_buffer *view = hold ? py_hold_add(hold, "register", object, (access & RANK_ACCESS_WRITE) != 0) : NULL;
    struct py_gate gate = {.outer = &owner->gate, .status = RANK_ERR_HANDLE, .reason = "the memory is no longer registered"};
    py_memory *self = view && py_usable("register", &owner->gate) ? py_part_new(memory_type, owner, gate) : NULL;
    if (!self) {
        py_hold_free(hold);
        return NULL;
    }
    self->mem = RANK_MEM_NULL;
    self->hold = hold;
    rank_status_t status = rank_ctx_reg(owner->ctx, view->buf, view->len, access, &self->mem);
    if (status == RANK_OK)
        return (PyObject *)self;
    Py_DECREF((PyObject *)self);
    return py_raise("register", status);
}

/* Map a file of memory. mmap keeps a descriptor of it. Returns NULL with an exception set. */
static PyObject *memory_map(int64_t bytes)
{
    PyObject *os = PyImport_ImportModule("os"), *mmap = PyImport_ImportModule("mmap"), *map = NULL;
    PyObject *fd = os && mmap ? PyObject_CallMethod(os, "memfd_create", "s", "rank") : NULL;
    PyObject *sized = fd ? PyObject_CallMethod(os, "truncate", "OL", fd, (long long)bytes) : NULL;
    if (sized)
        map = PyObject_CallMethod(mmap, "mmap", "OL", fd, (long long)bytes);
    if (fd)
        close((int)PyLong_AsLong(fd));
    Py_XDECREF(sized);
    Py_XDECREF(fd);
    Py_XDECREF(mmap);
    Py_XDECREF(os);
    return map;
}

/*
 * Register new shared memory, which peers of this host map. It is not that of rank_ctx_alloc: this one stays mapped while
 * a view of the program shows it, also when the context is closed.
 */
PyObject *py_memory_alloc(py_context *owner, int64_t bytes, unsigned access)
{
    if (bytes < 1)
        return py_raise_text(RANK_ERR_ARG, "alloc: %lld bytes; memory has at least 1 byte", (long long)bytes);
    PyObject *map = memory_map(bytes);
    PyObject *self = map && py_usable("alloc", &owner->gate) ? py_memory_register(owner, map, access) : NULL;
    Py_XDECREF(map);
    return self;
}

/* Pack the keys of a tuple of Memory. Returns NULL with an exception set. */
static PyObject *memory_pack_all(PyObject *memories, rank_mem_t *mems)
{
    size_t len = 0;
    Py_ssize_t n = PyTuple_Size(memories);
    for (Py_ssize_t i = 0; i < n; i++) {
        py_memory *memory = (py_memory *)PyTuple_GetItem(memories, i);
        if (!Py_IS_TYPE((PyObject *)memory, memory_type)) {
            PyErr_Format(PyExc_TypeError, "keys: item %zd must be a Memory, not %.80R", i, (PyObject *)memory);
            return NULL;
        }
        if (!py_usable("keys", &memory->gate))
            return NULL;
        mems[i] = memory->mem;
    }
    rank_status_t status = rank_rkeys_pack(n, mems, NULL, &len);
    PyObject *keys = status == RANK_OK ? PyBytes_FromStringAndSize(NULL, (Py_ssize_t)len) : NULL;
    if (keys)
        status = rank_rkeys_pack(n, mems, PyBytes_AsString(keys), &len);
    if (status == RANK_OK)
        return keys;
    Py_XDECREF(keys);
    return py_raise("keys", status);
}

PyObject *py_memory_keys(PyObject *sequence)
{
    PyObject *memories = PySequence_Tuple(sequence), *keys = NULL;
    if (!memories)
        return NULL;
    rank_mem_t *mems = malloc((size_t)(PyTuple_Size(memories) + 1) * sizeof(mems[0]));
    if (mems)
        keys = memory_pack_all(memories, mems);
    else
        PyErr_NoMemory();
    free(mems);
    Py_DECREF(memories);
    return keys;
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

static PyObject *memory_close(py_memory *self, PY_ARGS)
{
    int64_t timeout_ns = NS_PER_S;
    if (!py_only_timeout("close", args, nargs, kwnames, &timeout_ns))
        return NULL;
    return py_none_or_raise("close", memory_shut(self, timeout_ns));
}

static int memory_getbuffer(py_memory *self, Py_buffer *view, int flags)
{
    view->obj = NULL;
    if (!self->hold) {
        PyErr_SetString(PyExc_BufferError, "the memory is no longer registered");
        return -1;
    }
    const Py_buffer *own = &self->hold->views[0];
    if (!PyObject_CheckBuffer(own->obj)) /* the capsule of a tensor */
        return PyBuffer_FillInfo(view, own->obj, own->buf, own->len, own->readonly, flags);
    return PyObject_GetBuffer(own->obj, view, flags);
}

static Py_ssize_t memory_length(py_memory *self)
{
    return self->hold ? self->hold->views[0].len : 0;
}

static PyObject *memory_exit(py_memory *self, PY_ARGS)
{
    (void)kwnames;
    return py_exit(memory_close(self, NULL, 0, NULL), args, nargs);
}

static PyMethodDef memory_methods[] = {
    PY_PLAIN("pack", memory_pack, "pack(): returns the key as bytes, for Connection.open() of a peer"),
    PY_METHOD("close", memory_close, "close(timeout=1): end the access of peers; TimedOutError: one has not confirmed that"),
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

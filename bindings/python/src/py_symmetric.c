/* SPDX-License-Identifier: BSD-3-Clause */
/* py_symmetric.c: allocate memory on all ranks; class SymmetricMemory. */
#include "py_rank.h"

typedef struct py_symmetric {
    PY_PART
    py_team *team;
    rank_mem_t mem;
    char *ptr;
    int64_t bytes;
    Py_ssize_t exports; /* views that the program holds */
} py_symmetric;

static PyTypeObject *symmetric_type;

struct alloc_call {
    struct py_call call;
    rank_team_t team;
    int64_t bytes;
    void *ptr;
    rank_mem_t mem;
};

static rank_status_t alloc_run(struct py_call *call)
{
    struct alloc_call *self = (struct alloc_call *)call;
    return rank_alloc(self->team, RANK_MEM_HOST, self->bytes, &self->ptr, &self->mem);
}

static rank_status_t free_run(struct py_call *call)
{
    return rank_free(&((struct alloc_call *)call)->mem);
}

/* Method alloc of the class Team. The world must be that of init(): a Context frees memory that views still show. */
PyObject *py_symmetric_alloc(py_team *team, PY_ARGS)
{
    static const char *const names[] = {"bytes", "timeout", NULL};
    PyObject *in[2];
    int64_t bytes = 0, timeout_ns = -1;
    if (!py_arguments("alloc", names, 1, args, nargs, kwnames, in) || !py_integer(in[0], &bytes) || !py_timeout(in[1], &timeout_ns) ||
        !py_usable("alloc", &team->gate))
        return NULL;
    if (!team->owner->world)
        return py_raise_text(RANK_ERR_NOT_SUPPORTED, "alloc: a connection has none; use alloc() of the Context");
    struct alloc_call *call = py_call_new(sizeof(*call), team->owner, alloc_run, NULL); /* one that is left goes with finalize() */
    if (!call)
        return NULL;
    call->team = team->team;
    call->bytes = bytes;
    if (!py_call_wait("alloc", &team->gate, call, timeout_ns, NULL))
        return NULL;
    struct py_gate gate = {.outer = &team->gate, .status = RANK_ERR_HANDLE, .reason = "the memory is closed"};
    py_symmetric *self = py_part_new(symmetric_type, team->owner, gate);
    if (self) {
        self->team = (py_team *)Py_NewRef((PyObject *)team);
        team->memories++;
        self->mem = call->mem;
        self->ptr = call->ptr;
        self->bytes = bytes;
        self->exports = 0;
    }
    py_call_free(call);
    return (PyObject *)self;
}

/* A free waits for all ranks, which a drop cannot: memory that is not closed stays, as its team does, until finalize(). */
static void symmetric_dealloc(py_symmetric *self)
{
    if (self->gate.shut)
        Py_DECREF((PyObject *)self->team);
    py_part_free(self);
}

static PyObject *symmetric_close(py_symmetric *self, PY_ARGS)
{
    int64_t timeout_ns = -1;
    if (!py_only_timeout("close", args, nargs, kwnames, &timeout_ns))
        return NULL;
    if (self->gate.shut)
        Py_RETURN_NONE;
    if (self->exports > 0) {
        PyErr_Format(PyExc_BufferError, "close: %zd views show the memory; delete them first", self->exports);
        return NULL;
    }
    py_drain(&self->gate);
    self->team->memories--;
    if (self->team->gate.shut || self->owner->gate.shut) /* it is gone */
        Py_RETURN_NONE;
    struct alloc_call *call = py_call_new(sizeof(*call), self->owner, free_run, NULL);
    if (call)
        call->mem = self->mem;
    if (!call || !py_call_wait("close", &self->team->gate, call, timeout_ns, NULL))
        return NULL;
    py_call_free(call);
    Py_RETURN_NONE;
}

static PyObject *symmetric_exit(py_symmetric *self, PY_ARGS)
{
    (void)kwnames;
    return py_exit(symmetric_close(self, NULL, 0, NULL), args, nargs);
}

static int symmetric_getbuffer(py_symmetric *self, Py_buffer *view, int flags)
{
    view->obj = NULL;
    if (self->gate.shut || self->team->gate.shut || self->owner->gate.shut) {
        PyErr_SetString(PyExc_BufferError, "the memory is closed");
        return -1;
    }
    if (PyBuffer_FillInfo(view, (PyObject *)self, self->ptr, (Py_ssize_t)self->bytes, 0, flags) < 0)
        return -1;
    self->exports++;
    self->owner->exports++;
    return 0;
}

static void symmetric_releasebuffer(py_symmetric *self, Py_buffer *view)
{
    (void)view;
    self->exports--;
    self->owner->exports--;
}

static Py_ssize_t symmetric_length(py_symmetric *self)
{
    return (Py_ssize_t)self->bytes;
}

static PyObject *symmetric_remote(py_symmetric *self, PY_ARGS)
{
    static const char *const names[] = {"peer", NULL};
    PyObject *in[1];
    int64_t peer = RANK_UNDEFINED;
    if (!py_arguments("remote", names, 1, args, nargs, kwnames, in) || !py_integer(in[0], &peer) || !py_usable("remote", &self->gate))
        return NULL;
    if ((peer < 0 || peer >= self->team->size) && peer != RANK_PROC_NULL)
        return py_raise_text(RANK_ERR_RANK, "remote: %lld is not a rank of the team of %d", (long long)peer, self->team->size);
    return py_remote_of(self->team, (int)peer, self->mem, (py_part *)self);
}

struct signal_wait {
    rank_mem_t mem;
    int64_t offset;
    rank_cmp_t cmp;
    uint64_t value, seen;
    int peer;
};

static rank_status_t signal_step(void *arg, int64_t timeout_ns)
{
    struct signal_wait *wait = arg;
    return rank_signal_wait_timed(wait->mem, wait->offset, wait->cmp, wait->value, wait->peer, timeout_ns, &wait->seen);
}

/* Wait for a signal in this rank's part. Returns false with an exception set. */
static bool signal_await(py_symmetric *self, const char *call, bool waits, struct signal_wait *wait, rank_status_t *status, PY_ARGS)
{
    const char *names[] = {"value", "offset", "cmp", "peer", waits ? "timeout" : NULL, NULL};
    PyObject *in[5] = {NULL};
    int64_t cmp = RANK_CMP_GE, peer = RANK_ANY_SOURCE, timeout_ns = waits ? -1 : 0;
    *wait = (struct signal_wait){.mem = self->mem};
    if (!py_arguments(call, names, 1, args, nargs, kwnames, in) || !py_unsigned(call, in[0], &wait->value) ||
        !py_integer(in[1], &wait->offset) || !py_integer(in[2], &cmp) || !py_integer(in[3], &peer) || !py_timeout(in[4], &timeout_ns) ||
        !py_usable(call, &self->gate))
        return false;
    wait->cmp = cmp < 0 || cmp > RANK_CMP_LE ? (rank_cmp_t)(RANK_CMP_LE + 1) : (rank_cmp_t)cmp;
    wait->peer = peer != (int)peer ? RANK_UNDEFINED : (int)peer;
    bool waited = py_wait(&self->gate, timeout_ns, signal_step, wait, status);
    py_touch(self->owner);
    return waited;
}

static PyObject *symmetric_signal_wait(py_symmetric *self, PY_ARGS)
{
    struct signal_wait wait;
    rank_status_t status;
    if (!signal_await(self, "signal_wait", true, &wait, &status, args, nargs, kwnames))
        return NULL;
    return status == RANK_OK ? PyLong_FromUnsignedLongLong(wait.seen) : py_raise("signal_wait", status);
}

static PyObject *symmetric_test_signal(py_symmetric *self, PY_ARGS)
{
    struct signal_wait wait;
    rank_status_t status;
    if (!signal_await(self, "test_signal", false, &wait, &status, args, nargs, kwnames))
        return NULL;
    if (status == RANK_ERR_TIMED_OUT)
        Py_RETURN_NONE;
    return status == RANK_OK ? PyLong_FromUnsignedLongLong(wait.seen) : py_raise("test_signal", status);
}

static PyMethodDef symmetric_methods[] = {
    PY_METHOD("remote", symmetric_remote, "remote(peer): returns a Remote of the part of peer"),
    PY_METHOD("signal_wait", symmetric_signal_wait, "signal_wait(value, offset=0, cmp=CMP_GE, peer=ANY_SOURCE, timeout=None): wait for a signal of put_signal(); returns its value"),
    PY_METHOD("test_signal", symmetric_test_signal, "test_signal(value, offset=0, cmp=CMP_GE, peer=ANY_SOURCE): returns the value of a signal that is here, or None"),
    PY_METHOD("close", symmetric_close, "close(timeout=None): free the memory, on all ranks"),
    PY_PLAIN("__enter__", py_self, NULL),
    PY_METHOD("__exit__", symmetric_exit, NULL),
    {NULL, NULL, 0, NULL},
};

static PyType_Slot symmetric_slots[] = {
    {Py_tp_dealloc, (void *)symmetric_dealloc},
    {Py_tp_methods, symmetric_methods},
    {Py_bf_getbuffer, (void *)symmetric_getbuffer},
    {Py_bf_releasebuffer, (void *)symmetric_releasebuffer},
    {Py_sq_length, (void *)symmetric_length},
    {Py_tp_doc, "Memory of equal size on all ranks of a team. It has the buffer protocol, for the part of this rank."},
    {0, NULL},
};

static PyType_Spec symmetric_spec = {"rank.SymmetricMemory", sizeof(py_symmetric), 0,
                                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, symmetric_slots};

bool py_symmetric_init(PyObject *module)
{
    symmetric_type = py_type(module, &symmetric_spec, NULL, "SymmetricMemory");
    return symmetric_type != NULL;
}

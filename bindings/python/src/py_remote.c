/* SPDX-License-Identifier: BSD-3-Clause */
/* py_remote.c: access the memory of a peer; class Remote. */
#include "py_rank.h"

#include <stdlib.h>
#include <string.h>

typedef struct py_remote {
    PY_PART
    py_team *team;
    py_part *memory; /* of alloc(), which has its part; NULL: mem is of a key */
    rank_mem_t mem;
    int peer;
    bool mapped;    /* its calls do not wait for the peer */
    bool abandoned; /* a call on it was left: the key is closed with the team */
} py_remote;

enum { RKEY_USUAL = 64 /* bytes of a key in a list */, DROP_NS = 100 * 1000000 /* wait for the peer when a Remote is dropped */ };

static PyTypeObject *remote_type;

static void remote_set(py_remote *self, py_team *team, int peer, rank_mem_t mem, py_part *memory)
{
    self->team = (py_team *)Py_NewRef((PyObject *)team);
    self->memory = (py_part *)Py_XNewRef((PyObject *)memory);
    self->mem = mem;
    self->peer = peer;
    void *ptr = NULL;
    self->mapped = rank_ptr(mem, peer, &ptr) == RANK_OK && ptr;
    self->abandoned = false;
}

/* Take an opened key. Returns NULL with an exception set. */
static PyObject *remote_new(py_team *team, int peer, rank_mem_t mem)
{
    struct py_gate gate = {.outer = &team->gate, .status = RANK_ERR_HANDLE, .reason = "the key is closed"};
    py_remote *self = py_part_new(remote_type, team->owner, gate);
    if (!self) {
        rank_rkey_close(&mem);
        return NULL;
    }
    remote_set(self, team, peer, mem, NULL);
    return (PyObject *)self;
}

/* Make one of the part of peer in symmetric memory, which it keeps. Returns NULL with an exception set. */
PyObject *py_remote_of(py_team *team, int peer, rank_mem_t mem, py_part *memory)
{
    struct py_gate gate = {.outer = &memory->gate, .status = RANK_ERR_HANDLE, .reason = "the Remote is closed"};
    py_remote *self = py_part_new(remote_type, team->owner, gate);
    if (self)
        remote_set(self, team, peer, mem, memory);
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

struct open_call {
    struct py_call call; /* extra: the opened keys */
    rank_team_t team;
    int peer;
    int64_t n;
    size_t len;
    unsigned char key[];
};

static rank_status_t open_run(struct py_call *call)
{
    struct open_call *self = (struct open_call *)call;
    return rank_rkey_open(self->team, self->peer, self->key, self->len, call->extra);
}

/* There may be more keys than were expected. */
static rank_status_t open_all_run(struct py_call *call)
{
    struct open_call *self = (struct open_call *)call;
    rank_status_t status = RANK_ERR_TRUNCATED;
    while (status == RANK_ERR_TRUNCATED) {
        rank_mem_t *more = realloc(call->extra, (size_t)(self->n + 1) * sizeof(more[0]));
        if (!more)
            return RANK_ERR_NO_MEMORY;
        call->extra = more;
        status = rank_rkeys_open(self->team, self->peer, self->key, self->len, &self->n, more);
    }
    return status;
}

static void open_undo(struct py_call *call)
{
    struct open_call *self = (struct open_call *)call;
    rank_mem_t *mems = call->extra;
    for (int64_t i = 0; i < self->n; i++)
        rank_rkey_close(&mems[i]);
}

/* Open a key, or all keys of a list. The caller frees the call. Returns NULL with an exception set. */
static struct open_call *remote_open_call(const char *name, py_team *team, int peer, PyObject *key, bool all, int64_t timeout_ns)
{
    struct open_call *call = NULL;
    struct py_hold *hold = py_hold_new(1);
    Py_buffer *view = hold ? py_hold_add(hold, name, key, false) : NULL;
    if (view && py_usable(name, &team->gate))
        call = py_call_new(sizeof(*call) + (size_t)view->len, team->owner, all ? open_all_run : open_run, open_undo);
    if (call) {
        call->team = team->team;
        call->peer = peer;
        call->len = (size_t)view->len;
        call->n = all ? view->len / RKEY_USUAL : 1;
        memcpy(call->key, view->buf, call->len);
        call->call.extra = calloc(1, sizeof(rank_mem_t));
    }
    py_hold_free(hold);
    if (call && !call->call.extra) {
        py_call_free(call);
        PyErr_NoMemory();
        return NULL;
    }
    if (!call || !(team->near ? py_call_here(name, &team->gate, call) : py_call_wait(name, &team->gate, call, timeout_ns, NULL)))
        return NULL;
    return call;
}

PyObject *py_remote_open(py_team *team, int peer, PyObject *key, int64_t timeout_ns)
{
    struct open_call *call = remote_open_call("open", team, peer, key, false, timeout_ns);
    PyObject *remote = call ? remote_new(team, peer, *(rank_mem_t *)call->call.extra) : NULL;
    py_call_free(call);
    return remote;
}

/* Open the keys of Context.keys(). */
PyObject *py_remote_open_all(py_team *team, int peer, PyObject *keys, int64_t timeout_ns)
{
    struct open_call *call = remote_open_call("open_keys", team, peer, keys, true, timeout_ns);
    PyObject *list = call ? remote_list(team, peer, call->call.extra, call->n) : NULL;
    py_call_free(call);
    return list;
}

/* ---------------------------------------------------------------------------------------------- flush and close */

struct flush_call {
    struct py_call call;
    rank_mem_t mem;
    int peer;
};

static rank_status_t flush_run(struct py_call *call)
{
    struct flush_call *self = (struct flush_call *)call;
    return rank_flush(self->mem, self->peer);
}

static rank_status_t close_run(struct py_call *call)
{
    return rank_rkey_close(&((struct flush_call *)call)->mem);
}

/* Does a flush wait for the peer? Memory that is mapped, or to which nothing was written, needs none. */
static bool remote_waits(const py_remote *self)
{
    return !self->mapped && !self->team->near && (!self->team->connection || self->team->posted != self->team->flushed);
}

static rank_status_t remote_call_here(py_remote *self, struct py_gate *gate, bool close)
{
    rank_status_t status;
    py_enter(gate);
    Py_BEGIN_ALLOW_THREADS
    status = close && !self->memory ? rank_rkey_close(&self->mem) : rank_flush(self->mem, self->peer);
    Py_END_ALLOW_THREADS
    py_leave(gate);
    return status;
}

/* Flush, or close the key. Returns false with an exception set. */
static bool remote_call(py_remote *self, const char *name, bool close, int64_t timeout_ns)
{
    struct py_gate *gate = close ? self->gate.outer : &self->gate;
    uint64_t posted = self->team->posted;
    bool good, left = false;
    if (remote_waits(self)) {
        struct flush_call *call = py_call_new(sizeof(*call), self->owner, close && !self->memory ? close_run : flush_run, NULL);
        if (call) {
            call->mem = self->mem;
            call->peer = self->peer;
        }
        good = call && py_call_wait(name, gate, call, timeout_ns, &left);
        self->abandoned |= left;
        if (good) {
            self->team->flushed = posted;
            py_call_free(call);
        }
    } else {
        rank_status_t status = remote_call_here(self, gate, close);
        good = status == RANK_OK;
        if (!good)
            py_raise(name, status);
    }
    py_touch(self->owner);
    return good;
}

/* Returns false with an exception set. */
static bool remote_shut(py_remote *self, int64_t timeout_ns)
{
    if (self->gate.shut)
        return true;
    py_drain(&self->gate);
    if (self->abandoned || self->gate.outer->shut || self->team->gate.shut || self->owner->gate.shut) /* the end of that closes it */
        return true;
    return remote_call(self, "close", true, timeout_ns);
}

static void remote_dealloc(py_remote *self)
{
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    if (!remote_shut(self, DROP_NS)) {
        if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
            PyErr_SetInterrupt(); /* for the program */
        PyErr_Clear();
    }
    PyErr_Restore(kind, value, trace);
    Py_DECREF((PyObject *)self->team);
    Py_XDECREF((PyObject *)self->memory);
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
    self->team->posted += !op->kind->into;
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

/* Put, and update a signal at the peer. The library does not wait, but for room on the way to another host. */
static PyObject *remote_put_signal(py_remote *self, PY_ARGS)
{
    static const char *const names[] = {"buffer", "signal_offset", "offset", "value", "op", "signal", NULL};
    static const char call[] = "put_signal";
    PyObject *in[6];
    int64_t offset = 0, signal_offset = 0, op = RANK_SIGNAL_ADD;
    uint64_t value = 1;
    rank_mem_t signal = self->mem;
    rank_status_t status;
    if (!py_arguments(call, names, 2, args, nargs, kwnames, in) || !py_integer(in[1], &signal_offset) || !py_integer(in[2], &offset) ||
        (in[3] && !py_unsigned(call, in[3], &value)) || !py_integer(in[4], &op))
        return NULL;
    struct py_hold *hold = py_hold_new(1);
    Py_buffer *view = hold ? py_hold_add(hold, call, in[0], false) : NULL;
    if (!view || !py_usable(call, &self->gate) ||
        (in[5] && in[5] != Py_None && !py_remote_mem(call, in[5], &signal))) {
        py_hold_free(hold);
        return NULL;
    }
    struct py_gate *other = in[5] && in[5] != Py_None ? &((py_remote *)in[5])->gate : NULL;
    self->team->posted++;
    py_enter(&self->gate);
    py_enter(other);
    Py_BEGIN_ALLOW_THREADS
    status = rank_put_signal(view->buf, view->len, self->peer, self->mem, offset, signal, signal_offset, value,
                             op == RANK_SIGNAL_SET ? RANK_SIGNAL_SET : op == RANK_SIGNAL_ADD ? RANK_SIGNAL_ADD : (rank_signal_op_t)(RANK_SIGNAL_ADD + 1));
    Py_END_ALLOW_THREADS
    py_leave(other);
    py_leave(&self->gate);
    py_hold_free(hold);
    py_touch(self->owner);
    return py_none_or_raise(call, status);
}

/* ----------------------------------------------------------------------------------------- atomics, on int64 */

static bool remote_number(const char *call, PyObject *object, int64_t *value)
{
    if (PyIndex_Check(object))
        return py_integer(object, value);
    PyErr_Format(PyExc_TypeError, "%s: value must be an integer, not %.80R", call, object);
    return false;
}

struct atomic_call {
    struct py_call call;
    rank_mem_t mem;
    int peer;
    bool compares;
    rank_amo_t amo;
    int64_t value, expected, offset, before;
};

static rank_status_t atomic_run(struct py_call *call)
{
    struct atomic_call *self = (struct atomic_call *)call;
    if (self->compares)
        return rank_atomic_cas(RANK_INT64, &self->expected, &self->value, self->peer, self->mem, self->offset, &self->before);
    return rank_atomic(self->amo, RANK_INT64, &self->value, self->peer, self->mem, self->offset, &self->before);
}

/* Run an atomic operation. It returns the value before in *atomic. Returns false with an exception set. */
static bool atomic_wait(py_remote *self, const char *name, struct atomic_call *atomic, int64_t timeout_ns)
{
    atomic->mem = self->mem;
    atomic->peer = self->peer;
    bool good;
    self->team->posted++;
    if (self->mapped) {
        rank_status_t status = atomic_run(&atomic->call);
        good = status == RANK_OK;
        if (!good)
            py_raise(name, status);
    } else {
        struct atomic_call *call = py_call_new(sizeof(*call), self->owner, atomic_run, NULL);
        bool left = false;
        if (call)
            memcpy((char *)call + sizeof(call->call), (char *)atomic + sizeof(atomic->call), sizeof(*call) - sizeof(call->call));
        good = call && py_call_wait(name, &self->gate, call, timeout_ns, &left);
        self->abandoned |= left;
        if (good) {
            atomic->before = call->before;
            py_call_free(call);
        }
    }
    py_touch(self->owner);
    return good;
}

/* Parse the arguments of an atomic operation, and run it. Returns the value before, or None. */
static PyObject *remote_atomic(py_remote *self, const char *call, rank_amo_t amo, bool result, PY_ARGS)
{
    static const char *const names[] = {"value", "offset", "timeout", NULL};
    PyObject *in[3];
    struct atomic_call atomic = {.amo = amo};
    int64_t timeout_ns = -1;
    if (!py_arguments(call, names, 1, args, nargs, kwnames, in) || !remote_number(call, in[0], &atomic.value) ||
        !py_integer(in[1], &atomic.offset) || !py_timeout(in[2], &timeout_ns) || !py_usable(call, &self->gate) ||
        !atomic_wait(self, call, &atomic, timeout_ns))
        return NULL;
    if (result)
        return PyLong_FromLongLong(atomic.before);
    Py_RETURN_NONE;
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
    static const char *const names[] = {"expected", "desired", "offset", "timeout", NULL};
    static const char call[] = "compare_swap";
    PyObject *in[4];
    struct atomic_call atomic = {.compares = true};
    int64_t timeout_ns = -1;
    if (!py_arguments(call, names, 2, args, nargs, kwnames, in) || !remote_number(call, in[0], &atomic.expected) ||
        !remote_number(call, in[1], &atomic.value) || !py_integer(in[2], &atomic.offset) || !py_timeout(in[3], &timeout_ns) ||
        !py_usable(call, &self->gate) || !atomic_wait(self, call, &atomic, timeout_ns))
        return NULL;
    return PyLong_FromLongLong(atomic.before);
}

/* ------------------------------------------------------------------------------------------------------------ */

/* Carry out flush or close, which have one argument. */
static PyObject *remote_method(py_remote *self, const char *name, bool close, PY_ARGS)
{
    int64_t timeout_ns = -1;
    if (!py_only_timeout(name, args, nargs, kwnames, &timeout_ns))
        return NULL;
    if (close ? !remote_shut(self, timeout_ns) : !py_usable(name, &self->gate) || !remote_call(self, name, false, timeout_ns))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *remote_flush(py_remote *self, PY_ARGS)
{
    return remote_method(self, "flush", false, args, nargs, kwnames);
}

static PyObject *remote_close(py_remote *self, PY_ARGS)
{
    return remote_method(self, "close", true, args, nargs, kwnames);
}

static PyObject *remote_exit(py_remote *self, PY_ARGS)
{
    (void)kwnames;
    return py_exit(remote_close(self, NULL, 0, NULL), args, nargs);
}

static PyMethodDef remote_methods[] = {
    PY_METHOD("put", remote_put_wait, "put(buffer, offset=0, timeout=None): write; the data is visible at the peer after flush()"),
    PY_METHOD("get", remote_get_wait, "get(buffer, offset=0, timeout=None): read"),
    PY_METHOD("iput", remote_put_start, "iput(buffer, offset=0): start a put; returns a Request"),
    PY_METHOD("iget", remote_get_start, "iget(buffer, offset=0): start a get; returns a Request"),
    PY_METHOD("put_signal", remote_put_signal, "put_signal(buffer, signal_offset, offset=0, value=1, op=SIGNAL_ADD, signal=None): put, then update a signal, here or in another Remote"),
    PY_METHOD("add", remote_add, "add(value, offset=0, timeout=None): add to an int64 at the peer; done after flush()"),
    PY_METHOD("fetch_add", remote_fetch_add, "fetch_add(value, offset=0, timeout=None): add to an int64; returns the value before"),
    PY_METHOD("swap", remote_swap, "swap(value, offset=0, timeout=None): store an int64; returns the value before"),
    PY_METHOD("compare_swap", remote_compare_swap, "compare_swap(expected, desired, offset=0, timeout=None): store desired if expected is there; returns the value before"),
    PY_METHOD("flush", remote_flush, "flush(timeout=None): make all puts visible at the peer"),
    PY_METHOD("close", remote_close, "close(timeout=None): flush and close the key"),
    PY_PLAIN("__enter__", py_self, NULL),
    PY_METHOD("__exit__", remote_exit, NULL),
    {NULL, NULL, 0, NULL},
};

static PyType_Slot remote_slots[] = {
    {Py_tp_dealloc, (void *)remote_dealloc},
    {Py_tp_methods, remote_methods},
    {Py_tp_doc, "Memory of a peer, by its key, or its part of symmetric memory."},
    {0, NULL},
};

static PyType_Spec remote_spec = {"rank.Remote", sizeof(py_remote), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, remote_slots};

bool py_remote_init(PyObject *module)
{
    remote_type = py_type(module, &remote_spec, NULL, "Remote");
    return remote_type != NULL;
}

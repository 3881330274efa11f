/* SPDX-License-Identifier: BSD-3-Clause */
/* py_context.c: open contexts, listen and connect; class Context. */
#include "py_rank.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RETRY_PAUSE_NS = 50 * 1000000 };

static PyTypeObject *context_type;

/* Make a Context. Returns NULL with an exception set. */
py_context *py_context_new(rank_ctx_t ctx, bool world)
{
    py_context *self = PyObject_New(py_context, context_type);
    if (!self)
        return NULL;
    self->ctx = ctx;
    self->gate = (struct py_gate){.status = RANK_ERR_CLOSED, .reason = "the context is closed"};
    self->world = world;
    self->closing = self->closed = false;
    self->orphans = NULL;
    self->conns = NULL;
    atomic_init(&self->calls, 0);
    atomic_init(&self->connects, 0);
    atomic_init(&self->ending, false);
    self->pid = getpid();
    self->loop = NULL;
    self->lists = 0;
    self->exports = 0;
    return self;
}

static PyObject *context_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"name", "progress_thread", "net_devices", NULL};
    rank_ctx_opts_t opts = RANK_CTX_OPTS_INIT;
    rank_ctx_t ctx;
    rank_status_t status;
    int thread = 0;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|z$pz:Context", names, &opts.name, &thread, &opts.net_devices))
        return NULL;
    opts.progress_thread = thread;
    opts.quiet = 1; /* an exception has the reason */
    Py_BEGIN_ALLOW_THREADS
    status = rank_ctx_open(&opts, &ctx);
    Py_END_ALLOW_THREADS
    if (status != RANK_OK)
        return py_raise("Context", status);
    py_context *self = py_context_new(ctx, false);
    if (!self)
        rank_ctx_close(&ctx, 0);
    return (PyObject *)self;
}

/* Close it once. Buffers of abandoned operations are free then. */
rank_status_t py_context_shut(py_context *self, int64_t timeout_ns)
{
    rank_status_t status = RANK_OK;
    rank_status_t unconfirmed = RANK_OK;
    int64_t end_ns = timeout_ns < 0 ? -1 : py_clock_ns() + timeout_ns, left = timeout_ns;
    if (self->gate.shut)
        return status;
    if (!py_drain_for(&self->gate, &self->calls, DRAIN_NS) && self->pid == getpid()) { /* calls that wait for peers */
        unconfirmed = py_team_disconnect_all(self, end_ns);
        py_drain_for(&self->gate, &self->calls, -1);
        if (timeout_ns >= 0 && (left = end_ns - py_clock_ns()) < 0)
            left = 0;
    }
    atomic_store(&self->ending, true);
    py_drain_for(&self->gate, &self->connects, self->world ? -1 : DRAIN_NS); /* one that has only begun must be in the library */
    self->closing = true;
    Py_BEGIN_ALLOW_THREADS
    status = self->world ? rank_finalize() : rank_ctx_close(&self->ctx, left);
    Py_END_ALLOW_THREADS
    if (status == RANK_OK)
        status = unconfirmed;
    self->closed = true;
    py_drain_for(&self->gate, &self->connects, DRAIN_NS);
    py_reap(self);
    Py_CLEAR(self->loop);
    return status;
}

static void context_dealloc(py_context *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    if (!self->world)
        py_context_shut(self, 0);
    if (atomic_load(&self->connects) > 0) /* a thread that waits for a name server uses it, and ends later: it stays */
        return;
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

static PyObject *context_close(py_context *self, PY_ARGS)
{
    int64_t timeout_ns = NS_PER_S;
    if (!py_only_timeout("close", args, nargs, kwnames, &timeout_ns))
        return NULL;
    if (self->world)
        return py_raise_text(RANK_ERR_STATE, "close: the context of init() ends with finalize()");
    return py_none_or_raise("close", py_context_shut(self, timeout_ns));
}

/* Set bytes of the options, which hold keeps. Returns false with an exception set. */
static bool option_bytes(const char *call, PyObject *object, struct py_hold *hold, const void **bytes, size_t *len)
{
    if (!object || object == Py_None)
        return true;
    Py_buffer *view = py_hold_add(hold, call, object, false);
    if (!view)
        return false;
    *bytes = view->buf;
    *len = (size_t)view->len;
    return true;
}

/* Set a duration of the options. None is the default, too. Returns false with an exception set. */
static bool option_time(PyObject *object, int64_t *time_ns)
{
    return py_timeout(object == Py_None ? NULL : object, time_ns);
}

/* Arguments that listen and connect have in common, in this order, and then those of one of them. */
enum { IN_ADDRESS, IN_SECRET, IN_HELLO, IN_TIMEOUT, IN_SILENCE, IN_SHM, IN_CONNS, IN_OPEN, IN_BACKLOG, IN_MAX, IN_RETRY = IN_CONNS };

/* Set flag in the options if the argument is not as by default. Returns false with an exception set. */
static bool option_flag(PyObject *object, bool by_default, uint32_t flag, uint32_t *flags)
{
    int truth = object ? PyObject_IsTrue(object) : by_default;
    if (truth >= 0 && truth != by_default)
        *flags |= flag;
    return truth >= 0;
}

/* Set a number of 32 bits, as near as it can be: the library refuses what is too large or negative. */
static bool option_number(PyObject *object, int32_t *number)
{
    int64_t value = *number;
    if (!py_integer(object, &value))
        return false;
    *number = value > INT32_MAX ? INT32_MAX : value < 0 ? -1 : (int32_t)value;
    return true;
}

/* Parse the arguments of listen or connect. Returns the address in UTF-8, or NULL with an exception set. */
static PyObject *address_arguments(py_context *self, const char *call, PyObject **in, rank_conn_opts_t *opts,
                                   struct py_hold *hold)
{
    if (!PyUnicode_Check(in[IN_ADDRESS])) {
        PyErr_Format(PyExc_TypeError, "%s: address must be a string as \"host:port\"", call);
        return NULL;
    }
    if (!option_bytes(call, in[IN_SECRET], hold, &opts->secret, &opts->secret_bytes) ||
        !option_bytes(call, in[IN_HELLO], hold, &opts->hello, &opts->hello_bytes) ||
        !option_time(in[IN_TIMEOUT], &opts->timeout_ns) || !option_time(in[IN_SILENCE], &opts->silence_ns) ||
        !option_flag(in[IN_SHM], true, RANK_CONN_NO_SHM, &opts->flags) ||
        !py_usable(call, &self->gate)) /* after the code of buffers, which may close it */
        return NULL;
    return PyUnicode_AsUTF8String(in[IN_ADDRESS]);
}

static PyObject *context_listen(py_context *self, PY_ARGS)
{
    static const char *const names[] = {"address", "secret", "hello", "timeout", "silence", "shm", "max_conns", "open", "backlog", NULL};
    PyObject *in[IN_MAX], *result = NULL;
    rank_conn_opts_t opts = RANK_CONN_OPTS_INIT;
    rank_listener_t listener;
    rank_status_t status;
    if (!py_arguments("listen", names, 1, args, nargs, kwnames, in) || !option_number(in[IN_CONNS], &opts.max_conns) ||
        !option_number(in[IN_BACKLOG], &opts.backlog) || !option_flag(in[IN_OPEN], false, RANK_CONN_OPEN, &opts.flags))
        return NULL;
    struct py_hold *hold = py_hold_new(2);
    if (!hold)
        return NULL;
    PyObject *address = address_arguments(self, "listen", in, &opts, hold);
    if (address) {
        py_enter(&self->gate);
        Py_BEGIN_ALLOW_THREADS
        status = rank_listen(self->ctx, PyBytes_AsString(address), &opts, &listener);
        Py_END_ALLOW_THREADS
        py_leave(&self->gate);
        result = status == RANK_OK ? py_listener_new(self, listener) : py_raise("listen", status);
        Py_DECREF(address);
    }
    py_hold_free(hold);
    return result;
}

struct connect_call {
    struct py_call call;
    rank_ctx_t ctx;
    const _Atomic bool *ending; /* of the context */
    rank_conn_opts_t opts;
    int64_t retry_until; /* by py_clock_ns */
    rank_team_t conn;
    char text[]; /* address, secret, hello */
};

/* Does the call try again to reach a listener that is not there yet? It pauses before it does. */
static bool connect_again(struct connect_call *self, rank_status_t status)
{
    const struct timespec pause = {0, RETRY_PAUSE_NS};
    if (status != RANK_ERR_UNREACHABLE || py_clock_ns() >= self->retry_until || py_call_left(&self->call))
        return false;
    nanosleep(&pause, NULL);
    return !py_call_left(&self->call);
}

static rank_status_t connect_run(struct py_call *call)
{
    struct connect_call *self = (struct connect_call *)call;
    rank_status_t status;
    do {
        status = atomic_load(self->ending) ? RANK_ERR_CLOSED : rank_connect(self->ctx, self->text, &self->opts, &self->conn);
    } while (connect_again(self, status));
    if (self->opts.secret_bytes)
        explicit_bzero((void *)(uintptr_t)self->opts.secret, self->opts.secret_bytes);
    return status;
}

static void connect_undo(struct py_call *call)
{
    struct connect_call *self = (struct connect_call *)call;
    if (!atomic_load(self->ending)) /* else the context disconnects it */
        rank_disconnect(&self->conn, 0);
}

/* Copy what the call uses. Returns NULL with an exception set. */
static struct connect_call *connect_call_new(py_context *self, const char *address, rank_conn_opts_t opts)
{
    size_t len = strlen(address) + 1;
    struct connect_call *call = py_call_new(sizeof(*call) + len + opts.secret_bytes + opts.hello_bytes, self, connect_run, connect_undo);
    if (!call)
        return NULL;
    call->ctx = self->ctx;
    call->ending = &self->ending;
    call->call.running = &self->connects; /* the close of the context ends it */
    memcpy(call->text, address, len);
    if (opts.secret_bytes)
        opts.secret = memcpy(call->text + len, opts.secret, opts.secret_bytes);
    if (opts.hello_bytes)
        opts.hello = memcpy(call->text + len + opts.secret_bytes, opts.hello, opts.hello_bytes);
    call->opts = opts;
    return call;
}

/* It ends within the timeout of the handshake, after the time of retry. */
static PyObject *context_connect(py_context *self, PY_ARGS)
{
    static const char *const names[] = {"address", "secret", "hello", "timeout", "silence", "shm", "retry", NULL};
    PyObject *in[IN_MAX], *result = NULL;
    rank_conn_opts_t opts = RANK_CONN_OPTS_INIT;
    int64_t retry_ns = 0;
    if (!py_arguments("connect", names, 1, args, nargs, kwnames, in) || !option_time(in[IN_RETRY], &retry_ns))
        return NULL;
    struct py_hold *hold = py_hold_new(2);
    if (!hold)
        return NULL;
    PyObject *address = address_arguments(self, "connect", in, &opts, hold);
    struct connect_call *call = address ? connect_call_new(self, PyBytes_AsString(address), opts) : NULL;
    if (call)
        call->retry_until = retry_ns < 0 ? INT64_MAX : py_clock_ns() + retry_ns;
    py_hold_free(hold);
    Py_XDECREF(address);
    if (call && py_call_wait("connect", &self->gate, call, -1, NULL)) {
        result = py_team_new(self, call->conn, true);
        py_call_free(call);
    }
    return result;
}

/* Parse what peers may do. The library checks the bits. Returns false with an exception set. */
static bool access_argument(PyObject *object, unsigned *access)
{
    int64_t bits = RANK_ACCESS_READ | RANK_ACCESS_WRITE;
    if (!py_integer(object, &bits))
        return false;
    *access = bits < 0 || bits > UINT32_MAX ? UINT32_MAX : (unsigned)bits;
    return true;
}

static PyObject *context_register(py_context *self, PY_ARGS)
{
    static const char *const names[] = {"buffer", "access", NULL};
    PyObject *in[2];
    unsigned access;
    if (!py_arguments("register", names, 1, args, nargs, kwnames, in) || !access_argument(in[1], &access) ||
        !py_usable("register", &self->gate))
        return NULL;
    return py_memory_register(self, in[0], access);
}

static PyObject *context_alloc_memory(py_context *self, PY_ARGS)
{
    static const char *const names[] = {"bytes", "access", NULL};
    PyObject *in[2];
    int64_t bytes = 0;
    unsigned access;
    if (!py_arguments("alloc", names, 1, args, nargs, kwnames, in) || !py_integer(in[0], &bytes) ||
        !access_argument(in[1], &access) || !py_usable("alloc", &self->gate))
        return NULL;
    return py_memory_alloc(self, bytes, access);
}

static PyObject *context_keys(py_context *self, PY_ARGS)
{
    static const char *const names[] = {"memories", NULL};
    PyObject *in[1];
    if (!py_arguments("keys", names, 1, args, nargs, kwnames, in) || !py_usable("keys", &self->gate))
        return NULL;
    return py_memory_keys(in[0]);
}

static PyObject *context_progress(py_context *self, PyObject *unused)
{
    (void)unused;
    return py_usable("progress", &self->gate) ? py_none_or_raise("progress", rank_ctx_progress(self->ctx)) : NULL;
}

static PyObject *context_fileno(py_context *self, PyObject *unused)
{
    int fd;
    (void)unused;
    if (!py_usable("fileno", &self->gate))
        return NULL;
    rank_status_t status = rank_ctx_progress_fd(self->ctx, &fd);
    return status == RANK_OK ? PyLong_FromLong(fd) : py_raise("fileno", status);
}

static PyObject *context_arm(py_context *self, PyObject *unused)
{
    (void)unused;
    if (!py_usable("arm", &self->gate))
        return NULL;
    rank_status_t status = rank_ctx_progress_arm(self->ctx);
    if (status != RANK_OK && status != RANK_ERR_AGAIN)
        return py_raise("arm", status);
    return PyBool_FromLong(status == RANK_OK);
}

static PyObject *context_exit(py_context *self, PY_ARGS)
{
    (void)kwnames;
    return py_exit(context_close(self, NULL, 0, NULL), args, nargs);
}

static PyObject *context_loop(py_context *self, void *unused)
{
    (void)unused;
    return Py_NewRef(self->loop ? self->loop : Py_None);
}

static int context_set_loop(py_context *self, PyObject *value, void *unused)
{
    (void)unused;
    PyObject *before = self->loop;
    self->loop = value && value != Py_None ? Py_NewRef(value) : NULL;
    Py_XDECREF(before);
    return 0;
}

static PyMethodDef context_methods[] = {
    PY_METHOD("listen", context_listen, "listen(address, secret=None, hello=None, timeout=5, silence=10, shm=True, max_conns=1024, open=False, backlog=None)"),
    PY_METHOD("connect", context_connect, "connect(address, secret=None, hello=None, timeout=5, silence=10, shm=True, retry=0)"),
    PY_METHOD("register", context_register, "register(buffer, access=ACCESS_READ | ACCESS_WRITE): let peers access a buffer; returns a Memory"),
    PY_METHOD("alloc", context_alloc_memory, "alloc(bytes, access=ACCESS_READ | ACCESS_WRITE): make shared memory; returns a Memory"),
    PY_METHOD("keys", context_keys, "keys(memories): returns the keys of many Memory as bytes, for Connection.open_keys() of a peer"),
    PY_PLAIN("progress", context_progress, "progress(): make progress, without waiting"),
    PY_PLAIN("fileno", context_fileno, "fileno(): a descriptor for an event loop"),
    PY_PLAIN("arm", context_arm, "arm(): arm the descriptor; False: there is work, call progress() first"),
    PY_METHOD("close", context_close, "close(timeout=1): close all that was opened in it"),
    PY_PLAIN("__enter__", py_self, NULL),
    PY_METHOD("__exit__", context_exit, NULL),
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef context_fields[] = {
    {"_loop", (getter)context_loop, (setter)context_set_loop, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef context_members[] = {
    {"closed", T_BOOL, offsetof(py_context, gate.shut), READONLY, "True after close()"},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot context_slots[] = {
    {Py_tp_new, (void *)context_new},
    {Py_tp_dealloc, (void *)context_dealloc},
    {Py_tp_methods, context_methods},
    {Py_tp_getset, context_fields},
    {Py_tp_members, context_members},
    {Py_tp_doc, "Context(name=None, *, progress_thread=False, net_devices=None): use the library without a launcher."},
    {0, NULL},
};

static PyType_Spec context_spec = {"rank.Context", sizeof(py_context), 0, Py_TPFLAGS_DEFAULT, context_slots};

bool py_context_init(PyObject *module)
{
    context_type = py_type(module, &context_spec, NULL, "Context");
    return context_type != NULL;
}

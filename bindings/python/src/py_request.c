/* SPDX-License-Identifier: BSD-3-Clause */
/* py_request.c: start, complete and abandon operations; class Request. */
#include "py_rank.h"

typedef struct py_request {
    PyObject_HEAD
    py_context *owner;
    PyObject *base; /* a Team, Remote or Message; it stays until the end */
    struct py_hold *hold;
    rank_request_t req;
    rank_envelope_t envelope;
    rank_status_t status;
    const char *call;
    bool receives, persistent, done, busy;
    bool unsent; /* a start may leave messages that the library holds back */
    bool early;  /* a persistent operation was complete at its start, and no call has completed it */
} py_request;

static PyTypeObject *request_type, *envelope_type;

/* ------------------------------------------------------------------------------------------------ operations */

/*
 * Free the buffers of abandoned operations that have ended. They leave the list first: their release may run code of
 * Python, or release the GIL, and so change the list.
 */
void py_reap(py_context *owner)
{
    struct py_hold *ended = NULL;
    for (struct py_hold **at = &owner->orphans; *at;) {
        struct py_hold *hold = *at;
        int done = owner->closed;
        if (!done && !hold->until_close)
            rank_test(&hold->req, &done, NULL);
        if (done) {
            if (hold->req && !owner->closed)
                rank_request_free(&hold->req); /* it is persistent */
            *at = hold->next;
            hold->next = ended;
            ended = hold;
        } else {
            at = &hold->next;
        }
    }
    while (ended) {
        struct py_hold *hold = ended;
        ended = hold->next;
        py_hold_free(hold);
    }
}

/* Let the event loop arm the descriptor again, which each call of the library may have disarmed. */
void py_touch(py_context *owner)
{
    if (!owner->loop)
        return;
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    PyObject *result = PyObject_CallMethod(owner->loop, "touch", NULL);
    if (!result)
        PyErr_Clear();
    Py_XDECREF(result);
    PyErr_Restore(kind, value, trace);
}

/* Send what the library holds back to send it with later messages: this thread may not call again soon. */
static void op_flush(py_context *owner)
{
    if (!owner->closing)
        rank_ctx_progress(owner->ctx);
    py_touch(owner);
}

/* Lists that are complete at once, of which the last one makes progress for the other operations. */
enum { LISTS_A_PROGRESS = 16 };

/* End a call. unsent: the library may hold messages back. */
static void op_settle(py_context *owner, bool unsent)
{
    if (unsent || ++owner->lists % LISTS_A_PROGRESS == 0)
        op_flush(owner);
    else
        py_touch(owner);
}

/* Make an operation with a place for buffers. Returns false with an exception set. */
bool py_op_begin(struct py_op *op, const char *call, py_part *base)
{
    *op = (struct py_op){.call = call, .base = base, .req = RANK_REQUEST_NULL};
    if (!py_usable(call, &base->gate))
        return false;
    if (base->owner->orphans)
        py_reap(base->owner);
    op->unsent = true;
    op->hold = py_hold_new(2);
    return op->hold != NULL;
}

/* Replace the place for buffers by one for more of them. Returns false with an exception set. */
bool py_op_room(struct py_op *op, Py_ssize_t room)
{
    if (room <= op->hold->room)
        return true;
    struct py_hold *hold = py_hold_new(room);
    if (!hold)
        return false;
    py_hold_free(op->hold);
    op->hold = hold;
    return true;
}

/* Add a buffer. Its exporter may run Python code that closes the object. Returns NULL with an exception set. */
Py_buffer *py_op_add(struct py_op *op, PyObject *object, bool writable)
{
    Py_buffer *view = py_hold_add(op->hold, op->call, object, writable);
    return view && py_usable(op->call, &op->base->gate) ? view : NULL;
}

/* Drop an operation that has not been started. Returns NULL, with the exception that is set. */
PyObject *py_op_drop(struct py_op *op)
{
    py_hold_free(op->hold);
    op->hold = NULL;
    return NULL;
}

/* Keep buffers until the operation of hold ends, or the context is closed. */
void py_orphan(py_context *owner, struct py_hold *hold)
{
    hold->next = owner->orphans;
    owner->orphans = hold;
}

/* Cancel an operation, and keep its buffers until it ends. Returns its status if it has ended, else RANK_ERR_TIMED_OUT. */
static rank_status_t op_abandon(py_context *owner, struct py_hold *hold, rank_request_t req, rank_envelope_t *envelope)
{
    rank_status_t status = RANK_ERR_CLOSED;
    int done = 1;
    if (!owner->closing) {
        rank_cancel(&req); /* a collective goes on */
        status = rank_test(&req, &done, envelope);
        if (done && req)
            rank_request_free(&req); /* it is persistent */
    }
    if (owner->closing ? owner->closed : done || !req) {
        py_hold_free(hold);
        return status;
    }
    hold->req = req;
    py_orphan(owner, hold);
    return RANK_ERR_TIMED_OUT;
}

struct op_wait {
    rank_request_t *req;
    rank_envelope_t *envelope;
};

static rank_status_t op_step(void *arg, int64_t timeout_ns)
{
    struct op_wait *wait = arg;
    return rank_wait_timed(wait->req, timeout_ns, wait->envelope);
}

static PyObject *op_result(bool receives, const rank_envelope_t *envelope)
{
    if (receives)
        return py_envelope(envelope);
    Py_RETURN_NONE;
}

/*
 * Wait for an operation that has been started, and free op. An operation that a timeout or a signal ends is canceled.
 * One that has already begun goes on, and its buffers stay until it ends.
 */
PyObject *py_op_wait(struct py_op *op, int64_t timeout_ns)
{
    py_context *owner = op->base->owner;
    rank_envelope_t envelope;
    struct op_wait wait = {&op->req, &envelope};
    rank_status_t status = op->status;
    if (status != RANK_OK) {
        py_op_drop(op);
        return py_raise(op->call, status);
    }
    const bool folds = op->hold && op->hold->fold_to;
    bool waited = py_wait(&owner->gate, timeout_ns, op_step, &wait, &status);
    bool folded = !waited || op->req || status != RANK_OK || py_fold_run(op->call, op->hold);
    if (waited && !op->req) {
        py_op_drop(op);
    } else {
        rank_status_t end = op_abandon(owner, op->hold, op->req, &envelope);
        if (!waited)
            return NULL;
        if (status == RANK_ERR_TIMED_OUT && end != RANK_ERR_CANCELED && !(folds && end == RANK_OK)) /* nothing was folded */
            status = end;
    }
    op_settle(owner, op->unsent || status != RANK_OK);
    if (!folded)
        return NULL;
    return status == RANK_OK ? op_result(op->receives, &envelope) : py_raise(op->call, status);
}

static void request_end(py_request *self, rank_status_t status)
{
    self->status = status;
    self->done = true;
    if (self->persistent)
        return;
    py_hold_free(self->hold);
    self->hold = NULL;
}

/* Complete an operation that has ended at its start. Else send what the library holds back. */
static void request_begun(py_request *self)
{
    int done = 0;
    if (self->unsent || self->owner->closing) {
        op_flush(self->owner);
        return;
    }
    rank_status_t status = rank_test(&self->req, &done, &self->envelope);
    self->early = done && self->persistent;
    if (self->early)
        self->status = status;
    else if (done)
        request_end(self, status);
    op_settle(self->owner, false);
}

/* Make a Request of an operation that has been started. Takes its buffers. */
static PyObject *op_request(struct py_op *op)
{
    py_context *owner = op->base->owner;
    if (op->status != RANK_OK) {
        py_op_drop(op);
        return py_raise(op->call, op->status);
    }
    py_request *self = PyObject_New(py_request, request_type);
    if (!self) {
        op_abandon(owner, op->hold, op->req, NULL);
        return NULL;
    }
    self->owner = (py_context *)Py_NewRef((PyObject *)owner);
    self->base = Py_NewRef((PyObject *)op->base);
    self->hold = op->hold;
    self->req = op->req;
    self->call = op->call;
    self->receives = op->receives;
    self->status = RANK_OK;
    self->done = self->persistent = op->persistent;
    self->unsent = op->unsent;
    self->busy = self->early = false;
    if (!self->persistent)
        request_begun(self);
    return (PyObject *)self;
}

/* Carry out a method of a kind of operation, which waits for it or returns a Request. */
PyObject *py_op_call(const struct py_op_kind *kind, PyObject *self, bool waits, PY_ARGS)
{
    const char *names[PY_NAMES_MAX + 2];
    PyObject *in[PY_NAMES_MAX + 1];
    struct py_op op;
    int64_t timeout_ns = -1;
    int n = 0;
    const char *call = waits ? kind->call : kind->icall;
    for (; kind->names[n]; n++)
        names[n] = kind->names[n];
    names[n] = waits ? "timeout" : NULL;
    names[n + 1] = NULL;
    in[n] = NULL;
    if (!py_arguments(call, names, kind->required, args, nargs, kwnames, in) || !py_timeout(in[n], &timeout_ns) ||
        !py_op_begin(&op, call, (py_part *)self))
        return NULL;
    op.kind = kind;
    op.persistent = kind->persistent;
    if (!kind->start(&op, in))
        return py_op_drop(&op);
    return waits ? py_op_wait(&op, timeout_ns) : op_request(&op);
}

/* --------------------------------------------------------------------------------------------- class Request */

static void request_dealloc(py_request *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    if (!self->done || self->persistent)
        op_abandon(self->owner, self->hold, self->req, NULL);
    Py_DECREF((PyObject *)self->owner);
    Py_DECREF(self->base);
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

/* A persistent request stays after its end. py_wait returns RANK_ERR_CLOSED while this process closes the context. */
static bool persistent_ended(const py_request *self, rank_status_t status)
{
    return status != RANK_ERR_TIMED_OUT && !(status == RANK_ERR_CLOSED && self->owner->gate.shut);
}

/* Wait for it. Returns -1 with an exception set, 1 if it is complete, else 0. */
static int request_wait(py_request *self, int64_t timeout_ns)
{
    rank_status_t status;
    if (self->early)
        self->done = true;
    self->early = false;
    if (self->done)
        return 1;
    if (self->busy) {
        py_raise_text(RANK_ERR_STATE, "%s: another thread waits for this request", self->call);
        return -1;
    }
    if (!py_usable(self->call, &self->owner->gate))
        return -1;
    struct op_wait wait = {&self->req, &self->envelope};
    self->busy = true;
    bool waited = py_wait(&self->owner->gate, timeout_ns, op_step, &wait, &status);
    bool ended = waited && (self->persistent ? persistent_ended(self, status) : !self->req);
    bool folded = !ended || status != RANK_OK || py_fold_run(self->call, self->hold);
    self->busy = false;
    if (!waited)
        return -1;
    if (ended) {
        request_end(self, folded ? status : RANK_ERR_OP);
        return folded ? 1 : -1;
    }
    if (status == RANK_ERR_TIMED_OUT) {
        py_touch(self->owner);
        return 0;
    }
    py_raise(self->call, status);
    return -1;
}

static PyObject *request_result(py_request *self)
{
    return self->status == RANK_OK ? op_result(self->receives, &self->envelope) : py_raise(self->call, self->status);
}

static PyObject *request_wait_method(py_request *self, PY_ARGS)
{
    int64_t timeout_ns = -1;
    if (!py_only_timeout("wait", args, nargs, kwnames, &timeout_ns))
        return NULL;
    int done = request_wait(self, timeout_ns);
    if (done < 0)
        return NULL;
    return done ? request_result(self) : py_raise(self->call, RANK_ERR_TIMED_OUT);
}

static PyObject *request_test(py_request *self, PyObject *unused)
{
    (void)unused;
    int done = request_wait(self, 0);
    return done < 0 ? NULL : PyBool_FromLong(done);
}

static PyObject *request_cancel(py_request *self, PyObject *unused)
{
    (void)unused;
    if (self->done || self->early)
        Py_RETURN_NONE;
    if (self->busy)
        return py_raise_text(RANK_ERR_STATE, "cancel: another thread waits for this request");
    if (!py_usable("cancel", &self->owner->gate))
        return NULL;
    return py_none_or_raise("cancel", rank_cancel(&self->req));
}

/* Start a persistent operation. Returns the request, so that it can be awaited. */
static PyObject *request_start(py_request *self, PyObject *unused)
{
    (void)unused;
    if (!self->persistent)
        return py_raise_text(RANK_ERR_STATE, "start: only a request of prepare_write() or prepare_read() can be started");
    if (!py_usable(self->call, &((py_part *)self->base)->gate))
        return NULL;
    if (!self->done)
        return py_raise_text(RANK_ERR_STATE, "start: %s has been started, and no wait() or test() has completed it", self->call);
    rank_status_t status = rank_start(&self->req);
    if (status != RANK_OK)
        return py_raise("start", status);
    self->done = false;
    request_begun(self);
    return Py_NewRef((PyObject *)self);
}

/* `await request`: by the descriptor of the context. */
static PyObject *request_await(PyObject *self)
{
    PyObject *module = PyImport_ImportModule("rank._aio");
    PyObject *coroutine = module ? PyObject_CallMethod(module, "wait", "O", self) : NULL;
    PyObject *iterator = coroutine ? PyObject_CallMethod(coroutine, "__await__", NULL) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(coroutine);
    return iterator;
}

static PyMethodDef request_methods[] = {
    PY_METHOD("wait", request_wait_method, "wait(timeout=None): wait for the end; returns an Envelope of a receive, else None"),
    PY_PLAIN("test", request_test, "test(): make progress; returns True if it is complete"),
    PY_PLAIN("start", request_start, "start(): start an operation of prepare_write() or prepare_read(); returns the request"),
    PY_PLAIN("cancel", request_cancel, "cancel(): cancel an operation that has not begun"),
    {NULL, NULL, 0, NULL},
};

static PyMemberDef request_members[] = {
    {"done", T_BOOL, offsetof(py_request, done), READONLY, "True if a call has completed it"},
    {"context", T_OBJECT_EX, offsetof(py_request, owner), READONLY, "its Context"},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot request_slots[] = {
    {Py_tp_dealloc, (void *)request_dealloc},
    {Py_tp_methods, request_methods},
    {Py_tp_members, request_members},
    {Py_am_await, (void *)request_await},
    {Py_tp_doc, "An operation that has been started."},
    {0, NULL},
};

static PyType_Spec request_spec = {"rank.Request", sizeof(py_request), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, request_slots};

/* -------------------------------------------------------------------------------------------- class Envelope */

static PyStructSequence_Field envelope_fields[] = {
    {"source", "rank of the sender in the team"},
    {"tag", "tag of the message"},
    {"bytes", "bytes received; of a probe: bytes waiting"},
    {"sent_bytes", "bytes that the sender sent"},
    {NULL, NULL},
};

static PyStructSequence_Desc envelope_desc = {"rank.Envelope", "The result of a receive or a probe.", envelope_fields, 4};

PyObject *py_envelope(const rank_envelope_t *envelope)
{
    PyObject *self = PyStructSequence_New(envelope_type);
    if (!self)
        return NULL;
    PyStructSequence_SetItem(self, 0, PyLong_FromLong(envelope->source));
    PyStructSequence_SetItem(self, 1, PyLong_FromLongLong(envelope->tag));
    PyStructSequence_SetItem(self, 2, PyLong_FromLongLong(envelope->bytes));
    PyStructSequence_SetItem(self, 3, PyLong_FromLongLong(envelope->sent_bytes));
    if (PyErr_Occurred())
        Py_CLEAR(self);
    return self;
}

bool py_request_init(PyObject *module)
{
    request_type = py_type(module, &request_spec, NULL, "Request");
    envelope_type = PyStructSequence_NewType(&envelope_desc);
    return request_type && envelope_type && PyModule_AddObjectRef(module, "Envelope", (PyObject *)envelope_type) == 0;
}

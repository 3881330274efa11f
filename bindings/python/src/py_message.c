/* SPDX-License-Identifier: BSD-3-Clause */
/* py_message.c: send, receive and probe messages; class Message. */
#include "py_rank.h"

/* A message that a probe has claimed. */
typedef struct py_message {
    PY_PART
    py_team *team;
    rank_message_t message; /* RANK_MESSAGE_NULL: received */
    rank_envelope_t envelope;
} py_message;

static PyTypeObject *message_type;

/* ------------------------------------------------------------------------------------------ send and receive */

typedef rank_status_t send_fn(const void *, int64_t, rank_dtype_t, int, int64_t, rank_team_t, rank_request_t *);

static bool send_by(send_fn *call, struct py_op *op, PyObject *buffer, PyObject *peer_in, PyObject *tag_in)
{
    py_team *self = (py_team *)op->base;
    int peer;
    int64_t tag;
    if (!py_team_address(op->call, self, peer_in, tag_in, false, &peer, &tag))
        return false;
    Py_buffer *view = py_op_add(op, buffer, false);
    if (view)
        op->status = call(view->buf, view->len, RANK_BYTE, peer, tag, self->team, &op->req);
    return view != NULL;
}

static bool send_start(struct py_op *op, PyObject **in)
{
    return send_by(rank_isend, op, in[0], in[1], in[2]);
}

static bool ssend_start(struct py_op *op, PyObject **in)
{
    return send_by(rank_issend, op, in[0], in[1], in[2]);
}

static bool receive(struct py_op *op, PyObject *buffer, PyObject *peer_in, PyObject *tag_in)
{
    py_team *self = (py_team *)op->base;
    int peer;
    int64_t tag;
    op->receives = true;
    if (!py_team_address(op->call, self, peer_in, tag_in, true, &peer, &tag))
        return false;
    Py_buffer *view = py_op_add(op, buffer, true);
    if (view)
        op->status = rank_irecv(view->buf, view->len, RANK_BYTE, peer, tag, self->team, &op->req);
    return view != NULL;
}

static bool recv_start(struct py_op *op, PyObject **in)
{
    return receive(op, in[0], in[1], in[2]);
}

const struct py_op_kind py_send = {"send", "isend", send_start, {"buffer", "peer", "tag"}, 1, false, false};
const struct py_op_kind py_ssend = {"ssend", "issend", ssend_start, {"buffer", "peer", "tag"}, 1, false, false};
const struct py_op_kind py_recv = {"recv", "irecv", recv_start, {"buffer", "peer", "tag"}, 1, true, false};

/* Wait for the send of sendrecv, unless a signal has ended the call, and keep the exception of the receive. Returns envelope. */
static PyObject *sendrecv_end(struct py_op *send, PyObject *envelope, int64_t end_ns)
{
    PyObject *kind, *value, *trace;
    bool signal = !envelope && !py_error_is_ours();
    int64_t left = end_ns < 0 ? -1 : end_ns - py_clock_ns();
    PyErr_Fetch(&kind, &value, &trace);
    PyObject *sent = py_op_wait(send, signal || (end_ns >= 0 && left < 0) ? 0 : left);
    if (kind)
        PyErr_Restore(kind, value, trace); /* replaces that of the send */
    else if (!sent)
        Py_CLEAR(envelope);
    Py_XDECREF(sent);
    return envelope;
}

PyObject *py_sendrecv(py_team *self, PY_ARGS)
{
    static const char *const names[] = {"sendbuf", "recvbuf", "dest", "source", "sendtag", "recvtag", "timeout", NULL};
    static const char call[] = "sendrecv";
    PyObject *in[7];
    struct py_op send, recv;
    int64_t timeout_ns = -1, tag;
    int dest;
    if (!py_arguments(call, names, 2, args, nargs, kwnames, in) || !py_timeout(in[6], &timeout_ns) ||
        !py_op_begin(&recv, call, (py_part *)self))
        return NULL;
    if (!py_op_begin(&send, call, (py_part *)self))
        return py_op_drop(&recv);
    int64_t end_ns = timeout_ns < 0 ? -1 : py_clock_ns() + timeout_ns;
    /* All arguments are checked before the receive can match a message. */
    Py_buffer *data = py_team_address(call, self, in[2], in[4], false, &dest, &tag) ? py_op_add(&send, in[0], false) : NULL;
    if (!data || !receive(&recv, in[1], in[3], in[5])) {
        py_op_drop(&send);
        return py_op_drop(&recv);
    }
    if (recv.status != RANK_OK) {
        py_op_drop(&send);
        return py_op_wait(&recv, 0); /* raises */
    }
    send.status = rank_isend(data->buf, data->len, RANK_BYTE, dest, tag, self->team, &send.req);
    if (send.status != RANK_OK) {
        PyObject *kind, *value, *trace;
        py_op_wait(&send, 0); /* raises */
        PyErr_Fetch(&kind, &value, &trace);
        Py_XDECREF(py_op_wait(&recv, 0));
        PyErr_Restore(kind, value, trace);
        return NULL;
    }
    return sendrecv_end(&send, py_op_wait(&recv, timeout_ns), end_ns);
}

/* --------------------------------------------------------------------------------------------------- probes */

/* Return the envelope of a message that is here, or None. It does not wait, and it makes progress. */
PyObject *py_probe(py_team *self, PY_ARGS)
{
    PyObject *in[2];
    rank_envelope_t envelope;
    int peer, found = 0;
    int64_t tag;
    static const char *const names[] = {"peer", "tag", NULL};
    if (!py_arguments("probe", names, 0, args, nargs, kwnames, in) ||
        !py_team_address("probe", self, in[0], in[1], true, &peer, &tag))
        return NULL;
    rank_status_t status = rank_iprobe(peer, tag, self->team, &found, &envelope);
    py_touch(self->owner);
    if (status != RANK_OK)
        return py_raise("probe", status);
    if (found)
        return py_envelope(&envelope);
    Py_RETURN_NONE;
}

struct claim_wait {
    rank_team_t team;
    int peer;
    int64_t tag;
    rank_message_t message;
    rank_envelope_t envelope;
};

static rank_status_t claim_step(void *arg, int64_t timeout_ns)
{
    struct claim_wait *wait = arg;
    return rank_mprobe_timed(wait->peer, wait->tag, wait->team, timeout_ns, &wait->message, &wait->envelope);
}

/* Parse the arguments, and wait for a message. Returns false with an exception set. */
static bool claim(py_team *self, const char *call, int64_t timeout_ns, struct claim_wait *wait, rank_status_t *status, PY_ARGS)
{
    const char *names[] = {"peer", "tag", timeout_ns ? "timeout" : NULL, NULL};
    PyObject *in[3] = {NULL};
    *wait = (struct claim_wait){.team = self->team, .message = RANK_MESSAGE_NULL};
    if (!py_arguments(call, names, 0, args, nargs, kwnames, in) || !py_timeout(in[2], &timeout_ns) ||
        !py_team_address(call, self, in[0], in[1], true, &wait->peer, &wait->tag) ||
        !py_wait(&self->gate, timeout_ns, claim_step, wait, status))
        return false;
    if (*status != RANK_OK)
        py_touch(self->owner);
    return true;
}

/* Receive nothing of a claimed message, so that its sender goes on. Returns NULL, with the exception that is set. */
static PyObject *claim_drop(struct py_op *op, rank_message_t *message)
{
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    op->status = rank_imrecv(NULL, 0, RANK_BYTE, message, &op->req);
    Py_XDECREF(py_op_wait(op, 0));
    PyErr_Clear(); /* it is truncated */
    PyErr_Restore(kind, value, trace);
    return NULL;
}

/* Receive a claimed message into new bytes, which the program gets when they are whole. */
static PyObject *claim_receive(py_part *base, rank_message_t *message, int64_t size, int64_t timeout_ns)
{
    struct py_op op;
    if (!py_op_begin(&op, "recv_bytes", base))
        return NULL;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (!bytes)
        return claim_drop(&op, message);
    Py_buffer *view = py_op_add(&op, bytes, false);
    PyObject *received = NULL;
    if (view) {
        op.status = rank_imrecv(view->buf, view->len, RANK_BYTE, message, &op.req);
        received = py_op_wait(&op, timeout_ns);
    } else {
        py_op_drop(&op);
    }
    if (!received)
        Py_CLEAR(bytes);
    Py_XDECREF(received); /* None */
    return bytes;
}

PyObject *py_recv_bytes(py_team *self, PY_ARGS)
{
    struct claim_wait wait;
    rank_status_t status;
    if (!claim(self, "recv_bytes", -1, &wait, &status, args, nargs, kwnames))
        return NULL;
    return status == RANK_OK ? claim_receive((py_part *)self, &wait.message, wait.envelope.bytes, -1) : py_raise("recv_bytes", status);
}

/* ----------------------------------------------------------------------------------------------- class Message */

static PyObject *message_new(py_team *team, const struct claim_wait *wait)
{
    struct py_gate gate = {.outer = &team->gate, .status = RANK_ERR_HANDLE, .reason = "the message has been received"};
    py_message *self = py_part_new(message_type, team->owner, gate);
    if (!self) { /* out of memory */
        struct py_op op;
        rank_message_t message = wait->message;
        return py_op_begin(&op, "mprobe", (py_part *)team) ? claim_drop(&op, &message) : NULL;
    }
    self->team = (py_team *)Py_NewRef((PyObject *)team);
    self->message = wait->message;
    self->envelope = wait->envelope;
    return (PyObject *)self;
}

PyObject *py_mprobe(py_team *self, PY_ARGS)
{
    struct claim_wait wait;
    rank_status_t status;
    if (!claim(self, "mprobe", -1, &wait, &status, args, nargs, kwnames))
        return NULL;
    return status == RANK_OK ? message_new(self, &wait) : py_raise("mprobe", status);
}

/* As mprobe, without waiting. */
PyObject *py_improbe(py_team *self, PY_ARGS)
{
    struct claim_wait wait;
    rank_status_t status;
    if (!claim(self, "improbe", 0, &wait, &status, args, nargs, kwnames))
        return NULL;
    if (status == RANK_ERR_TIMED_OUT)
        Py_RETURN_NONE;
    return status == RANK_OK ? message_new(self, &wait) : py_raise("improbe", status);
}

static void message_dealloc(py_message *self)
{
    struct py_op op;
    if (!self->gate.shut && !self->team->gate.shut && !self->owner->gate.shut) {
        PyObject *kind, *value, *trace;
        PyErr_Fetch(&kind, &value, &trace);
        if (py_op_begin(&op, "mprobe", (py_part *)self->team))
            claim_drop(&op, &self->message);
        PyErr_Clear();
        PyErr_Restore(kind, value, trace);
    }
    Py_DECREF((PyObject *)self->team);
    py_part_free(self);
}

/* A message is received once: the gate is shut then. */
static bool mrecv_start(struct py_op *op, PyObject **in)
{
    py_message *self = (py_message *)op->base;
    op->receives = true;
    Py_buffer *view = py_op_add(op, in[0], true);
    if (!view)
        return false;
    op->status = rank_imrecv(view->buf, view->len, RANK_BYTE, &self->message, &op->req);
    self->gate.shut = true;
    return true;
}

static const struct py_op_kind message_recv = {"recv", "irecv", mrecv_start, {"buffer"}, 1, true, false};
PY_OP_METHODS(message_recv)

static PyObject *message_recv_bytes(py_message *self, PY_ARGS)
{
    int64_t timeout_ns = -1;
    if (!py_only_timeout("recv_bytes", args, nargs, kwnames, &timeout_ns) ||
        !py_usable("recv_bytes", &self->gate))
        return NULL;
    self->gate.shut = true;
    return claim_receive((py_part *)self->team, &self->message, self->envelope.bytes, timeout_ns);
}

static PyObject *message_envelope(py_message *self, void *unused)
{
    (void)unused;
    return py_envelope(&self->envelope);
}

static PyMethodDef message_methods[] = {
    PY_METHOD("recv", message_recv_wait, "recv(buffer, timeout=None): returns an Envelope"),
    PY_METHOD("irecv", message_recv_start, "irecv(buffer): start the receive; returns a Request"),
    PY_METHOD("recv_bytes", message_recv_bytes, "recv_bytes(timeout=None): returns the data as bytes"),
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef message_fields[] = {
    {"envelope", (getter)message_envelope, NULL, "source, tag and bytes of the message", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot message_slots[] = {
    {Py_tp_dealloc, (void *)message_dealloc},
    {Py_tp_methods, message_methods},
    {Py_tp_getset, message_fields},
    {Py_tp_doc, "A message that a probe has claimed: no other receive gets it."},
    {0, NULL},
};

static PyType_Spec message_spec = {"rank.Message", sizeof(py_message), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, message_slots};

bool py_message_init(PyObject *module)
{
    message_type = py_type(module, &message_spec, NULL, "Message");
    return message_type != NULL;
}

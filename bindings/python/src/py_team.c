/* SPDX-License-Identifier: BSD-3-Clause */
/* py_team.c: messages; classes Team and Connection. */
#include "py_rank.h"

#include <string.h>

static PyTypeObject *team_type, *connection_type;

enum { NS_PER_S = 1000000000 };

/* Takes a connection. */
PyObject *py_team_new(py_context *owner, rank_team_t team, bool connection)
{
    py_team *self = PyObject_New(py_team, connection ? connection_type : team_type);
    if (!self) {
        if (connection)
            rank_disconnect(&team, 0);
        return NULL;
    }
    self->owner = (py_context *)Py_NewRef((PyObject *)owner);
    self->team = team;
    self->gate = (struct py_gate){0, false};
    self->rank = rank_team_rank(team);
    self->size = rank_team_size(team);
    self->connection = connection;
    return (PyObject *)self;
}

bool py_team_usable(const char *call, py_team *self)
{
    if (!py_usable(call, self->owner))
        return false;
    if (!self->gate.shut)
        return true;
    py_raise_text(RANK_ERR_CLOSED, "%s: this side has disconnected", call);
    return false;
}

/* Disconnect once. No-op for the world. */
static rank_status_t team_shut(py_team *self, int64_t timeout_ns)
{
    rank_status_t status = RANK_OK;
    if (!self->connection || self->gate.shut)
        return status;
    py_drain(&self->gate);
    if (self->owner->gate.shut) /* the context disconnects it */
        return status;
    self->owner->gate.users++;
    Py_BEGIN_ALLOW_THREADS
    status = rank_disconnect(&self->team, timeout_ns);
    Py_END_ALLOW_THREADS
    self->owner->gate.users--;
    return status;
}

static void team_dealloc(py_team *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    team_shut(self, 0);
    Py_DECREF((PyObject *)self->owner);
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

static PyObject *team_disconnect(py_team *self, PY_ARGS)
{
    static const char *const names[] = {"timeout", NULL};
    PyObject *in[1];
    int64_t timeout_ns = NS_PER_S;
    if (!py_arguments("disconnect", names, 0, args, nargs, kwnames, in) || !py_timeout(in[0], &timeout_ns))
        return NULL;
    return py_none_or_raise("disconnect", team_shut(self, timeout_ns));
}

/* ------------------------------------------------------------------------------------------------- messages */

/* Arguments of a message, in this order. The last is that of blocking calls only. */
enum { IN_BUFFER, IN_PEER, IN_TAG, IN_TIMEOUT, IN_MAX };
static const char *const message_names[] = {"buffer", "peer", "tag", "timeout", NULL};
static const char *const start_names[] = {"buffer", "peer", "tag", NULL};
static const char *const probe_names[] = {"peer", "tag", "timeout", NULL};

/* Parse peer and tag. The peer of a connection is the other side. */
static bool team_address(const char *call, py_team *self, PyObject *peer_in, PyObject *tag_in, bool receives, int *peer,
                         int64_t *tag)
{
    int64_t number = self->connection ? 1 - self->rank : receives ? RANK_ANY_SOURCE : RANK_UNDEFINED;
    *tag = receives ? RANK_ANY_TAG : 0;
    if (!py_integer(peer_in, &number) || !py_integer(tag_in, tag) || !py_team_usable(call, self))
        return false;
    if (number == RANK_UNDEFINED) {
        PyErr_Format(PyExc_TypeError, "%s() needs argument 'peer', which only a Connection leaves out", call);
        return false;
    }
    *peer = number != (int)number ? RANK_UNDEFINED : (int)number; /* the library refuses that */
    return true;
}

/* Start a send or a receive. Returns false with an exception set. */
static bool message_start(py_team *self, const char *call, bool receives, PyObject **in, struct py_op *op)
{
    int peer;
    int64_t tag;
    if (!team_address(call, self, in[IN_PEER], in[IN_TAG], receives, &peer, &tag) ||
        !py_op_begin(op, call, self->owner, (PyObject *)self))
        return false;
    Py_buffer *view = py_hold_add(op->hold, call, in[IN_BUFFER], receives);
    if (!view)
        return py_op_drop(op) != NULL;
    op->receives = receives;
    if (receives)
        op->status = rank_irecv(view->buf, view->len, RANK_BYTE, peer, tag, self->team, &op->req);
    else
        op->status = rank_isend(view->buf, view->len, RANK_BYTE, peer, tag, self->team, &op->req);
    return true;
}

static PyObject *message_call(py_team *self, const char *call, bool receives, PY_ARGS)
{
    PyObject *in[IN_MAX];
    struct py_op op;
    int64_t timeout_ns = -1;
    if (!py_arguments(call, message_names, 1, args, nargs, kwnames, in) || !py_timeout(in[IN_TIMEOUT], &timeout_ns) ||
        !message_start(self, call, receives, in, &op))
        return NULL;
    return py_op_wait(&op, timeout_ns);
}

static PyObject *message_request(py_team *self, const char *call, bool receives, PY_ARGS)
{
    PyObject *in[IN_MAX];
    struct py_op op;
    if (!py_arguments(call, start_names, 1, args, nargs, kwnames, in) || !message_start(self, call, receives, in, &op))
        return NULL;
    return py_op_request(&op);
}

static PyObject *team_send(py_team *self, PY_ARGS)
{
    return message_call(self, "send", false, args, nargs, kwnames);
}

static PyObject *team_recv(py_team *self, PY_ARGS)
{
    return message_call(self, "recv", true, args, nargs, kwnames);
}

static PyObject *team_isend(py_team *self, PY_ARGS)
{
    return message_request(self, "isend", false, args, nargs, kwnames);
}

static PyObject *team_irecv(py_team *self, PY_ARGS)
{
    return message_request(self, "irecv", true, args, nargs, kwnames);
}

/* --------------------------------------------------------------------------------------------------- probes */

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

/* Return the envelope of a message that is here, or None. It does not wait, and it makes progress. */
static PyObject *team_probe(py_team *self, PY_ARGS)
{
    PyObject *in[3];
    rank_envelope_t envelope;
    int peer, found = 0;
    int64_t tag;
    static const char *const names[] = {"peer", "tag", NULL};
    if (!py_arguments("probe", names, 0, args, nargs, kwnames, in) ||
        !team_address("probe", self, in[0], in[1], true, &peer, &tag))
        return NULL;
    rank_status_t status = rank_iprobe(peer, tag, self->team, &found, &envelope);
    py_touch(self->owner);
    if (status != RANK_OK)
        return py_raise("probe", status);
    if (found)
        return py_envelope(&envelope);
    Py_RETURN_NONE;
}

/* Receive a claimed message into new bytes. */
static PyObject *claim_receive(py_team *self, struct claim_wait *wait)
{
    struct py_op op;
    PyObject *bytes = PyByteArray_FromStringAndSize(NULL, wait->envelope.bytes);
    if (!bytes || !py_op_begin(&op, "recv_bytes", self->owner, (PyObject *)self)) {
        Py_XDECREF(bytes);
        return NULL;
    }
    Py_buffer *view = py_hold_add(op.hold, op.call, bytes, true);
    PyObject *result = NULL;
    if (view) {
        op.status = rank_imrecv(view->buf, view->len, RANK_BYTE, &wait->message, &op.req);
        result = py_op_wait(&op, -1);
    } else {
        py_op_drop(&op);
    }
    Py_XDECREF(result); /* the envelope, or NULL */
    result = result ? PyBytes_FromObject(bytes) : NULL;
    Py_DECREF(bytes);
    return result;
}

static PyObject *team_recv_bytes(py_team *self, PY_ARGS)
{
    PyObject *in[3];
    struct claim_wait wait = {.team = self->team, .message = RANK_MESSAGE_NULL};
    int64_t timeout_ns = -1;
    rank_status_t status;
    if (!py_arguments("recv_bytes", probe_names, 0, args, nargs, kwnames, in) || !py_timeout(in[2], &timeout_ns) ||
        !team_address("recv_bytes", self, in[0], in[1], true, &wait.peer, &wait.tag) ||
        !py_wait(self->owner, &self->gate, timeout_ns, claim_step, &wait, &status))
        return NULL;
    return status == RANK_OK ? claim_receive(self, &wait) : py_raise("recv_bytes", status);
}

/* ----------------------------------------------------------------------------------- keys and descriptions */

static PyObject *team_open(py_team *self, PY_ARGS)
{
    static const char *const names[] = {"key", "peer", NULL};
    PyObject *in[2];
    int peer;
    int64_t tag;
    if (!py_arguments("open", names, 1, args, nargs, kwnames, in) ||
        !team_address("open", self, in[1], NULL, false, &peer, &tag))
        return NULL;
    return py_remote_open(self, peer, in[0]);
}

static PyObject *team_info(py_team *self, PyObject *unused)
{
    rank_conn_info_t info = {.size = sizeof(info)};
    (void)unused;
    if (!py_team_usable("info", self))
        return NULL;
    rank_status_t status = rank_conn_info(self->team, &info);
    if (status != RANK_OK)
        return py_raise("info", status);
    PyObject *name = PyUnicode_DecodeUTF8(info.name, (Py_ssize_t)strlen(info.name), "replace"); /* the peer may send any bytes */
    return Py_BuildValue("{s:s,s:s,s:N,s:s,s:N,s:O,s:L,s:L,s:y#}", "local", info.local, "remote", info.remote, "name",
                         name, "channel", info.channel, "pid",
                         info.pid ? PyLong_FromLong(info.pid) : Py_NewRef(Py_None), "proved",
                         info.proved ? Py_True : Py_False, "sent", (long long)info.sent, "received",
                         (long long)info.received, "hello", (char *)info.hello, (Py_ssize_t)info.hello_bytes);
}

static PyObject *team_rank(py_team *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(self->rank);
}

static PyObject *team_size(py_team *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(self->size);
}

static PyObject *team_context(py_team *self, void *unused)
{
    (void)unused;
    return Py_NewRef((PyObject *)self->owner);
}

static PyObject *team_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

static PyObject *team_exit(py_team *self, PY_ARGS)
{
    (void)args, (void)nargs, (void)kwnames;
    return team_disconnect(self, NULL, 0, NULL);
}

static PyMethodDef team_methods[] = {
    PY_METHOD("send", team_send, "send(buffer, peer=None, tag=0, timeout=None): returns when the buffer is free"),
    PY_METHOD("recv", team_recv, "recv(buffer, peer=ANY_SOURCE, tag=ANY_TAG, timeout=None): returns an Envelope"),
    PY_METHOD("isend", team_isend, "isend(buffer, peer=None, tag=0): start a send; returns a Request"),
    PY_METHOD("irecv", team_irecv, "irecv(buffer, peer=ANY_SOURCE, tag=ANY_TAG): start a receive; returns a Request"),
    PY_METHOD("recv_bytes", team_recv_bytes, "recv_bytes(peer=ANY_SOURCE, tag=ANY_TAG, timeout=None): receive a message of any length"),
    PY_METHOD("probe", team_probe, "probe(peer=ANY_SOURCE, tag=ANY_TAG): returns the Envelope of a message that is here, or None"),
    PY_METHOD("open", team_open, "open(key, peer=None): open a key of Memory.pack(); returns a Remote"),
    PY_METHOD("barrier", py_barrier, "barrier(timeout=None): wait for all ranks"),
    PY_METHOD("ibarrier", py_ibarrier, "ibarrier(): start a barrier; returns a Request"),
    PY_METHOD("bcast", py_bcast, "bcast(buffer, root=0, timeout=None): copy the buffer of root to all ranks"),
    PY_METHOD("ibcast", py_ibcast, "ibcast(buffer, root=0): start a broadcast; returns a Request"),
    PY_METHOD("allreduce", py_allreduce, "allreduce(sendbuf, recvbuf=None, op=SUM, timeout=None): combine items; in place without recvbuf"),
    PY_METHOD("iallreduce", py_iallreduce, "iallreduce(sendbuf, recvbuf=None, op=SUM): start it; returns a Request"),
    PY_METHOD("allgather", py_allgather, "allgather(sendbuf, recvbuf, timeout=None): collect the buffers of all ranks, in their order"),
    PY_METHOD("iallgather", py_iallgather, "iallgather(sendbuf, recvbuf): start it; returns a Request"),
    {NULL, NULL, 0, NULL},
};

static PyMethodDef connection_methods[] = {
    PY_METHOD("disconnect", team_disconnect, "disconnect(timeout=1): end it; TimedOutError: the other side has not confirmed"),
    PY_PLAIN("info", team_info, "info(): describe the connection and the other side"),
    PY_PLAIN("__enter__", team_enter, NULL),
    PY_METHOD("__exit__", team_exit, NULL),
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef team_fields[] = {
    {"rank", (getter)team_rank, NULL, "rank of this side", NULL},
    {"size", (getter)team_size, NULL, "number of ranks", NULL},
    {"context", (getter)team_context, NULL, "its Context", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot team_slots[] = {
    {Py_tp_dealloc, (void *)team_dealloc},
    {Py_tp_methods, team_methods},
    {Py_tp_getset, team_fields},
    {Py_tp_doc, "A group of ranks."},
    {0, NULL},
};

static PyType_Slot connection_slots[] = {
    {Py_tp_dealloc, (void *)team_dealloc},
    {Py_tp_methods, connection_methods},
    {Py_tp_doc, "A team of two: the side that connected is rank 0."},
    {0, NULL},
};

static PyType_Spec team_spec = {"rank.Team", sizeof(py_team), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, team_slots};
static PyType_Spec connection_spec = {"rank.Connection", sizeof(py_team), 0,
                                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, connection_slots};

bool py_team_init(PyObject *module)
{
    team_type = py_type(module, &team_spec, NULL, "Team");
    connection_type = team_type ? py_type(module, &connection_spec, (PyObject *)team_type, "Connection") : NULL;
    return connection_type != NULL;
}

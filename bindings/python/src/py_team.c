/* SPDX-License-Identifier: BSD-3-Clause */
/* py_team.c: messages; classes Team and Connection. */
#include "py_rank.h"

#include <string.h>

enum { DRAIN_NS = 200 * 1000000 }; /* several slices of a wait */

static PyTypeObject *team_type, *connection_type;

/* Takes a connection. */
PyObject *py_team_new(py_context *owner, rank_team_t team, bool connection)
{
    struct py_gate gate = {.outer = &owner->gate, .status = RANK_ERR_CLOSED, .reason = "this side has disconnected"};
    py_team *self = py_part_new(connection ? connection_type : team_type, owner, gate);
    if (!self) {
        if (connection)
            rank_disconnect(&team, 0);
        return NULL;
    }
    self->team = team;
    self->rank = rank_team_rank(team);
    self->size = rank_team_size(team);
    self->connection = connection;
    self->near = false;
    self->next = NULL;
    self->posted = self->flushed = 0;
    if (connection) {
        const char *channel = rank_channel_name(team, 1 - self->rank);
        self->near = channel && strcmp(channel, "shm") == 0;
        self->next = owner->conns;
        owner->conns = self;
    }
    return (PyObject *)self;
}

static void team_unlink(py_team *self)
{
    py_team **at = &self->owner->conns;
    while (*at && *at != self)
        at = &(*at)->next;
    if (*at)
        *at = self->next;
}

/* Disconnect it. That ends the calls on it which still wait. */
static rank_status_t team_end(py_team *self, int64_t timeout_ns)
{
    rank_status_t status;
    py_enter(&self->owner->gate);
    Py_BEGIN_ALLOW_THREADS
    status = rank_disconnect(&self->team, timeout_ns);
    Py_END_ALLOW_THREADS
    py_leave(&self->owner->gate);
    return status;
}

/*
 * Disconnect once. No-op for the world. A call on a thread of its own that has only begun must be in the library when the
 * connection ends: it gets the time of the drain. Until then the context must not disconnect an object that is freed.
 */
static rank_status_t team_shut(py_team *self, int64_t timeout_ns)
{
    rank_status_t status = RANK_OK;
    if (!self->connection || self->gate.shut)
        return status;
    team_unlink(self);
    py_drain_for(&self->gate, &self->owner->calls, DRAIN_NS);
    if (!self->owner->closing) /* else the context disconnects it */
        status = team_end(self, timeout_ns);
    return status;
}

/* Disconnect all connections of a context, until a time. Returns the first error. */
rank_status_t py_team_disconnect_all(py_context *owner, int64_t end_ns)
{
    rank_status_t status = RANK_OK;
    while (owner->conns) {
        py_team *conn = (py_team *)Py_NewRef((PyObject *)owner->conns);
        int64_t left = end_ns < 0 ? -1 : end_ns - py_clock_ns();
        team_unlink(conn);
        conn->gate.shut = true;
        rank_status_t one = team_end(conn, end_ns >= 0 && left < 0 ? 0 : left);
        status = status != RANK_OK ? status : one;
        Py_DECREF((PyObject *)conn);
    }
    return status;
}

static void team_dealloc(py_team *self)
{
    team_shut(self, 0);
    py_part_free(self);
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

/* Parse peer and tag. The peer of a connection is the other side. */
bool py_team_address(const char *call, py_team *self, PyObject *peer_in, PyObject *tag_in, bool receives, int *peer,
                     int64_t *tag)
{
    int64_t number = self->connection ? 1 - self->rank : receives ? RANK_ANY_SOURCE : RANK_UNDEFINED;
    *tag = receives ? RANK_ANY_TAG : 0;
    if (!py_integer(peer_in, &number) || !py_integer(tag_in, tag) || !py_usable(call, &self->gate))
        return false;
    if (number == RANK_UNDEFINED) {
        PyErr_Format(PyExc_TypeError, "%s() needs argument 'peer', which only a Connection leaves out", call);
        return false;
    }
    *peer = number != (int)number ? RANK_UNDEFINED : (int)number; /* the library refuses that */
    return true;
}

/* Start a send or a receive. */
static bool message_start(struct py_op *op, PyObject **in)
{
    py_team *self = (py_team *)op->base;
    int peer;
    int64_t tag;
    op->receives = op->kind->into;
    if (!py_team_address(op->call, self, in[1], in[2], op->receives, &peer, &tag))
        return false;
    Py_buffer *view = py_op_add(op, in[0], op->receives);
    if (!view)
        return false;
    if (op->receives)
        op->status = rank_irecv(view->buf, view->len, RANK_BYTE, peer, tag, self->team, &op->req);
    else
        op->status = rank_isend(view->buf, view->len, RANK_BYTE, peer, tag, self->team, &op->req);
    return true;
}

static const struct py_op_kind message_send = {"send", "isend", message_start, {"buffer", "peer", "tag"}, 1, false, false};
static const struct py_op_kind message_recv = {"recv", "irecv", message_start, {"buffer", "peer", "tag"}, 1, true, false};
PY_OP_METHODS(message_send)
PY_OP_METHODS(message_recv)

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

/* Receive nothing of a claimed message, so that its sender goes on. Returns NULL, with the exception that is set. */
static PyObject *claim_drop(struct py_op *op, struct claim_wait *wait)
{
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    op->status = rank_imrecv(NULL, 0, RANK_BYTE, &wait->message, &op->req);
    Py_XDECREF(py_op_wait(op, 0));
    PyErr_Restore(kind, value, trace);
    return NULL;
}

/* Receive a claimed message into new bytes, which the program gets when they are whole. */
static PyObject *claim_receive(py_team *self, struct claim_wait *wait)
{
    struct py_op op;
    if (!py_op_begin(&op, "recv_bytes", (py_part *)self))
        return NULL;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)wait->envelope.bytes);
    if (!bytes)
        return claim_drop(&op, wait);
    Py_buffer *view = py_op_add(&op, bytes, false);
    PyObject *received = NULL;
    if (view) {
        op.status = rank_imrecv(view->buf, view->len, RANK_BYTE, &wait->message, &op.req);
        received = py_op_wait(&op, -1);
    } else {
        py_op_drop(&op);
    }
    if (!received)
        Py_CLEAR(bytes);
    Py_XDECREF(received); /* None */
    return bytes;
}

static PyObject *team_recv_bytes(py_team *self, PY_ARGS)
{
    static const char *const names[] = {"peer", "tag", "timeout", NULL};
    PyObject *in[3];
    struct claim_wait wait = {.team = self->team, .message = RANK_MESSAGE_NULL};
    int64_t timeout_ns = -1;
    rank_status_t status;
    if (!py_arguments("recv_bytes", names, 0, args, nargs, kwnames, in) || !py_timeout(in[2], &timeout_ns) ||
        !py_team_address("recv_bytes", self, in[0], in[1], true, &wait.peer, &wait.tag) ||
        !py_wait(&self->gate, timeout_ns, claim_step, &wait, &status))
        return NULL;
    return status == RANK_OK ? claim_receive(self, &wait) : py_raise("recv_bytes", status);
}

/* ----------------------------------------------------------------------------------- keys and descriptions */

static PyObject *team_open(py_team *self, PY_ARGS)
{
    static const char *const names[] = {"key", "peer", "timeout", NULL};
    PyObject *in[3];
    int peer;
    int64_t tag, timeout_ns = -1;
    if (!py_arguments("open", names, 1, args, nargs, kwnames, in) || !py_timeout(in[2], &timeout_ns) ||
        !py_team_address("open", self, in[1], NULL, false, &peer, &tag))
        return NULL;
    return py_remote_open(self, peer, in[0], timeout_ns);
}

static PyObject *team_open_keys(py_team *self, PY_ARGS)
{
    static const char *const names[] = {"keys", "peer", "timeout", NULL};
    PyObject *in[3];
    int peer;
    int64_t tag, timeout_ns = -1;
    if (!py_arguments("open_keys", names, 1, args, nargs, kwnames, in) || !py_timeout(in[2], &timeout_ns) ||
        !py_team_address("open_keys", self, in[1], NULL, false, &peer, &tag))
        return NULL;
    return py_remote_open_all(self, peer, in[0], timeout_ns);
}

/* Make a number, or None if it is -1. */
static PyObject *info_count(int64_t count)
{
    return count < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(count);
}

static PyObject *info_seconds(int64_t ns)
{
    return ns < 0 ? Py_NewRef(Py_None) : PyFloat_FromDouble((double)ns / NS_PER_S);
}

static PyObject *team_info(py_team *self, PyObject *unused)
{
    rank_conn_info_t info = {.size = sizeof(info)};
    (void)unused;
    if (!py_usable("info", &self->gate))
        return NULL;
    rank_status_t status = rank_conn_info(self->team, &info);
    if (status != RANK_OK)
        return py_raise("info", status);
    PyObject *name = PyUnicode_DecodeUTF8(info.name, (Py_ssize_t)strlen(info.name), "replace"); /* the peer may send any bytes */
    return Py_BuildValue("{s:s,s:s,s:N,s:s,s:N,s:O,s:L,s:L,s:y#,s:N,s:N,s:L,s:L,s:L,s:N,s:N}", "local", info.local, "remote", info.remote, "name",
                         name, "channel", info.channel, "pid",
                         info.pid ? PyLong_FromLong(info.pid) : Py_NewRef(Py_None), "proved",
                         info.proved ? Py_True : Py_False, "sent", (long long)info.sent, "received",
                         (long long)info.received, "hello", (char *)info.hello, (Py_ssize_t)info.hello_bytes, "messages_sent",
                         info_count(info.messages_sent), "messages_received", info_count(info.messages_received), "transfers",
                         (long long)info.transfers, "blocks", (long long)info.blocks, "refused", (long long)info.refused,
                         "sent_ago", info_seconds(info.sent_ago_ns), "received_ago", info_seconds(info.received_ago_ns));
}

static PyObject *team_exit(py_team *self, PY_ARGS)
{
    (void)kwnames;
    return py_exit(team_disconnect(self, NULL, 0, NULL), args, nargs);
}

PY_OP_METHODS(py_barrier)
PY_OP_METHODS(py_bcast)
PY_OP_METHODS(py_allreduce)
PY_OP_METHODS(py_allgather)
PY_OP_METHODS(py_reduce)
PY_OP_METHODS(py_gather)
PY_OP_METHODS(py_scatter)
PY_OP_METHODS(py_alltoall)
PY_OP_METHODS(py_list_write)
PY_OP_METHODS(py_list_read)
PY_OP_START(py_list_prepare_write)
PY_OP_START(py_list_prepare_read)

static PyMethodDef team_methods[] = {
    PY_METHOD("send", message_send_wait, "send(buffer, peer=None, tag=0, timeout=None): returns when the buffer is free"),
    PY_METHOD("recv", message_recv_wait, "recv(buffer, peer=ANY_SOURCE, tag=ANY_TAG, timeout=None): returns an Envelope"),
    PY_METHOD("isend", message_send_start, "isend(buffer, peer=None, tag=0): start a send; returns a Request"),
    PY_METHOD("irecv", message_recv_start, "irecv(buffer, peer=ANY_SOURCE, tag=ANY_TAG): start a receive; returns a Request"),
    PY_METHOD("recv_bytes", team_recv_bytes, "recv_bytes(peer=ANY_SOURCE, tag=ANY_TAG, timeout=None): receive a message of any length"),
    PY_METHOD("probe", team_probe, "probe(peer=ANY_SOURCE, tag=ANY_TAG): returns the Envelope of a message that is here, or None"),
    PY_METHOD("open", team_open, "open(key, peer=None, timeout=None): open a key of Memory.pack(); returns a Remote"),
    PY_METHOD("open_keys", team_open_keys, "open_keys(keys, peer=None, timeout=None): open the keys of Context.keys(); returns a list of Remote"),
    PY_METHOD("write", py_list_write_wait, "write(blocks, notice=None, local=None, remote=None, peer=None, timeout=None): write a list; visible on return"),
    PY_METHOD("read", py_list_read_wait, "read(blocks, notice=None, local=None, remote=None, peer=None, timeout=None): read a list"),
    PY_METHOD("iwrite", py_list_write_start, "iwrite(blocks, notice=None, local=None, remote=None, peer=None): start a write; returns a Request"),
    PY_METHOD("iread", py_list_read_start, "iread(blocks, notice=None, local=None, remote=None, peer=None): start a read; returns a Request"),
    PY_METHOD("prepare_write", py_list_prepare_write_start, "prepare_write(blocks, ...): as iwrite, for Request.start(), many times"),
    PY_METHOD("prepare_read", py_list_prepare_read_start, "prepare_read(blocks, ...): as iread, for Request.start(), many times"),
    PY_METHOD("barrier", py_barrier_wait, "barrier(timeout=None): wait for all ranks"),
    PY_METHOD("ibarrier", py_barrier_start, "ibarrier(): start a barrier; returns a Request"),
    PY_METHOD("bcast", py_bcast_wait, "bcast(buffer, root=0, timeout=None): copy the buffer of root to all ranks"),
    PY_METHOD("ibcast", py_bcast_start, "ibcast(buffer, root=0): start a broadcast; returns a Request"),
    PY_METHOD("allreduce", py_allreduce_wait, "allreduce(sendbuf, recvbuf=None, op=SUM, timeout=None): combine items; in place without recvbuf"),
    PY_METHOD("iallreduce", py_allreduce_start, "iallreduce(sendbuf, recvbuf=None, op=SUM): start it; returns a Request"),
    PY_METHOD("allgather", py_allgather_wait, "allgather(sendbuf, recvbuf, timeout=None): collect the buffers of all ranks, in their order"),
    PY_METHOD("iallgather", py_allgather_start, "iallgather(sendbuf, recvbuf): start it; returns a Request"),
    PY_METHOD("reduce", py_reduce_wait, "reduce(sendbuf, recvbuf=None, op=SUM, root=0, timeout=None): combine items at root; in place there without recvbuf"),
    PY_METHOD("ireduce", py_reduce_start, "ireduce(sendbuf, recvbuf=None, op=SUM, root=0): start it; returns a Request"),
    PY_METHOD("gather", py_gather_wait, "gather(sendbuf, recvbuf=None, root=0, timeout=None): collect the buffers of all ranks at root"),
    PY_METHOD("igather", py_gather_start, "igather(sendbuf, recvbuf=None, root=0): start it; returns a Request"),
    PY_METHOD("scatter", py_scatter_wait, "scatter(sendbuf, recvbuf, root=0, timeout=None): distribute the blocks of sendbuf of root; sendbuf is None elsewhere"),
    PY_METHOD("iscatter", py_scatter_start, "iscatter(sendbuf, recvbuf, root=0): start it; returns a Request"),
    PY_METHOD("alltoall", py_alltoall_wait, "alltoall(sendbuf, recvbuf, timeout=None): send block i of sendbuf to rank i"),
    PY_METHOD("ialltoall", py_alltoall_start, "ialltoall(sendbuf, recvbuf): start it; returns a Request"),
    {NULL, NULL, 0, NULL},
};

static PyMethodDef connection_methods[] = {
    PY_METHOD("disconnect", team_disconnect, "disconnect(timeout=1): end it; TimedOutError: the other side has not confirmed"),
    PY_PLAIN("info", team_info, "info(): describe the connection and the other side"),
    PY_PLAIN("__enter__", py_self, NULL),
    PY_METHOD("__exit__", team_exit, NULL),
    {NULL, NULL, 0, NULL},
};

static PyMemberDef team_members[] = {
    {"rank", T_INT, offsetof(py_team, rank), READONLY, "rank of this side"},
    {"size", T_INT, offsetof(py_team, size), READONLY, "number of ranks"},
    {"context", T_OBJECT_EX, offsetof(py_part, owner), READONLY, "its Context"},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot team_slots[] = {
    {Py_tp_dealloc, (void *)team_dealloc},
    {Py_tp_methods, team_methods},
    {Py_tp_members, team_members},
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

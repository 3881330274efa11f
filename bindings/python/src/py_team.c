/* SPDX-License-Identifier: BSD-3-Clause */
/* py_team.c: make, describe and end teams; classes Team and Connection. */
#include "py_rank.h"

#include <string.h>

static PyTypeObject *team_type, *connection_type;

/* Takes a connection. */
PyObject *py_team_new(py_context *owner, rank_team_t team, bool connection)
{
    struct py_gate gate = {.outer = &owner->gate, .status = RANK_ERR_CLOSED, .reason = connection ? "this side has disconnected" : "the team is closed"};
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
    self->made = false;
    self->memories = 0;
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

/* Free a team of split or dup, once. The call does not wait for the other ranks. */
static rank_status_t team_free(py_team *self)
{
    rank_status_t status = RANK_OK;
    /* A call that goes on uses the team: the end of the world frees it then. */
    if (!py_drain_for(&self->gate, &self->owner->calls, DRAIN_NS) || self->owner->gate.shut)
        return status;
    py_enter(&self->owner->gate);
    Py_BEGIN_ALLOW_THREADS
    status = rank_team_free(&self->team);
    Py_END_ALLOW_THREADS
    py_leave(&self->owner->gate);
    return status;
}

/*
 * Disconnect once, or free. No-op for the world. A call on a thread of its own that has only begun must be in the library when the
 * connection ends: it gets the time of the drain. Until then the context must not disconnect an object that is freed.
 */
static rank_status_t team_shut(py_team *self, int64_t timeout_ns)
{
    rank_status_t status = RANK_OK;
    if (self->made && !self->gate.shut)
        return team_free(self);
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

static PyObject *team_close(py_team *self, const char *name, PY_ARGS)
{
    int64_t timeout_ns = NS_PER_S;
    if (!py_only_timeout(name, args, nargs, kwnames, &timeout_ns))
        return NULL;
    return py_none_or_raise(name, team_shut(self, timeout_ns));
}

static PyObject *team_disconnect(py_team *self, PY_ARGS)
{
    return team_close(self, "disconnect", args, nargs, kwnames);
}

static PyObject *team_close_method(py_team *self, PY_ARGS)
{
    if (!self->connection && !self->made)
        return py_raise_text(RANK_ERR_STATE, "close: the team of world() ends with finalize()");
    if (self->memories > 0 && !self->gate.shut)
        return py_raise_text(RANK_ERR_STATE, "close: %d memories of alloc() are not closed; close them first", self->memories);
    return team_close(self, "close", args, nargs, kwnames);
}

/* ----------------------------------------------------------------------------------------------- other teams */

struct make_call {
    struct py_call call;
    rank_team_t from, team;
    rank_status_t (*make)(struct make_call *call);
    int color, key;
};

static rank_status_t make_run(struct py_call *call)
{
    return ((struct make_call *)call)->make((struct make_call *)call);
}

static void make_undo(struct py_call *call)
{
    struct make_call *self = (struct make_call *)call;
    if (self->team)
        rank_team_free(&self->team);
}

static rank_status_t make_split(struct make_call *call)
{
    return rank_team_split(call->from, call->color, call->key, &call->team);
}

static rank_status_t make_split_shared(struct make_call *call)
{
    return rank_team_split_shared(call->from, call->key, &call->team);
}

static rank_status_t make_dup(struct make_call *call)
{
    return rank_team_dup(call->from, &call->team);
}

/* Make a team, or None if this rank joins none. The collective runs on a thread of its own, as the others may be late. */
static PyObject *team_make(py_team *self, const char *name, rank_status_t (*make)(struct make_call *), int64_t color, int64_t key,
                           int64_t timeout_ns)
{
    if (!py_usable(name, &self->gate))
        return NULL;
    struct make_call *call = py_call_new(sizeof(*call), self->owner, make_run, make_undo);
    if (!call)
        return NULL;
    call->from = self->team;
    call->make = make;
    call->color = color != (int)color ? INT32_MIN : (int)color; /* the library refuses that */
    call->key = key > INT32_MAX ? INT32_MAX : key < INT32_MIN ? INT32_MIN : (int)key;
    if (!py_call_wait(name, &self->gate, call, timeout_ns, NULL))
        return NULL;
    rank_team_t team = call->team;
    py_call_free(call);
    if (!team)
        Py_RETURN_NONE;
    py_team *made = (py_team *)py_team_new(self->owner, team, false);
    if (made)
        made->made = true;
    else
        rank_team_free(&team);
    return (PyObject *)made;
}

static PyObject *team_split(py_team *self, PY_ARGS)
{
    static const char *const names[] = {"color", "key", "timeout", NULL};
    PyObject *in[3];
    int64_t color = RANK_UNDEFINED, key = 0, timeout_ns = -1;
    if (!py_arguments("split", names, 1, args, nargs, kwnames, in) || !py_integer(in[0], &color) || !py_integer(in[1], &key) ||
        !py_timeout(in[2], &timeout_ns))
        return NULL;
    return team_make(self, "split", make_split, color, key, timeout_ns);
}

static PyObject *team_split_shared(py_team *self, PY_ARGS)
{
    static const char *const names[] = {"key", "timeout", NULL};
    PyObject *in[2];
    int64_t key = 0, timeout_ns = -1;
    if (!py_arguments("split_shared", names, 0, args, nargs, kwnames, in) || !py_integer(in[0], &key) ||
        !py_timeout(in[1], &timeout_ns))
        return NULL;
    return team_make(self, "split_shared", make_split_shared, 0, key, timeout_ns);
}

static PyObject *team_dup(py_team *self, PY_ARGS)
{
    int64_t timeout_ns = -1;
    if (!py_only_timeout("dup", args, nargs, kwnames, &timeout_ns))
        return NULL;
    return team_make(self, "dup", make_dup, 0, 0, timeout_ns);
}

/* ------------------------------------------------------------------------------------ peers, keys, descriptions */

/* Parse peer and tag. The peer of a connection is the other side. */
bool py_team_address(const char *call, py_team *self, PyObject *peer_in, PyObject *tag_in, bool receives, int *peer,
                     int64_t *tag)
{
    int64_t number = self->connection ? 1 - self->rank : receives ? RANK_ANY_SOURCE : RANK_UNDEFINED;
    *tag = receives ? RANK_ANY_TAG : 0;
    if (!py_integer(peer_in, &number) || !py_integer(tag_in, tag) || !py_usable(call, &self->gate))
        return false;
    if (number == RANK_UNDEFINED) {
        PyErr_Format(PyExc_TypeError, "%s() needs argument '%s', which only a Connection leaves out", call,
                     strcmp(call, "sendrecv") == 0 ? "dest" : "peer");
        return false;
    }
    *peer = number != (int)number ? RANK_UNDEFINED : (int)number; /* the library refuses that */
    return true;
}

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
    return py_exit(team_close_method(self, NULL, 0, NULL), args, nargs);
}

PY_OP_METHODS(py_send)
PY_OP_METHODS(py_ssend)
PY_OP_METHODS(py_recv)
#define COLLECTIVE_CALLS(name, arguments, text) PY_OP_METHODS(py_##name)
PY_COLLECTIVES(COLLECTIVE_CALLS)
#define COLLECTIVE_METHODS(name, arguments, text)                                                                      \
    PY_METHOD(#name, py_##name##_wait, #name "(" arguments "timeout=None): " text),                                     \
        PY_METHOD("i" #name, py_##name##_start, "i" #name "(...): start " #name "; returns a Request"),
PY_OP_METHODS(py_list_write)
PY_OP_METHODS(py_list_read)
PY_OP_START(py_list_prepare_write)
PY_OP_START(py_list_prepare_read)

static PyMethodDef team_methods[] = {
    PY_METHOD("send", py_send_wait, "send(buffer, peer=None, tag=0, timeout=None): returns when the buffer is free"),
    PY_METHOD("isend", py_send_start, "isend(buffer, peer=None, tag=0): start a send; returns a Request"),
    PY_METHOD("ssend", py_ssend_wait, "ssend(buffer, peer=None, tag=0, timeout=None): returns when a receive has matched"),
    PY_METHOD("issend", py_ssend_start, "issend(buffer, peer=None, tag=0): start it; returns a Request"),
    PY_METHOD("recv", py_recv_wait, "recv(buffer, peer=ANY_SOURCE, tag=ANY_TAG, timeout=None): returns an Envelope"),
    PY_METHOD("irecv", py_recv_start, "irecv(buffer, peer=ANY_SOURCE, tag=ANY_TAG): start a receive; returns a Request"),
    PY_METHOD("sendrecv", py_sendrecv, "sendrecv(sendbuf, recvbuf, dest=None, source=ANY_SOURCE, sendtag=0, recvtag=ANY_TAG, timeout=None): returns an Envelope"),
    PY_METHOD("recv_bytes", py_recv_bytes, "recv_bytes(peer=ANY_SOURCE, tag=ANY_TAG, timeout=None): receive a message of any length"),
    PY_METHOD("probe", py_probe, "probe(peer=ANY_SOURCE, tag=ANY_TAG): returns the Envelope of a message that is here, or None"),
    PY_METHOD("mprobe", py_mprobe, "mprobe(peer=ANY_SOURCE, tag=ANY_TAG, timeout=None): claim a message; returns a Message"),
    PY_METHOD("improbe", py_improbe, "improbe(peer=ANY_SOURCE, tag=ANY_TAG): claim a message that is here; returns a Message or None"),
    PY_METHOD("open", team_open, "open(key, peer=None, timeout=None): open a key of Memory.pack(); returns a Remote"),
    PY_METHOD("open_keys", team_open_keys, "open_keys(keys, peer=None, timeout=None): open the keys of Context.keys(); returns a list of Remote"),
    PY_METHOD("write", py_list_write_wait, "write(blocks, notice=None, local=None, remote=None, peer=None, timeout=None): write a list; visible on return"),
    PY_METHOD("read", py_list_read_wait, "read(blocks, notice=None, local=None, remote=None, peer=None, timeout=None): read a list"),
    PY_METHOD("iwrite", py_list_write_start, "iwrite(blocks, notice=None, local=None, remote=None, peer=None): start a write; returns a Request"),
    PY_METHOD("iread", py_list_read_start, "iread(blocks, notice=None, local=None, remote=None, peer=None): start a read; returns a Request"),
    PY_METHOD("prepare_write", py_list_prepare_write_start, "prepare_write(blocks, ...): as iwrite, for Request.start(), many times"),
    PY_METHOD("prepare_read", py_list_prepare_read_start, "prepare_read(blocks, ...): as iread, for Request.start(), many times"),
    PY_COLLECTIVES(COLLECTIVE_METHODS)
    PY_METHOD("alloc", py_symmetric_alloc, "alloc(bytes, timeout=None): allocate zeroed memory on all ranks; returns a SymmetricMemory"),
    PY_METHOD("split", team_split, "split(color, key=0, timeout=None): make a Team of the ranks of each color; None of color None"),
    PY_METHOD("split_shared", team_split_shared, "split_shared(key=0, timeout=None): make a Team of the ranks that share memory"),
    PY_METHOD("dup", team_dup, "dup(timeout=None): make a Team of the same ranks"),
    PY_METHOD("close", team_close_method, "close(timeout=1): free a team of split or dup; disconnect a Connection"),
    PY_PLAIN("__enter__", py_self, NULL),
    PY_METHOD("__exit__", team_exit, NULL),
    {NULL, NULL, 0, NULL},
};

static PyMethodDef connection_methods[] = {
    PY_METHOD("disconnect", team_disconnect, "disconnect(timeout=1): end it; TimedOutError: the other side has not confirmed"),
    PY_PLAIN("info", team_info, "info(): describe the connection and the other side"),
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

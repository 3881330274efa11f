/* SPDX-License-Identifier: BSD-3-Clause */
/* py_rank.h: declare what the files of the Python extension share. */
#ifndef PY_RANK_H
#define PY_RANK_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030b0000
#endif
#include <Python.h>
#include <structmember.h>
#include <rank.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

enum { NS_PER_S = 1000000000 };

/* Calls in progress without the GIL on an object, and whether it is being closed. The GIL protects both. */
struct py_gate {
    struct py_gate *outer; /* of the object that closes this one with itself, or NULL */
    rank_status_t status;  /* of a call once it is shut, and why */
    const char *reason;
    int users;
    bool shut;
};

/* Buffers of an operation. They stay exported until the library is done with them. */
struct py_hold {
    rank_request_t req; /* of an abandoned operation */
    struct py_hold *next;
    bool until_close; /* peers may use them until the context is closed */
    PyObject *kept;   /* an object that stays as long, or NULL */
    const Py_buffer *fold_to; /* the result of a function of the program, or NULL */
    Py_ssize_t fold_from;     /* blocks that it combines */
    Py_ssize_t n, room;
    Py_buffer views[];
};

typedef struct py_context {
    PyObject_HEAD
    rank_ctx_t ctx;
    struct py_gate gate;
    bool world;              /* the context of rank_init */
    bool closing;            /* the call that closes it runs: no other call may use its handles */
    bool closed;             /* no handle of it is valid any more */
    struct py_hold *orphans; /* abandoned operations that have not ended */
    struct py_team *conns;   /* connections that are open */
    _Atomic int calls;       /* threads of py_call.c, but */
    _Atomic int connects;    /* those of connect */
    _Atomic bool ending;     /* the close ends connects */
    pid_t pid;
    PyObject *loop;          /* of asyncio, or NULL */
    Py_ssize_t exports;      /* views of symmetric memory */
    unsigned lists;          /* that were complete at once: see op_settle */
} py_context;

/* The begin of each object that belongs to a context. */
#define PY_PART                                                                                                        \
    PyObject_HEAD                                                                                                      \
    py_context *owner;                                                                                                 \
    struct py_gate gate;

typedef struct py_part {
    PY_PART
} py_part;

typedef struct py_team {
    PY_PART
    rank_team_t team; /* RANK_TEAM_NULL: disconnected or freed */
    int rank, size;
    bool connection;
    bool made;                /* by split or dup: close() frees it */
    bool near;                /* by shared memory: the library copies without the peer */
    int memories;             /* of alloc() that are not closed */
    struct py_team *next;     /* connection of the context */
    uint64_t posted, flushed; /* writes of class Remote to the other side */
} py_team;

/* The begin of a call that runs on a thread of its own. It has no objects of Python. */
struct py_call {
    rank_status_t (*run)(struct py_call *call);
    void (*undo)(struct py_call *call); /* end the result of a call that nothing waits for; or NULL */
    void *extra;                        /* memory that is freed with it, or NULL */
    _Atomic int *running;               /* of its context */
    pthread_mutex_t lock;               /* guards what follows */
    pthread_cond_t end;
    bool done, abandoned;
    rank_status_t status;
    char reason[256];
};

struct py_op_kind;

/* An operation that has been started, or that failed to start. */
struct py_op {
    const struct py_op_kind *kind;
    const char *call;
    py_part *base; /* a Team, Remote or Message that stays until the end; borrowed */
    struct py_hold *hold;
    rank_request_t req;
    rank_status_t status; /* of the start */
    bool receives;        /* the result is an envelope */
    bool persistent;      /* it is started by Request.start() */
    bool unsent;          /* the library may hold messages of it back after its end */
};

enum { PY_NAMES_MAX = 6 };

/* A kind of operation: the call that waits for it, and the call that returns a Request. */
struct py_op_kind {
    const char *call, *icall;
    bool (*start)(struct py_op *op, PyObject **in); /* Returns false with an exception set. */
    const char *names[PY_NAMES_MAX + 1];            /* the call that waits has "timeout", too */
    int required;
    bool into; /* data arrives in the buffer of a message or of one-sided access */
    bool persistent;
};

enum { DRAIN_NS = 200 * 1000000 }; /* several slices of a wait */

/* Methods take positional and keyword arguments without a tuple. */
#define PY_ARGS PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames
#define PY_METHOD(name, fn, doc) {name, (PyCFunction)(void (*)(void))fn, METH_FASTCALL | METH_KEYWORDS, doc}
#define PY_PLAIN(name, fn, doc) {name, (PyCFunction)fn, METH_NOARGS, doc}

/* The two methods of a kind of operation. */
#define PY_OP_START(kind)                                                                                              \
    static PyObject *kind##_start(PyObject *self, PY_ARGS) { return py_op_call(&kind, self, false, args, nargs, kwnames); }
#define PY_OP_METHODS(kind)                                                                                            \
    PY_OP_START(kind)                                                                                                  \
    static PyObject *kind##_wait(PyObject *self, PY_ARGS) { return py_op_call(&kind, self, true, args, nargs, kwnames); }

/* Each collective: its arguments before timeout, and what it does. The other form is named as that of rank.h: ibarrier. */
#define PY_COLLECTIVES(X)                                                                                              \
    X(barrier, "", "wait for all ranks")                                                                               \
    X(bcast, "buffer, root=0, ", "copy the buffer of root to all ranks")                                               \
    X(allreduce, "sendbuf, recvbuf=None, op=SUM, ", "combine items; in place without recvbuf")                         \
    X(reduce, "sendbuf, recvbuf=None, op=SUM, root=0, ", "combine items at root; in place there without recvbuf")      \
    X(reduce_scatter, "sendbuf, recvbuf, op=SUM, ", "combine items; rank i receives block i of the result")            \
    X(scan, "sendbuf, recvbuf=None, op=SUM, ", "combine the items of the ranks up to this one")                        \
    X(exscan, "sendbuf, recvbuf=None, op=SUM, ", "combine the items of the ranks before this one")                     \
    X(allgather, "sendbuf, recvbuf, ", "collect the buffers of all ranks, in their order")                             \
    X(gather, "sendbuf, recvbuf=None, root=0, ", "collect the buffers of all ranks at root")                           \
    X(scatter, "sendbuf, recvbuf, root=0, ", "distribute the blocks of sendbuf of root; sendbuf is None elsewhere")    \
    X(alltoall, "sendbuf, recvbuf, ", "send block i of sendbuf to rank i")                                             \
    X(allgatherv, "sendbuf, recvbuf, counts, displs=None, ", "collect buffers of counts[i] items of rank i")           \
    X(gatherv, "sendbuf, recvbuf=None, counts=None, displs=None, root=0, ", "collect buffers of counts[i] items at root") \
    X(scatterv, "sendbuf, recvbuf, counts=None, displs=None, root=0, ", "distribute blocks of counts[i] items of root") \
    X(alltoallv, "sendbuf, recvbuf, sendcounts, recvcounts, senddispls=None, recvdispls=None, ",                       \
      "send sendcounts[i] items to rank i")

/* py_error.c */
bool py_error_init(PyObject *module);
bool py_error_is_ours(void);
PyObject *py_raise(const char *call, rank_status_t status); /* Returns NULL. */
PyObject *py_raise_reason(const char *call, rank_status_t status, const char *reason);
PyObject *py_raise_text(rank_status_t status, const char *format, ...); /* Returns NULL. */
PyObject *py_none_or_raise(const char *call, rank_status_t status);

/* py_arguments.c: each returns false with an exception set. NULL and None have the meaning of the default. */
bool py_arguments(const char *call, const char *const *names, int required, PY_ARGS, PyObject **out);
bool py_integer(PyObject *object, int64_t *value);
bool py_unsigned(const char *call, PyObject *object, uint64_t *value);
bool py_timeout(PyObject *object, int64_t *timeout_ns);
/* The arguments of a call that takes a timeout only. */
bool py_only_timeout(const char *call, PY_ARGS, int64_t *timeout_ns);
int64_t py_clock_ns(void);

/* py_buffer.c */
struct py_hold *py_hold_new(Py_ssize_t room);
void py_hold_free(struct py_hold *hold);
Py_buffer *py_hold_add(struct py_hold *hold, const char *call, PyObject *object, bool writable);
const char *py_buffer_format(const Py_buffer *view);
bool py_buffer_dtype(const char *call, const Py_buffer *view, rank_dtype_t *dtype, int64_t *count);
bool py_buffer_same_items(const Py_buffer *a, const Py_buffer *b);
bool py_buffer_order(const char *call, const char *a_name, const Py_buffer *a, const char *b_name, const Py_buffer *b);

/* py_dlpack.c */
int py_dlpack_view(const char *call, PyObject *object, Py_buffer *view);

/* py_fold.c */
bool py_fold_init(void);
char *py_fold_new(struct py_op *op, PyObject *function, const Py_buffer *result, int size, int n);
bool py_fold_run(const char *call, struct py_hold *hold);

/* py_wait.c */
typedef rank_status_t py_step(void *arg, int64_t timeout_ns);
bool py_wait(struct py_gate *gate, int64_t timeout_ns, py_step *step, void *arg, rank_status_t *status);
bool py_usable(const char *call, const struct py_gate *gate);
void py_enter(struct py_gate *gate);
void py_leave(struct py_gate *gate);
bool py_drain_for(struct py_gate *gate, const _Atomic int *calls, int64_t timeout_ns);
void py_drain(struct py_gate *gate);
void *py_part_new(PyTypeObject *type, py_context *owner, struct py_gate gate);
void py_part_free(void *object);

/* py_call.c */
void *py_call_new(size_t bytes, py_context *owner, rank_status_t (*run)(struct py_call *), void (*undo)(struct py_call *));
bool py_call_here(const char *name, struct py_gate *gate, void *call);
bool py_call_wait(const char *name, struct py_gate *gate, void *call, int64_t timeout_ns, bool *left);
bool py_call_left(struct py_call *call);
void py_call_free(void *call);

/* py_request.c */
bool py_request_init(PyObject *module);
PyObject *py_envelope(const rank_envelope_t *envelope);
bool py_op_begin(struct py_op *op, const char *call, py_part *base);
bool py_op_room(struct py_op *op, Py_ssize_t room);
Py_buffer *py_op_add(struct py_op *op, PyObject *object, bool writable);
PyObject *py_op_drop(struct py_op *op); /* Returns NULL. */
PyObject *py_op_wait(struct py_op *op, int64_t timeout_ns);
PyObject *py_op_call(const struct py_op_kind *kind, PyObject *self, bool waits, PY_ARGS);
void py_orphan(py_context *owner, struct py_hold *hold);
void py_reap(py_context *owner);
void py_touch(py_context *owner);

/* py_context.c */
bool py_context_init(PyObject *module);
py_context *py_context_new(rank_ctx_t ctx, bool world);
rank_status_t py_context_shut(py_context *self, int64_t timeout_ns);

/* py_world.c */
bool py_world_init(PyObject *module);
bool py_end_here(void);

/* py_listener.c */
bool py_listener_init(PyObject *module);
PyObject *py_listener_new(py_context *owner, rank_listener_t listener);

/* py_message.c: calls of the class Team. */
bool py_message_init(PyObject *module);
extern const struct py_op_kind py_send, py_ssend, py_recv;
PyObject *py_sendrecv(py_team *self, PY_ARGS);
PyObject *py_recv_bytes(py_team *self, PY_ARGS);
PyObject *py_probe(py_team *self, PY_ARGS);
PyObject *py_mprobe(py_team *self, PY_ARGS);
PyObject *py_improbe(py_team *self, PY_ARGS);

/* py_team.c, py_collective.c, py_list.c */
bool py_team_init(PyObject *module);
PyObject *py_team_new(py_context *owner, rank_team_t team, bool connection);
rank_status_t py_team_disconnect_all(py_context *owner, int64_t end_ns);
bool py_team_address(const char *call, py_team *self, PyObject *peer_in, PyObject *tag_in, bool receives, int *peer, int64_t *tag);
#define PY_COLLECTIVE_KIND(name, arguments, text) extern const struct py_op_kind py_##name;
PY_COLLECTIVES(PY_COLLECTIVE_KIND)
extern const struct py_op_kind py_list_write, py_list_read, py_list_prepare_write, py_list_prepare_read;

/* py_memory.c */
bool py_memory_init(PyObject *module);
PyObject *py_memory_register(py_context *owner, PyObject *object, unsigned access);
PyObject *py_memory_alloc(py_context *owner, int64_t bytes, unsigned access);
PyObject *py_memory_keys(PyObject *sequence);

/* py_symmetric.c */
bool py_symmetric_init(PyObject *module);
PyObject *py_symmetric_alloc(py_team *team, PY_ARGS);

/* py_remote.c */
bool py_remote_init(PyObject *module);
PyObject *py_remote_of(py_team *team, int peer, rank_mem_t mem, py_part *memory);
PyObject *py_remote_open(py_team *team, int peer, PyObject *key, int64_t timeout_ns);
PyObject *py_remote_open_all(py_team *team, int peer, PyObject *keys, int64_t timeout_ns);
bool py_remote_check(PyObject *object);
bool py_remote_mem(const char *call, PyObject *remote, rank_mem_t *mem);

/* py_module.c: py_type adds a type to the module. Returns NULL with an exception set. */
PyTypeObject *py_type(PyObject *module, PyType_Spec *spec, PyObject *bases, const char *name);
bool py_constant(const char *name, size_t len);
PyObject *py_self(PyObject *self, PyObject *unused);
PyObject *py_exit(PyObject *closed, PyObject *const *args, Py_ssize_t nargs);

#endif

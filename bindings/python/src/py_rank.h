/* SPDX-License-Identifier: BSD-3-Clause */
/* py_rank.h: declare what the files of the Python extension share. */
#ifndef PY_RANK_H
#define PY_RANK_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030b0000
#endif
#include <Python.h>
#include <rank.h>

#include <stdbool.h>

/* Calls in progress without the GIL on an object, and whether it is being closed. The GIL protects both. */
struct py_gate {
    int users;
    bool shut;
};

/* Buffers of an operation. They stay exported until the library is done with them. */
struct py_hold {
    Py_buffer views[2];
    int n;
    rank_request_t req; /* of an abandoned operation */
    struct py_hold *next;
};

typedef struct py_context {
    PyObject_HEAD
    rank_ctx_t ctx;
    struct py_gate gate;
    bool world;              /* the context of rank_init */
    bool closing;            /* the call that closes it runs: no other call may use its handles */
    bool closed;             /* no handle of it is valid any more */
    struct py_hold *orphans; /* abandoned operations that have not ended */
    PyObject *loop;          /* of asyncio, or NULL */
} py_context;

typedef struct py_team {
    PyObject_HEAD
    py_context *owner;
    rank_team_t team; /* RANK_TEAM_NULL: disconnected */
    struct py_gate gate;
    int rank, size;
    bool connection;
} py_team;

/* An operation that has been started, or that failed to start. */
struct py_op {
    const char *call;
    py_context *owner;
    PyObject *base; /* a team or memory that stays until the end; borrowed */
    struct py_hold *hold;
    rank_request_t req;
    rank_status_t status; /* of the start */
    bool receives;        /* the result is an envelope */
};

/* Methods take positional and keyword arguments without a tuple. */
#define PY_ARGS PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames
#define PY_METHOD(name, fn, doc) {name, (PyCFunction)(void (*)(void))fn, METH_FASTCALL | METH_KEYWORDS, doc}
#define PY_PLAIN(name, fn, doc) {name, (PyCFunction)fn, METH_NOARGS, doc}

/* py_error.c */
bool py_error_init(PyObject *module);
PyObject *py_raise(const char *call, rank_status_t status); /* Returns NULL. */
PyObject *py_raise_text(rank_status_t status, const char *format, ...); /* Returns NULL. */
PyObject *py_none_or_raise(const char *call, rank_status_t status);

/* py_arguments.c: each returns false with an exception set. NULL and None have the meaning of the default. */
bool py_arguments(const char *call, const char *const *names, int required, PY_ARGS, PyObject **out);
bool py_integer(PyObject *object, int64_t *value);
bool py_timeout(PyObject *object, int64_t *timeout_ns);
int64_t py_clock_ns(void);

/* py_buffer.c */
struct py_hold *py_hold_new(void);
void py_hold_free(struct py_hold *hold);
Py_buffer *py_hold_add(struct py_hold *hold, const char *call, PyObject *object, bool writable);
bool py_buffer_dtype(const char *call, const Py_buffer *view, rank_dtype_t *dtype, int64_t *count);

/* py_dlpack.c */
int py_dlpack_view(const char *call, PyObject *object, Py_buffer *view);

/* py_wait.c */
typedef rank_status_t py_step(void *arg, int64_t timeout_ns);
bool py_wait(py_context *owner, struct py_gate *gate, int64_t timeout_ns, py_step *step, void *arg, rank_status_t *status);
void py_drain(struct py_gate *gate);
bool py_usable(const char *call, py_context *owner);

/* py_request.c */
bool py_request_init(PyObject *module);
PyObject *py_envelope(const rank_envelope_t *envelope);
bool py_op_begin(struct py_op *op, const char *call, py_context *owner, PyObject *base);
PyObject *py_op_drop(struct py_op *op); /* Returns NULL. */
PyObject *py_op_wait(struct py_op *op, int64_t timeout_ns);
PyObject *py_op_request(struct py_op *op);
void py_reap(py_context *owner);
void py_touch(py_context *owner);

/* py_context.c */
bool py_context_init(PyObject *module);
bool py_conn_opts(rank_conn_opts_t *opts, PyObject *secret, PyObject *hello, PyObject *timeout, struct py_hold *hold,
                  const char *call);

/* py_listener.c */
bool py_listener_init(PyObject *module);
PyObject *py_listener_new(py_context *owner, rank_listener_t listener);

/* py_team.c, py_collective.c */
bool py_team_init(PyObject *module);
PyObject *py_team_new(py_context *owner, rank_team_t team, bool connection);
bool py_team_usable(const char *call, py_team *self);
PyObject *py_barrier(PyObject *self, PY_ARGS);
PyObject *py_ibarrier(PyObject *self, PY_ARGS);
PyObject *py_bcast(PyObject *self, PY_ARGS);
PyObject *py_ibcast(PyObject *self, PY_ARGS);
PyObject *py_allreduce(PyObject *self, PY_ARGS);
PyObject *py_iallreduce(PyObject *self, PY_ARGS);
PyObject *py_allgather(PyObject *self, PY_ARGS);
PyObject *py_iallgather(PyObject *self, PY_ARGS);

/* py_memory.c */
bool py_memory_init(PyObject *module);
PyObject *py_memory_reg(py_context *owner, PyObject *object);
PyObject *py_remote_open(py_team *team, int peer, PyObject *key);

/* Add a type to the module. Returns NULL with an exception set. */
PyTypeObject *py_type(PyObject *module, PyType_Spec *spec, PyObject *bases, const char *name);

#endif

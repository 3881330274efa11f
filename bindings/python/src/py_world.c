/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_world.c: join the world, leave it, end it.
 *
 * A program that ends without finalize() leaves the world when it ends well: the exit code is known to the exit handler only,
 * where Python is gone. With another code it ends as it is, so that the launcher ends the ranks that may wait for it.
 */
#include "py_rank.h"

#include <stdlib.h>
#include <unistd.h>

static py_context *world_context;
static pid_t exits_in;  /* the process that has the exit handlers */
static bool may_leave;  /* no thread is in a call of the world any more */
static bool exiting;    /* exit_begin has run, in this thread */
static pthread_t exit_thread;

/* Get the context of rank_init, which is made once in a world. Returns NULL with an exception set. */
static py_context *world_of(const char *call)
{
    if (!rank_initialized()) {
        py_raise_text(RANK_ERR_STATE, "%s: call init() first", call);
        return NULL;
    }
    if (!world_context)
        world_context = py_context_new(RANK_CTX_NULL, true);
    return world_context && py_usable(call, &world_context->gate) ? world_context : NULL;
}

/* Before Python ends: shut the world for calls, of threads too. finalize() in the exit handler then runs alone. */
static PyObject *exit_begin(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    exit_thread = pthread_self();
    exiting = exits_in == getpid();
    if (exiting && rank_initialized())
        may_leave = !world_context || (py_drain_for(&world_context->gate, &world_context->calls, DRAIN_NS) &&
                                       py_drain_for(&world_context->gate, &world_context->connects, DRAIN_NS));
    Py_RETURN_NONE;
}

/* End a daemon thread whose wait the exit has ended, by SystemExit, which prints no traceback. Returns false before the exit. */
bool py_end_here(void)
{
    if (!exiting || exits_in != getpid() || pthread_equal(exit_thread, pthread_self()))
        return false;
    PyErr_SetNone(PyExc_SystemExit);
    return true;
}

static void exit_end(int code, void *unused)
{
    (void)unused;
    if ((code & 255) == 0 && may_leave && exits_in == getpid() && rank_initialized())
        rank_finalize();
}

static PyMethodDef exit_method = PY_PLAIN("leave", exit_begin, NULL);

/* Let the end of the program leave the world, once a process. Returns false with an exception set. */
static bool exit_prepare(void)
{
    if (exits_in == getpid())
        return true;
    PyObject *function = PyCFunction_New(&exit_method, NULL), *atexit = PyImport_ImportModule("atexit");
    PyObject *result = function && atexit ? PyObject_CallMethod(atexit, "register", "O", function) : NULL;
    bool good = result && on_exit(exit_end, NULL) == 0; /* after rank_init: before the exit handler of the library */
    Py_XDECREF(result);
    Py_XDECREF(atexit);
    Py_XDECREF(function);
    if (good)
        exits_in = getpid();
    else if (!PyErr_Occurred())
        PyErr_NoMemory();
    return good;
}

static PyObject *init_call(PyObject *module, PyObject *unused)
{
    rank_init_opts_t opts = RANK_INIT_OPTS_INIT;
    rank_status_t status;
    (void)module, (void)unused;
    opts.thread_level = RANK_THREAD_MULTIPLE;
    opts.quiet = 1; /* an exception has the reason */
    Py_BEGIN_ALLOW_THREADS
    status = rank_init(&opts);
    Py_END_ALLOW_THREADS
    return status == RANK_OK && !exit_prepare() ? NULL : py_none_or_raise("init", status);
}

static PyObject *world_call(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    py_context *owner = world_of("world");
    return owner ? py_team_new(owner, rank_world(), false) : NULL;
}

static PyObject *finalize_call(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    if (exiting && exits_in == getpid() && rank_initialized()) /* an exit handler of the program: exit_end leaves the world */
        Py_RETURN_NONE;
    py_context *owner = world_of("finalize");
    if (!owner)
        return NULL;
    if (owner->exports > 0) {
        PyErr_Format(PyExc_BufferError, "finalize: %zd views show symmetric memory, which ends now; delete them first", owner->exports);
        return NULL;
    }
    rank_status_t status = py_context_shut(owner, 0);
    world_context = NULL; /* objects of this world keep theirs */
    Py_DECREF((PyObject *)owner);
    return py_none_or_raise("finalize", status);
}

static PyObject *initialized_call(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(rank_initialized());
}

static PyObject *abort_call(PyObject *module, PY_ARGS)
{
    static const char *const names[] = {"code", "text", NULL};
    PyObject *in[2];
    int64_t code = 1;
    (void)module;
    if (!py_arguments("abort", names, 0, args, nargs, kwnames, in) || !py_integer(in[0], &code))
        return NULL;
    const char *text = in[1] && in[1] != Py_None ? PyUnicode_AsUTF8AndSize(in[1], NULL) : NULL;
    if (PyErr_Occurred())
        return NULL;
    rank_abort((int)(code & 255), text);
}

static PyObject *wtime_call(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyFloat_FromDouble(rank_wtime());
}

static PyMethodDef world_functions[] = {
    PY_METHOD("abort", abort_call, "abort(code=1, text=None): end all ranks of the job; does not return"),
    PY_PLAIN("wtime", wtime_call, "wtime(): returns seconds of a clock that all ranks of a host share"),
    PY_PLAIN("init", init_call, "init(): join the world of the launcher, or be alone in one; collective"),
    PY_PLAIN("world", world_call, "world(): returns the Team of all ranks"),
    PY_PLAIN("finalize", finalize_call, "finalize(): leave the world; collective"),
    PY_PLAIN("initialized", initialized_call, "initialized(): True between init() and finalize()"),
    {NULL, NULL, 0, NULL},
};

bool py_world_init(PyObject *module)
{
    return PyModule_AddFunctions(module, world_functions) == 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* py_error.c: raise an exception for a status. */
#include "py_rank.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define STATUS_COUNT(code, name, text) +1
enum { STATUSES = RANK_STATUS_MAP(STATUS_COUNT) };

static const struct {
    int code;
    const char *name;
} statuses[STATUSES] = {
#define STATUS_ROW(code, name, text) {code, #name},
    RANK_STATUS_MAP(STATUS_ROW)
};

static PyObject *error_base;
static PyObject *error_classes[STATUSES];

/* Make the name of the class: ERR_PEER_DEAD is PeerDeadError. ERR_SYSTEM would hide a class of Python. */
static void error_name(const char *status, char *name, size_t size)
{
    size_t n = 0;
    bool upper = true;
    if (strcmp(status, "ERR_SYSTEM") == 0)
        status = "ERR_SYSTEM_CALL";
    for (const char *c = status + strlen("ERR_"); *c && n + sizeof("Error") < size; c++) {
        if (*c == '_') {
            upper = true;
            continue;
        }
        name[n++] = upper ? *c : (char)tolower((unsigned char)*c);
        upper = false;
    }
    memcpy(name + n, "Error", sizeof("Error"));
}

/* The class of Python that the status has, too. */
static PyObject *error_parent(int code)
{
    switch (code) {
    case RANK_ERR_TIMED_OUT: return PyExc_TimeoutError;
    case RANK_ERR_NO_MEMORY: return PyExc_MemoryError;
    case RANK_ERR_REFUSED: return PyExc_ConnectionRefusedError;
    case RANK_ERR_CLOSED: return PyExc_ConnectionError;
    case RANK_ERR_PEER_DEAD: return PyExc_ConnectionError;
    case RANK_ERR_UNREACHABLE: return PyExc_ConnectionError;
    case RANK_ERR_ARG: return PyExc_ValueError;
    default: return NULL;
    }
}

static bool error_add(PyObject *module, int i)
{
    char name[64], full[80];
    PyObject *parent = error_parent(statuses[i].code);
    error_name(statuses[i].name, name, sizeof(name));
    snprintf(full, sizeof(full), "rank.%s", name);
    PyObject *bases = parent ? PyTuple_Pack(2, error_base, parent) : PyTuple_Pack(1, error_base);
    PyObject *dict = Py_BuildValue("{s:i}", "status", statuses[i].code);
    if (bases && dict)
        error_classes[i] = PyErr_NewException(full, bases, dict);
    Py_XDECREF(bases);
    Py_XDECREF(dict);
    return error_classes[i] && PyModule_AddObjectRef(module, name, error_classes[i]) == 0;
}

bool py_error_init(PyObject *module)
{
    PyObject *dict = Py_BuildValue("{s:i}", "status", 0);
    error_base = dict ? PyErr_NewException("rank.Error", NULL, dict) : NULL;
    Py_XDECREF(dict);
    if (!error_base || PyModule_AddObjectRef(module, "Error", error_base) < 0)
        return false;
    for (int i = 0; i < STATUSES; i++) {
        if (statuses[i].code != RANK_OK && !error_add(module, i))
            return false;
    }
    return true;
}

static int status_index(rank_status_t status)
{
    for (int i = 0; i < STATUSES; i++) {
        if (statuses[i].code == (int)status)
            return i;
    }
    return -1;
}

/* Is the present exception one of the library, and none of a signal handler? */
bool py_error_is_ours(void)
{
    return PyErr_ExceptionMatches(error_base);
}

/* The text has the cause, if the library has given one to this thread. */
PyObject *py_raise(const char *call, rank_status_t status)
{
    return py_raise_reason(call, status, rank_status_reason(status));
}

/* Terms of rank.h that differ in this module by more than the prefix. */
static const struct {
    const char *c, *python;
} words[] = {
    {"a secret, or RANK_CONN_OPEN", "secret=, or open=True"},
    {"opts.secret", "secret="},
    {"opts has a negative number, an unknown flag, or reserved is not 0", "max_conns, backlog or a time is negative"},
    {"opts->", ""},
    {"NULL", "None"},
    {"RANK_IN_PLACE is for that", "leave out recvbuf for that"},
    {"rank_rkey_pack has written", "pack() or keys() returned"},
    {"the port that rank_listener_address returns", "that of Listener.address"},
};

/* Copy a word of a reason in the names of Python. Returns what follows it. */
static const char *reason_word(const char *in, char *out, size_t size)
{
    size_t len = strspn(in, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    bool call = len > strlen("rank_") && strncmp(in, "rank_", strlen("rank_")) == 0;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strncmp(in, words[i].c, strlen(words[i].c)) == 0) {
            snprintf(out, size, "%s", words[i].python);
            return in + strlen(words[i].c);
        }
    }
    if (len == 0)
        len = 1;
    if (call || (strncmp(in, "RANK_", strlen("RANK_")) == 0 && py_constant(in + strlen("RANK_"), len - strlen("RANK_"))))
        snprintf(out, size, "%.*s%s", (int)(len - strlen("rank_")), in + strlen("rank_"), call && in[len] != '(' ? "()" : "");
    else
        snprintf(out, size, "%.*s", (int)len, in);
    return in + len;
}

PyObject *py_raise_reason(const char *call, rank_status_t status, const char *reason)
{
    const char *colon = strncmp(reason, "rank_", strlen("rank_")) == 0 ? strstr(reason, ": ") : NULL; /* behind the call in C */
    char text[512] = "";
    size_t n = 0;
    int i = status_index(status);
    for (const char *in = colon ? colon + 2 : reason; *in && n < sizeof(text) - 1; n += strlen(text + n))
        in = reason_word(in, text + n, sizeof(text) - n);
    PyErr_Format(i < 0 ? error_base : error_classes[i], "%s: %s (RANK_%s)", call, text, i < 0 ? "ERR_?" : statuses[i].name);
    return NULL;
}

PyObject *py_raise_text(rank_status_t status, const char *format, ...)
{
    va_list list;
    int i = status_index(status);
    va_start(list, format);
    PyErr_FormatV(i < 0 ? error_base : error_classes[i], format, list);
    va_end(list);
    return NULL;
}

PyObject *py_none_or_raise(const char *call, rank_status_t status)
{
    if (status != RANK_OK)
        return py_raise(call, status);
    Py_RETURN_NONE;
}

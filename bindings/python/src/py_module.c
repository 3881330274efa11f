/* SPDX-License-Identifier: BSD-3-Clause */
/* py_module.c: make the module _rank: types, exceptions, constants. */
#include "py_rank.h"

#include <string.h>

PyTypeObject *py_type(PyObject *module, PyType_Spec *spec, PyObject *bases, const char *name)
{
    PyObject *type = PyType_FromSpecWithBases(spec, bases);
    if (type && PyModule_AddObjectRef(module, name, type) < 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}

/* __enter__ of all classes that have it. */
PyObject *py_self(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

/* End __exit__, given what the close returned. An error of the close does not replace an exception of the block. */
PyObject *py_exit(PyObject *closed, PyObject *const *args, Py_ssize_t nargs)
{
    if (closed || nargs == 0 || args[0] == Py_None)
        return closed;
    PyErr_Clear();
    Py_RETURN_NONE;
}

static const struct {
    const char *name;
    int64_t value;
} constants[] = {
    {"ANY_SOURCE", RANK_ANY_SOURCE},
    {"ANY_TAG", RANK_ANY_TAG},
    {"PROC_NULL", RANK_PROC_NULL},
    {"ACCESS_READ", RANK_ACCESS_READ},
    {"ACCESS_WRITE", RANK_ACCESS_WRITE},
    {"NOTICE_MAX", RANK_NOTICE_MAX},
    {"SIGNAL_SET", RANK_SIGNAL_SET},
    {"SIGNAL_ADD", RANK_SIGNAL_ADD},
    {"CMP_EQ", RANK_CMP_EQ},
    {"CMP_NE", RANK_CMP_NE},
    {"CMP_GT", RANK_CMP_GT},
    {"CMP_GE", RANK_CMP_GE},
    {"CMP_LT", RANK_CMP_LT},
    {"CMP_LE", RANK_CMP_LE},
    {"SUM", RANK_SUM},
    {"PROD", RANK_PROD},
    {"MIN", RANK_MIN},
    {"MAX", RANK_MAX},
    {"AVG", RANK_AVG},
    {"LAND", RANK_LAND},
    {"LOR", RANK_LOR},
    {"LXOR", RANK_LXOR},
    {"BAND", RANK_BAND},
    {"BOR", RANK_BOR},
    {"BXOR", RANK_BXOR},
};

/* Has the module a constant of this name? */
bool py_constant(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
        if (strlen(constants[i].name) == len && memcmp(constants[i].name, name, len) == 0)
            return true;
    }
    return false;
}

static bool module_constants(PyObject *module)
{
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
        PyObject *value = PyLong_FromLongLong(constants[i].value);
        int added = value ? PyModule_AddObjectRef(module, constants[i].name, value) : -1;
        Py_XDECREF(value);
        if (added < 0)
            return false;
    }
    return PyModule_AddStringConstant(module, "__version__", rank_version()) == 0;
}

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT, .m_name = "rank._rank", .m_doc = "Messages and memory between processes.", .m_size = -1};

PyMODINIT_FUNC PyInit__rank(void)
{
    PyObject *module = PyModule_Create(&module_def);
    if (!module)
        return NULL;
    if (!py_error_init(module) || !py_fold_init() || !py_request_init(module) || !py_context_init(module) || !py_world_init(module) || !py_listener_init(module) ||
        !py_team_init(module) || !py_message_init(module) || !py_memory_init(module) || !py_symmetric_init(module) || !py_remote_init(module) || !module_constants(module))
        Py_CLEAR(module);
    return module;
}

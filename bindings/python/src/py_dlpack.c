/* SPDX-License-Identifier: BSD-3-Clause */
/* py_dlpack.c: take tensors of the CPU by DLPack without a copy. */
#include "py_rank.h"

/* The stable ABI of DLPack, as its header dlpack.h declares it. */
struct dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides; /* strides in items, NULL: C order */
    uint64_t byte_offset;
};

enum { DL_CPU = 1, DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_COMPLEX = 5, DL_BOOL = 6 };

/* The format of the items for py_buffer_dtype. Items of other types have a format that has no datatype. */
static const char *tensor_format(const struct dl_tensor *tensor)
{
    static const struct {
        uint8_t code, bits;
        const char *format;
    } formats[] = {
        {DL_INT, 8, "b"},     {DL_INT, 16, "h"},     {DL_INT, 32, "i"},      {DL_INT, 64, "q"},       {DL_UINT, 8, "B"},
        {DL_UINT, 16, "H"},   {DL_UINT, 32, "I"},    {DL_UINT, 64, "Q"},     {DL_FLOAT, 16, "e"},     {DL_FLOAT, 32, "f"},
        {DL_FLOAT, 64, "d"},  {DL_BFLOAT, 16, "bf16"}, {DL_COMPLEX, 64, "Zf"}, {DL_COMPLEX, 128, "Zd"}, {DL_BOOL, 8, "?"},
    };
    for (size_t i = 0; tensor->lanes == 1 && i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (formats[i].code == tensor->code && formats[i].bits == tensor->bits)
            return formats[i].format;
    }
    return "unknown";
}

/* Get the number of items. Returns -1 if they are not contiguous in C order. */
static int64_t tensor_items(const struct dl_tensor *tensor)
{
    int64_t items = 1, expected = 1;
    for (int32_t i = 0; i < tensor->ndim; i++)
        items *= tensor->shape[i];
    for (int32_t i = tensor->ndim - 1; items > 0 && tensor->strides && i >= 0; i--) {
        if (tensor->shape[i] != 1 && tensor->strides[i] != expected)
            return -1;
        expected *= tensor->shape[i];
    }
    return items;
}

/* Check the device before the export, which may copy or synchronize. Returns false with an exception set. */
static bool tensor_on_cpu(const char *call, PyObject *object)
{
    int type, id;
    PyObject *device = PyObject_CallMethod(object, "__dlpack_device__", NULL);
    if (!device)
        return false;
    bool parsed = PyArg_ParseTuple(device, "ii:__dlpack_device__", &type, &id);
    Py_DECREF(device);
    if (parsed && type != DL_CPU)
        PyErr_Format(PyExc_BufferError, "%s: the tensor must be in memory of the CPU, not of DLPack device %d", call, type);
    return parsed && type == DL_CPU;
}

/* The view owns the capsule, which keeps the tensor. Returns 1, 0 if the object has no DLPack, -1 with an exception set. */
int py_dlpack_view(const char *call, PyObject *object, Py_buffer *view)
{
    if (!PyObject_HasAttrString(object, "__dlpack__") || !PyObject_HasAttrString(object, "__dlpack_device__"))
        return 0;
    PyObject *capsule = tensor_on_cpu(call, object) ? PyObject_CallMethod(object, "__dlpack__", NULL) : NULL;
    const struct dl_tensor *tensor = capsule ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;
    int result = -1;
    if (tensor) {
        int64_t items = tensor_items(tensor);
        Py_ssize_t item = (tensor->bits * tensor->lanes + 7) / 8;
        if (items < 0) {
            PyErr_Format(PyExc_BufferError, "%s: the tensor must be contiguous", call);
        } else if (PyBuffer_FillInfo(view, capsule, (char *)tensor->data + tensor->byte_offset, (Py_ssize_t)items * item, 0,
                                     PyBUF_WRITABLE) == 0) {
            view->itemsize = item;
            view->format = (char *)tensor_format(tensor);
            view->ndim = tensor->ndim;
            view->shape = (Py_ssize_t *)tensor->shape; /* of 64 bits as all of librank */
            result = 1;
        }
    }
    Py_XDECREF(capsule);
    return result;
}

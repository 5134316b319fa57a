/* The module elugcn.compiled._loops; addresses are numbers, which __init__.py checks. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "common.h"

typedef unsigned long long Address;
#define AT(type, address) ((type *)(uintptr_t)(address))

/* Other threads of Python may run meanwhile. */
#define FREELY(...)         \
    Py_BEGIN_ALLOW_THREADS  \
    __VA_ARGS__;            \
    Py_END_ALLOW_THREADS

static PyObject *py_draw_words(PyObject *self, PyObject *args) {
    Address state, out;
    long long count;
    (void)self;
    if (!PyArg_ParseTuple(args, "KKL", &state, &out, &count)) return NULL;
    FREELY(draw_words(AT(void, state), AT(uint64_t, out), count))
    Py_RETURN_NONE;
}

static PyObject *py_activated_product(PyObject *self, PyObject *args) {
    Address z, bias, drawn, h, weight, out;
    Hidden a;
    long long rows, width, stride;
    (void)self;
    if (!PyArg_ParseTuple(args, "KKKiKKKLLLi", &z, &bias, &drawn, &a.level, &h, &weight,
                          &out, &rows, &width, &stride, &a.c))
        return NULL;
    a.z = AT(float, z), a.bias = AT(float, bias), a.drawn = AT(uint8_t, drawn);
    a.h = AT(float, h), a.weight = AT(float, weight), a.out = AT(float, out);
    a.rows = rows, a.width = width, a.stride = stride;
    FREELY(activated_product(&a))
    Py_RETURN_NONE;
}

static PyObject *py_activated_backward(PyObject *self, PyObject *args) {
    Address grad, weight, h, out, sums, bias;
    Back a;
    long long rows, width, stride;
    (void)self;
    if (!PyArg_ParseTuple(args, "KKKKKKLLLi", &grad, &weight, &h, &out, &sums, &bias,
                          &rows, &width, &stride, &a.c))
        return NULL;
    a.grad = AT(float, grad), a.weight = AT(float, weight), a.h = AT(float, h);
    a.out = AT(float, out), a.sums = AT(float, sums), a.bias = AT(float, bias);
    a.rows = rows, a.width = width, a.stride = stride;
    FREELY(activated_backward(&a))
    Py_RETURN_NONE;
}

static PyObject *py_keep(PyObject *self, PyObject *args) {
    Address x, drawn, out;
    int level;
    long long count;
    (void)self;
    if (!PyArg_ParseTuple(args, "KKiKL", &x, &drawn, &level, &out, &count)) return NULL;
    FREELY(keep(AT(float, x), AT(uint8_t, drawn), level, AT(float, out), count))
    Py_RETURN_NONE;
}

static PyObject *py_ones(PyObject *self, PyObject *args) {
    Address drawn, never, out;
    int level;
    long long count;
    (void)self;
    if (!PyArg_ParseTuple(args, "KKiKL", &drawn, &never, &level, &out, &count))
        return NULL;
    FREELY(ones(AT(uint8_t, drawn), AT(uint8_t, never), level, AT(float, out), count))
    Py_RETURN_NONE;
}

static PyObject *py_two_views(PyObject *self, PyObject *args) {
    Address wide, grad, weight, bias, sums, target, each, kind, d, room;
    long long n;
    int c;
    Scales s;
    double loss;
    (void)self;
    if (!PyArg_ParseTuple(args, "KKKKKKKKKLiffffK", &wide, &grad, &weight, &bias, &sums,
                          &target, &each, &kind, &d, &n, &c, &s.tau, &s.eta, &s.contrast,
                          &s.entropy, &room))
        return NULL;
    FREELY(loss = two_views(AT(float, wide), AT(float, grad), AT(float, weight),
                            AT(float, bias), AT(double, sums), AT(int64_t, target),
                            AT(float, each), AT(int8_t, kind), AT(float, d), n, c, s,
                            AT(void, room)))
    return PyFloat_FromDouble(loss);
}

static PyMethodDef methods[] = {
    {"draw_words", py_draw_words, METH_VARARGS, NULL},
    {"activated_product", py_activated_product, METH_VARARGS, NULL},
    {"activated_backward", py_activated_backward, METH_VARARGS, NULL},
    {"keep", py_keep, METH_VARARGS, NULL},
    {"ones", py_ones, METH_VARARGS, NULL},
    {"two_views", py_two_views, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_loops", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__loops(void) { return PyModule_Create(&module); }
